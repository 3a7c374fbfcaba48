"""The rules that may be made of a call: each is shown word for word before it is granted."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QLabel,
    QRadioButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from ui.approval.pending_approval import RuleOffer
from ui.approval.visible_text import folded
from ui.look.controls import button, label
from ui.look.sentences import spoken
from ui.look.theme import SPACE_M, SPACE_S, SPACE_XS
from ui.look.visible_text import with_hidden_shown

MOST_HEIGHT = 132
"""Pixels of the choices; more of them scroll."""


class RuleChoice(QFrame):
    """One of several rules. `granted` carries its id; nothing is chosen until the person chooses."""

    granted = Signal(str)
    left = Signal()
    """The person changed their mind."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "card")
        self._offers: tuple[RuleOffer, ...] = ()
        self._group = QButtonGroup(self)
        self._choices = QVBoxLayout()
        self._choices.setSpacing(SPACE_S)
        self._grant = button(self.tr("Allow and keep this rule"), self._granted, "primary")
        self._group.idClicked.connect(self._mark)
        self._build()
        self.hide()

    @property
    def chosen(self) -> RuleOffer | None:
        """The one that is marked."""
        at = self._group.checkedId()
        return self._offers[at] if 0 <= at < len(self._offers) else None

    def offer(self, offers: Sequence[RuleOffer]) -> None:
        """These rules."""
        self._offers = tuple(offers)
        while (item := self._choices.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for at, each in enumerate(self._offers):
            self._choices.addWidget(self._row(at, each))
        self._grant.setEnabled(False)

    def start(self) -> None:
        """Come into sight, with the keys on the first rule."""
        self.show()
        if self._offers:
            self._group.button(0).setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape leaves the choice, not the dialog."""
        if event.key() == Qt.Key.Key_Escape:
            self._leave()
            return
        super().keyPressEvent(event)

    def _row(self, at: int, offer: RuleOffer) -> QWidget:
        words = with_hidden_shown(spoken(offer.words))
        where = self.tr("Everywhere")
        if offer.workspace is not None:
            where = self.tr("Only in the folder {0}").format(with_hidden_shown(offer.workspace))
        choice = _Choice()
        choice.setAccessibleName(f"{words}. {where}")
        self._group.addButton(choice, at)
        # Not the button's own text, which stands on one line however long a command is.
        texts = QVBoxLayout()
        texts.setSpacing(0)
        texts.setContentsMargins(0, 0, 0, 0)
        choice.setMinimumHeight(self.fontMetrics().height() + SPACE_XS)
        texts.addWidget(_Words(folded(words), choice))
        texts.addWidget(label(where, "muted", wrap=True))
        row = QWidget()
        layout = QHBoxLayout(row)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(choice, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(texts, 1)
        return row

    def _mark(self, _at: int) -> None:
        self._grant.setEnabled(True)

    def _granted(self) -> None:
        if self.chosen is not None:
            self.granted.emit(self.chosen.rule_id)

    def _leave(self) -> None:
        self.hide()
        self.left.emit()

    def _build(self) -> None:
        buttons = QHBoxLayout()
        buttons.setSpacing(SPACE_S)
        buttons.addWidget(label(self.tr("Rules can be revoked in the settings."), "muted"), 1)
        buttons.addWidget(button(self.tr("Cancel"), self._leave))
        buttons.addWidget(self._grant)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_M, SPACE_M, SPACE_M)
        layout.setSpacing(SPACE_S)
        layout.addWidget(label(self.tr("From now on allow without asking:"), "strong"))
        layout.addWidget(self._scrolled())
        layout.addLayout(buttons)

    def _scrolled(self) -> QScrollArea:
        inside = QWidget()
        inside.setLayout(self._choices)
        self._choices.setContentsMargins(0, 0, 0, 0)
        scroll = QScrollArea(widgetResizable=True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidget(inside)
        scroll.setFixedHeight(MOST_HEIGHT)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        inside.setAutoFillBackground(False)
        scroll.viewport().setAutoFillBackground(False)
        return scroll


class _Choice(QRadioButton):
    """A round button that comes into sight when the keys reach it."""

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        above = self.parentWidget()
        while above is not None and not isinstance(above, QScrollArea):
            above = above.parentWidget()
        if above is not None:
            above.ensureWidgetVisible(self)


class _Words(QLabel):
    """Text beside a round button: a click on it is one on the button."""

    def __init__(self, text: str, choice: QRadioButton) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)
        self.setWordWrap(True)
        self._choice = choice

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self._choice.click()
