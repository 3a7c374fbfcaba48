"""The rules that stand, and a way to try what they mean."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from desktop_agent.vocabulary.errors import Sentence
from ui.bridge.calls.rules import RuleSummary
from ui.look.controls import label
from ui.look.theme import SPACE_M, SPACE_S, ThemeSource
from ui.preferences.rules.dry_run import PermissionDryRun
from ui.preferences.rules.rule_card import RuleCard

MAX_CARDS = 200


class RulesForm(QWidget):
    """Asks for changes; whoever makes them answers with `show_rules`, `show_tools` and `show_verdict`."""

    revoke_requested = Signal(str)
    dry_run_requested = Signal(str, object)
    """A tool's name and the arguments of a call that is not made."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rules: tuple[RuleSummary, ...] = ()
        self._none = label(
            self.tr("No rules stand. Make one with Always allow… when a call is asked about."), "muted", wrap=True
        )
        self._more = label(kind="muted")
        self._more.hide()
        self._cards = QVBoxLayout()
        self._cards.setSpacing(SPACE_S)
        self._dry_run = PermissionDryRun(themes)
        self._dry_run.requested.connect(self.dry_run_requested)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        words = self.tr(
            "A rule decides about calls before the mode does: what it denies never runs, what it allows runs unasked. "
            "Only content from outside can still make such a call be asked about."
        )
        layout.addWidget(label(words, "muted", wrap=True))
        layout.addWidget(label(self.tr("Try a call"), "strong"))
        layout.addWidget(self._dry_run)
        layout.addWidget(label(self.tr("Standing rules"), "strong"))
        layout.addWidget(self._none)
        layout.addLayout(self._cards)
        layout.addWidget(self._more)
        layout.addStretch(1)

    def show_rules(self, rules: Sequence[RuleSummary]) -> None:
        """These stand now."""
        if tuple(rules) == self._rules:
            return
        self._rules = tuple(rules)
        while (item := self._cards.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for rule in self._rules[:MAX_CARDS]:
            card = RuleCard(rule)
            card.revoked.connect(partial(self.revoke_requested.emit, rule.rule_id))
            self._cards.addWidget(card)
        hidden = len(self._rules) - MAX_CARDS
        self._none.setVisible(not self._rules)
        self._more.setText(self.tr("And {0} older rules").format(hidden))
        self._more.setVisible(hidden > 0)

    def show_tools(self, names: Sequence[str]) -> None:
        """The tools of the conversation that is open."""
        self._dry_run.show_tools(names)

    def show_verdict(self, sentence: Sentence) -> None:
        """What would become of the call that was asked about."""
        self._dry_run.show_verdict(sentence)
