"""The start up to the first paint: the screen, Qt's application, and the window before anything is behind it."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import (
    QEventLoop,
    QMessageLogContext,
    QObject,
    QTimer,
    QtMsgType,
    Signal,
    qFormatLogMessage,
    qInstallMessageHandler,
)
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QApplication, QWidget

from ui.bridge.desktop.window_state import WindowStateFile
from ui.bridge.single_instance import StartRequest
from ui.composer.message_editor import MessageEditor
from ui.shell.window import MainWindow, load_appearance, load_enter_sends, load_language
from ui.style.controls import show_in_front
from ui.style.languages import install_language
from ui.style.style_sheet import ThemeApplier, create_application
from ui.style.theme import ColourSchemeFollower, ThemeSource

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

# Qt 6 logs these before it calls exit(): QXcbConnection::processXcbEvents, QWaylandDisplay::checkWaylandError.
_CONNECTION_LOST = (
    "The X11 connection broke",
    "The Wayland connection broke",
    "The Wayland connection experienced a fatal error",
)


def has_display() -> bool:
    """Return whether Qt can open a window here."""
    if sys.platform in {"win32", "darwin"} or os.environ.get("QT_QPA_PLATFORM"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_application() -> QApplication:
    """Create Qt's application under our name. If the screen does not answer, the process ends with 2 and a sentence."""
    previous_handler = qInstallMessageHandler(_explain_no_display)
    app = create_application(sys.argv[:1])
    qInstallMessageHandler(previous_handler)
    app.setApplicationName("desktop-agent")
    app.setApplicationDisplayName("Desktop Agent")
    app.setDesktopFileName("desktop-agent")
    return app


