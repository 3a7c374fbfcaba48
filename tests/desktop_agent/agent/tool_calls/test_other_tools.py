"""Tools that are removed, replaced or reclassified while a call of theirs waits."""

import asyncio
from dataclasses import replace

import pytest

from desktop_agent.tools.tool import AnyTool, RunningCall
from desktop_agent.types.blocks import Outcome
from desktop_agent.types.engine_events import ApprovalResolved, ToolStarted
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from desktop_agent.types.tool_calls import AllowForConversation, AllowOnce, Deny, Effect, ToolClass
from tests.fakes.tool_batch import Desk, call, tool, until

ALLOWED = Rule(effect=RuleEffect.ALLOW, tool="t", scope=RuleScope.ALWAYS)


def put(desk: Desk, replacement: AnyTool | None, name: str = "t") -> None:
    """Register this tool under the name, or none, without notifying anybody."""
    desk.context.tools._tools.pop(name)
    if replacement is not None:
        desk.context.tools._tools[name] = replacement


def started(desk: Desk) -> list[str]:
    return [event.id for event in desk.memory.of(ToolStarted)]


OTHERS = {"gone": (None, "no longer there"), "another": (tool("t", scope="other"), "another one now")}


@pytest.mark.parametrize("how", OTHERS)
@pytest.mark.parametrize("notified", [True, False], ids=["told", "not told"])
async def test_what_the_person_allows_then_does_not_run(how, notified):
    replacement, words = OTHERS[how]
    desk = Desk(call("1", "t"), tools=[tool("t")])
    running = desk.start()
    await desk.asked()
    (card,) = desk.approvals.open_approvals
    put(desk, replacement)
    if notified:
        desk.permission_policy.tools_changed()
        await desk.asked(0)
    desk.approvals.answer(card.approval_id, AllowOnce())
    await running
    assert started(desk) == []
    assert words in desk.words[0]
    (resolved,) = desk.memory.of(ApprovalResolved)
    assert (resolved.by, words in resolved.message) == (("rule", True) if notified else ("person", False))


@pytest.mark.parametrize("how", OTHERS)
async def test_what_a_rule_allows_does_not_run_either(how):
    replacement, words = OTHERS[how]

    async def first(word: str, _call: RunningCall) -> str:
        put(desk, replacement)
        return word

    desk = Desk(call("1", "first"), call("2", "t"), tools=[tool("first", first), tool("t")])
    for name in ("first", "t"):
        desk.permission_policy.add(ALLOWED.model_copy(update={"tool": name, "id": name}))
    await desk.run()
    assert started(desk) == ["1"]
    assert words in desk.words[1]


@pytest.mark.parametrize("how", OTHERS)
async def test_a_tool_that_changes_while_the_start_is_journalled_does_not_run(how):
    """Nobody is notified of the change."""
    replacement, words = OTHERS[how]
    ran: list[str] = []

    async def work(word: str, _call: RunningCall) -> str:
        ran.append(word)
        return word

    desk = Desk(call("1", "t"), tools=[tool("t", work)])
    desk.permission_policy.add(ALLOWED)
    desk.memory.told = lambda event: put(desk, replacement) if isinstance(event, ToolStarted) else None
    await desk.run()
    assert ran == []
    assert desk.outcomes == [Outcome.FAILED]
    assert words in desk.words[0]


async def test_the_same_tool_made_anew_runs_as_it_is_now():
    async def work(_word: str, _call: RunningCall) -> str:
        return "new"

    desk = Desk(call("1", "t"), tools=[tool("t")])
    running = desk.start()
    await desk.asked()
    put(desk, tool("t", work))
    desk.decide(AllowOnce())
    await running
    assert desk.words == ["new"]


