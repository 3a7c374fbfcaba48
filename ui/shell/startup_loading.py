"""Import what is behind a window that is in use already, or say in that window why the program cannot start."""

import asyncio
import gc
import importlib
from collections.abc import Callable, Iterable

from desktop_agent.types.errors import AgentError
from ui.shell.startup_window import StartupWindow


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


async def show_startup_error(startup: StartupWindow, error: AgentError) -> None:
    """Return when the program is ended. Until then what was written and sent can be copied."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_end() -> None:
        if not ended.done():
            ended.set_result(None)

    startup.ended.connect(on_end)
    if not startup.is_ended:
        startup.window.frame.return_messages()
        # Show the banner again if it was closed.
        startup.window.frame.composer.send_requested.connect(lambda: startup.window.show_problem(error))
        startup.window.show_problem(error)
        await ended
    startup.close_window()
