"""Section Invariants, 1 to 8: a short example of each. The random worlds are in tests/invariants."""

import asyncio
import itertools
from pathlib import Path

import pytest

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.permissions.gate import Allowed
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.types.blocks import Outcome, ToolResult
from desktop_agent.types.engine_events import ToolStarted, UserMessageReturned
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import AllowOnce, Deny
from tests.contract.dying import Machine
from tests.contract.scenes import ACT, DONE, LOOK, answer_all, on_disk, one, results_follow_calls, shown, until
from tests.fakes.agent_run import Desk, call, tool
from tests.fakes.library import Gate
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import check_invariants


@pytest.mark.parametrize("ticks", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55])
async def test_invariant_1__one_result_for_each_call_whenever_it_is_stopped(tmp_path: Path, ticks: int) -> None:
    uses = call("1", "look"), call("2", "act"), call("3", "look", "b")
    allow = Rule(effect=RuleEffect.ALLOW, tool="act", scope=RuleScope.ALWAYS)
    turns = Turn(ContentDelta("a"), *uses), DONE, DONE
    async with on_disk(tmp_path, *turns, tools=(LOOK, ACT), rules=(allow,)) as stage:
        stage.session.send(Message.user("go"))
        for _ in range(ticks):
            await asyncio.sleep(0)
        stage.session.interrupt()
        await stage.idle()
        await stage.say("next")
        check_invariants(stage.session.history, stage.events)
        assert await stage.stored() == stage.session.history
        await stage.session.close()


async def test_invariant_1__ids_that_a_provider_repeats_pair_per_message() -> None:
    words: list[str] = []

    async def work(word: str) -> str:
        words.append(word)
        return f"result of {word}"

    look = tool("look", work, read_only=True)
    desk = Desk(Turn(call("same", "look", "a")), Turn(call("same", "look", "b")), DONE, tools=(look,))
    await desk.execute()
    sent = desk.provider.requests[2].messages
    results_follow_calls(sent)
    texts = [block.content[0].text for message in sent for block in message.blocks if isinstance(block, ToolResult)]  # type: ignore[union-attr]
    assert (words, texts) == (["a", "b"], ["result of a", "result of b"])


async def test_invariant_1__ids_repeated_within_one_answer_are_told_apart_by_their_place() -> None:
    desk = Desk(Turn(call("same", "look", "a"), call("same", "look", "b")), DONE, tools=(LOOK,))
    await desk.execute()
    first, second = desk.memory.results
    assert (first.outcome, second.outcome) == (Outcome.SUCCEEDED, Outcome.FAILED)
    assert desk.provider.requests[1].messages[-1].blocks == (first, second)


async def test_invariant_2__no_start_without_an_allow_for_exactly_that_digest() -> None:
    uses = call("1", "act", "a"), call("2", "act", "b")
    desk = Desk(Turn(*uses), DONE, tools=(ACT,))
    running = desk.start()
    await desk.approvals_open(2)
    allowed = one(approval for approval in desk.approvals.open_approvals if approval.tool_use.id == "2")
    desk.approvals.answer(allowed.approval_id, AllowOnce())
    desk.decide(Deny())
    await running
    started = one(desk.memory.of(ToolStarted))
    assert ACT.digest(started.input) == allowed.digest
    assert started.input == {"word": "b"}


async def test_invariant_2__nothing_starts_after_a_cancel_is_acknowledged() -> None:
    desk = Desk(Turn(*(call(str(n), "look", str(n)) for n in range(40))), DONE, tools=(LOOK,))
    running = desk.start()
    await until(lambda: desk.memory.of(ToolStarted))
    assert desk.run.interrupt()
    before = len(desk.memory.of(ToolStarted))
    await running
    assert len(desk.memory.of(ToolStarted)) == before < 40


async def test_invariant_3__without_the_journal_there_is_no_effect() -> None:
    ran: list[str] = []

    async def work(word: str) -> str:
        ran.append(word)
        return word

    desk = Desk(Turn(call("1", "look")), DONE, tools=(tool("look", work, read_only=True),))
    desk.memory.refuse = True
    await desk.execute()
    assert (ran, desk.memory.outcomes) == ([], [Outcome.FAILED])


