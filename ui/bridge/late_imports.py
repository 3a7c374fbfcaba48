"""Import modules while the window is already in use."""

import asyncio
import gc
import importlib
from collections.abc import Callable, Iterable


async def import_in_thread(module: str) -> None:
    """Import a module in a thread, so that no frame and no key waits. It must not import Qt.

    PySide6 creates its types when they are first used, which crashes while the window uses others. Garbage collection
    is off meanwhile: Python would collect in this thread, and Qt's objects must be deleted in their own.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        await asyncio.to_thread(importlib.import_module, module)
    finally:
        if was_enabled:
            gc.enable()


async def import_in_slices(modules: Iterable[str], is_closed: Callable[[], bool] = lambda: False) -> None:
    """Import modules here until the window is closed. Between two of them it handles its events."""
    for module in modules:
        if is_closed():
            return
        importlib.import_module(module)
        await asyncio.sleep(0)
