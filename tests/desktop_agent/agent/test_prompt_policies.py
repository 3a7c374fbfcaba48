"""Prompt policies: which apply to a turn, in which order, and how often."""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from pydantic import ValidationError

from desktop_agent.agent.prompt_policies import PromptPolicies
from desktop_agent.types.engine_events import EngineEvent, PolicyApplied, PolicyInstalled, PolicyRemoved
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.policies import PolicyScope, PolicyTrigger, PromptPolicy
from tests.frame.examples import examples

IDS = st.sampled_from("abcdef")
SCOPES = st.sampled_from(("next_turn", "until_removed", "persistent"))
MODES = st.sampled_from(("default", "plan"))
TOOLS = st.sampled_from(("read_file", "calculate"))
WORDS = st.sampled_from(("Test", "straße"))
PROMPTS = st.sampled_from(("", "run the TESTS", "in der STRASSE", "test straße"))


@dataclass
class Installed:
    """One policy of the model, and the number of its installation."""

    policy_id: str
    precedence: int
    number: int
    scope: PolicyScope
    mode: str | None
    tool: str | None
    word: str | None

    def applies(self, mode: str, tools: frozenset[str], prompt: str) -> bool:
        fits_mode = self.mode in (None, mode)
        fits_tool = self.tool is None or self.tool in tools
        fits_word = self.word is None or self.word.casefold() in prompt.casefold()
        return fits_mode and fits_tool and fits_word


@dataclass
class EventLog:
    """Collects events until they are taken."""

    events: list[EngineEvent] = field(default_factory=list)

    def add(self, event: EngineEvent) -> None:
        self.events.append(event)

    def taken(self) -> list[EngineEvent]:
        events, self.events = self.events, []
        return events


class Policies(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.told = EventLog()
        self.policies = PromptPolicies(emit=self.told.add, on_change=self.save)
        self.saved: tuple[PromptPolicy, ...] = ()
        self.model: dict[str, Installed] = {}
        self.count = 0
        self.apply_to: tuple[PromptPolicy, ...] = ()
        self.went: dict[str, int] = {}

    def save(self) -> None:
        self.saved = self.policies.persistent

    @property
    def in_order(self) -> list[Installed]:
        return sorted(self.model.values(), key=lambda policy: (policy.precedence, policy.number))

    @rule(
        policy_id=IDS,
        precedence=st.integers(-2, 2),
        scope=SCOPES,
        mode=st.none() | MODES,
        tool=st.none() | TOOLS,
        word=st.none() | WORDS,
    )
    def install(
        self, policy_id: str, precedence: int, scope: PolicyScope, mode: str | None, tool: str | None, word: str | None
    ) -> None:
        trigger = PolicyTrigger(mode=mode, tool=tool, word=word)
        if policy_id in self.model:
            with pytest.raises(WrongUse):
                self.policies.install(
                    PromptPolicy(id=policy_id, text="text", scope=scope, precedence=precedence, trigger=trigger)
                )
            assert self.told.taken() == []
            return
        self.policies.install(
            PromptPolicy(id=policy_id, text="text", scope=scope, precedence=precedence, trigger=trigger)
        )
        self.count += 1
        self.model[policy_id] = Installed(policy_id, precedence, self.count, scope, mode, tool, word)
        assert self.told.taken() == [PolicyInstalled(policy_id)]

    @rule(policy_id=IDS)
    def remove(self, policy_id: str) -> None:
        if policy_id not in self.model:
            with pytest.raises(WrongUse):
                self.policies.remove(policy_id)
            assert self.told.taken() == []
            return
        self.policies.remove(policy_id)
        del self.model[policy_id]
        assert self.told.taken() == [PolicyRemoved(policy_id)]

    @rule(mode=MODES, tools=st.frozensets(TOOLS), prompt=PROMPTS)
    def take_a_turn(self, mode: str, tools: frozenset[str], prompt: str) -> None:
        applied = self.policies.for_turn("t", mode=mode, tools=tools, prompt=prompt)
        expected = [policy for policy in self.in_order if policy.applies(mode, tools, prompt)]
        ids = tuple(policy.policy_id for policy in expected)
        assert tuple(policy.id for policy in applied) == ids
        assert self.told.taken() == ([PolicyApplied("t", ids)] if ids else [])
        self.apply_to = applied
        self.went = {policy.policy_id: policy.number for policy in expected if policy.scope == "next_turn"}

    @rule()
    def have_the_answer(self) -> None:
        """Use up the policies of the newest turn; also twice, and after they were removed or replaced."""
        self.policies.mark_used(self.apply_to)
        numbers = {policy.policy_id: policy.number for policy in self.model.values()}
        used_up = [policy_id for policy_id, number in self.went.items() if numbers.get(policy_id) == number]
        for policy_id in used_up:
            del self.model[policy_id]
        assert self.told.taken() == [PolicyRemoved(policy_id) for policy_id in used_up]

    @invariant()
    def the_list_is_in_order(self) -> None:
        assert [policy.id for policy in self.policies.list()] == [installed.policy_id for installed in self.in_order]

    @invariant()
    def what_is_kept_comes_back_in_the_same_order(self) -> None:
        assert self.saved == self.policies.persistent
        persistent = [policy.policy_id for policy in self.in_order if policy.scope == "persistent"]
        assert [policy.id for policy in PromptPolicies(self.saved).list()] == persistent


def test_policies_apply_by_precedence_then_installation_and_once_where_said() -> None:
    run_state_machine_as_test(Policies, settings=settings(deadline=None, max_examples=examples(100)))


def test_one_without_a_text_is_refused() -> None:
    with pytest.raises(ValidationError):
        PromptPolicy(id="", text="text")
    with pytest.raises(ValidationError):
        PromptPolicy(id="a", text="")


def test_two_kept_ones_of_one_name_are_refused() -> None:
    policy = PromptPolicy(id="a", text="x", scope="persistent")
    with pytest.raises(WrongUse):
        PromptPolicies((policy, policy))
