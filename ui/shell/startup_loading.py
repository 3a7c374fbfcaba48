"""Import what is behind a window that is in use already, or say in that window why the program cannot start."""

import asyncio
import gc
import importlib
from collections.abc import Callable, Iterable

from desktop_agent.types.errors import AgentError
from ui.shell.startup_window import StartupWindow


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


async def show_startup_error(startup: StartupWindow, error: AgentError) -> None:
    """Returns when the program is ended. Until then what was written can be copied, also what was sent."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_end() -> None:
        if not ended.done():
            ended.set_result(None)

    startup.ended.connect(on_end)
    if not startup.is_ended:
        startup.window.frame.hand_back()
        # Who closed the banner reads it again.
        startup.window.frame.composer.send_requested.connect(lambda: startup.window.show_problem(error))
        startup.window.show_problem(error)
        await ended
    startup.close_window()
