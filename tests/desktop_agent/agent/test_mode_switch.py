"""Modes: the person's change holds at once, the agent's one turn after it was announced, and never widens anything."""

import asyncio
from itertools import combinations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from pydantic import BaseModel

from desktop_agent.agent.modes import ModeSwitch, change_mode
from desktop_agent.permissions.gate import Allowed, Ask, Denied
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.tools.tool import AnyTool, ModelSchema, RunningCall, Tool
from desktop_agent.types.blocks import Text, ToolUse
from desktop_agent.types.engine_events import EngineEvent, ModeChanged, ModeChangeRequested
from desktop_agent.types.errors import ToolFailed, WrongUse
from desktop_agent.types.permissions import (
    ACCEPT_EDITS_MODE,
    BUILT_IN_MODES,
    DEFAULT_MODE,
    PLAN_MODE,
    Mode,
    PathPattern,
    PathSubject,
    Rule,
    RuleEffect,
    RuleScope,
)
from desktop_agent.types.tool_calls import Effect, ToolClass
from tests.frame.examples import examples


class Wanted(BaseModel):
    path: str


def tool(name: str, *effects: Effect, tool_class: ToolClass = ToolClass.MUTATING) -> AnyTool:
    async def run(_wanted: Wanted, _call: RunningCall) -> tuple[Text, ...]:
        return ()

    async def subjects(arguments: Wanted) -> tuple[PathSubject, ...]:
        return (PathSubject(arguments.path),)

    return Tool(name, "", ModelSchema(Wanted), run, tool_class, frozenset(effects), subjects=subjects)


TOOLS = (
    tool("look", Effect.READ, tool_class=ToolClass.READ_ONLY),
    tool("write", Effect.READ, Effect.WRITE),
    tool("start", Effect.EXECUTE),
)
PATHS = ("/project/notes/a", "/project/b")
PATTERNS = (None, PathPattern(prefix="/project/notes"))


def rule_of(rule_id: str, effect: RuleEffect, name: str, pattern: PathPattern | None) -> Rule:
    return Rule(id=rule_id, effect=effect, tool=name, pattern=pattern, scope=RuleScope.ALWAYS, origin="a mode")


# Few ids, so that modes share rules, and so that one id may say two different things.
RULES = st.builds(
    rule_of,
    st.sampled_from("xyz"),
    st.sampled_from(RuleEffect),
    st.sampled_from(("look", "write", "start", "*")),
    st.sampled_from(PATTERNS),
)
MODES = st.lists(
    st.builds(
        lambda mutating, rules: Mode(name="m", title="M", mutating=mutating, rules=tuple(rules)),
        st.sampled_from(("deny", "ask", "accept_edits")),
        st.lists(RULES, max_size=3, unique_by=lambda rule: rule.id),
    ),
    min_size=3,
    max_size=5,
)
STANDING_RULES = st.lists(
    st.builds(
        rule_of,
        st.sampled_from("st"),
        st.sampled_from(RuleEffect),
        st.sampled_from(("look", "write", "start")),
        st.sampled_from(PATTERNS),
    ),
    max_size=2,
    unique_by=lambda rule: rule.id,
)
NAMES = st.integers(0, 4)
RANKS = {Denied: 0, Ask: 1, Allowed: 2}


async def authority(permission_policy: PermissionPolicy) -> list[int]:
    """Return the rank of each possible call under this policy: denied, asked about, or allowed."""
    return [
        RANKS[type(await permission_policy.verdict(ToolUse(id="c", name=tool.name, input={"path": path}), tool, ()))]
        for tool in TOOLS
        for path in PATHS
    ]


