"""The rules that may be made of a call: each is shown word for word before it is granted."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QButtonGroup, QFrame, QHBoxLayout, QRadioButton, QScrollArea, QVBoxLayout, QWidget

from ui.approval.parts.wrapped_text import WrappingLabel
from ui.approval.pending_approval import RuleOffer
from ui.approval.visible_text import fold_lines
from ui.look.controls import button, label
from ui.look.parts.flow_rows import FlowRows
from ui.look.sentences import translate_sentence
from ui.look.theme import RADIUS_S, SPACE_M, SPACE_S, SPACE_XS, ThemeSource
from ui.look.written.order import isolate_untrusted, isolate_values, strip_bidi_marks


class RuleChoice(QFrame):
    """One of several rules, the narrowest first: it is chosen until the person chooses another.

    `granted` carries its id. Those that hold in one place stand together, under its name.
    """

    granted = Signal(str)
    reveal_requested = Signal(list)
    """Widgets that the person has to see now, the most important last."""
    cancelled = Signal()
    """The person changed their mind."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self.setProperty("kind", "card")
        self._offers: tuple[RuleOffer, ...] = ()
        self._group = QButtonGroup(self)
        self._choices = QVBoxLayout()
        self._choices.setSpacing(SPACE_XS)
        self._grant = button(self.tr("Allow and keep this rule"), self._emit_granted, "primary")
        self._group.idClicked.connect(self._on_clicked)
        self._build_layout()
        self.hide()

    @property
    def focused_row(self) -> QWidget | None:
        """The rule that has the keys."""
        return next((each.parentWidget() for each in self._group.buttons() if each.hasFocus()), None)

    @property
    def selected(self) -> RuleOffer | None:
        """The one that is marked."""
        at = self._group.checkedId()
        return self._offers[at] if 0 <= at < len(self._offers) else None

    def set_offers(self, offers: Sequence[RuleOffer], after: QWidget) -> None:
        """These rules, to which Tab comes from `after`."""
        self._offers = tuple(offers)
        while (item := self._choices.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        places = [each.workspace for each in self._offers]
        for at, each in enumerate(self._offers):
            if at == 0 or places[at - 1] != places[at]:
                if at:
                    self._choices.addSpacing(SPACE_S)
                self._choices.addWidget(WrappingLabel(self._scope_text(each), "strong"))
            self._choices.addWidget(self._create_row(at, each))
        # They were made after all that stands below them.
        for each in (self._group.button(at) for at in range(len(self._offers))):
            self.setTabOrder(after, each)
            after = each
        self._grant.setEnabled(bool(self._offers))

    def open_choice(self) -> None:
        """Come into sight, with the keys on the first rule."""
        self.show()
        if self._offers:
            self._group.button(0).setChecked(True)
            self._group.button(0).setFocus()
        self.reveal_requested.emit([self, self.focused_row or self])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape leaves the choice, not the dialog."""
        if event.key() == Qt.Key.Key_Escape:
            self._cancel()
            return
        super().keyPressEvent(event)

    def _create_row(self, at: int, offer: RuleOffer) -> QWidget:
        words = translate_sentence(isolate_values(offer.words))
        row = _RuleRow(
            self._themes,
            fold_lines(words),
            self.tr("The narrowest of these") if at == 0 and len(self._offers) > 1 else "",
        )
        self._group.addButton(row.choice, at)
        row.choice.setAccessibleName(strip_bidi_marks(f"{words}. {self._scope_text(offer)}"))
        return row

    def _scope_text(self, offer: RuleOffer) -> str:
        if offer.workspace is None:
            return self.tr("In every conversation")
        return self.tr("Only in conversations of the folder {0}").format(isolate_untrusted(offer.workspace))

    def _on_clicked(self, at: int) -> None:
        # Who clicks on half of it sees the whole before they grant it.
        self._group.button(at).setFocus()
        self.reveal_requested.emit([self, self.focused_row or self])

    def _emit_granted(self) -> None:
        if self.selected is not None:
            self.granted.emit(self.selected.rule_id)

    def _cancel(self) -> None:
        self.hide()
        self.cancelled.emit()

    def _build_layout(self) -> None:
        note = label(self.tr("Rules can be revoked in the settings."), "muted", wrap=True)
        cancel = button(self.tr("Cancel"), self._cancel)
        self._choices.setContentsMargins(0, 0, 0, 0)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_S, SPACE_M, SPACE_S)
        layout.setSpacing(SPACE_S)
        layout.addWidget(label(self.tr("From now on allow without asking:")))
        layout.addLayout(self._choices)
        layout.addWidget(note)
        layout.addWidget(FlowRows((cancel, self._grant), trailing=True))


class _RuleRow(QWidget):
    """A round button and its rule's words: one thing to click on, with one ring around all of it."""

    def __init__(self, themes: ThemeSource, words: str, note: str) -> None:
        super().__init__()
        self._themes = themes
        self.choice = _RuleButton(self)
        # The ring of the button alone would leave out what is chosen.
        self.choice.setStyleSheet("QRadioButton:focus { border-color: transparent; }")
        texts = QVBoxLayout()
        texts.setSpacing(0)
        texts.addWidget(WrappingLabel(words))
        if note:
            texts.addWidget(WrappingLabel(note, "muted"))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(SPACE_XS, SPACE_XS, SPACE_XS, SPACE_XS)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self.choice, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(texts, 1)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Anywhere on it is on the button."""
        if event.button() is Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.choice.click()

    def paintEvent(self, event: QPaintEvent) -> None:
        """The ring."""
        del event
        if self.choice.hasFocus():
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(QColor(self._themes.theme.accent), 2))
            painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -1), RADIUS_S, RADIUS_S)


class _RuleButton(QRadioButton):
    """A round button that comes into sight when the keys reach it, with all of its rule's words."""

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._update_row()
        above, row = self.parentWidget(), self.parentWidget()
        while above is not None and not isinstance(above, QScrollArea):
            above = above.parentWidget()
        if above is not None and row is not None:
            above.ensureWidgetVisible(row, 0, 0)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._update_row()

    def _update_row(self) -> None:
        row = self.parentWidget()
        if row is not None:
            row.update()
