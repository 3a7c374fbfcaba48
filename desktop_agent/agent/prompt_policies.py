"""The prompt policies of one agent: which texts are added to its instructions."""

from collections.abc import Callable, Iterable

from desktop_agent.types.engine_events import EngineEvent, PolicyApplied, PolicyInstalled, PolicyRemoved
from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.policies import PolicyTrigger, PromptPolicy


class PromptPolicies:
    """The installed prompt policies. Lives on the event loop.

    `persistent` are those stored with the conversation, in their order; `on_change` is called after each change.
    `refuse_when_closed` raises before any change once the conversation is closed.
    """

    def __init__(
        self,
        persistent: Iterable[PromptPolicy] = (),
        emit: Callable[[EngineEvent], None] = lambda _event: None,
        on_change: Callable[[], None] = lambda: None,
        refuse_when_closed: Callable[[], None] = lambda: None,
    ) -> None:
        self._policies: dict[str, PromptPolicy] = {}
        self._emit = emit
        self._on_change = on_change
        self._refuse_when_closed = refuse_when_closed
        for policy in persistent:
            self._add(policy)

    def install(self, policy: PromptPolicy) -> None:
        """Install a policy. Raises WrongUse for an id in use."""
        self._refuse_when_closed()
        self._add(policy)
        self._on_change()
        self._emit(PolicyInstalled(policy.id))

    def remove(self, policy_id: str) -> None:
        """Remove a policy. Raises WrongUse when it is not installed."""
        self._refuse_when_closed()
        if self._policies.pop(policy_id, None) is None:
            raise WrongUse(Sentence("No prompt policy is called “{id}”.", {"id": policy_id[:80]}), "Look at the list.")
        self._on_change()
        self._emit(PolicyRemoved(policy_id))

    def list(self) -> tuple[PromptPolicy, ...]:
        """Return all installed policies, in the order in which they apply."""
        # Sorting is stable: among equals the one that was installed first stays first.
        return tuple(sorted(self._policies.values(), key=lambda policy: policy.precedence))

    @property
    def persistent(self) -> tuple[PromptPolicy, ...]:
        """Return the policies to be stored with the conversation, in the order of installation."""
        return tuple(policy for policy in self._policies.values() if policy.scope == "persistent")

    def for_turn(self, turn_id: str, *, mode: str, tools: frozenset[str], prompt: str) -> tuple[PromptPolicy, ...]:
        """Return the policies that apply to this turn, in order. They are used up only by `mark_used`.

        `mode` is the name of the current mode, `tools` are the names called in the turn before, `prompt` is the text
        of the newest prompt.
        """
        applied = tuple(policy for policy in self.list() if _applies(policy.trigger, mode, tools, prompt))
        if applied:
            self._emit(PolicyApplied(turn_id, tuple(policy.id for policy in applied)))
        return applied

    def mark_used(self, policies: Iterable[PromptPolicy]) -> None:
        """Note that an answer used these: those for one turn are removed, unless removed or replaced since."""
        for policy in policies:
            if policy.scope == "next_turn" and self._policies.get(policy.id) is policy:
                self.remove(policy.id)

    def _add(self, policy: PromptPolicy) -> None:
        if policy.id in self._policies:
            raise WrongUse(
                Sentence("A prompt policy “{id}” is installed already.", {"id": policy.id[:80]}),
                "Remove it first, or choose another id.",
            )
        self._policies[policy.id] = policy


def _applies(trigger: PolicyTrigger, mode: str, tools: frozenset[str], prompt: str) -> bool:
    return (
        (trigger.mode is None or trigger.mode == mode)
        and (trigger.tool is None or trigger.tool in tools)
        and (trigger.word is None or trigger.word.casefold() in prompt.casefold())
    )
