"""Loading the library of the protocol, in a thread, makes so much that garbage is collected there."""

import gc

import pytest


@pytest.fixture(autouse=True)
def collected_here():
    """Collect Qt's objects of earlier tests in this thread: destroyed in another one, their timers would live on."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
