"""The editor of one mode: title, name, instructions and rules."""

import re
from collections.abc import Iterable, Sequence
from functools import partial

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from desktop_agent.types.permissions import BREADTHS, Mode, Rule
from ui.bridge.permissions import rule_sentence
from ui.bridge.settings import ToolGroup
from ui.forms.controls import Control, radio_buttons, text_area, text_line
from ui.settings.card_list import CardEditor
from ui.settings.rule_editor import RuleEditor, effect_tag, format_pattern
from ui.style.boxes import hbox, vbox
from ui.style.controls import button, label, set_style_property
from ui.style.layouts import FlowRows, PartFocus
from ui.style.pickers import mode_title
from ui.style.removal import clear_layout
from ui.style.text import format_number, show_hidden, translate_sentence
from ui.style.theme import SPACE_S


def rule_row(rule: Rule) -> QHBoxLayout:
    """Create a row with a rule's effect and words."""
    row = hbox(spacing=SPACE_S)
    row.addWidget(effect_tag(rule.effect), 0, Qt.AlignmentFlag.AlignVCenter)
    row.addWidget(label(translate_sentence(rule_sentence(rule), show_hidden), wrap=True), 1)
    return row


class RuleListEditor(QWidget):
    """An editor of a list of rules. `rules` has no rule that is still being edited."""

    editing_changed = Signal(bool)
    """Whether a rule is being edited."""

    def __init__(self) -> None:
        super().__init__()
        self.rules: tuple[Rule, ...] = ()
        self._tools: tuple[ToolGroup, ...] = ()
        self._editor: RuleEditor | None = None
        self._rows = vbox(spacing=SPACE_S)
        self._add = button(self.tr("Add rule…"), lambda: self._open_editor(None))
        foot = hbox(self._add, end_stretch=True)
        vbox(self._rows, foot, parent=self, spacing=SPACE_S, margins=0)
        self._focus = PartFocus(self, self._add)
        self._rebuild_rows()

    @property
    def is_editing(self) -> bool:
        return self._editor is not None

    def show_rules(self, rules: tuple[Rule, ...]) -> None:
        """Show these rules."""
        self.rules = rules
        self._rebuild_rows()

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
        self._focus.part = self._editor
        self._add.hide()
        self.editing_changed.emit(True)

    def _replace_rule(self, index: int, rule: Rule) -> None:
        self.rules = (*self.rules[:index], rule, *self.rules[index + 1 :])
        self._close_editor()

    def _remove_rule(self, rule: Rule) -> None:
        self.rules = tuple(other for other in self.rules if other is not rule)
        self._close_editor()

    def _close_editor(self) -> None:
        self._rebuild_rows()
        self._add.setFocus()

    def _rebuild_rows(self, without: int | None = None) -> None:
        self._editor = None
        self._focus.part = self._add
        self._add.show()
        self.editing_changed.emit(False)
        clear_layout(self._rows)
        for index, rule in enumerate(self.rules):
            if index != without:
                row = self._create_row(rule)
                self._rows.addWidget(row)
                row.show()

    def _create_row(self, rule: Rule) -> QWidget:
        words = translate_sentence(rule_sentence(rule), show_hidden)
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
    """Make an unused short name from a title."""
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

    def __init__(self, mode: Mode | None, others: Iterable[Mode]) -> None:
        """Start from `mode`: edit it if none of the others has its short name, else make a copy."""
        super().__init__(QCoreApplication.translate("Modes", "Mode editor"))
        self._set_others(others)
        self.edited_name = "" if mode is None or mode.name in self._taken else mode.name
        """The name of the edited mode; "" for a new one."""
        self._title = text_line(max_length=MAX_MODE_TITLE_LENGTH)
        self._name = text_line(max_length=MAX_MODE_NAME_LENGTH, is_exact=True)
        self._rules = RuleListEditor()
        self._rules.editing_changed.connect(self._show_primary_action)
        self._add_fields()
        self._build_layout()
        if mode is not None:
            name = self.edited_name or unused_mode_name(mode.title, self._taken)
            self.form.show_values({**dict(mode), "name": name})

    def start_editing(self) -> None:
        """Focus the title."""
        super().start_editing()
        self._title.widget.selectAll()

    def show_tools(self, groups: Sequence[ToolGroup], others: Iterable[Mode]) -> None:
        """Set the tools that rules can be about, and the other modes."""
        self._set_others(others)
        self._rules.show_tools(groups)

    def _set_others(self, others: Iterable[Mode]) -> None:
        modes = tuple(others)
        self._taken = frozenset(mode.name for mode in modes)
        self._taken_titles = frozenset(mode_title(mode).casefold() for mode in modes)

    def _show_primary_action(self, is_editing_rule: bool) -> None:  # noqa: FBT001  # a slot
        # One primary action at a time: that of the rule first.
        set_style_property(self._save_button, "kind", "" if is_editing_rule else "primary")

    def _edited_item(self) -> Mode:
        return Mode.model_validate(self.form.values)

    def _title_error(self, title: str) -> str:
        if title.casefold() in self._taken_titles:
            return self.tr("Another mode has this name. Choose another one.")
        return "" if title else self.tr("A mode needs a name. Write one.")

    def _name_error(self, name: str) -> str:
        if not _NAME.fullmatch(name):
            return self.tr("A short name has small letters from a to z, digits and “-”, and begins with a letter.")
        if not self.edited_name and name in self._taken:
            return self.tr("Another mode has this short name. Choose another one.")
        return ""

    def _instructions_error(self, text: str) -> str:
        if len(text) <= MAX_INSTRUCTIONS_LENGTH:
            return ""
        return self.tr("The instructions have more than {0} characters. Shorten them.").format(
            format_number(MAX_INSTRUCTIONS_LENGTH)
        )

    def _rules_error(self, _rules: object) -> str:
        return self.tr("A rule is not finished. Add it, or cancel it.") if self._rules.is_editing else ""

    def _suggest_name(self, title: str) -> None:
        # Suggest one until the person writes one. Conversations and specialists refer to a mode by its short name.
        if not self.edited_name and not self._name.widget.isModified():
            self._name.widget.setText(unused_mode_name(title, self._taken))

    def _add_fields(self) -> None:
        add = self.form.add_field
        add("title", self.tr("Name"), self._title, self._title_error)
        self._title.widget.textEdited.connect(self._suggest_name)
        agent_says = self.tr("The agent and specialists call the mode by this name. It cannot be changed later.")
        add("name", self.tr("Short name"), self._name, self._name_error, help_text=agent_says)
        self._name.widget.setReadOnly(bool(self.edited_name))
        self._name.widget.setEnabled(not self.edited_name)
        words = {
            "deny": self.tr("Denied: the agent only reads"),
            "ask": self.tr("Asked about, one by one"),
            "accept_edits": self.tr("Files change without asking; the rest is asked about"),
        }
        breadths = radio_buttons([(breadth, words[breadth]) for breadth in BREADTHS], "ask")
        add("mutating", self.tr("Calls that change something"), breadths)
        instructions = text_area(INSTRUCTION_LINES, placeholder=self.tr("Nothing"))
        added = self.tr("Added to the instructions while the mode is on.")
        add("addendum", self.tr("Instructions"), instructions, self._instructions_error, help_text=added)
        rules = Control(widget=self._rules, read=lambda: self._rules.rules, show=self._rules.show_rules)
        order = self.tr(
            "Deny overrides Ask, and Ask overrides Allow. Rules of the conversation and of every folder apply as well."
        )
        add("rules", self.tr("Rules"), rules, self._rules_error, help_text=order)