def on_display_lost(save: Callable[[], bool]) -> Callable[[], object]:
    """Call `save` when the display server ends, then exit with 1. Returns a function that undoes this.

    Qt has no signal for it: it logs one line and ends the process from within its loop. `save` is called by the message
    handler of that line, in the window's thread, and returns whether all is saved.
    """

    def on_message(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
        if message.startswith(_CONNECTION_LOST):
            is_kept = save()
            sys.stderr.write(DISPLAY_LOST + (ALL_SAVED if is_kept else NOT_ALL_SAVED))
            sys.stderr.flush()
            os._exit(1)
        if previous_handler is not None:
            previous_handler(kind, context, message)
        else:
            sys.stderr.write(f"{qFormatLogMessage(kind, context, message)}\n")

    previous_handler = qInstallMessageHandler(on_message)
    return lambda: qInstallMessageHandler(previous_handler)


def _explain_no_display(kind: QtMsgType, _context: QMessageLogContext, message: str) -> None:
    """Explain that no screen answers: Qt then aborts the process after this last message, without an exception."""
    sys.stderr.write(f"{message.strip()}\n")
    if kind is QtMsgType.QtFatalMsg:
        sys.stderr.write(DISPLAY_SILENT)
        sys.stderr.flush()
        os._exit(2)


_FOCUS_MS = 100
"""Milliseconds after which a window manager will not give the focus any more."""


class StartupWindow(QObject):
    """The theme, the window, and the file with the state of both."""

    ready = Signal()
    """Painted, and the composer has the focus if it gets it at all."""
    ended = Signal()
    """The person or the system ends the program. May be emitted again."""
    started_again = Signal()
    """`start_requests` has one more request."""

    def __init__(self, app: QApplication, themes: ThemeSource, folder: Path) -> None:
        super().__init__(app)
        self.app = app
        self.themes = themes
        self.state_file = WindowStateFile(folder)
        self.scheme = ColourSchemeFollower(themes, app.styleHints(), self)
        # Before any widget is created: an existing one would keep its language.
        install_language(app, load_language(self.state_file))
        choice, zoom, reading = load_appearance(self.state_file)
        themes.set_reading_style(reading)
        self.scheme.guess(choice, zoom)
        style = ThemeApplier(app, themes, self)
        self.window = MainWindow(themes)
        # After the window is built: with a style sheet, each part would be restyled whenever its parent changes.
        style.apply()
        # The preferences are read later, but Enter must not send a message that the person wants to continue.
        self.window.frame.composer.set_enter_sends(load_enter_sends(self.state_file))
        self.is_ended = False
        """Whether the person or the system has ended the program."""
        self.can_ask = True
        """Whether the person can still be asked about unsaved content."""
        self.starts_again = False
        """Whether the person wants the program to start again when it has ended."""
        self.start_requests: list[StartRequest] = []
        """The requests of this start and later ones, until something handles them."""
        self.window.close_requested.connect(self._on_close_requested)
        app.aboutToQuit.connect(self._on_about_to_quit)

    def show(self) -> None:
        """Show the window with its last geometry, ready for input."""
        self._prepare()
        self.window.show()

    def stay_hidden(self) -> None:
        """Prepare the window without showing it."""
        self._prepare()
        # Create the native window, which other parts expect.
        self.window.winId()

    def _prepare(self) -> None:
        self.window.restore_window_geometry(self.state_file)
        paint = _PaintProbe(self.window)
        paint.painted.connect(self._on_painted)
        self._editor.setFocus()

    def end(self) -> None:
        """Begin the end of the program, also while it is still starting."""
        self.is_ended = True
        self.ended.emit()

    def _on_close_requested(self) -> None:
        self.starts_again = self.window.starts_again
        self.end()

    def end_without_asking(self) -> None:
        """End at the system's request without a question: the person may be away."""
        self.starts_again = False
        self._on_about_to_quit()

    def _on_about_to_quit(self) -> None:
        # Called also when the program ends by itself, to start again.
        self.can_ask = False
        self.end()

    def cancel_end(self) -> None:
        """Cancel the end of the program."""
        self.is_ended = self.starts_again = False

    @property
    def can_close(self) -> bool:
        """Whether the end has begun and nothing is unsaved."""
        return self.is_ended and not self.window.frame.has_unsaved_text

    def close_window(self) -> None:
        """Save the window's state and close it."""
        self.window.save_window_geometry(self.state_file)
        self.window.allow_closing()
        self.window.close()
        self.state_file.close()
        self.window.deleteLater()

    def on_started_again(self, request: StartRequest) -> None:
        """Raise the window, and add the request of the other start."""
        if not (request.background or request.quick_ask):
            self.raise_window()
        self.start_requests.append(request)
        self.started_again.emit()

    def raise_window(self) -> None:
        """Raise the window."""
        from PySide6.QtCore import Qt

        self.window.setWindowState(self.window.windowState() & ~Qt.WindowState.WindowMinimized)
        show_in_front(self.window)

    @property
    def _editor(self) -> MessageEditor:
        return self.window.frame.composer.editor

    def _on_painted(self) -> None:
        from PySide6.QtCore import Qt

        self.scheme.apply()
        if self._editor.hasFocus():
            self.ready.emit()
        else:
            self._editor.focus_changed.connect(self.ready, Qt.ConnectionType.SingleShotConnection)
            QTimer.singleShot(_FOCUS_MS, self.window, self._on_focus_timeout)

    def _on_focus_timeout(self) -> None:
        self.window.frame.composer.frame.mark_focus(focused=self._editor.hasFocus())
        self.ready.emit()


class _PaintProbe(QWidget):
    """An invisible dot that reports the window's first paint. An event filter would cost more."""

    painted = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.resize(1, 1)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002  Qt's name
        QTimer.singleShot(0, self, self._notify)

    def _notify(self) -> None:
        self.painted.emit()
        self.deleteLater()


_PAINT_TIMEOUT_MS = 1000
"""A window that starts minimised or covered is never painted; the start continues all the same."""


def run_until_painted(startup: StartupWindow) -> None:
    """Show the window. Returns when it is painted and has the keyboard focus, or will not get it."""
    loop = QEventLoop()
    startup.ready.connect(loop.quit)
    QTimer.singleShot(_PAINT_TIMEOUT_MS, loop.quit)
    startup.show()
    loop.exec()
