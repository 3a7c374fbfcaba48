"""A field for an API key: hidden as it is typed, handed on as a secret."""

from pydantic import SecretStr
from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QLineEdit, QWidget

# Nobody types so many characters at once: that was a paste, a drop or an assistive tool.
PASTED_LENGTH = 8


class KeyField(QLineEdit):
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
        if len(text) - self._length >= PASTED_LENGTH:
            self._pasted.start()
        self._length = len(text)
