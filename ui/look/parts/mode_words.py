"""What modes are called, what they let happen, and in which colour they stand."""

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from desktop_agent.vocabulary.conduct.modes import BUILT_IN_MODES, Mode
from desktop_agent.vocabulary.conduct.rules import RuleEffect
from ui.look.theme import Theme


@dataclass(frozen=True, slots=True)
class ModeAppearance:
    """An icon, and the colour of icon and words (#rrggbb)."""

    icon: str
    colour: str


def mode_title(mode: Mode) -> str:
    """Its name for people; own modes are called as their maker called them."""
    if mode not in BUILT_IN_MODES:
        return mode.title
    words = {
        "default": QCoreApplication.translate("Modes", "Default"),
        "plan": QCoreApplication.translate("Modes", "Plan"),
        "accept-edits": QCoreApplication.translate("Modes", "Accept edits"),
    }
    return words[mode.name]


def mode_description(mode: Mode) -> str:
    """What happens unasked while it holds."""
    words = {
        "deny": QCoreApplication.translate("Modes", "Nothing is changed"),
        "ask": QCoreApplication.translate("Modes", "Asks before it changes something"),
        "accept_edits": QCoreApplication.translate("Modes", "Changes files unasked"),
    }
    more = {
        (True, False): QCoreApplication.translate("Modes", "{0}; its own rules allow more"),
        (False, True): QCoreApplication.translate("Modes", "{0}; its own rules forbid or ask more"),
        (True, True): QCoreApplication.translate(
            "Modes", "{0}; its own rules allow some, forbid or ask more of others"
        ),
    }
    return more.get((allows_more(mode), _restricts(mode)), "{0}").format(words[mode.mutating])


def allows_more(mode: Mode) -> bool:
    """Whether rules of its own let calls run that would be asked about."""
    return any(rule.effect == RuleEffect.ALLOW for rule in mode.rules)


def _restricts(mode: Mode) -> bool:
    """Whether rules of its own deny calls, or have the person asked about them."""
    return any(rule.effect != RuleEffect.ALLOW for rule in mode.rules)


def mode_appearance(mode: Mode, theme: Theme) -> ModeAppearance:
    """Green where nothing changes, plain where a person is asked, amber where files change, red where rules allow."""
    if allows_more(mode):
        return ModeAppearance("warning", theme.danger)
    looks = {
        "deny": ModeAppearance("eye", theme.success),
        "ask": ModeAppearance("check", theme.text),
        "accept_edits": ModeAppearance("pencil", theme.warning),
    }
    return looks[mode.mutating]