class Switched(RuleBasedStateMachine):
    """A person and an agent at one switch. `asked` is the agent's open request, and whether it was announced."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.events: list[EngineEvent] = []

    def teardown(self) -> None:
        self.runner.close()

    @initialize(modes=MODES, rules=STANDING_RULES)
    def begin(self, modes: list[Mode], rules: list[Rule]) -> None:
        self.modes = [mode.model_copy(update={"name": f"m{number}"}) for number, mode in enumerate(modes)]
        self.rules = rules
        self.by_person = self.current = self.modes[0]
        self.permission_policy = PermissionPolicy(rules, mode=self.current)
        self.switch = ModeSwitch(self.permission_policy, lambda: self.modes, self.events.append)
        self.asked: tuple[Mode, bool] | None = None
        self.changes = 0
        self.permission_policy._listeners.append(self.count)

    def count(self) -> None:
        self.changes += 1

    def new_events(self) -> list[EngineEvent]:
        events = list(self.events)
        self.events.clear()
        return events

    @rule(number=NAMES)
    def the_person_chooses(self, number: int) -> None:
        before, mode = self.current, self.modes[number % len(self.modes)]
        announced = self.asked is not None and self.asked[1]
        changes = self.changes
        self.switch.set_by_person(mode.name)
        assert self.permission_policy.mode == mode
        self.by_person = self.current = mode
        self.asked = None
        news = mode != before or announced
        assert self.new_events() == ([ModeChanged(before.name, mode.name, "person")] if news else [])
        assert self.changes - changes == (1 if mode != before else 0)

    @rule(number=NAMES)
    def the_agent_asks(self, number: int) -> None:
        mode = self.modes[number % len(self.modes)]
        try:
            self.switch.request_by_agent(mode.name)
        except ToolFailed:
            pass
        else:
            self.asked = (mode, False)
        assert self.new_events() == []

    @rule()
    def the_person_objects(self) -> None:
        assert self.switch.cancel_request() == (self.asked is not None)
        name = self.current.name
        announced = self.asked is not None and self.asked[1]
        assert self.new_events() == ([ModeChanged(name, name, "person")] if announced else [])
        self.asked = None

    @rule()
    def a_turn_ends(self) -> None:
        self.switch.at_turn_boundary()
        events = self.new_events()
        if self.asked is None:
            assert events == []
            return
        mode, announced = self.asked
        if announced:
            assert events == [ModeChanged(self.current.name, mode.name, "agent")]
            self.current, self.asked = mode, None
            return
        (event,) = events
        assert isinstance(event, ModeChangeRequested)
        assert (event.from_mode, event.to_mode) == (self.current.name, mode.name)
        self.asked = (mode, True)

    @invariant()
    def the_mode_is_the_one_expected(self) -> None:
        assert self.permission_policy.mode == self.switch.current == self.current
        request = self.switch.requested
        assert (request and (request.to_mode, self.switch.is_announced)) == (
            self.asked and (self.asked[0].name, self.asked[1])
        )

    @invariant()
    def no_more_may_run_than_the_person_set(self) -> None:
        if self.current == self.by_person:
            return
        now = self.runner.run(authority(self.permission_policy))
        allowed = self.runner.run(authority(PermissionPolicy(self.rules, mode=self.by_person)))
        assert all(mine <= persons for mine, persons in zip(now, allowed, strict=True))


def test_the_person_s_change_holds_at_once_and_the_agent_s_only_later_and_only_narrower() -> None:
    run_state_machine_as_test(
        Switched, settings=settings(deadline=None, max_examples=examples(200), stateful_step_count=30)
    )


@pytest.mark.parametrize(("narrow", "wide"), list(combinations((PLAN_MODE, DEFAULT_MODE, ACCEPT_EDITS_MODE), 2)))
def test_an_agent_may_narrow_but_not_widen(narrow: Mode, wide: Mode) -> None:
    permission_policy = PermissionPolicy(mode=wide)
    switch = ModeSwitch(permission_policy)
    switch.request_by_agent(narrow.name)
    switch.at_turn_boundary()
    assert permission_policy.mode == wide
    switch.at_turn_boundary()
    assert permission_policy.mode == narrow
    with pytest.raises(ToolFailed, match="only the person"):
        switch.request_by_agent(wide.name)
    assert switch.requested is None


def test_own_modes_with_rules_are_compared_by_what_the_rules_say() -> None:
    no_writing = rule_of("r", RuleEffect.DENY, "write", None)
    strict = Mode(name="strict", title="Strict", rules=(no_writing,))
    stricter = Mode(name="stricter", title="Stricter", mutating="deny", rules=(no_writing,))
    forged = Mode(
        name="forged", title="Forged", mutating="deny", rules=(rule_of("r", RuleEffect.ALLOW, "start", None),)
    )
    switch = ModeSwitch(PermissionPolicy(mode=strict), lambda: (strict, stricter, forged, *BUILT_IN_MODES))
    for name in ("default", "plan", "forged"):
        with pytest.raises(ToolFailed, match="only the person"):
            switch.request_by_agent(name)
    switch.request_by_agent("stricter")


def test_what_became_wider_meanwhile_is_not_applied() -> None:
    events: list[EngineEvent] = []
    permission_policy = PermissionPolicy(mode=ACCEPT_EDITS_MODE)
    switch = ModeSwitch(permission_policy, emit=events.append)
    switch.request_by_agent("default")
    switch.at_turn_boundary()
    # Not through the switch: the policy itself is narrowed.
    permission_policy.set_mode(PLAN_MODE)
    switch.at_turn_boundary()
    assert (permission_policy.mode, switch.requested) == (PLAN_MODE, None)
    assert events[1:] == [ModeChanged("plan", "plan", "agent")]


def test_a_newer_request_replaces_the_older() -> None:
    events: list[EngineEvent] = []
    switch = ModeSwitch(PermissionPolicy(mode=ACCEPT_EDITS_MODE), emit=events.append)
    switch.request_by_agent("default")
    switch.at_turn_boundary()
    switch.request_by_agent("plan")
    switch.at_turn_boundary()
    assert switch.current == ACCEPT_EDITS_MODE
    switch.at_turn_boundary()
    assert switch.current == PLAN_MODE
    assert [type(event) for event in events] == [ModeChangeRequested, ModeChangeRequested, ModeChanged]


def test_unknown_names_are_refused() -> None:
    switch = ModeSwitch(PermissionPolicy())
    with pytest.raises(WrongUse, match="no mode “fast”"):
        switch.set_by_person("fast")
    with pytest.raises(ToolFailed, match="no mode “fast”"):
        switch.request_by_agent("fast")
    with pytest.raises(ToolFailed, match="already"):
        switch.request_by_agent("default")
    with pytest.raises(WrongUse):
        ModeSwitch(PermissionPolicy(), lambda: (PLAN_MODE, PLAN_MODE))


def test_the_mode_adds_to_the_instructions() -> None:
    switch = ModeSwitch(PermissionPolicy())
    assert switch.current.addendum == ""
    switch.set_by_person("plan")
    assert switch.current.addendum == PLAN_MODE.addendum


async def call(switch: ModeSwitch, mode: str, *agent_path: str) -> str:
    tool = change_mode(switch)
    (part,) = await tool.run(tool.checked({"mode": mode}), RunningCall("c", lambda _text: None, agent_path))
    assert isinstance(part, Text)
    return part.text


async def test_the_tool_asks_and_applies_nothing() -> None:
    switch = ModeSwitch(PermissionPolicy(mode=ACCEPT_EDITS_MODE))
    assert "announced" in await call(switch, "plan")
    assert switch.current == ACCEPT_EDITS_MODE
    assert switch.requested is not None
    assert switch.requested.to_mode == "plan"


async def test_the_tool_says_why_it_cannot() -> None:
    switch = ModeSwitch(PermissionPolicy(mode=PLAN_MODE))
    with pytest.raises(ToolFailed, match="only the person"):
        await call(switch, "accept-edits")
    with pytest.raises(ToolFailed, match="root agent"):
        await call(ModeSwitch(PermissionPolicy()), "plan", "researcher")
    assert switch.requested is None


@pytest.mark.parametrize("mode", BUILT_IN_MODES, ids=lambda mode: mode.name)
async def test_the_tool_needs_no_approval_in_any_mode(mode: Mode) -> None:
    tool = change_mode(ModeSwitch(PermissionPolicy(mode=mode)))
    verdict = await PermissionPolicy(mode=mode).verdict(ToolUse(id="c", name=tool.name, input={"mode": "plan"}), tool)
    assert isinstance(verdict, Allowed)
    assert "accept-edits (Accept edits)" in tool.description
