"""The screen and the application on it."""

import os
import sys

from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication

from ui.look.style import application

NO_DISPLAY = (
    "Desktop Agent needs a screen, and there is none: neither DISPLAY nor WAYLAND_DISPLAY is set. "
    "Start it in a desktop session, or ask from the terminal: desktop-agent ask PROMPT\n"
)

DISPLAY_GONE = (
    "Desktop Agent needs a screen, and the one that is named (DISPLAY, WAYLAND_DISPLAY) does not answer. "
    "Start it in a desktop session, or ask from the terminal: desktop-agent ask PROMPT\n"
)


def has_display() -> bool:
    """Whether Qt can open a window here."""
    if sys.platform in {"win32", "darwin"} or os.environ.get("QT_QPA_PLATFORM"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_application() -> QApplication:
    """Qt's application under our name. Where the screen does not answer, the process ends with 2 and a sentence."""
    before = qInstallMessageHandler(_explain_no_display)
    app = application(sys.argv[:1])
    qInstallMessageHandler(before)
    app.setApplicationName("desktop-agent")
    app.setApplicationDisplayName("Desktop Agent")
    app.setDesktopFileName("desktop-agent")
    return app


def _explain_no_display(kind: QtMsgType, _context: QMessageLogContext, message: str) -> None:
    """Qt aborts the process where no screen answers; there is no error to catch, only this last message."""
    sys.stderr.write(f"{message.strip()}\n")
    if kind is QtMsgType.QtFatalMsg:
        sys.stderr.write(DISPLAY_GONE)
        sys.stderr.flush()
        os._exit(2)
