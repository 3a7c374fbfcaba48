"""The pages of permissions: the rules, a dry run of them, and the audit log of decisions."""

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QCoreApplication, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QLineEdit, QListWidget, QListWidgetItem, QWidget

from desktop_agent.types.blocks import Outcome
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import now
from desktop_agent.types.permissions import AuditEntry, Rule, RuleScope
from ui.bridge.permissions import PermissionRules, rule_sentence
from ui.settings.card_list import Card, CardList, RemovalQuestion
from ui.settings.rule_editor import effect_tag
from ui.style.boxes import hbox, vbox
from ui.style.controls import announce, button, label, set_style_property
from ui.style.layouts import FlowRows
from ui.style.list_rows import RowDelegate, RowRole
from ui.style.text import join_sentences, labelled, show_hidden, translate_sentence
from ui.style.text_display import (
    LogicalOrderText,
    arguments_as_json,
    arguments_from_json,
    exact_date,
    in_logical_order,
    isolate,
)
from ui.style.theme import SPACE_M, SPACE_S, SPACE_XS, ThemeSource, mono_font
from ui.style.tool_labels import tool_title
from ui.style.widgets import ComboBox, TextWithButtons


class RuleCard(Card):
    """A standing rule. `revoke` is called when the person revokes it."""

    def __init__(self, rule: Rule, revoke: Callable[[], object]) -> None:
        super().__init__()
        words = translate_sentence(rule_sentence(rule), show_hidden)
        question = RemovalQuestion(
            self.tr("Revoke this rule? Other rules, or the mode, decide about such calls from then on."),
            (self.tr("Revoke"), self.tr("Revoke the rule: {0}").format(words)),
            (self.tr("Keep"), self.tr("Keep the rule: {0}").format(words)),
            (self.tr("Revoke"), self.tr("Really revoke the rule: {0}").format(words)),
        )
        question.confirmed.connect(revoke)
        self.revoke_button = question.button
        title = QWidget()
        line = hbox(parent=title, spacing=SPACE_S, margins=0)
        line.addWidget(effect_tag(rule.effect), 0, Qt.AlignmentFlag.AlignVCenter)
        line.addWidget(label(words, "strong", wrap=True), 1)
        head = TextWithButtons(title, (question.button,))
        scope = label(self._scope_text(rule), "muted", wrap=True)
        self._history = label(self._history_text(rule), "muted", wrap=True)
        margins = (SPACE_M, SPACE_S, SPACE_M, SPACE_S)
        vbox(head, scope, self._history, question, parent=self, spacing=SPACE_XS, margins=margins)

    def show_history(self, rule: Rule) -> None:
        """Show when the rule was last used; nothing else of a rule changes."""
        self._history.setText(self._history_text(rule))

    def _scope_text(self, rule: Rule) -> str:
        match rule.scope:
            case RuleScope.ALWAYS:
                return self.tr("Everywhere")
            case RuleScope.WORKSPACE:
                return self.tr("Only in the folder {0}").format(show_hidden(rule.workspace or ""))
            case RuleScope.CONVERSATION:
                return self.tr("Only in one conversation")

    def _history_text(self, rule: Rule) -> str:
        origin = self.tr("you") if rule.origin == "you" else show_hidden(rule.origin)
        today = now()
        parts = [self.tr("Made by {0}, {1}").format(origin, exact_date(rule.created_at, today))]
        if rule.last_used_at is None:
            parts.append(self.tr("never used"))
        else:
            parts.append(self.tr("last used {0}").format(exact_date(rule.last_used_at, today)))
        if rule.expires_at is not None:
            parts.append(self.tr("holds until {0}").format(exact_date(rule.expires_at, today)))
        return QCoreApplication.translate("RuleCard", " · ").join(parts)


_MIN_ARGUMENTS_WIDTH = 180
"""Pixels of the arguments, at least."""


