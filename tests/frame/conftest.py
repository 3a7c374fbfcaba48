import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def garbage_is_collected_seldom() -> Iterator[None]:
    """Trees of all sources are made here, and going through them again and again takes as long as making them."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 50, 100)
    yield
    gc.set_threshold(*before)
