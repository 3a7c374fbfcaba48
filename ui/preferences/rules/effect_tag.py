"""What a rule says about a call, as a word in its colour."""

from typing import Literal

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QLabel

from desktop_agent.vocabulary.conduct.rules import RuleEffect
from ui.look.controls import label

_EFFECT_TAGS: dict[RuleEffect, Literal["safe", "caution", "risk"]] = {
    RuleEffect.ALLOW: "safe",
    RuleEffect.ASK: "caution",
    RuleEffect.DENY: "risk",
}


def effect_name(effect: RuleEffect) -> str:
    """Allow, Ask or Deny."""
    words = {
        RuleEffect.ALLOW: QCoreApplication.translate("Rules", "Allow"),
        RuleEffect.ASK: QCoreApplication.translate("Rules", "Ask"),
        RuleEffect.DENY: QCoreApplication.translate("Rules", "Deny"),
    }
    return words[effect]


def effect_tag(effect: RuleEffect) -> QLabel:
    """A label with that word."""
    tag = label(effect_name(effect))
    tag.setProperty("tag", _EFFECT_TAGS[effect])
    return tag
