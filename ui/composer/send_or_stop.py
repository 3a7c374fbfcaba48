"""Send or Stop, in one place."""

from PySide6.QtCore import QPoint, Signal
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QWidget

from ui.look.controls import IconButton
from ui.look.icons import icon
from ui.look.sentences import native_shortcut
from ui.look.theme import SPACE_XS, ThemeSource


class SendStopButton(QWidget):
    """Send while idle, Stop while the agent works; beside it then, where something is written, a way to let it wait."""

    send_pressed = Signal()
    queue_pressed = Signal()
    stop_requested = Signal()

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._had_focus = False
        self._send = IconButton(themes, "send", self.tr("Send"), "primary")
        self.set_blocked("")
        self._stopping = self.tr("Stopping…")
        self._stop = QPushButton(self.tr("Stop"))
        self._stop.setAccessibleName(self.tr("Stop"))
        self._stop.setToolTip(self.tr("Stop") + f" ({native_shortcut('Esc')})")
        self._stop.setAutoDefault(False)
        self._stop.hide()
        self._queue = IconButton(themes, "send", self.tr("Let the message wait"))
        self._queue.hide()
        self._menu = QMenu(self)
        self._menu.setAccessibleName(self.tr("Send"))
        self._steer_action = self._menu.addAction("", self.send_pressed.emit)
        self._queue_action = self._menu.addAction("", self.queue_pressed.emit)
        self._can_send = False
        self.set_enter_sends(enter_sends=True)
        self._queue.clicked.connect(self._open_menu)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self._queue)
        layout.addWidget(self._stop)
        layout.addWidget(self._send)
        self._send.clicked.connect(self.send_pressed)
        # At the press, not at the release: a press by assistive technology is released 100 ms later.
        self._stop.pressed.connect(self.stop)
        themes.changed.connect(self._apply_theme)
        self._apply_theme()

    @property
    def is_working(self) -> bool:
        """Whether Stop is shown."""
        return not self._stop.isHidden()

    @property
    def has_focus(self) -> bool:
        """Whether the keyboard is at one of the two."""
        return self._had_focus or self._send.hasFocus() or self._stop.hasFocus()

    def max_width(self) -> int:
        """Pixels that it has while it stops, with a message written: as wide as it ever gets."""
        letters, stop = self._stop.fontMetrics(), self._stop.sizeHint().width()
        more = letters.horizontalAdvance(self._stopping) - letters.horizontalAdvance(self._stop.text())
        return max(self._queue.sizeHint().width() + SPACE_XS + stop + more, self._send.sizeHint().width())

    def show_working(self, *, working: bool) -> None:
        """Show Stop, or Send again."""
        self._stop.setText(self.tr("Stop"))
        self._stop.setEnabled(True)
        self._stop.setVisible(working)
        self._send.setVisible(not working)
        self._queue.setVisible(working and self._can_send)
        self._had_focus = False

    def set_can_send(self, *, can_send: bool) -> None:
        """Whether there is something to send."""
        self._can_send = can_send
        self._send.setEnabled(can_send)
        self._queue.setVisible(self.is_working and can_send)

    def set_blocked(self, why: str) -> None:
        """Why nothing can be sent at all, for who points at Send or has it read; empty when it can."""
        self._send.setToolTip(why or self.tr("Send") + f" ({native_shortcut('Ctrl+Enter')})")
        self._send.setAccessibleDescription(why)

    def set_enter_sends(self, *, enter_sends: bool) -> None:
        """Which keys say when a message is sent while the agent works."""
        plain, held = (f" ({native_shortcut(keys)})" for keys in ("Enter", "Ctrl+Enter"))
        soon, later = (plain, held) if enter_sends else (held, "")
        self._steer_action.setText(self.tr("Send as soon as possible") + soon)
        self._queue_action.setText(self.tr("Send when the agent is done") + later)

    def stop(self) -> None:
        """Ask for a stop, once; the button says so at once."""
        if not self.is_working or not self._stop.isEnabled():
            return
        self._stop.setText(self._stopping)
        # A button that cannot be pressed loses the focus to its neighbour.
        self._had_focus = self._stop.hasFocus()
        self._stop.setEnabled(False)
        # Now, not when the loop comes round: whoever listens may be busy for longer than a frame.
        self._stop.repaint()
        self.stop_requested.emit()

    def _open_menu(self) -> None:
        self._menu.popup(self._queue.mapToGlobal(QPoint(0, -self._menu.sizeHint().height())))

    def _apply_theme(self) -> None:
        self._stop.setIcon(icon("stop", self._themes.theme.danger, self._themes.theme.muted, 16))