class PermissionDryRun(QWidget):
    """Tries a call of the open conversation, which is not made."""

    def __init__(self, themes: ThemeSource, rules: PermissionRules, conversation_id: Callable[[], str | None]) -> None:
        super().__init__()
        self._themes = themes
        self._rules = rules
        self._conversation_id = conversation_id
        self._tools = ComboBox()
        self._tools.setAccessibleName(self.tr("Tool"))
        self._arguments = QLineEdit("{}")
        self._arguments.setMinimumWidth(_MIN_ARGUMENTS_WIDTH)
        self._arguments.setAccessibleName(self.tr("Arguments as JSON"))
        self._arguments.returnPressed.connect(self._request_verdict)
        self._check = button(self.tr("Check"), self._request_verdict)
        self._answer = label(wrap=True)
        words = self.tr("Choose a tool and write its arguments as JSON to see whether the call would run.")
        self._help = label(join_sentences((words, self.tr("Nothing is run."))), "muted", wrap=True)
        self._arguments.setAccessibleDescription(self._help.text())
        self._none = label(self.tr("Open a conversation with tools to try its rules."), "muted", wrap=True)
        self._row = FlowRows((self._tools, self._arguments, self._check), wide=self._arguments)
        vbox(self._help, self._none, self._row, self._answer, parent=self, spacing=SPACE_S, margins=0)
        themes.follow(self._apply_theme)
        self.show_tools(())
        rules.tools_found.connect(self.show_tools)
        rules.dry_run_finished.connect(self.show_verdict)

    def refresh(self) -> None:
        """Show the tools of the open conversation."""
        conversation = self._conversation_id()
        if conversation is None:
            self.show_tools(())
        else:
            self._rules.find_tools(conversation)

    def show_tools(self, names: Sequence[str]) -> None:
        """Show the tools of the open conversation."""
        chosen = self._tools.currentData()
        self._tools.clear()
        for name in names:
            self._tools.addItem(show_hidden(tool_title(name)), name)
        self._tools.setCurrentIndex(max(0, self._tools.findData(chosen)))
        for widget in (self._help, self._row):
            widget.setVisible(bool(names))
        self._none.setVisible(not names)
        self._answer.setVisible(bool(names and self._answer.text()))

    def show_verdict(self, sentence: Sentence) -> None:
        """Show what would happen to the call."""
        self._show_answer(translate_sentence(sentence, show_hidden), "")

    def _request_verdict(self) -> None:
        arguments, problem = arguments_from_json(self._arguments.text())
        conversation = self._conversation_id()
        if arguments is None:
            self._show_answer(problem, "error")
        elif self._tools.count() and conversation is not None:
            self._rules.dry_run(conversation, self._tools.currentData(), arguments)

    def _show_answer(self, words: str, kind: str) -> None:
        self._answer.setText(words)
        self._answer.show()
        set_style_property(self._answer, "kind", kind)
        announce(self._answer, words)

    def _apply_theme(self) -> None:
        self._arguments.setFont(mono_font(self._themes.zoom))


MAX_CARDS = 200
"""Cards shown at first, and more at each press."""


class RuleSettings(QWidget):
    """The page of rules, and a dry run of them."""

    def __init__(self, themes: ThemeSource, rules: PermissionRules, conversation_id: Callable[[], str | None]) -> None:
        super().__init__()
        self._source = rules
        self._rules: tuple[Rule, ...] = ()
        self._none = label(
            self.tr("There are no rules. To make one, choose “Always allow…” when you are asked about a call."),
            "muted",
            wrap=True,
        )
        self._limit = MAX_CARDS
        self._more = button("", self._show_older)
        self._more.hide()
        self._cards = CardList()
        self._card_of: dict[str, RuleCard] = {}
        self.dry_run = PermissionDryRun(themes, rules, conversation_id)
        words = self.tr(
            "Rules decide about calls before the mode does. Denied calls never run. Allowed calls run without "
            "asking, unless content from outside came into the conversation."
        )
        intro, trial = label(words, "muted", wrap=True), label(self.tr("Try a call"), "strong")
        standing = label(self.tr("Saved rules"), "strong")
        parts = (intro, trial, self.dry_run, standing, self._none, self._cards, FlowRows((self._more,)))
        vbox(*parts, parent=self, spacing=SPACE_M, margins=0, end_stretch=True)
        rules.changed.connect(self._on_changed)

    def refresh(self) -> None:
        """Show the current rules, and the tools of the open conversation."""
        self.show_rules(self._source.all())
        self.dry_run.refresh()

    def _on_changed(self) -> None:
        if self.window().isVisible():
            self.show_rules(self._source.all())

    def show_rules(self, rules: Sequence[Rule]) -> None:
        """Show the standing rules; a question on a card stays."""
        if tuple(rules) == self._rules:
            return
        self._rules = tuple(rules)
        self._none.setVisible(not self._rules)
        self._show_cards()

    def _show_older(self) -> None:
        first = self._rules[self._limit]
        self._limit += MAX_CARDS
        self._show_cards()
        self._card_of[first.id].revoke_button.setFocus()

    def _show_cards(self) -> None:
        self._card_of = {rule.id: self._create_card(rule) for rule in self._rules[: self._limit]}
        self._cards.show_cards(self._card_of)
        hidden = len(self._rules) - self._limit
        words = self.tr("Show older rules ({0})").format(hidden)
        self._more.setText(words)
        self._more.setAccessibleName(words)
        self._more.setVisible(hidden > 0)

    def _create_card(self, rule: Rule) -> RuleCard:
        card = self._card_of.get(rule.id)
        if card is not None:
            card.show_history(rule)
            return card
        return RuleCard(rule, partial(self._source.revoke, rule.id))


_MAX_LINE_LENGTH = 200
_DETAILS_HEIGHT = 180


