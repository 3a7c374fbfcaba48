"""The processes that a test itself began: others of the same run, such as a screen, may be there all the time."""

from collections.abc import Callable

import psutil
import pytest

Children = Callable[[], list[psutil.Process]]


@pytest.fixture
def new_children() -> Children:
    """Ask for the living processes below this one that were not there when the test began."""
    before = set(psutil.Process().children(recursive=True))

    def living() -> list[psutil.Process]:
        new = set(psutil.Process().children(recursive=True)) - before
        return [each for each in new if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]

    return living
