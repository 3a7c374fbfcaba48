"""The screen and the application on it."""

import os
import sys
from collections.abc import Callable

from PySide6.QtCore import QMessageLogContext, QtMsgType, qFormatLogMessage, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from ui.look.style import create_application

NO_DISPLAY = (
    "Desktop Agent needs a screen, and there is none: neither DISPLAY nor WAYLAND_DISPLAY is set. "
    "Start it in a desktop session, or ask from the terminal: desktop-agent ask PROMPT\n"
)

DISPLAY_SILENT = (
    "Desktop Agent needs a screen, and the one that is named (DISPLAY, WAYLAND_DISPLAY) does not answer. "
    "Start it in a desktop session, or ask from the terminal: desktop-agent ask PROMPT\n"
)


DISPLAY_LOST = "The screen is gone: its server has ended. Start Desktop Agent again in a desktop session to go on.\n"
ALL_SAVED = "What was said and what was being written is kept.\n"
NOT_ALL_SAVED = "Not all of what was said last, or was being written, could be kept.\n"

# What Qt 6 says before it calls exit(): QXcbConnection::processXcbEvents, QWaylandDisplay::checkWaylandError.
_CONNECTION_LOST = (
    "The X11 connection broke",
    "The Wayland connection broke",
    "The Wayland connection experienced a fatal error",
)


def has_display() -> bool:
    """Whether Qt can open a window here."""
    if sys.platform in {"win32", "darwin"} or os.environ.get("QT_QPA_PLATFORM"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_application() -> QApplication:
    """Qt's application under our name. Where the screen does not answer, the process ends with 2 and a sentence."""
    before = qInstallMessageHandler(_explain_no_display)
    app = create_application(sys.argv[:1])
    qInstallMessageHandler(before)
    app.setApplicationName("desktop-agent")
    app.setApplicationDisplayName("Desktop Agent")
    app.setDesktopFileName("desktop-agent")
    return app


def on_display_lost(save: Callable[[], bool]) -> Callable[[], object]:
    """Have what lasts saved when the server of the screen ends, and end with 1; returns what undoes this.

    Qt has no signal for it: it says one line and ends the process, from within its loop, which does not go on. `save`
    is called in that line, in the thread of the window, and answers whether all is kept.
    """

    def on_message(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
        if message.startswith(_CONNECTION_LOST):
            is_kept = save()
            sys.stderr.write(DISPLAY_LOST + (ALL_SAVED if is_kept else NOT_ALL_SAVED))
            sys.stderr.flush()
            os._exit(1)
        if before is not None:
            before(kind, context, message)
        else:
            sys.stderr.write(f"{qFormatLogMessage(kind, context, message)}\n")

    before = qInstallMessageHandler(on_message)
    return lambda: qInstallMessageHandler(before)


def _explain_no_display(kind: QtMsgType, _context: QMessageLogContext, message: str) -> None:
    """Qt aborts the process where no screen answers; there is no error to catch, only this last message."""
    sys.stderr.write(f"{message.strip()}\n")
    if kind is QtMsgType.QtFatalMsg:
        sys.stderr.write(DISPLAY_SILENT)
        sys.stderr.flush()
        os._exit(2)
