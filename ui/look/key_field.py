"""A field for an API key: hidden as it is typed, handed on as a secret."""

from collections.abc import Callable

from pydantic import SecretStr
from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from ui.look.controls import button
from ui.look.state_line import STATUS_INDENT

# Nobody types so many characters at once: that was a paste, a drop or an assistive tool.
MIN_PASTED_LENGTH = 8


class ApiKeyField(QLineEdit):
    """Enter hands the key on; so does pasting one, which is how keys arrive."""

    key_entered = Signal(object)
    """The key, a SecretStr."""

    def __init__(self, name: str, placeholder: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setEchoMode(QLineEdit.EchoMode.Password)
        self.setAccessibleName(name)
        self.setPlaceholderText(placeholder)
        self._length = 0
        self._pasted = QTimer(self, singleShot=True, interval=0)
        self._pasted.timeout.connect(self.submit)
        self.textChanged.connect(self._measure)
        self.returnPressed.connect(self.submit)

    def submit(self) -> None:
        """Hand the key on, if there is one."""
        key = self.text().strip()
        if key:
            self.key_entered.emit(SecretStr(key))

    def _measure(self, text: str) -> None:
        if len(text) - self._length >= MIN_PASTED_LENGTH:
            self._pasted.start()
        self._length = len(text)


class SessionKeyLink(QWidget):
    """The link under a state line: keep the key in memory, since the keyring does not take it."""

    def __init__(self, keep: Callable[[], None]) -> None:
        super().__init__()
        # Short: with large text in a narrow window there is room for no more.
        words, name = self.tr("Keep it in memory"), self.tr("Keep it in memory until the program is closed")
        link = button(words, keep, "link", name)
        link.setToolTip(name)
        beside_icon = QHBoxLayout(self)
        beside_icon.setContentsMargins(STATUS_INDENT, 0, 0, 0)
        beside_icon.addWidget(link, 0, Qt.AlignmentFlag.AlignLeading)
        beside_icon.addStretch(1)
        self.hide()
