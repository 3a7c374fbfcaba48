"""Loading the library of the protocol, in a thread, makes so much that garbage is collected there."""

import gc

import pytest


@pytest.fixture(autouse=True)
def collected_here():
    """Qt's objects of the tests before must not be destroyed in another thread: their timers would live on."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
