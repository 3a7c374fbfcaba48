"""The editor of one mode: title, name, instructions and rules."""

import re
from collections.abc import Iterable, Sequence
from functools import partial

from pydantic import ValidationError
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QRadioButton,
    QWidget,
)

from desktop_agent.types.permissions import BREADTHS, Breadth, Mode, Rule
from ui.bridge.rule_text import rule_sentence
from ui.bridge.settings import ToolGroup
from ui.preferences.card_list import CardEditor
from ui.preferences.forms import ValidatedForm
from ui.preferences.rule_editor import RuleEditor, effect_tag, format_pattern
from ui.style.boxes import hbox, vbox
from ui.style.controls import button, label
from ui.style.layouts import FlowRows
from ui.style.removal import clear_layout
from ui.style.text import show_hidden, translate_sentence
from ui.style.theme import SPACE_M, SPACE_S, SPACE_XS
from ui.style.widgets import WrappedChoice


def rule_row(rule: Rule) -> QHBoxLayout:
    """Create a row with a rule's effect and words."""
    row = hbox(spacing=SPACE_S)
    row.addWidget(effect_tag(rule.effect), 0, Qt.AlignmentFlag.AlignVCenter)
    row.addWidget(label(show_hidden(translate_sentence(rule_sentence(rule))), wrap=True), 1)
    return row


