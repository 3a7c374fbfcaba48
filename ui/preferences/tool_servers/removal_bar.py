"""Is this server to go? Asked in place."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from ui.look.controls import announce, button, label
from ui.look.theme import SPACE_S


class RemovalBar(QFrame):
    """Escape keeps it."""

    confirmed = Signal()
    declined = Signal()

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "banner")
        self.setProperty("level", "notice")
        self._words = self.tr("Remove “{0}”? Its secrets are deleted from the keyring too.").format(title)
        self._keep = button(self.tr("Keep"), self.declined.emit, name=self.tr("Keep {0}").format(title))
        remove = self.tr("Really remove {0}").format(title)
        row = QHBoxLayout(self)
        row.setContentsMargins(SPACE_S, SPACE_S, SPACE_S, SPACE_S)
        row.setSpacing(SPACE_S)
        row.addWidget(label(self._words, wrap=True), 1)
        row.addWidget(self._keep)
        row.addWidget(button(self.tr("Remove"), self.confirmed.emit, "danger", remove))

    def ask(self) -> None:
        """The person pressed Remove."""
        self.show()
        announce(self, self._words)
        self._keep.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape keeps the server, and only that."""
        if event.key() == Qt.Key.Key_Escape:
            self.declined.emit()
        else:
            super().keyPressEvent(event)
