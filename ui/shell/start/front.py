"""The window before there is anything behind it."""

from pathlib import Path

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QApplication, QWidget

from ui.composer.message_editor import MessageEditor
from ui.look.scheme import ColourSchemeFollower
from ui.look.style import ThemeApplier
from ui.look.theme import ThemeSource
from ui.shell.kept_look import WindowStateFile, load_appearance, load_enter_sends
from ui.shell.window import MainWindow

_FOCUS_MS = 100
"""A window manager gives the keyboard within this, or not at all."""


class StartupWindow(QObject):
    """The look, the window, and where both are kept."""

    ready = Signal()
    """Painted, and the composer has the keyboard if it gets it at all."""
    ended = Signal()
    """The person or the system ends the program. It may be said again."""

    def __init__(self, app: QApplication, themes: ThemeSource, folder: Path) -> None:
        super().__init__(app)
        self.app = app
        self.themes = themes
        self.state_file = WindowStateFile(folder)
        self.scheme = ColourSchemeFollower(themes, app.styleHints(), self)
        choice, zoom, reading = load_appearance(self.state_file)
        themes.set_reading_style(reading)
        self.scheme.choose(choice, zoom)
        self._style = ThemeApplier(app, themes, self)
        self.window = MainWindow(themes)
        # Before the preferences are read, too, Enter must not send what was to go on in a new line.
        self.window.frame.composer.set_enter_sends(load_enter_sends(self.state_file))
        self.is_ended = False
        """Whether the person or the system has ended the program by now."""
        self.can_ask = True
        """Whether the person can still be asked what to do with what could not be saved."""
        self.window.close_requested.connect(self.end)
        app.aboutToQuit.connect(self.end_without_asking)

    def show(self) -> None:
        """Where the window was at the last end, ready for what the person writes."""
        self.window.restore_window_state(self.state_file)
        paint = _PaintProbe(self.window)
        paint.painted.connect(self._on_painted)
        self._editor.setFocus(Qt.FocusReason.OtherFocusReason)
        self.window.show()

    def end(self) -> None:
        """The program is to end, whole or not."""
        self.is_ended = True
        self.ended.emit()

    def end_without_asking(self) -> None:
        """The same, by the system: nobody may be there to answer."""
        self.can_ask = False
        self.end()

    def cancel_end(self) -> None:
        """The person took it back."""
        self.is_ended = False

    @property
    def can_close(self) -> bool:
        """Whether it is ended, and nothing was written that would have to be kept."""
        return self.is_ended and not self.window.frame.has_unsaved_text

    def close_window(self) -> None:
        """Keep the place, take the window away."""
        self.window.save_window_state(self.state_file)
        self.window.allow_closing()
        self.window.close()
        self.window.deleteLater()

    def raise_window(self) -> None:
        """Come to the front: the program was started again."""
        self.window.setWindowState(self.window.windowState() & ~Qt.WindowState.WindowMinimized)
        self.window.show()
        self.window.raise_()
        self.window.activateWindow()

    @property
    def _editor(self) -> MessageEditor:
        return self.window.frame.composer.editor

    def _on_painted(self) -> None:
        if self._editor.hasFocus():
            self.ready.emit()
        else:
            self._editor.focus_changed.connect(self.ready, Qt.ConnectionType.SingleShotConnection)
            QTimer.singleShot(_FOCUS_MS, self.window, self._on_focus_timeout)

    def _on_focus_timeout(self) -> None:
        self.window.frame.composer.frame.mark_focus(focused=self._editor.hasFocus())
        self.ready.emit()


class _PaintProbe(QWidget):
    """A dot that nobody sees: it is painted with the window, and says so once. A filter of events would cost more."""

    painted = Signal()

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.resize(1, 1)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: ARG002  Qt's name
        """What is painted in this turn of the loop is on the screen in the next."""
        QTimer.singleShot(0, self, self._notify)

    def _notify(self) -> None:
        self.painted.emit()
        self.deleteLater()
