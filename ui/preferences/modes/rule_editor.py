"""One rule of a mode being written: what becomes of which calls, shown word for word before it counts."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from desktop_agent.vocabulary.conduct.rules import CommandPattern, Pattern, Rule, RuleEffect, RuleScope
from desktop_agent.vocabulary.messages import new_id
from ui.bridge.conduct.known_tools import ToolGroup
from ui.bridge.conduct.rule_words import rule_sentence
from ui.look.controls import ComboBox, announce, button, label, set_style_property
from ui.look.parts.flow_rows import FlowRows
from ui.look.sentences import translate_sentence
from ui.look.theme import SPACE_M, SPACE_S
from ui.look.visible_text import show_hidden
from ui.preferences.modes.rule_pattern import (
    PATTERN_KINDS,
    PatternKind,
    format_pattern,
    parse_pattern,
    pattern_example,
    pattern_kind_name,
    resolve_links,
)
from ui.preferences.rules.effect_tag import effect_name
from ui.preferences.tool_menu import ToolMenu

EFFECTS = (RuleEffect.DENY, RuleEffect.ASK, RuleEffect.ALLOW)
_PATTERN_WIDTH = 160
MODE_ORIGIN = "a mode"
"""Who makes these rules, in the words of verdicts."""


class RuleEditor(QFrame):
    """`saved` carries a Rule with an id of its own: one that was changed is another rule."""

    saved = Signal(object)
    cancelled = Signal()

    def __init__(self, before: Rule | None, tools: Sequence[ToolGroup], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._before = before
        self._effect = ComboBox()
        self._tools = ToolMenu()
        self._kind_menu = ComboBox()
        self._pattern = QLineEdit()
        self._preview = label(wrap=True)
        self._problem = label(kind="error", wrap=True)
        self._add = button(self.tr("Add rule") if before is None else self.tr("Change rule"), self._save, "primary")
        self.setFocusProxy(self._effect)
        self._populate_menus()
        self._build_layout()
        self.show_tools(tools)
        if before is not None:
            self._show_rule(before)
        self._effect.currentIndexChanged.connect(self._update_preview)
        self._tools.currentIndexChanged.connect(self._update_preview)
        self._kind_menu.currentIndexChanged.connect(self._update_preview)
        self._pattern.textChanged.connect(self._update_preview)
        self._pattern.returnPressed.connect(self._save)
        self._update_preview()

    def start_editing(self) -> None:
        """The person wants to write."""
        self._effect.setFocus()

    def show_tools(self, groups: Sequence[ToolGroup]) -> None:
        """These are known; what is chosen stays."""
        self._tools.show_tools(groups)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape leaves the rule as it was, and only that."""
        if event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
        else:
            super().keyPressEvent(event)

    @property
    def _kind(self) -> PatternKind:
        return PATTERN_KINDS[max(0, self._kind_menu.currentIndex())]

    def _rule(self) -> Rule | str:
        """The rule as it stands, or what is wrong."""
        pattern = parse_pattern(self._kind, self._pattern.text())
        if isinstance(pattern, str):
            return pattern
        tool = self._tool_name()
        if not tool:
            return self.tr(
                "The server of this tool does not run now, so it cannot be told what would be allowed. "
                "Open a conversation in which it runs, or choose Ask."
            )
        return self._build_rule(tool, pattern)

    def _tool_name(self) -> str:
        """Who denies or asks means the name, whatever the tool becomes; who allows means the tool as it is."""
        known = self._tools.known_tool
        is_allowed = EFFECTS[self._effect.currentIndex()] is RuleEffect.ALLOW
        return known.identity if is_allowed and known is not None else self._tools.tool

    def _build_rule(self, tool: str, pattern: Pattern | None) -> Rule:
        effect = EFFECTS[self._effect.currentIndex()]
        before = self._before
        if before is None:
            return Rule(effect=effect, tool=tool, pattern=pattern, scope=RuleScope.ALWAYS, origin=MODE_ORIGIN)
        # What is not shown here stands, unless it was said of another tool, or to hold back what is now allowed.
        widens = effect is RuleEffect.ALLOW and before.effect is not effect
        also = before.also if _base_name(tool) == _base_name(before.tool) and not widens else ()
        pattern = pattern if widens else _keep_folder(pattern, before.pattern)
        changes = {"id": new_id(), "effect": effect, "tool": tool, "also": also, "pattern": pattern}
        return before.model_copy(update=changes)

    def _update_preview(self) -> None:
        """The words of it, as one writes."""
        rule = self._rule()
        wants_text = self._kind != "any"
        self._pattern.setVisible(wants_text)
        self._pattern.setPlaceholderText(pattern_example(self._kind))
        is_wrong = isinstance(rule, str) and bool(self._pattern.text().strip() or not wants_text)
        self._show_error(rule if isinstance(rule, str) and is_wrong else "")
        self._preview.setVisible(isinstance(rule, Rule))
        if isinstance(rule, Rule):
            words = show_hidden(translate_sentence(rule_sentence(rule)))
            self._preview.setText(self.tr("{0}: {1}").format(effect_name(rule.effect), words))
            set_style_property(self._preview, "kind", "warning" if rule.effect is RuleEffect.ALLOW else "strong")

    def _show_error(self, words: str) -> None:
        if words and words != self._problem.text():
            announce(self, words)
        self._problem.setText(words)
        self._problem.setVisible(bool(words))
        set_style_property(self._pattern, "invalid", "true" if words else "false")

    def _save(self) -> None:
        rule = self._rule()
        if isinstance(rule, str):
            self._show_error(rule)
            self._pattern.setFocus()
        else:
            self.saved.emit(rule.model_copy(update={"pattern": resolve_links(rule.pattern)}))

    def _show_rule(self, rule: Rule) -> None:
        kind, text = format_pattern(rule.pattern) or ("any", "")
        self._effect.setCurrentIndex(EFFECTS.index(rule.effect))
        self._tools.set_tool(_base_name(rule.tool))
        self._kind_menu.setCurrentIndex(PATTERN_KINDS.index(kind))
        self._pattern.setText(text)

    def _populate_menus(self) -> None:
        for effect in EFFECTS:
            self._effect.addItem(effect_name(effect))
        for kind in PATTERN_KINDS:
            self._kind_menu.addItem(pattern_kind_name(kind))
        for widget, name in (
            (self._effect, self.tr("What becomes of the calls")),
            (self._tools, self.tr("Tool")),
            (self._kind_menu, self.tr("About what")),
            (self._pattern, self.tr("Folder, host or command")),
        ):
            widget.setAccessibleName(name)
        self._problem.hide()

    def _build_layout(self) -> None:
        self.setProperty("kind", "card")
        self.setAccessibleName(self.tr("Rule being written"))
        foot = QHBoxLayout()
        foot.setSpacing(SPACE_S)
        foot.addStretch(1)
        foot.addWidget(button(self.tr("Cancel rule"), self.cancelled.emit))
        foot.addWidget(self._add)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_M, SPACE_M, SPACE_M)
        layout.setSpacing(SPACE_S)
        self._pattern.setMinimumWidth(_PATTERN_WIDTH)
        layout.addWidget(FlowRows((self._effect, self._tools), wide=self._tools))
        layout.addWidget(FlowRows((self._kind_menu, self._pattern), wide=self._pattern))
        layout.addWidget(self._preview)
        layout.addWidget(self._problem)
        layout.addLayout(foot)


def _keep_folder(pattern: Pattern | None, before: Pattern | None) -> Pattern | None:
    """Commands in the folder in which commands were before."""
    if not isinstance(pattern, CommandPattern) or not isinstance(before, CommandPattern):
        return pattern
    return pattern.model_copy(update={"folder": before.folder})


def _base_name(tool: str) -> str:
    """The name without what tells this version of the tool from others."""
    return tool.partition(" @ ")[0]
