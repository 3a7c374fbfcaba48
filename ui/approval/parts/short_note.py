"""A quiet line with a way to read all of it."""

from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from ui.approval.parts.wrapped_text import WrappingLabel
from ui.look.controls import ElidedLabel, button
from ui.look.theme import SPACE_S
from ui.look.written.order import strip_bidi_marks


class ExpandableNote(QWidget):
    """The first sentence, and the rest when the person asks for it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._short = ElidedLabel()
        self._short.setProperty("kind", "muted")
        self._full_text = WrappingLabel(kind="muted")
        self._toggle_button = button(self.tr("Read all"), self._toggle, "link")
        line = QHBoxLayout()
        line.setSpacing(SPACE_S)
        line.addWidget(self._short, 1)
        line.addWidget(self._toggle_button, 0, Qt.AlignmentFlag.AlignTop)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(line)
        layout.addWidget(self._full_text)

    @property
    def text(self) -> str:
        """All of it."""
        return self._full_text.text()

    def show_note(self, short: str, whole: str) -> None:
        """`short` stands on one line; `whole` is all there is to say."""
        self._short.show_text(short)
        self._short.setAccessibleName(strip_bidi_marks(short))
        self._full_text.setText(whole)
        self._toggle_button.setVisible(whole != short)
        self._set_expanded(whole=False)

    def changeEvent(self, event: QEvent) -> None:
        """A label of one line begins where its text does, the window's lines begin where it says."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.LayoutDirectionChange:
            is_mirrored = self.layoutDirection() is Qt.LayoutDirection.RightToLeft
            edge = Qt.AlignmentFlag.AlignRight if is_mirrored else Qt.AlignmentFlag.AlignLeft
            self._short.setAlignment(edge | Qt.AlignmentFlag.AlignAbsolute | Qt.AlignmentFlag.AlignVCenter)

    def _toggle(self) -> None:
        self._set_expanded(whole=self._full_text.isHidden())

    def _set_expanded(self, *, whole: bool) -> None:
        self._full_text.setVisible(whole)
        words = self.tr("Read less") if whole else self.tr("Read all")
        self._toggle_button.setText(words)
        self._toggle_button.setAccessibleName(words)
