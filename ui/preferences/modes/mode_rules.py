"""The rules of a mode being written: each word for word, and one of them in the editor."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from desktop_agent.vocabulary.conduct.rules import Rule
from ui.bridge.conduct.known_tools import ToolGroup
from ui.bridge.conduct.rule_words import rule_sentence
from ui.look.controls import button, label
from ui.look.parts.flow_rows import FlowRows
from ui.look.sentences import translate_sentence
from ui.look.theme import SPACE_S
from ui.look.visible_text import show_hidden
from ui.preferences.modes.rule_editor import RuleEditor
from ui.preferences.modes.rule_pattern import format_pattern
from ui.preferences.rules.effect_tag import effect_tag


def rule_row(rule: Rule) -> QHBoxLayout:
    """What becomes of which calls, in one row."""
    row = QHBoxLayout()
    row.setSpacing(SPACE_S)
    row.addWidget(effect_tag(rule.effect), 0, Qt.AlignmentFlag.AlignVCenter)
    row.addWidget(label(show_hidden(translate_sentence(rule_sentence(rule))), wrap=True), 1)
    return row


class RuleListEditor(QWidget):
    """`rules` as they stand; one that is half written is not among them."""

    changed = Signal()

    def __init__(self, rules: Sequence[Rule], tools: Sequence[ToolGroup], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rules: tuple[Rule, ...] = tuple(rules)
        self._tools = tuple(tools)
        self._editor: RuleEditor | None = None
        self._rows = QVBoxLayout()
        self._rows.setSpacing(SPACE_S)
        self._add = button(self.tr("Add rule…"), lambda: self._open_editor(None))
        foot = QHBoxLayout()
        foot.addWidget(self._add)
        foot.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addLayout(self._rows)
        layout.addLayout(foot)
        self._rebuild_rows()

    @property
    def is_editing(self) -> bool:
        """Whether a rule is half written."""
        return self._editor is not None

    def show_tools(self, groups: Sequence[ToolGroup]) -> None:
        """These are known."""
        self._tools = tuple(groups)
        if self._editor is not None:
            self._editor.show_tools(self._tools)

    def _open_editor(self, rule: Rule | None) -> None:
        place = self.rules.index(rule) if rule is not None else len(self.rules)
        self._rebuild_rows(without=place)
        self._editor = RuleEditor(rule, self._tools)
        self._editor.saved.connect(partial(self._replace_rule, place))
        self._editor.cancelled.connect(self._close_editor)
        self._rows.insertWidget(place, self._editor)
        self._editor.show()
        self._editor.start_editing()
        self.setFocusProxy(self._editor)
        self._add.setEnabled(False)
        self.changed.emit()

    def _replace_rule(self, place: int, rule: Rule) -> None:
        self.rules = (*self.rules[:place], rule, *self.rules[place + 1 :])
        self._close_editor()

    def _remove_rule(self, rule: Rule) -> None:
        self.rules = tuple(each for each in self.rules if each is not rule)
        self._close_editor()

    def _close_editor(self) -> None:
        self._rebuild_rows()
        self._add.setFocus()
        self.changed.emit()

    def _rebuild_rows(self, without: int | None = None) -> None:
        self._editor = None
        self.setFocusProxy(self._add)
        self._add.setEnabled(True)
        while (item := self._rows.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for at, rule in enumerate(self.rules):
            if at != without:
                row = self._create_row(rule)
                self._rows.addWidget(row)
                row.show()

    def _create_row(self, rule: Rule) -> QWidget:
        words = show_hidden(translate_sentence(rule_sentence(rule)))
        line = rule_row(rule)
        remove = self.tr("Remove the rule: {0}").format(words)
        buttons = [button(self.tr("Remove"), partial(self._remove_rule, rule), "danger", remove)]
        if format_pattern(rule.pattern) is not None:
            change = self.tr("Change the rule: {0}").format(words)
            buttons.insert(0, button(self.tr("Change"), partial(self._open_editor, rule), name=change))
        line.addWidget(FlowRows(buttons, trailing=True))
        row = QWidget()
        line.setContentsMargins(0, 0, 0, 0)
        row.setLayout(line)
        return row
