"""asyncio in Qt's own event loop, by qasync."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import qasync  # pyright: ignore[reportMissingTypeStubs] - it ships none; only the loop class is used
from PySide6.QtWidgets import QApplication


def run_event_loop(app: QApplication, main: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run `main` to its end inside Qt's loop; returns its exit code.

    The program ends when `main` returns, not when the last window closes: what is open is put away in order first.
    """
    app.setQuitOnLastWindowClosed(False)
    loop = cast("asyncio.AbstractEventLoop", qasync.QEventLoop(app))
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()
        asyncio.set_event_loop(None)
