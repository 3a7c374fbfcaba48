"""Qt's loop alone, until one can write in the window: asyncio is imported while the person reads."""

from PySide6.QtCore import QEventLoop, QTimer

from ui.shell.start.front import StartupWindow

_PAINT_TIMEOUT_MS = 1000
"""A window that starts minimised or covered is never painted; what is behind it is made all the same."""


def run_until_painted(startup: StartupWindow) -> None:
    """Show the window; returns when it is painted and has the keyboard, or will not get it."""
    loop = QEventLoop()
    startup.ready.connect(loop.quit)
    QTimer.singleShot(_PAINT_TIMEOUT_MS, loop.quit)
    startup.show()
    loop.exec()
