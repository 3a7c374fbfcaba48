"""Why this call is asked about, where it is more than the tool's default; and a way to trust what came from outside."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from desktop_agent.vocabulary.errors import Sentence
from ui.approval.parts.wrapped_text import WrappingLabel
from ui.look.controls import button
from ui.look.icons import pixmap
from ui.look.sentences import escape_mnemonics, plain_tooltip, translate_sentence
from ui.look.theme import SPACE_M, SPACE_S, ThemeSource
from ui.look.written.order import isolate_untrusted, isolate_values, strip_bidi_marks

_ICON_SIZE = 16
# What a button needs beside its words, in pixels at 100 %.
_BUTTON_MARGIN = 32


class ReasonNote(QFrame):
    """Hidden while there is nothing to say."""

    trusted = Signal()
    """The person lets pass what came from outside so far."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._icon = QLabel()
        self._text = WrappingLabel()
        self._trust = button("", self.trusted.emit)
        self._trust.setMinimumWidth(1)
        self._trust_text = ""
        self._sources = WrappingLabel(kind="muted")
        self.setProperty("kind", "banner")
        self.setProperty("level", "notice")
        words = QVBoxLayout()
        words.setSpacing(SPACE_S)
        words.addWidget(self._text)
        words.addWidget(self._sources)
        words.addWidget(self._trust, 0, Qt.AlignmentFlag.AlignLeft)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_S, SPACE_M, SPACE_S)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(words, 1)
        themes.changed.connect(self._draw_icon)
        self._draw_icon()
        self.hide()

    @property
    def accessible_text(self) -> str:
        """What it says, or nothing."""
        shown = [each.text() for each in (self._text, self._sources) if each.text() and not each.isHidden()]
        return " ".join(shown) if not self.isHidden() else ""

    def show_reasons(self, reasons: Sequence[Sentence], outsiders: Sequence[str]) -> None:
        """These reasons; `outsiders` are those from outside that can be trusted from here."""
        self._text.setText("\n".join(translate_sentence(isolate_values(each)) for each in reasons))
        names = [isolate_untrusted(each) for each in outsiders]
        self._sources.setText(self.tr("From outside: {0}").format(", ".join(names)))
        self._sources.setVisible(len(names) > 1)
        trust = self.tr("Trust {0} in this conversation")
        text = trust.format(names[0] if len(names) == 1 else self.tr("these sources"))
        self._trust_text = text
        self._trust.setAccessibleName(strip_bidi_marks(text))
        self._trust.setVisible(bool(names))
        self._elide_trust_text()
        self.setVisible(bool(reasons))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The name of a site may be longer than there is room."""
        super().resizeEvent(event)
        self._elide_trust_text()

    def _elide_trust_text(self) -> None:
        whole = self._trust_text
        around = 2 * SPACE_M + self._icon_size + SPACE_S + _BUTTON_MARGIN * self._themes.zoom // 100
        shown = self._trust.fontMetrics().elidedText(whole, Qt.TextElideMode.ElideMiddle, self.width() - around)
        self._trust.setText(escape_mnemonics(shown))
        self._trust.setToolTip(plain_tooltip(whole) if shown != whole else "")

    def _draw_icon(self) -> None:
        ratio = 2 if self.devicePixelRatioF() > 1 else 1
        self._icon.setPixmap(pixmap("warning", self._themes.theme.warning, self._icon_size, ratio))

    @property
    def _icon_size(self) -> int:
        return _ICON_SIZE * self._themes.zoom // 100
