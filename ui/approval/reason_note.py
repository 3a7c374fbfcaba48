"""Why this call is asked about, where it is more than the tool's default; and a way to trust what came from outside."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from desktop_agent.vocabulary.errors import Sentence
from ui.approval.parts.wrapped_text import WrappedText
from ui.look.controls import button
from ui.look.icons import pixmap
from ui.look.sentences import literal, plain_tip, spoken
from ui.look.theme import SPACE_M, SPACE_S, ThemeSource
from ui.look.written.order import shown_apart, values_apart, without_order_marks

_ICON_SIZE = 16
# What a button needs beside its words, in pixels at 100 %.
_EDGES = 32


class ReasonNote(QFrame):
    """Hidden while there is nothing to say."""

    trusted = Signal()
    """The person lets pass what came from outside so far."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._icon = QLabel()
        self._text = WrappedText()
        self._trust = button("", self.trusted.emit)
        self._trust.setMinimumWidth(1)
        self._whole_trust = ""
        self._outsiders = WrappedText(kind="muted")
        self.setProperty("kind", "banner")
        self.setProperty("level", "notice")
        words = QVBoxLayout()
        words.setSpacing(SPACE_S)
        words.addWidget(self._text)
        words.addWidget(self._outsiders)
        words.addWidget(self._trust, 0, Qt.AlignmentFlag.AlignLeft)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_S, SPACE_M, SPACE_S)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(words, 1)
        themes.changed.connect(self._draw)
        self._draw()
        self.hide()

    @property
    def words(self) -> str:
        """What it says, or nothing."""
        shown = [each.text() for each in (self._text, self._outsiders) if each.text() and not each.isHidden()]
        return " ".join(shown) if not self.isHidden() else ""

    def show_reasons(self, reasons: Sequence[Sentence], outsiders: Sequence[str]) -> None:
        """These reasons; `outsiders` are those from outside that can be trusted from here."""
        self._text.setText("\n".join(spoken(values_apart(each)) for each in reasons))
        names = [shown_apart(each) for each in outsiders]
        self._outsiders.setText(self.tr("From outside: {0}").format(", ".join(names)))
        self._outsiders.setVisible(len(names) > 1)
        trust = self.tr("Trust {0} in this conversation")
        text = trust.format(names[0] if len(names) == 1 else self.tr("these sources"))
        self._whole_trust = text
        self._trust.setAccessibleName(without_order_marks(text))
        self._trust.setVisible(bool(names))
        self._fit_trust()
        self.setVisible(bool(reasons))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The name of a site may be longer than there is room."""
        super().resizeEvent(event)
        self._fit_trust()

    def _fit_trust(self) -> None:
        whole = self._whole_trust
        around = 2 * SPACE_M + self._icon_size + SPACE_S + _EDGES * self._themes.zoom // 100
        shown = self._trust.fontMetrics().elidedText(whole, Qt.TextElideMode.ElideMiddle, self.width() - around)
        self._trust.setText(literal(shown))
        self._trust.setToolTip(plain_tip(whole) if shown != whole else "")

    def _draw(self) -> None:
        ratio = 2 if self.devicePixelRatioF() > 1 else 1
        self._icon.setPixmap(pixmap("warning", self._themes.theme.warning, self._icon_size, ratio))

    @property
    def _icon_size(self) -> int:
        return _ICON_SIZE * self._themes.zoom // 100
