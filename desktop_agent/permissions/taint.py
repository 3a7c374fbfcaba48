"""What came into a conversation from outside, and what is asked about because of it.

Whoever wrote a page or answers for an MCP server may have written it for the model: to send something out, or to
run something. While such content stands in a conversation, what was allowed for good is asked about again where it
could do either.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from desktop_agent.permissions.gate import NOTHING_SUSPENDED, Suspension
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.tool_calls import Effect, UntrustedSource

SUSPENDED = frozenset({Effect.NETWORK, Effect.EXECUTE})

_WHY = (
    "Content from {outsider} came into this conversation. It may have been written to mislead the model, so what could "
    "send something out or run something is asked about, also where it was allowed for good."
)
_WHY_SEVERAL = (
    "Content from {outsider} and {count} more came into this conversation. It may have been written to mislead the "
    "model, so what could send something out or run something is asked about, also where it was allowed for good."
)


@dataclass(frozen=True, slots=True)
class Taint:
    """`outsiders` have brought something in since it was last lifted; `trusted` are those that the person let pass."""

    outsiders: tuple[UntrustedSource, ...] = ()
    trusted: tuple[UntrustedSource, ...] = ()

    def marked(self, outsider: UntrustedSource) -> "Taint":
        """With content of this outsider. The same one when the person trusts it, or knows of it."""
        if any(outsider.is_same(each) for each in (*self.outsiders, *self.trusted)):
            return self
        return Taint((*self.outsiders, outsider), self.trusted)

    def trusting(self, outsider: UntrustedSource) -> "Taint":
        """With content of this outsider, which the person trusts. The same one when they know of it already."""
        if any(outsider.is_same(each) for each in (*self.outsiders, *self.trusted)):
            return self
        return Taint(self.outsiders, (*self.trusted, outsider))

    def lifted(self, shown: Sequence[str] | None = None) -> "Taint":
        """The person lets pass what came in so far: until another outsider brings something.

        Where they were `shown` names, only those are let pass, and of several of one name as many as were shown.
        """
        left = Counter(shown if shown is not None else (each.name for each in self.outsiders))
        passed, kept = list[UntrustedSource](), list[UntrustedSource]()
        for each in self.outsiders:
            (passed if left[each.name] > 0 else kept).append(each)
            left[each.name] -= 1
        return Taint(tuple(kept), (*self.trusted, *passed))

    @property
    def has_come(self) -> bool:
        """Whether anything came in from outside, trusted or not."""
        return bool(self.outsiders or self.trusted)

    @property
    def suspension(self) -> Suspension:
        """What is asked about, and why."""
        if not self.outsiders:
            return NOTHING_SUSPENDED
        values = {"outsider": self.outsiders[-1].name, "count": str(len(self.outsiders) - 1)}
        return Suspension(SUSPENDED, Sentence(_WHY_SEVERAL if len(self.outsiders) > 1 else _WHY, values))


CLEAN = Taint()