async def test_what_reads_no_more_is_asked_about():
    started_reading = asyncio.Event()

    async def reading(word: str, _call: RunningCall) -> str:
        started_reading.set()
        return word

    async def first(word: str, _call: RunningCall) -> str:
        put(desk, tool("t", reading))
        return word

    desk = Desk(call("1", "first"), call("2", "t"), tools=[tool("first", first), tool("t", reading, reads=True)])
    desk.permission_policy.add(ALLOWED.model_copy(update={"tool": "first"}))
    running = desk.start()
    await desk.asked()
    assert not started_reading.is_set()
    desk.decide(Deny())
    await running
    assert desk.outcomes == [Outcome.SUCCEEDED, Outcome.DENIED]


async def test_what_reads_no_more_runs_beside_no_other():
    """Three were begun together; one of them waits for its slot while it turns into one that changes something."""
    at_work: list[str] = []
    together: list[tuple[str, ...]] = []
    may_end = {"t": asyncio.Event(), "u": asyncio.Event()}

    def noting(name: str, **more):
        async def work(word: str, _call: RunningCall) -> str:
            at_work.append(name)
            together.append(tuple(at_work))
            await may_end[name].wait()
            at_work.remove(name)
            return word

        return tool(name, work, **more)

    other = noting("t", concurrency=1)
    reading = replace(other, tool_class=ToolClass.READ_ONLY, effects=frozenset())
    desk = Desk(call("1", "t"), call("2", "t"), call("3", "u"), tools=[reading, noting("u", reads=True)])
    desk.permission_policy.add(ALLOWED)
    running = desk.start()
    await until(lambda: sorted(at_work) == ["t", "u"])
    put(desk, other)
    desk.permission_policy.tools_changed()
    may_end["t"].set()
    await until(lambda: desk.finished("1"))
    for _ in range(100):
        await asyncio.sleep(0)
    assert started(desk) == ["1", "3"]
    may_end["u"].set()
    await running
    assert desk.outcomes == [Outcome.SUCCEEDED] * 3
    assert together[-1] == ("t",)
    assert started(desk) == ["1", "3", "2"]


async def test_what_comes_after_one_that_reads_no_more_waits_for_it():
    """The third and the fourth have not begun when the second turns into one that changes something."""
    is_at_work, may_end = asyncio.Event(), asyncio.Event()

    async def work(word: str, _call: RunningCall) -> str:
        is_at_work.set()
        await may_end.wait()
        return word

    other = tool("t", work, concurrency=1)
    reading = replace(other, tool_class=ToolClass.READ_ONLY, effects=frozenset())
    networked = tool("u", reads=True, effects=frozenset({Effect.NETWORK}))
    desk = Desk(*(call(f"{number}", name) for number, name in enumerate("ttuu", start=1)), tools=[reading, networked])
    desk.permission_policy.add(ALLOWED)
    running = desk.start()
    await desk.asked(2)
    await is_at_work.wait()
    put(desk, other)
    desk.permission_policy.tools_changed()
    for _ in range(2):
        desk.decide(AllowOnce(), -1)
    for _ in range(100):
        await asyncio.sleep(0)
    assert started(desk) == ["1"]
    may_end.set()
    await running
    assert desk.outcomes == [Outcome.SUCCEEDED] * 4
    assert started(desk) == ["1", "2", "3", "4"]


async def test_one_that_is_gone_says_why_it_may_be_and_what_to_do():
    desk = Desk(call("1", "t"), tools=[tool("t")])
    running = desk.start()
    await desk.asked()
    put(desk, None)
    desk.decide(AllowOnce())
    await running
    assert "turned off or removed" in desk.words[0]
    assert "the server that offers it has ended" in desk.words[0]
    assert "It is started when it is needed: call again" in desk.words[0]


async def test_leave_for_the_conversation_is_as_narrow_as_the_tool_needs_it_now():
    desk = Desk(call("1", "t"), tools=[tool("t")])
    running = desk.start()
    await desk.asked()
    put(desk, tool("t", effects=frozenset({Effect.NETWORK})))
    desk.permission_policy.tools_changed()
    await until(lambda: desk.approvals.open_approvals[0].tool.effects == {Effect.NETWORK})
    desk.decide(AllowForConversation())
    await running
    (rule,) = desk.permission_policy.rules
    assert rule.pattern is not None