class RuleListEditor(QWidget):
    """An editor of a list of rules. `rules` is without one that is being written."""

    changed = Signal()

    def __init__(self, rules: Sequence[Rule], tools: Sequence[ToolGroup], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rules: tuple[Rule, ...] = tuple(rules)
        self._tools = tuple(tools)
        self._editor: RuleEditor | None = None
        self._rows = vbox(spacing=SPACE_S)
        self._add = button(self.tr("Add rule…"), lambda: self._open_editor(None))
        foot = hbox(self._add, end_stretch=True)
        vbox(self._rows, foot, parent=self, spacing=SPACE_S, margins=0)
        self._rebuild_rows()

    @property
    def is_editing(self) -> bool:
        return self._editor is not None

    def show_tools(self, groups: Sequence[ToolGroup]) -> None:
        """Set the known tools."""
        self._tools = tuple(groups)
        if self._editor is not None:
            self._editor.show_tools(self._tools)

    def _open_editor(self, rule: Rule | None) -> None:
        index = self.rules.index(rule) if rule is not None else len(self.rules)
        self._rebuild_rows(without=index)
        self._editor = RuleEditor(rule, self._tools)
        self._editor.saved.connect(partial(self._replace_rule, index))
        self._editor.cancelled.connect(self._close_editor)
        self._rows.insertWidget(index, self._editor)
        self._editor.show()
        self._editor.start_editing()
        self.setFocusProxy(self._editor)
        self._add.setEnabled(False)
        self.changed.emit()

    def _replace_rule(self, index: int, rule: Rule) -> None:
        self.rules = (*self.rules[:index], rule, *self.rules[index + 1 :])
        self._close_editor()

    def _remove_rule(self, rule: Rule) -> None:
        self.rules = tuple(kept for kept in self.rules if kept is not rule)
        self._close_editor()

    def _close_editor(self) -> None:
        self._rebuild_rows()
        self._add.setFocus()
        self.changed.emit()

    def _rebuild_rows(self, without: int | None = None) -> None:
        self._editor = None
        self.setFocusProxy(self._add)
        self._add.setEnabled(True)
        clear_layout(self._rows)
        for index, rule in enumerate(self.rules):
            if index != without:
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


MAX_MODE_TITLE_LENGTH = 60
MAX_MODE_NAME_LENGTH = 40
MAX_INSTRUCTIONS_LENGTH = 20_000
INSTRUCTION_LINES = 4
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_NAME_SEPARATORS = re.compile(r"[^a-z0-9]+")


def unused_mode_name(title: str, taken: Iterable[str] = ()) -> str:
    """Make an unused short name of a title."""
    plain = (
        _NAME_SEPARATORS.sub("-", title.lower()).strip("-0123456789")[: MAX_MODE_NAME_LENGTH - 3].strip("-") or "mode"
    )
    names, number, name = frozenset(taken), 1, plain
    while name in names:
        number += 1
        name = f"{plain}-{number}"
    return name


class ModeEditor(CardEditor):
    """`saved` carries the edited Mode."""

    def __init__(
        self, mode: Mode | None, taken: Iterable[str], tools: Sequence[ToolGroup], parent: QWidget | None = None
    ) -> None:
        """Start from `mode`. One whose name is not `taken` is edited; otherwise a copy is made."""
        super().__init__(parent)
        self._taken = frozenset(taken)
        self.edited_name = "" if mode is None or mode.name in self._taken else mode.name
        """The name of the mode that it changes; "": it makes one."""
        self._title = QLineEdit()
        self._name = QLineEdit()
        self._breadths = _UnaskedChoice(mode.mutating if mode is not None else "ask")
        self._instructions = QPlainTextEdit()
        self._rules = RuleListEditor(mode.rules if mode is not None else (), tools)
        self._form = ValidatedForm()
        self._configure_fields()
        self._build_form()
        if mode is not None:
            self._title.setText(mode.title)
            self._name.setText(unused_mode_name(mode.title, self._taken) if not self.edited_name else mode.name)
            self._instructions.setPlainText(mode.addendum)

    def start_editing(self) -> None:
        """Focus the title."""
        self._title.setFocus()
        self._title.selectAll()

    def set_taken_names(self, taken: Iterable[str]) -> None:
        """Set the names of other modes."""
        self._taken = frozenset(taken)

    def show_tools(self, groups: Sequence[ToolGroup]) -> None:
        """Set the tools that rules can be about."""
        self._rules.show_tools(groups)

    def save(self) -> None:
        """Emit `saved`, or show what is missing."""
        if self._form.show_errors():
            return
        values = {
            "name": self._name.text(),
            "title": self._title.text().strip(),
            "mutating": self._breadths.selected,
            "addendum": self._instructions.toPlainText().strip(),
            "rules": self._rules.rules,
        }
        try:
            mode = Mode.model_validate(values)
        except ValidationError:
            self._name.setFocus()
            return
        self.saved.emit(mode)

    def _title_error(self) -> str:
        return "" if self._title.text().strip() else self.tr("A mode needs a name. Write one.")

    def _name_error(self) -> str:
        name = self._name.text()
        if not _NAME.fullmatch(name):
            return self.tr("A short name is made of small letters, digits and “-”, and begins with a letter.")
        if not self.edited_name and name in self._taken:
            return self.tr("Another mode has this short name. Choose another one.")
        return ""

    def _instructions_error(self) -> str:
        if len(self._instructions.toPlainText()) <= MAX_INSTRUCTIONS_LENGTH:
            return ""
        return self.tr("These are more than {0} characters. Shorten them.").format(f"{MAX_INSTRUCTIONS_LENGTH:,}")

    def _rules_error(self) -> str:
        return self.tr("A rule is half written. Add it, or cancel it.") if self._rules.is_editing else ""

    def _suggest_name(self, title: str) -> None:
        # Until the person writes one. Conversations and specialists refer to a mode by its short name.
        if not self.edited_name and not self._name.isModified():
            self._name.setText(unused_mode_name(title, self._taken))

    def _configure_fields(self) -> None:
        self._title.setMaxLength(MAX_MODE_TITLE_LENGTH)
        self._title.textEdited.connect(self._suggest_name)
        self._name.setMaxLength(MAX_MODE_NAME_LENGTH)
        self._name.setReadOnly(bool(self.edited_name))
        self._name.setEnabled(not self.edited_name)
        self._instructions.setTabChangesFocus(True)
        self._instructions.setPlaceholderText(self.tr("Nothing"))
        lines = self._instructions.fontMetrics().lineSpacing() * INSTRUCTION_LINES
        self._instructions.setFixedHeight(lines + SPACE_M)

    def _build_form(self) -> None:
        agent_says = self.tr("By it the agent and specialists name the mode. It stays as it is once the mode is made.")
        form = self._form
        form.add(self.tr("Name"), self._title, self._title_error)
        form.add(self.tr("Short name"), self._name, self._name_error, note=agent_says)
        form.add(self.tr("Calls that change something"), self._breadths)
        added = self.tr("Added to the instructions while the mode holds.")
        form.add(self.tr("Instructions"), self._instructions, self._instructions_error, note=added)
        order = self.tr(
            "Deny goes over Ask, Ask over Allow. Rules of the conversation and of every folder hold besides."
        )
        form.add(self.tr("Rules"), self._rules, self._rules_error, note=order)
        self.build_layout(self.tr("Mode being written"), self._title, form)


class _UnaskedChoice(QWidget):
    """What happens to calls that change something and that no rule decides."""

    def __init__(self, chosen: Breadth) -> None:
        super().__init__()
        self._group = QButtonGroup(self)
        words = {
            "deny": self.tr("Are denied: the agent only looks"),
            "ask": self.tr("Are asked about, one by one"),
            "accept_edits": self.tr("Change files unasked; all else is asked about"),
        }
        layout = vbox(parent=self, spacing=SPACE_XS, margins=0)
        for index, breadth in enumerate(BREADTHS):
            choice = QRadioButton()
            choice.setChecked(breadth == chosen)
            self._group.addButton(choice, index)
            layout.addWidget(WrappedChoice(choice, words[breadth]))

    @property
    def selected(self) -> Breadth:
        return BREADTHS[self._group.checkedId()]
