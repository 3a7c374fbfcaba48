"""One rule that stands: what it says, where, who made it, when it was used last; and a way to take it back."""

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from desktop_agent.vocabulary.conduct.rules import RuleScope
from desktop_agent.vocabulary.messages import now
from ui.bridge.calls.rules import RuleSummary
from ui.look.controls import button, label
from ui.look.parts.dates import exact_date
from ui.look.sentences import translate_sentence
from ui.look.theme import SPACE_M, SPACE_S, SPACE_XS
from ui.look.visible_text import show_hidden
from ui.preferences.rules.effect_tag import effect_tag


class RuleCard(QFrame):
    """`revoked`: the person takes it back."""

    revoked = Signal()

    def __init__(self, rule: RuleSummary, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "card")
        words = show_hidden(translate_sentence(rule.words))
        revoke = button(self.tr("Revoke"), self.revoked.emit, "danger", self.tr("Revoke the rule: {0}").format(words))
        head = QHBoxLayout()
        head.setSpacing(SPACE_S)
        head.addWidget(effect_tag(rule.effect), 0, Qt.AlignmentFlag.AlignVCenter)
        head.addWidget(label(words, "strong", wrap=True), 1)
        head.addWidget(revoke)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_S, SPACE_M, SPACE_S)
        layout.setSpacing(SPACE_XS)
        layout.addLayout(head)
        layout.addWidget(label(self._scope_text(rule), "muted", wrap=True))
        layout.addWidget(label(self._history_text(rule), "muted", wrap=True))

    def _scope_text(self, rule: RuleSummary) -> str:
        match rule.scope:
            case RuleScope.ALWAYS:
                return self.tr("Everywhere")
            case RuleScope.WORKSPACE:
                return self.tr("Only in the folder {0}").format(show_hidden(rule.place))
            case RuleScope.CONVERSATION:
                return self.tr("Only in one conversation")

    def _history_text(self, rule: RuleSummary) -> str:
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