class AuditLogSettings(QWidget):
    """One row for each call, newest first; the selected one in full below."""

    export_requested = Signal()

    def __init__(self, themes: ThemeSource, rules: PermissionRules) -> None:
        super().__init__()
        self._themes = themes
        self._entries: tuple[AuditEntry, ...] = ()
        self._none = label(self.tr("No tool has been called yet."), "muted")
        self._list = QListWidget()
        self._list.setAccessibleName(self.tr("Decisions"))
        self._list.setItemDelegate(RowDelegate(themes, self._list))
        self._list.setUniformItemSizes(True)
        self._list.currentRowChanged.connect(self._show_details)
        self._details = LogicalOrderText(readOnly=True, tabChangesFocus=True)
        self._details.setAccessibleName(self.tr("Details of the decision"))
        self._details.setProperty("kind", "code")
        self._details.setFixedHeight(_DETAILS_HEIGHT)
        self._more = button(self.tr("Show older"), rules.read_more)
        self._export = button(self.tr("Export…"), self.export_requested.emit)
        foot = hbox(self._more, spacing=SPACE_S, end_stretch=True)
        foot.addWidget(self._export)
        words = self.tr("Every tool call that a model asked for: who decided, and how it ended.")
        intro = label(words, "muted", wrap=True)
        layout = vbox(intro, self._list, self._details, foot, parent=self, spacing=SPACE_M, margins=0, grow=self._list)
        # It takes the room of the hidden list.
        layout.insertWidget(1, self._none, 1, Qt.AlignmentFlag.AlignTop)
        themes.changed.connect(self._redraw)
        self.show_entries((), is_all=True)
        rules.read.connect(self.show_entries)

    @Slot()
    def _redraw(self) -> None:
        self._show_details(self._list.currentRow())

    def show_entries(self, entries: Sequence[AuditEntry], is_all: bool) -> None:  # noqa: FBT001  # a slot
        """Show the entries, newest first; `is_all`: there are no older ones."""
        self._entries = tuple(entries)
        chosen = self._list.currentRow()
        blocker = QSignalBlocker(self._list)
        self._list.clear()
        for entry in self._entries:
            item = QListWidgetItem(isolate(self._title(entry)), self._list)
            item.setData(RowRole.SUBTITLE, self._summary(entry))
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{self._title(entry)}. {self._summary(entry)}")
        blocker.unblock()
        self._none.setVisible(not self._entries)
        for widget in (self._list, self._details, self._export):
            widget.setVisible(bool(self._entries))
        self._more.setVisible(not is_all)
        self._list.setCurrentRow(min(max(chosen, 0), len(self._entries) - 1))

    def _title(self, entry: AuditEntry) -> str:
        about = next((value for value in entry.input.values() if isinstance(value, str)), "")
        path = " → ".join((*entry.agent_path, tool_title(entry.tool)))
        line = labelled(path, about) if about else path
        return show_hidden(" ".join(line[:_MAX_LINE_LENGTH].split()))

    def _summary(self, entry: AuditEntry) -> str:
        parts = [self._decision_text(entry)]
        if entry.outcome is not None and entry.state == "allowed":
            parts.append(self._outcome_text(entry.outcome))
        parts += [exact_date(entry.at, now()), show_hidden(entry.conversation_title[:_MAX_LINE_LENGTH])]
        return " · ".join(parts)

    def _decision_text(self, entry: AuditEntry) -> str:
        words = {
            ("allowed", "person"): self.tr("Allowed by you"),
            ("allowed", "rule"): self.tr("Allowed by a rule"),
            ("allowed", "mode"): self.tr("Allowed by the mode"),
            ("allowed", "default"): self.tr("Allowed without asking: it only reads"),
            ("denied", "person"): self.tr("Denied by you"),
            ("denied", "rule"): self.tr("Denied by a rule"),
            ("denied", "program"): self.tr("Denied without asking"),
            ("stopped", "program"): self.tr("Stopped before it was started"),
        }
        return words.get((entry.state, entry.by), self.tr("Not decided"))

    def _outcome_text(self, outcome: Outcome) -> str:
        words = {
            Outcome.SUCCEEDED: self.tr("done"),
            Outcome.FAILED: self.tr("failed"),
            Outcome.DENIED: self.tr("denied"),
            Outcome.TIMED_OUT: self.tr("took too long"),
            Outcome.CANCELLED: self.tr("stopped"),
            Outcome.LIMIT: self.tr("stopped at a limit"),
            Outcome.UNKNOWN: self.tr("outcome unknown"),
        }
        return words[outcome]

    def _show_details(self, row: int) -> None:
        if not 0 <= row < len(self._entries):
            self._details.clear()
            return
        entry = self._entries[row]
        lines = [isolate(self._title(entry)), self._summary(entry)]
        if entry.was_edited:
            lines.append(self.tr("You edited the arguments."))
        lines += [show_hidden(text) for text in (entry.reason, entry.message) if text]
        self._details.setPlainText("\n".join([*lines, "", ""]))
        code_format = QTextCharFormat()
        code_format.setFont(mono_font(self._themes.zoom))
        end = QTextCursor(self._details.document())
        end.movePosition(QTextCursor.MoveOperation.End)
        end.insertText(in_logical_order(arguments_as_json(entry.input)), code_format)