async def test_invariant_3__each_call_runs_at_most_once_across_crashes(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    uses = call("1", "act", "a"), call("2", "act", "b"), call("3", "look", "c")
    async with machine.dying(*uses) as first:
        await answer_all(first, AllowOnce(), 2)
        await until(lambda: machine.ran == ["a"])
        async with machine.after(first, dies=True) as (second, session):
            session.resume()
            await until(lambda: machine.ran_again == ["b"])
            async with machine.after(second, DONE) as (third, last):
                last.resume()
                await third.idle()
                assert (machine.ran, machine.ran_again) == (["a"], ["b", "c"])
                outcomes = [str(block.outcome) for block in last.history[2].blocks]  # type: ignore[union-attr]
                assert outcomes == ["unknown", "unknown", "succeeded"]


async def test_invariant_4__a_deny_rule_or_a_deeper_nesting_never_enlarges_what_may_run() -> None:
    rules = [
        Rule(effect=effect, tool=name, scope=RuleScope.ALWAYS) for effect in RuleEffect for name in ("act", "look", "*")
    ]
    uses = (call("1", "act"), ACT), (call("2", "look"), LOOK)

    async def allowed(permission_policy: PermissionPolicy) -> set[str]:
        verdicts = {use.id: await permission_policy.verdict(use, about) for use, about in uses}
        return {use_id for use_id, verdict in verdicts.items() if isinstance(verdict, Allowed)}

    denies = [rule for rule in rules if rule.effect is RuleEffect.DENY]
    for some in itertools.combinations(rules, 2):
        permission_policy = PermissionPolicy(some)
        may = await allowed(permission_policy)
        for more in (*rules, *denies):
            assert await allowed(permission_policy.nested(rules=(more,))) <= may
            assert await allowed(permission_policy.nested(rules=(more,)).nested(rules=rules[-1:])) <= may
        for deny in denies:
            assert await allowed(PermissionPolicy((*some, deny))) <= may


async def test_invariant_5__results_in_call_order_and_changes_alone() -> None:
    running: set[str] = set()
    overlaps: list[set[str]] = []

    async def work(word: str) -> str:
        running.add(word)
        overlaps.append(set(running))
        await asyncio.sleep(0.001 * (9 - int(word[1:])))
        running.discard(word)
        return word

    act, look = tool("act", work), tool("look", work, read_only=True)
    names = ["look", "look", "act", "look", "act", "act", "look", "look", "look"]
    desk = Desk(Turn(*(call(str(n), name, f"{name[0]}{n}") for n, name in enumerate(names))), DONE, tools=(act, look))
    desk.allow(act)
    await desk.execute()
    assert [result.tool_use_id for result in desk.memory.results] == [str(n) for n in range(9)]
    assert all(len(together) == 1 for together in overlaps if any(word[0] == "a" for word in together))
    assert max(map(len, overlaps)) == 3


async def test_invariant_6__one_end_no_gaps_and_live_equals_replayed(tmp_path: Path) -> None:
    gate = Gate()
    cut = Turn(ContentDelta("Hal"), gate.step)
    async with on_disk(tmp_path, Turn(ContentDelta("see"), call("1", "look")), DONE, cut, tools=(LOOK,)) as stage:
        await stage.say("first")
        stage.session.send(Message.user("second"))
        await gate.until_arrived()
        stage.session.interrupt()
        await stage.idle()
        check_invariants(stage.session.history, stage.events)
        stored = await stage.stored()
        assert shown(stage.session.transcript) == shown(Transcript(stored))
        assert len(shown(Transcript(stored))) == 6
        await stage.session.close()


@pytest.mark.parametrize("stop", [None, "before", "after"])
async def test_invariant_7__every_message_that_waits_is_delivered_once_or_handed_back(
    tmp_path: Path, stop: str | None
) -> None:
    gate = Gate()
    waits = [Message.user(str(n)) for n in range(3)]
    async with on_disk(tmp_path, Turn(gate.step), *[DONE] * 4) as stage:
        session = stage.session
        session.send(Message.user("go"))
        await gate.until_arrived()
        for message in waits:
            session.steer(message, "idle")
        if stop == "after":
            gate.opened.set()
        if stop is not None:
            session.interrupt()
        gate.opened.set()
        await stage.idle()
        delivered = [message.id for message in session.history]
        returned = [event.message_id for event in stage.of(UserMessageReturned)]
        assert [delivered.count(message.id) + returned.count(message.id) for message in waits] == [1, 1, 1]
        await session.close()


async def test_invariant_8__the_persons_mode_at_once_the_agents_only_at_an_edge() -> None:
    modes: list[str] = []

    async def work(word: str) -> str:
        desk.modes.request_by_agent("plan") if word == "a" else None
        modes.append(desk.modes.current.name)
        return word

    look = tool("look", work, read_only=True)
    turns = [Turn(*(call(f"{word}{n}", "look", word) for n in range(2))) for word in "abc"]
    desk = Desk(*turns, Turn(call("9", "act")), DONE, tools=(look, ACT))
    await desk.execute()
    assert modes == ["default", "default", "default", "default", "plan", "plan"]
    assert desk.memory.outcomes[-1] is Outcome.DENIED
    person = Desk(Turn(call("1", "act"), call("2", "act", "b")), DONE, tools=(ACT,))
    running = person.start()
    await person.approvals_open(2)
    person.modes.set_by_person("plan")
    person.decide(AllowOnce())
    await running
    assert not person.memory.of(ToolStarted)
