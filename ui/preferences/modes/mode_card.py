"""One mode as it is."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from desktop_agent.vocabulary.conduct.modes import BUILT_IN_MODES, Mode
from ui.look.controls import button, label
from ui.look.parts.flow_rows import FlowRows
from ui.look.parts.mode_words import mode_description, mode_title
from ui.look.theme import SPACE_M, SPACE_S, SPACE_XS
from ui.look.visible_text import show_hidden
from ui.preferences.cards.card_column import Card
from ui.preferences.modes.mode_rules import rule_row

MAX_RULES = 8


class ModeCard(Card):
    """What it is called, what happens unasked while it holds, its instructions and rules. A built-in one stays."""

    edit_pressed = Signal()
    copy_pressed = Signal()
    remove_pressed = Signal()

    def __init__(self, mode: Mode, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        title = mode_title(mode)
        self.setAccessibleName(self.tr("Mode {0}").format(title))
        head = QHBoxLayout()
        head.setSpacing(SPACE_S)
        head.addWidget(label(show_hidden(title), "strong", wrap=True), 1)
        copy = button(self.tr("Copy"), self.copy_pressed.emit, name=self.tr("Copy {0}").format(title))
        writing = [copy]
        buttons = [copy]
        if mode not in BUILT_IN_MODES:
            edit = button(self.tr("Edit"), self.edit_pressed.emit, name=self.tr("Edit {0}").format(title))
            remove = button(self.tr("Remove"), self.remove_pressed.emit, "danger", self.tr("Remove {0}").format(title))
            writing = [edit, copy]
            buttons = [edit, copy, remove]
        self.set_edit_buttons(*writing)
        head.addWidget(FlowRows(buttons, trailing=True))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_S, SPACE_M, SPACE_S)
        layout.setSpacing(SPACE_XS)
        layout.addLayout(head)
        layout.addWidget(label(mode_description(mode), "muted", wrap=True))
        if mode.addendum and mode not in BUILT_IN_MODES:
            layout.addWidget(label(show_hidden(" ".join(mode.addendum.split())[:300]), wrap=True))
        for rule in mode.rules[:MAX_RULES]:
            layout.addLayout(rule_row(rule))
        hidden = len(mode.rules) - MAX_RULES
        if hidden > 0:
            layout.addWidget(label(self.tr("And {0} more rules").format(hidden), "muted"))
