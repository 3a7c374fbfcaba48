"""What editors of cards have in common: a name, Save and Cancel at the foot, and Escape."""

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from ui.look.controls import button
from ui.look.theme import SPACE_M, SPACE_S


class CardEditor(QFrame):
    """`saved` carries what was written, as it shall be."""

    saved = Signal(object)
    cancelled = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape leaves everything as it was, and only that."""
        if event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
        else:
            super().keyPressEvent(event)

    def save(self) -> None:
        """Hand it on, or say what is missing."""
        raise NotImplementedError

    def build_layout(self, name: str, first: QWidget, *parts: QWidget) -> None:
        """One under the other, over Cancel and Save. The keys go to `first`; `name` is what the whole is called."""
        self.setProperty("kind", "card")
        self.setAccessibleName(name)
        self.setFocusProxy(first)
        foot = QHBoxLayout()
        foot.setSpacing(SPACE_S)
        foot.addStretch(1)
        foot.addWidget(button(QCoreApplication.translate("Cards", "Cancel"), self.cancelled.emit))
        foot.addWidget(button(QCoreApplication.translate("Cards", "Save"), self.save, "primary"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_M, SPACE_M, SPACE_M)
        layout.setSpacing(SPACE_M)
        for each in parts:
            layout.addWidget(each)
        layout.addLayout(foot)
