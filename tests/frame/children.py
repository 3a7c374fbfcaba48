"""The processes that a test itself started. Others of the same run, such as a display, may be there all the time."""

from collections.abc import Callable

import psutil
import pytest

Children = Callable[[], list[psutil.Process]]


@pytest.fixture
def new_children() -> Children:
    """Return a function that lists the live processes below this one that were not there when the test began."""
    before = set(psutil.Process().children(recursive=True))

    def living() -> list[psutil.Process]:
        new = set(psutil.Process().children(recursive=True)) - before
        return [process for process in new if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]

    return living
