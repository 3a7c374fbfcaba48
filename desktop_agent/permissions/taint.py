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

SUSPENDED_EFFECTS = frozenset({Effect.NETWORK, Effect.EXECUTE})

_REASON = (
    "Content from {outsider} came into this conversation. It may have been written to mislead the model, so what could "
    "send something out or run something is asked about, also where it was allowed for good."
)
_REASON_SEVERAL = (
    "Content from {outsider} and {count} more came into this conversation. It may have been written to mislead the "
    "model, so what could send something out or run something is asked about, also where it was allowed for good."
)


@dataclass(frozen=True, slots=True)
class UntrustedContent:
    """`outsiders` have brought something in since it was last lifted; `trusted` are those that the person let pass."""

    sources: tuple[UntrustedSource, ...] = ()
    trusted: tuple[UntrustedSource, ...] = ()

    def with_source(self, source: UntrustedSource) -> "UntrustedContent":
        """With content of this outsider. The same one when the person trusts it, or knows of it."""
        if any(source.is_same(each) for each in (*self.sources, *self.trusted)):
            return self
        return UntrustedContent((*self.sources, source), self.trusted)

    def with_trusted_source(self, source: UntrustedSource) -> "UntrustedContent":
        """With content of this outsider, which the person trusts. The same one when they know of it already."""
        if any(source.is_same(each) for each in (*self.sources, *self.trusted)):
            return self
        return UntrustedContent(self.sources, (*self.trusted, source))

    def after_trusting(self, shown: Sequence[str] | None = None) -> "UntrustedContent":
        """The person lets pass what came in so far: until another outsider brings something.

        Where they were `shown` names, only those are let pass, and of several of one name as many as were shown.
        """
        left = Counter(shown if shown is not None else (each.name for each in self.sources))
        passed, kept = list[UntrustedSource](), list[UntrustedSource]()
        for each in self.sources:
            (passed if left[each.name] > 0 else kept).append(each)
            left[each.name] -= 1
        return UntrustedContent(tuple(kept), (*self.trusted, *passed))

    @property
    def has_arrived(self) -> bool:
        """Whether anything came in from outside, trusted or not."""
        return bool(self.sources or self.trusted)

    @property
    def suspension(self) -> Suspension:
        """What is asked about, and why."""
        if not self.sources:
            return NOTHING_SUSPENDED
        values = {"outsider": self.sources[-1].name, "count": str(len(self.sources) - 1)}
        return Suspension(SUSPENDED_EFFECTS, Sentence(_REASON_SEVERAL if len(self.sources) > 1 else _REASON, values))


NO_UNTRUSTED_CONTENT = UntrustedContent()
