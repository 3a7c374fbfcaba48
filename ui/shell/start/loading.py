"""Importing behind the back of a window that is in use."""

import asyncio
import gc
import importlib
from collections.abc import Callable, Iterable


async def import_in_thread(room: str) -> None:
    """Import it in a thread, so that neither a frame nor what is typed waits. Nothing of it may import Qt.

    PySide6 makes its types when they are first named, which crashes while the window uses others. Python looks for
    garbage in whatever thread makes objects, and Qt's must go in the one that they were made in.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        await asyncio.to_thread(importlib.import_module, room)
    finally:
        if was_on:
            gc.enable()


async def import_in_slices(rooms: Iterable[str], is_left: Callable[[], bool] = lambda: False) -> None:
    """Import them here, one after the other, until it is left; between two of them the window does what waits."""
    for room in rooms:
        if is_left():
            return
        importlib.import_module(room)
        await asyncio.sleep(0)
