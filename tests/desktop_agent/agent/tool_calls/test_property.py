"""Random calls, tools, decisions and stops, each at a random step of the loop: what must hold, holds."""

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desktop_agent.agent.tool_calls.tool_execution import CallKind
from desktop_agent.permissions.gate import Allowed
from desktop_agent.tools.tool import AnyTool, RunningCall
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.engine_events import ApprovalRequested, ApprovalResolved, ToolFinished, ToolStarted
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.permissions import BUILT_IN_MODES, Rule, RuleEffect
from desktop_agent.types.policies import HookAsk, HookDeny, HookEdit, Hooks, PreToolUse
from desktop_agent.types.tool_calls import AllowAlways, AllowForConversation, AllowOnce, Deny, DenyAndStop, Effect
from tests.fakes.tool_batch import Desk, call, tool
from tests.frame.examples import examples

NAMES = ("look", "few", "fetch", "act", "one", "hand", "none")
WAYS = ("", "slow", "raise", "exit", "cancelled", "nonsense", "swallow", "hang", "deaf", "flood")
RAISED: dict[str, type[BaseException]] = {
    "raise": LookupError,
    "exit": SystemExit,
    "cancelled": asyncio.CancelledError,
}
ORDER = (
    *("tool_call_pending", "approval_requested", "approval_resolved", "checkpoint_created"),
    *("tool_started", "tool_progress", "tool_finished"),
)


@dataclass(frozen=True)
class Act:
    """Something from outside, so many steps of the event loop after the act before it."""

    steps: int
    what: str
    which: int


@dataclass
class World:
    """What the tools did, as they saw it, and who allowed what."""

    has_begun: list[str] = field(default_factory=list)
    running: dict[str, AnyTool] = field(default_factory=dict)
    allowed: set[tuple[str, str]] = field(default_factory=set)
    asked_by_hook: set[str] = field(default_factory=set)
    is_stopped: bool = False
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    faults: list[str] = field(default_factory=list)
    desk: Any = None
    tools: dict[str, AnyTool] = field(default_factory=dict)

    def begin(self, word: str, running: RunningCall) -> None:
        """Check everything that must hold when a tool starts."""
        id_, tool = running.tool_use_id, self.tools[running.tool_use_id.partition("-")[0]]
        if self.is_stopped:
            self.faults.append(f"{id_} began after stop")
        if id_ in self.has_begun:
            self.faults.append(f"{id_} began twice")
        self.has_begun.append(id_)
        others = {other for other in self.running if not self.desk.finished(other)}
        for other in others:
            if kind_of(self.running[other]) is not kind_of(tool) or kind_of(tool) is CallKind.MUTATING:
                self.faults.append(f"{id_} runs beside {other}")
        same = [other for other in others if self.running[other].name == tool.name]
        if tool.concurrency is not None and len(same) >= tool.concurrency:
            self.faults.append(f"{id_} is one too many")
        self.running[id_] = tool
        if not self.is_allowed(id_, tool, word):
            self.faults.append(f"{id_} began without an allowance for its arguments")

    def is_allowed(self, id_: str, tool: AnyTool, word: str) -> bool:
        arguments = {"word": word}
        verdict = self.desk.permission_policy.verdict(ToolUse(id=id_, name=tool.name, input=arguments), tool)
        try:
            verdict.send(None)
        except StopIteration as end:
            if isinstance(end.value, Allowed) and id_ not in self.asked_by_hook:
                return True
        return (id_, tool.digest(arguments)) in self.allowed

    async def work(self, word: str, running: RunningCall) -> Any:
        self.begin(word, running)
        way = word.partition(" ")[0]
        try:
            return await self.do(way, running)
        finally:
            self.running.pop(running.tool_use_id, None)

    async def do(self, way: str, running: RunningCall) -> Any:
        await asyncio.sleep(0)
        if way in RAISED:
            raise RAISED[way]
        match way:
            case "slow":
                for _ in range(5):
                    await asyncio.sleep(0)
            case "swallow":
                with contextlib.suppress(asyncio.CancelledError):
                    await self.may_end.wait()
                running.progress("late")
            case "hang":
                await self.may_end.wait()
            case "deaf":
                await self.deaf()
            case "flood":
                for _ in range(50):
                    running.progress("")
        return 5 if way == "nonsense" else "done"

    async def deaf(self) -> None:
        while not self.may_end.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.may_end.wait()


def kind_of(tool: AnyTool) -> CallKind:
    if tool.tool_class == "mutating":
        return CallKind.MUTATING
    return CallKind.DELEGATING if Effect.DELEGATE in tool.effects else CallKind.READING


def tools_of(world: World) -> dict[str, AnyTool]:
    network, delegate = frozenset({Effect.NETWORK}), frozenset({Effect.DELEGATE})
    work: Any = world.work
    tools = [
        tool("look", work, reads=True, timeout=0.05),
        tool("few", work, reads=True, concurrency=2, timeout=0.05),
        tool("fetch", work, reads=True, effects=network, timeout=0.05),
        tool("act", work, timeout=0.05),
        tool("one", work, concurrency=1, timeout=0.05),
        tool("hand", work, reads=True, effects=delegate, concurrency=2, timeout=0.05),
    ]
    return {tool.name: tool for tool in tools}


