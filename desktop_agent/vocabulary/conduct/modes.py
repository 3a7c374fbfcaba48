"""Modes: how much an agent may do unasked."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.vocabulary.conduct.rules import Rule, RuleEffect

# From the least to the most that may happen without a question.
Breadth = Literal["deny", "ask", "accept_edits"]
BREADTHS: tuple[Breadth, ...] = ("deny", "ask", "accept_edits")


class Mode(BaseModel):
    """A mode. `mutating` is what becomes of calls that change something and that no rule decides.

    deny: they are denied. ask: a person decides. accept_edits: calls whose only effects are to read and to write
    files run unasked, the others are asked about. `addendum` is added to the instructions while the mode holds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")
    title: str = Field(min_length=1)
    mutating: Breadth = "ask"
    addendum: str = ""
    rules: tuple[Rule, ...] = ()

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            name: str,
            title: str,
            mutating: Breadth = "ask",
            addendum: str = "",
            rules: Sequence[Rule] = (),
        ) -> None: ...

    def is_wider_than(self, other: "Mode") -> bool:
        """Whether more may happen unasked, as far as that can be told: rules that allow count as wider."""
        # Not by their ids: of two versions of one rule, one may name more commands or tools.
        return (
            BREADTHS.index(self.mutating) > BREADTHS.index(other.mutating)
            or any(rule.effect == "allow" and rule not in other.rules for rule in self.rules)
            or any(rule.effect != "allow" and rule not in self.rules for rule in other.rules)
        )


DEFAULT_MODE = Mode(name="default", title="Default")
PLAN_MODE = Mode(
    name="plan",
    title="Plan",
    mutating="deny",
    addendum=(
        "You are in plan mode. Look, read and think; do not change anything: calls that change something are denied. "
        "When you know what should be done, say it as a plan, and let the person decide."
    ),
)
ACCEPT_EDITS_MODE = Mode(name="accept-edits", title="Accept edits", mutating="accept_edits")
BUILT_IN_MODES: tuple[Mode, ...] = (DEFAULT_MODE, PLAN_MODE, ACCEPT_EDITS_MODE)


def fallback_mode(gone: Mode) -> Mode:
    """What holds where a mode was removed while it held: nothing runs unasked that it, or the default, would not let.

    Of the built-in modes the widest of which that is true; mostly the default. Where it denied or asked about more than
    any of these, it goes on itself, without what it allowed.
    """
    fitting = [mode for mode in BUILT_IN_MODES if not mode.is_wider_than(gone) and not mode.is_wider_than(DEFAULT_MODE)]
    if fitting:
        return max(fitting, key=lambda mode: BREADTHS.index(mode.mutating))
    breadth = min(gone.mutating, DEFAULT_MODE.mutating, key=BREADTHS.index)
    rules = tuple(rule for rule in gone.rules if rule.effect is not RuleEffect.ALLOW)
    return gone.model_copy(update={"mutating": breadth, "rules": rules})
