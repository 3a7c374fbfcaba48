"""Send or Stop, in one place."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from ui.look.controls import IconButton
from ui.look.icons import icon
from ui.look.theme import ThemeSource


class SendOrStop(QWidget):
    """Send while idle, Stop while the agent works."""

    send_pressed = Signal()
    stop_requested = Signal()

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._had_focus = False
        self._send = IconButton(themes, "send", self.tr("Send"), "primary")
        self._send.setToolTip(self.tr("Send") + " (Ctrl+Enter)")
        self._stop = QPushButton(self.tr("Stop"))
        self._stop.setAccessibleName(self.tr("Stop"))
        self._stop.setToolTip(self.tr("Stop") + " (Esc)")
        self._stop.setAutoDefault(False)
        self._stop.hide()
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._stop)
        layout.addWidget(self._send)
        self._send.clicked.connect(self.send_pressed)
        # At the press, not at the release: a press by assistive technology is released 100 ms later.
        self._stop.pressed.connect(self.stop)
        themes.changed.connect(self._dress)
        self._dress()

    @property
    def is_working(self) -> bool:
        """Whether Stop is shown."""
        return not self._stop.isHidden()

    @property
    def has_focus(self) -> bool:
        """Whether the keyboard is at one of the two."""
        return self._had_focus or self._send.hasFocus() or self._stop.hasFocus()

    def show_working(self, *, working: bool) -> None:
        """Show Stop, or Send again."""
        self._stop.setText(self.tr("Stop"))
        self._stop.setEnabled(True)
        self._stop.setVisible(working)
        self._send.setVisible(not working)
        self._had_focus = False

    def set_can_send(self, *, can_send: bool) -> None:
        """Whether there is something to send."""
        self._send.setEnabled(can_send)

    def stop(self) -> None:
        """Ask for a stop, once; the button says so at once."""
        if not self.is_working or not self._stop.isEnabled():
            return
        self._stop.setText(self.tr("Stopping…"))
        # A button that cannot be pressed loses the focus to its neighbour.
        self._had_focus = self._stop.hasFocus()
        self._stop.setEnabled(False)
        # Now, not when the loop comes round: whoever listens may be busy for longer than a frame.
        self._stop.repaint()
        self.stop_requested.emit()

    def _dress(self) -> None:
        self._stop.setIcon(icon("stop", self._themes.theme.danger, self._themes.theme.muted, 16))