def hook_of(world: World, ways: dict[str, str]) -> Any:
    async def hook(moment: PreToolUse) -> Any:
        await asyncio.sleep(0)
        match ways.get(moment.tool_use_id):
            case "ask":
                world.asked_by_hook.add(moment.tool_use_id)
                return HookAsk("look")
            case "deny":
                return HookDeny("no")
            case "edit":
                return HookEdit(input={"word": f"slow edited {moment.tool_use_id}"})
            case "raise":
                raise LookupError
        return None

    return hook


def perform(act: Act, desk: Desk, world: World) -> None:
    """Do one act."""
    waiting = desk.approvals.open_approvals
    approval = waiting[act.which % len(waiting)] if waiting else None
    match act.what:
        case "stop":
            desk.round.stop()
            world.is_stopped = True
        case "stop call":
            desk.round.stop_call(desk.uses[act.which % len(desk.uses)].id)
        case "mode":
            desk.permission_policy.set_mode(BUILT_IN_MODES[act.which % len(BUILT_IN_MODES)])
        case "rule":
            effect = list(RuleEffect)[act.which % 3]
            desk.permission_policy.add(Rule(effect=effect, tool=("act", "fetch", "*")[act.which % 3]))
        case "revoke" if desk.permission_policy.rules:
            desk.permission_policy.revoke(
                desk.permission_policy.rules[act.which % len(desk.permission_policy.rules)].id
            )
        case "let go":
            world.may_end.set()
        case _ if approval is not None:
            decide(act, approval, desk, world)


def decide(act: Act, approval: Any, desk: Desk, world: World) -> None:
    edited = {"word": f"slow by hand {act.which}"}
    decisions = {
        "allow": AllowOnce(),
        "edit": AllowOnce(edited_input=edited),
        "conversation": AllowForConversation(),
        "always": AllowAlways(rule_id=approval.proposals[-1].id if approval.proposals else "none"),
        "deny": Deny(message="no"),
        "deny and stop": DenyAndStop(),
    }
    decision = decisions.get(act.what)
    if decision is None:
        return
    try:
        report = desk.approvals.answer(approval.approval_id, decision)
    except WrongUse:
        return
    if report.resolution is not None and report.resolution.allows:
        world.allowed.add((approval.tool_use.id, report.resolution.digest))


async def run_acts(names: list[tuple[str, str]], hooks: dict[int, str], acts: list[Act]) -> None:
    world = World()
    world.tools = tools_of(world)
    uses = [call(f"{name}-{position}", name, f"{way} {position % 7}") for position, (name, way) in enumerate(names)]
    ways = {uses[position].id: way for position, way in hooks.items() if position < len(uses)}
    desk = Desk(
        *uses, tools=tuple(world.tools.values()), hooks=Hooks(pre_tool_use=(hook_of(world, ways),)) if ways else None
    )
    world.desk = desk
    running = asyncio.create_task(desk.round.run())
    for act in acts:
        for _ in range(act.steps):
            await asyncio.sleep(0)
        if not running.done():
            perform(act, desk, world)
    while not running.done():
        for approval in desk.approvals.open_approvals:
            desk.approvals.answer(approval.approval_id, Deny())
        await asyncio.sleep(0.001)
    results = desk.round.close(Outcome.CANCELLED)
    assert world.faults == []
    assert [result.tool_use_id for result in results] == [use.id for use in uses]
    if not running.result():
        assert any(act.what in ("stop", "deny and stop") for act in acts)
    check_end(desk, [use.id for use in uses])
    world.may_end.set()
    event_count = len(desk.memory.events)
    for _ in range(5):
        await asyncio.sleep(0)
    assert len(desk.memory.events) == event_count


def check_end(desk: Desk, ids: list[str]) -> None:
    """Check the events, and that nothing is left open."""
    finished = Counter(event.id for event in desk.memory.of(ToolFinished))
    assert finished == Counter(ids)
    for id_ in ids:
        about = desk.memory.about(id_)
        cleaned = [kind for kind in about if kind != "tool_progress"]
        requested, resolved = cleaned.count("approval_requested"), cleaned.count("approval_resolved")
        assert requested == resolved
        if requested <= 1:
            assert about == sorted(about, key=ORDER.index)
        assert about[-1] == "tool_finished"
        assert about.count("tool_started") <= 1
    approvals = [event.approval_id for event in desk.memory.of(ApprovalRequested)]
    assert Counter(approvals) == Counter(event.approval_id for event in desk.memory.of(ApprovalResolved))
    assert not desk.approvals.open_approvals
    assert desk.budget._pauses == 0
    assert {event.id for event in desk.memory.of(ToolStarted)} <= set(ids)
    assert desk.permission_policy._listeners == []


ACTS = (
    *("allow", "allow", "allow", "edit", "conversation", "always", "deny", "deny and stop"),
    *("stop", "stop call", "stop call", "mode", "mode", "rule", "revoke", "let go"),
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop_agent.agent.tool_calls.tool_execution._GRACE_SECONDS", 0.01)


@settings(deadline=None, max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(WAYS)), min_size=1, max_size=14),
    hooks=st.dictionaries(st.integers(0, 13), st.sampled_from(["ask", "deny", "edit", "raise"]), max_size=5),
    acts=st.lists(
        st.builds(Act, st.integers(0, 25), st.sampled_from(ACTS), st.integers(0, 50)), min_size=0, max_size=25
    ),
)
def test_no_order_of_calls_decisions_and_stops_breaks_a_promise(
    names: list[tuple[str, str]], hooks: dict[int, str], acts: list[Act]
) -> None:
    asyncio.run(run_acts(names, hooks, acts))
