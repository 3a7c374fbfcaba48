"""The editor of one permission rule: its effect, tool and pattern, parsed from what a person types."""

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtWidgets import QLabel, QLineEdit

from desktop_agent.types.messages import new_id
from desktop_agent.types.permissions import (
    CommandPattern,
    HostPattern,
    PathPattern,
    Pattern,
    Rule,
    RuleEffect,
    RuleScope,
)
from ui.bridge.permissions import rule_sentence
from ui.bridge.settings import ToolGroup
from ui.settings.card_list import EditorFrame
from ui.settings.tool_picker import ToolMenu
from ui.style.boxes import hbox, vbox
from ui.style.controls import announce, button, label, set_style_property, show_words
from ui.style.layouts import FlowRows, PartFocus
from ui.style.text import labelled, show_hidden, translate_sentence
from ui.style.theme import SPACE_M, SPACE_S
from ui.style.tool_labels import Tag
from ui.style.widgets import ComboBox

_EFFECT_TAGS: dict[RuleEffect, Tag] = {RuleEffect.ALLOW: "safe", RuleEffect.ASK: "caution", RuleEffect.DENY: "risk"}


def effect_name(effect: RuleEffect) -> str:
    """Return Allow, Ask or Deny."""
    words = {
        RuleEffect.ALLOW: QCoreApplication.translate("Rules", "Allow"),
        RuleEffect.ASK: QCoreApplication.translate("Rules", "Ask"),
        RuleEffect.DENY: QCoreApplication.translate("Rules", "Deny"),
    }
    return words[effect]


def effect_tag(effect: RuleEffect) -> QLabel:
    """Create a label with the name of the effect."""
    tag = label(effect_name(effect))
    tag.setProperty("tag", _EFFECT_TAGS[effect])
    return tag


PatternKind = Literal["any", "path", "host", "begins", "exact"]
PATTERN_KINDS: tuple[PatternKind, ...] = ("any", "path", "host", "begins", "exact")
_DRIVE = re.compile(r"[A-Za-z]:")
_HOST = re.compile(r"(\*\.)?([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]*[a-z0-9])?|[0-9a-f:]*:[0-9a-f:]+")


def pattern_kind_name(kind: PatternKind) -> str:
    """Return the name of a kind of pattern in the person's language."""
    words = {
        "any": QCoreApplication.translate("Modes", "With any arguments"),
        "path": QCoreApplication.translate("Modes", "With files in the folder"),
        "host": QCoreApplication.translate("Modes", "With the host"),
        "begins": QCoreApplication.translate("Modes", "Commands that begin with"),
        "exact": QCoreApplication.translate("Modes", "Exactly the command"),
    }
    return words[kind]


def pattern_example(kind: PatternKind) -> str:
    """Return the placeholder of the field."""
    examples = {"path": str(Path.home()), "host": "*.example.org", "begins": "git status", "exact": "make test"}
    return examples.get(kind, "")


def format_pattern(pattern: Pattern | None) -> tuple[PatternKind, str] | None:
    """Return a pattern as a person writes it; None for kinds that cannot be edited here."""
    match pattern:
        case None:
            return "any", ""
        case PathPattern(prefix=prefix):
            return "path", prefix
        case HostPattern(host=host):
            return "host", host
        case CommandPattern(words=words, exact=exact):
            return "exact" if exact else "begins", shlex.join(words)
        case _:
            return None


def parse_pattern(kind: PatternKind, text: str) -> Pattern | str | None:
    """Return the pattern, None for any arguments, or a string that says what is wrong."""
    text = text.strip()
    match kind:
        case "any":
            return None
        case "path":
            return _parse_path(text)
        case "host":
            return _parse_host(text)
        case "begins" | "exact":
            return _parse_command(text, exact=kind == "exact")


def resolve_links(pattern: Pattern | None) -> Pattern | None:
    """Follow links in a path, as calls do: a rule about a link is about its target."""
    if not isinstance(pattern, PathPattern):
        return pattern
    return PathPattern(prefix=os.path.realpath(pattern.prefix).replace("\\", "/"))


def _parse_path(text: str) -> PathPattern | str:
    path = os.path.expanduser(text).replace("\\", "/")  # noqa: PTH111 - a text, with the slashes of any system
    if not path.startswith("/") and not _DRIVE.match(path):
        return QCoreApplication.translate("Modes", "Write the full path of the folder.")
    return PathPattern(prefix=os.path.normpath(path).replace("\\", "/"))


def _parse_host(text: str) -> HostPattern | str:
    host = (urlsplit(text).hostname or "") if "://" in text else text.lower()
    try:
        host = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        host = ""
    if not _HOST.fullmatch(host):
        return QCoreApplication.translate(
            "Modes", "Write the name of a host, such as example.org, or *.example.org for every host below it."
        )
    return HostPattern(host=host)


def _parse_command(text: str, *, exact: bool) -> CommandPattern | str:
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        return QCoreApplication.translate("Modes", "A quotation mark has no end. Close it.")
    if not words or not words[0]:
        return QCoreApplication.translate("Modes", "Write the first words of the command, such as git status.")
    return CommandPattern(words=words, exact=exact)


EFFECTS = (RuleEffect.DENY, RuleEffect.ASK, RuleEffect.ALLOW)
_PATTERN_WIDTH = 160
MODE_ORIGIN = "a mode"
"""The origin of these rules, in the words of verdicts."""


