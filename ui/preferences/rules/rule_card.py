"""One rule that stands: what it says, where, who made it, when it was used last; and a way to take it back."""

from datetime import datetime
from typing import Literal

from PySide6.QtCore import QCoreApplication, QDateTime, QLocale, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from desktop_agent.vocabulary.conduct.rules import RuleEffect, RuleScope
from ui.bridge.calls.rules import ShownRule
from ui.look.controls import button, label
from ui.look.sentences import spoken
from ui.look.theme import SPACE_M, SPACE_S, SPACE_XS
from ui.look.visible_text import with_hidden_shown

_TAGS: dict[RuleEffect, Literal["safe", "caution", "risk"]] = {
    RuleEffect.ALLOW: "safe",
    RuleEffect.ASK: "caution",
    RuleEffect.DENY: "risk",
}


def moment_in_words(moment: datetime) -> str:
    """A date and a time of day, as the person's system writes them."""
    return QLocale().toString(QDateTime.fromSecsSinceEpoch(int(moment.timestamp())), QLocale.FormatType.ShortFormat)


class RuleCard(QFrame):
    """`revoked`: the person takes it back."""

    revoked = Signal()

    def __init__(self, rule: ShownRule, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "card")
        words = with_hidden_shown(spoken(rule.words))
        tag = label(self._effect(rule.effect))
        tag.setProperty("tag", _TAGS[rule.effect])
        revoke = button(self.tr("Revoke"), self.revoked.emit, "danger", self.tr("Revoke the rule: {0}").format(words))
        head = QHBoxLayout()
        head.setSpacing(SPACE_S)
        head.addWidget(tag)
        head.addWidget(label(words, "strong", wrap=True), 1)
        head.addWidget(revoke)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_S, SPACE_M, SPACE_S)
        layout.setSpacing(SPACE_XS)
        layout.addLayout(head)
        layout.addWidget(label(self._where(rule), "muted", wrap=True))
        layout.addWidget(label(self._history(rule), "muted", wrap=True))

    def _effect(self, effect: RuleEffect) -> str:
        words = {
            RuleEffect.ALLOW: self.tr("Allow"),
            RuleEffect.ASK: self.tr("Ask"),
            RuleEffect.DENY: self.tr("Deny"),
        }
        return words[effect]

    def _where(self, rule: ShownRule) -> str:
        match rule.scope:
            case RuleScope.ALWAYS:
                return self.tr("Everywhere")
            case RuleScope.WORKSPACE:
                return self.tr("Only in the folder {0}").format(with_hidden_shown(rule.place))
            case RuleScope.CONVERSATION:
                return self.tr("Only in one conversation")

    def _history(self, rule: ShownRule) -> str:
        origin = self.tr("you") if rule.origin == "you" else with_hidden_shown(rule.origin)
        parts = [self.tr("Made by {0}, {1}").format(origin, moment_in_words(rule.created_at))]
        if rule.last_used_at is None:
            parts.append(self.tr("never used"))
        else:
            parts.append(self.tr("last used {0}").format(moment_in_words(rule.last_used_at)))
        if rule.expires_at is not None:
            parts.append(self.tr("holds until {0}").format(moment_in_words(rule.expires_at)))
        return QCoreApplication.translate("RuleCard", " · ").join(parts)
