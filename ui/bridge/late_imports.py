"""Import what is behind a window that is in use already."""

import asyncio
import gc
import importlib
from collections.abc import Callable, Iterable


async def import_in_thread(module: str) -> None:
    """Import a module in a thread, so that no frame and no key waits. Nothing of it may import Qt.

    PySide6 makes its types when they are first named, which crashes while the window uses others. Python collects
    garbage in whatever thread makes objects, and Qt's objects must be deleted in their own.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        await asyncio.to_thread(importlib.import_module, module)
    finally:
        if was_on:
            gc.enable()


async def import_in_slices(modules: Iterable[str], is_closed: Callable[[], bool] = lambda: False) -> None:
    """Import modules here until the window is closed. Between two of them it handles its events."""
    for module in modules:
        if is_closed():
            return
        importlib.import_module(module)
        await asyncio.sleep(0)