class RuleEditor(EditorFrame):
    """`saved` carries a Rule with a new id: a changed rule is another rule."""

    saved = Signal(object)

    def __init__(self, rule: Rule | None, tools: Sequence[ToolGroup]) -> None:
        super().__init__()
        self._original = rule
        self._effect = ComboBox()
        self._tools = ToolMenu()
        self._kind_menu = ComboBox()
        self._pattern = QLineEdit()
        self._preview = label(wrap=True)
        self._problem = label(kind="error", wrap=True)
        self._add = button(self.tr("Add rule") if rule is None else self.tr("Change rule"), self._save, "primary")
        PartFocus(self, self._effect)
        self._populate_menus()
        self._build_layout()
        self.show_tools(tools)
        if rule is not None:
            self._show_rule(rule)
        self._effect.currentIndexChanged.connect(self._update_preview)
        self._tools.currentIndexChanged.connect(self._update_preview)
        self._kind_menu.currentIndexChanged.connect(self._update_preview)
        self._pattern.textChanged.connect(self._update_preview)
        self._pattern.returnPressed.connect(self._save)
        self._update_preview()

    def show_tools(self, groups: Sequence[ToolGroup]) -> None:
        """Set the known tools; the selected one stays."""
        self._tools.show_tools(groups)

    @property
    def _kind(self) -> PatternKind:
        return PATTERN_KINDS[max(0, self._kind_menu.currentIndex())]

    def _rule(self) -> Rule | str:
        """Return the rule as typed so far, or what is wrong."""
        pattern = parse_pattern(self._kind, self._pattern.text())
        if isinstance(pattern, str):
            return pattern
        tool = self._tool_name()
        if not tool:
            return self.tr(
                "The server of this tool is not running, so it is not known what the rule would allow. Open a "
                "conversation that uses the server, or choose Ask."
            )
        return self._build_rule(tool, pattern)

    def _tool_name(self) -> str:
        """Return the tool's identity for Allow, which allows only its current version; else its name."""
        known = self._tools.known_tool
        is_allowed = EFFECTS[self._effect.currentIndex()] is RuleEffect.ALLOW
        return known.identity if is_allowed and known is not None else self._tools.tool

    def _build_rule(self, tool: str, pattern: Pattern | None) -> Rule:
        effect = EFFECTS[self._effect.currentIndex()]
        old = self._original
        if old is None:
            return Rule(effect=effect, tool=tool, pattern=pattern, scope=RuleScope.ALWAYS, origin=MODE_ORIGIN)
        # Keep parts that have no field here, unless they were about another tool, or restrict what is now allowed.
        widens = effect is RuleEffect.ALLOW and old.effect is not effect
        also = old.also if _base_name(tool) == _base_name(old.tool) and not widens else ()
        pattern = pattern if widens else _keep_folder(pattern, old.pattern)
        changes = {"id": new_id(), "effect": effect, "tool": tool, "also": also, "pattern": pattern}
        return old.model_copy(update=changes)

    def _update_preview(self) -> None:
        rule = self._rule()
        wants_text = self._kind != "any"
        self._pattern.setVisible(wants_text)
        self._pattern.setPlaceholderText(pattern_example(self._kind))
        is_wrong = isinstance(rule, str) and bool(self._pattern.text().strip() or not wants_text)
        self._show_error(rule if isinstance(rule, str) and is_wrong else "")
        self._preview.setVisible(isinstance(rule, Rule))
        if isinstance(rule, Rule):
            words = translate_sentence(rule_sentence(rule), show_hidden)
            self._preview.setText(labelled(effect_name(rule.effect), words))
            set_style_property(self._preview, "kind", "warning" if rule.effect is RuleEffect.ALLOW else "strong")

    def _show_error(self, words: str) -> None:
        if words and words != self._problem.text():
            announce(self, words)
        show_words(self._problem, words)
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
        self._tools.select(_base_name(rule.tool))
        self._kind_menu.setCurrentIndex(PATTERN_KINDS.index(kind))
        self._pattern.setText(text)

    def _populate_menus(self) -> None:
        for effect in EFFECTS:
            self._effect.addItem(effect_name(effect))
        for kind in PATTERN_KINDS:
            self._kind_menu.addItem(pattern_kind_name(kind))
        for widget, name in (
            (self._effect, self.tr("Decision about the calls")),
            (self._tools, self.tr("Tool")),
            (self._kind_menu, self.tr("Applies to")),
            (self._pattern, self.tr("Folder, host or command")),
        ):
            widget.setAccessibleName(name)
        self._problem.hide()

    def _build_layout(self) -> None:
        self.setProperty("kind", "card")
        self.setAccessibleName(self.tr("Rule editor"))
        foot = hbox(button(self.tr("Cancel rule"), self.cancelled.emit), self._add, spacing=SPACE_S, start_stretch=True)
        layout = vbox(parent=self, spacing=SPACE_S, margins=SPACE_M)
        self._pattern.setMinimumWidth(_PATTERN_WIDTH)
        layout.addWidget(FlowRows((self._effect, self._tools), wide=self._tools))
        layout.addWidget(FlowRows((self._kind_menu, self._pattern), wide=self._pattern))
        layout.addWidget(self._preview)
        layout.addWidget(self._problem)
        layout.addLayout(foot)


def _keep_folder(pattern: Pattern | None, old: Pattern | None) -> Pattern | None:
    """Return the pattern with the folder of the old one, if both are about commands."""
    if not isinstance(pattern, CommandPattern) or not isinstance(old, CommandPattern):
        return pattern
    return pattern.model_copy(update={"folder": old.folder})


def _base_name(tool: str) -> str:
    """Return the name without the version of the tool."""
    return tool.partition(" @ ")[0]
