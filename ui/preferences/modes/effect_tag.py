"""What a rule says about a call, as a word in its colour."""

from typing import Literal

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QLabel

from desktop_agent.vocabulary.conduct.rules import RuleEffect
from ui.look.controls import label

_TAGS: dict[RuleEffect, Literal["safe", "caution", "risk"]] = {
    RuleEffect.ALLOW: "risk",
    RuleEffect.ASK: "caution",
    RuleEffect.DENY: "safe",
}
"""As in the mode picker: green where less happens, red where more happens unasked."""


def effect_words(effect: RuleEffect) -> str:
    """Allow, Ask or Deny."""
    words = {
        RuleEffect.ALLOW: QCoreApplication.translate("Modes", "Allow"),
        RuleEffect.ASK: QCoreApplication.translate("Modes", "Ask"),
        RuleEffect.DENY: QCoreApplication.translate("Modes", "Deny"),
    }
    return words[effect]


def effect_tag(effect: RuleEffect) -> QLabel:
    """A label with that word."""
    tag = label(effect_words(effect))
    tag.setProperty("tag", _TAGS[effect])
    return tag
