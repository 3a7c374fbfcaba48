"""Section Events: what each event says, when it comes, and where it stands."""

import asyncio
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import get_args

import pytest

from desktop_agent.agent import provider_stream
from desktop_agent.agent.guards import Guards
from desktop_agent.agent.prompt_policies import PromptPolicies
from desktop_agent.api.client import Client
from desktop_agent.api.provider import Provider
from desktop_agent.types import engine_events as engine
from desktop_agent.types import provider_events as provided
from desktop_agent.types.blocks import Image, ServerStep, ToolUse, Unknown
from desktop_agent.types.engine_events import RunEnd
from desktop_agent.types.errors import RateLimited, Sentence, Truncated
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import (
    Guard,
    GuardAbort,
    GuardContinue,
    GuardMoment,
    Limits,
    PromptPolicy,
    Specialist,
    StopSession,
)
from desktop_agent.types.provider_events import ContentDelta, MessageDelta, StopReason, Usage, UsageUpdate
from desktop_agent.types.providers import Capabilities, ModelInfo
from tests.contract.scenes import DONE, LOOK, on_disk, one, only
from tests.fakes.agent_run import Desk, call
from tests.fakes.http_server import Loopback, Reply, chunk, sse
from tests.fakes.library import Gate, blocks_of, listed
from tests.fakes.scripted_provider import Turn, Wait
from tests.fakes.session import Stage

HELPER = Specialist(name="helper", description="Helps.", system_prompt="You help.", tools=("look",))


def ask_helper(call_id: str = "1") -> ToolUse:
    return ToolUse(id=call_id, name="helper", input={"task": "Look."})


async def working(stage: Stage, gate: Gate) -> None:
    stage.session.send(Message.user("go"))
    await gate.until_arrived()


async def test_envelope__every_event_has_its_run_its_turn_and_a_number_without_gaps(tmp_path: Path) -> None:
    async with on_disk(tmp_path, Turn(call("1", "look")), DONE, DONE, tools=(LOOK,)) as stage:
        await stage.say("a")
        await stage.say("b")
        runs = list(dict.fromkeys(envelope.run_id for envelope in stage.events))
        assert len(runs) == 2
        for run in runs:
            mine = [envelope for envelope in stage.events if envelope.run_id == run]
            assert [envelope.seq for envelope in mine] == list(range(1, len(mine) + 1))
            assert mine[0].turn_id is None
            turn = None
            for envelope in mine:
                turn = envelope.event.turn_id if isinstance(envelope.event, engine.TurnStarted) else turn
                assert (envelope.turn_id, envelope.parent_run_id) == (turn, None)
                assert envelope.at.tzinfo is not None
        with pytest.raises(FrozenInstanceError):
            stage.events[0].seq = 5  # type: ignore[misc]
        await stage.session.close()


async def test_envelope__a_run_below_names_the_run_above(tmp_path: Path) -> None:
    turns = Turn(ask_helper()), Turn(call("9", "look")), DONE, DONE
    async with on_disk(tmp_path, *turns, tools=(LOOK,), specialists=lambda: (HELPER,)) as stage:
        await stage.say()
        above = stage.events[0].run_id
        below = [envelope for envelope in stage.events if envelope.run_id != above]
        assert {envelope.parent_run_id for envelope in below} == {above}
        assert [envelope.seq for envelope in below] == list(range(1, len(below) + 1))
        assert isinstance(below[-1].event, engine.RunFinished)
        await stage.session.close()


ARGUMENTS = ['{"wo', 'rd": "ü', '"}']


def streamed() -> bytes:
    first = {"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": ""}}
    usage = {"prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6}
    return sse(
        chunk({"reasoning_content": "hm"}), chunk({"content": "Hel"}), chunk({"content": "lo"}),
        chunk({"tool_calls": [first]}),
        *(chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}) for part in ARGUMENTS),
        chunk(finish="tool_calls", usage=usage),
    )  # fmt: skip


@pytest.mark.parametrize("size", [10_000, 1, 7])
async def test_provider_events__text_thinking_whole_calls_usage_and_done(size: int) -> None:
    body = streamed()
    pieces = [body[index : index + size] for index in range(0, len(body), size)]
    async with Loopback(Reply(pieces)) as server, await Provider.create("m", base_url=server.url) as provider:
        events = [event async for event in provider.stream("hi")]
    assert "".join(event.text for event in only(events, provided.ContentDelta)) == "Hello"
    assert "".join(event.text for event in only(events, provided.ThinkingDelta)) == "hm"
    assert one(only(events, provided.ThinkingBlock)).text == "hm"
    # Fragments are for display only: the call itself is atomic, and comes once.
    assert "".join(event.fragment for event in only(events, provided.ToolArgsDelta)) == "".join(ARGUMENTS)
    use = one(only(events, ToolUse))
    assert (use.id, use.name, use.input, use.malformed) == ("c1", "look", {"word": "ü"}, None)
    assert one(only(events, MessageDelta)).stop_reason is StopReason.TOOL_USE
    assert only(events, UsageUpdate)[-1].usage.total_tokens == 6
    assert isinstance(events[-1], provided.Done)
    assert len(only(events, provided.Done)) == 1


def test_provider_events__are_a_closed_union_of_frozen_values() -> None:
    named = {"ContentDelta", "ThinkingDelta", "ThinkingBlock", "ToolArgsDelta", "MessageDelta", "UsageUpdate", "Done"}
    union = set(get_args(provided.ProviderEvent))
    assert named | {"ToolUse"} <= {member.__name__ for member in union}
    assert {ToolUse, ServerStep, Image, Unknown} <= union
    engine_events = get_args(engine.EngineEvent)
    for kind in {*union, *engine_events} - {ToolUse, ServerStep, Image, Unknown}:
        assert kind.__dataclass_params__.frozen, kind
        assert "type" in {field.name for field in fields(kind)}, kind


async def test_run_started__names_the_prompt_or_what_the_history_ends_with(tmp_path: Path) -> None:
    async with on_disk(tmp_path, Turn(Truncated("gone")), *[Turn(Truncated("gone"))] * 2, DONE) as stage:
        prompt = Message.user("go")
        stage.session.send(prompt)
        await stage.idle()
        stage.session.retry()
        await stage.idle()
        started = stage.of(engine.RunStarted)
        assert [event.message_id for event in started] == [prompt.id, prompt.id]
        assert [envelope.seq for envelope in stage.events if isinstance(envelope.event, engine.RunStarted)] == [1, 1]
        assert not any(event.resumed for event in started)
        await stage.session.close()


async def test_turn_started__each_question_has_its_own_turn_and_names_its_answer() -> None:
    desk = Desk(Turn(call("1", "look")), DONE, tools=(LOOK,))
    await desk.execute()
    first, second = desk.memory.of(engine.TurnStarted)
    assert first.turn_id != second.turn_id
    answers = [message.id for message in desk.memory.messages if message.role == "assistant"]
    assert [first.message_id, second.message_id] == answers
    assert (first.model, len(desk.provider.requests)) == ("m", 2)


async def test_mode_changed__says_from_what_to_what_and_by_whose_authority() -> None:
    desk = Desk(Turn(call("1", "look")), Turn(call("2", "look", "b")), DONE, tools=(LOOK,))
    desk.modes.set_by_person("accept-edits")
    desk.modes.request_by_agent("plan")
    await desk.execute()
    changes = [(event.from_mode, event.to_mode, event.authority) for event in desk.memory.of(engine.ModeChanged)]
    assert changes == [("default", "accept-edits", "person"), ("accept-edits", "plan", "agent")]


async def test_mode_change_requested__is_told_one_turn_before_it_holds() -> None:
    desk = Desk(Turn(call("1", "look")), DONE, tools=(LOOK,))
    desk.modes.request_by_agent("plan")
    asked_at = desk.modes.requested and desk.modes.requested.requested_at
    await desk.execute()
    request = one(desk.memory.of(engine.ModeChangeRequested))
    assert (request.from_mode, request.to_mode, request.requested_at) == ("default", "plan", asked_at)
    kinds = (engine.ModeChangeRequested, engine.TurnStarted, engine.ModeChanged)
    assert [type(event) for event in only(desk.memory.events, *kinds)][:3] == list(kinds)


async def test_continuation_injected__names_the_guard_and_counts() -> None:
    async def more(_: GuardMoment) -> GuardContinue:
        return GuardContinue("more")

    desk = Desk(DONE, DONE, DONE, guards=Guards((Guard("sure", more, max_iterations=2),)))
    await desk.execute()
    injected = desk.memory.of(engine.ContinuationInjected)
    assert injected == [engine.ContinuationInjected("sure", 1), engine.ContinuationInjected("sure", 2)]


async def test_guard_aborted__says_which_and_why() -> None:
    async def enough(_: GuardMoment) -> GuardAbort:
        return GuardAbort("that is enough")

    guards = Guards((Guard("g", enough, max_iterations=1),))
    desk = Desk(DONE, guards=guards)
    assert await desk.execute() is RunEnd.ABORTED
    assert desk.memory.of(engine.GuardAborted) == [engine.GuardAborted("g", "that is enough")]
    assert guards.list() == ()


async def test_policy_installed__is_told_in_a_session(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as stage:
        stage.session.policies.install(PromptPolicy(id="p", text="Rhyme."))
        assert stage.of(engine.PolicyInstalled) == [engine.PolicyInstalled("p")]
        await stage.session.close()


async def test_policy_removed__is_told_when_it_is_taken_out_and_when_it_is_used_up() -> None:
    events: list[object] = []
    policies = PromptPolicies(emit=events.append)
    policies.install(PromptPolicy(id="kept", text="a"))
    policies.install(PromptPolicy(id="once", text="b", scope="next_turn"))
    await Desk(DONE, policies=policies).execute()
    policies.remove("kept")
    assert only(events, engine.PolicyRemoved) == [engine.PolicyRemoved("once"), engine.PolicyRemoved("kept")]


async def test_policy_applied__names_the_turn_and_what_shaped_it() -> None:
    events: list[object] = []
    policies = PromptPolicies(emit=events.append)
    policies.install(PromptPolicy(id="b", text="Second.", precedence=2))
    policies.install(PromptPolicy(id="a", text="First.", precedence=1))
    desk = Desk(DONE, policies=policies)
    await desk.execute()
    turn = one(desk.memory.of(engine.TurnStarted)).turn_id
    assert only(events, engine.PolicyApplied) == [engine.PolicyApplied(turn, ("a", "b"))]


async def test_user_message_queued__while_the_agent_works(tmp_path: Path) -> None:
    gate = Gate()
    async with on_disk(tmp_path, Turn(gate.step), DONE) as stage:
        await working(stage, gate)
        waits = Message.user("and this")
        stage.session.steer(waits)
        assert stage.of(engine.UserMessageQueued) == [engine.UserMessageQueued(waits.id)]
        assert stage.of(engine.UserMessageDelivered) == []
        gate.opened.set()
        await stage.idle()
        await stage.session.close()


async def test_user_message_delivered__when_it_reaches_the_history(tmp_path: Path) -> None:
    gate = Gate()
    async with on_disk(tmp_path, Turn(gate.step, call("1", "look")), DONE, tools=(LOOK,)) as stage:
        await working(stage, gate)
        waits = Message.user("and this")
        stage.session.steer(waits)
        gate.opened.set()
        await stage.idle()
        assert stage.of(engine.UserMessageDelivered) == [engine.UserMessageDelivered(waits.id)]
        assert [message.id for message in stage.session.history].count(waits.id) == 1
        await stage.session.close()


async def test_user_message_returned__when_it_is_handed_back(tmp_path: Path) -> None:
    gate = Gate()
    async with on_disk(tmp_path, Turn(gate.step), DONE) as stage:
        await working(stage, gate)
        waits = Message.user("and this")
        stage.session.steer(waits)
        stage.session.interrupt(StopSession())
        await stage.idle()
        assert [event.message_id for event in stage.of(engine.UserMessageReturned)] == [waits.id]
        assert stage.of(engine.UserMessageDelivered) == []
        await stage.session.close()


async def test_answer_awaited__counts_on_until_the_first_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_stream, "FIRST_NOTICE_AFTER", 0.01)
    monkeypatch.setattr(provider_stream, "NOTICE_INTERVAL", 0.01)
    release = asyncio.Event()
    desk = Desk(Turn(Wait(release), ContentDelta("Hi")))
    running = desk.start()
    while len(desk.memory.of(engine.AnswerAwaited)) < 3:
        await asyncio.sleep(0.001)
    release.set()
    await running
    kinds = [type(event) for event in desk.memory.events]
    assert ContentDelta not in kinds[: kinds.index(engine.AnswerAwaited)]
    assert engine.AnswerAwaited not in kinds[kinds.index(ContentDelta) :]
    seconds = [event.seconds for event in desk.memory.of(engine.AnswerAwaited)]
    assert seconds == sorted(seconds)


async def test_retry_scheduled__says_after_how_long_why_and_which_attempt() -> None:
    desk = Desk(Turn(RateLimited("slow down", retry_after=0.002)), Turn(RateLimited("slow down")), DONE)
    await desk.execute()
    first, second = desk.memory.of(engine.RetryScheduled)
    assert (first.after, first.attempt, second.attempt) == (0.002, 1, 2)
    assert "slow down" in first.why
    assert str(first.sentence) == first.why
    assert len(desk.provider.requests) == 3


async def test_context_compacted__says_what_is_kept_and_the_summary() -> None:
    small = (ModelInfo("m", capabilities=Capabilities(context_window=1_000)),)
    desk = Desk(Turn(ContentDelta("In short.")), DONE, models=small)
    old = Message.assistant("Long.").model_copy(update={"usage": Usage(input_tokens=900, output_tokens=0)})
    desk.memory.messages[:] = [Message.user("a"), old, Message.user("b")]
    await desk.execute()
    event = one(desk.memory.of(engine.ContextCompacted))
    assert (event.summary, event.tokens_before, event.first_kept_id) == ("In short.", 900, desk.memory.messages[2].id)


async def test_limit_reached__says_which_in_words() -> None:
    desk = Desk(Turn(call("1", "look")), tools=(LOOK,), limits=Limits(turns=1))
    assert await desk.execute() is RunEnd.LIMIT
    assert desk.memory.of(engine.LimitReached) == [engine.LimitReached("turns", Sentence("turns"))]


async def test_cost_updated__sums_up_the_run() -> None:
    cost = UsageUpdate(Usage(cost=0.25))
    desk = Desk(Turn(cost, call("1", "look")), Turn(cost), tools=(LOOK,))
    await desk.execute()
    assert [event.cost for event in desk.memory.of(engine.CostUpdated)] == [0.25, 0.5]


async def test_error_occurred__says_what_and_what_to_do_about_it() -> None:
    desk = Desk(Turn(ContentDelta("Hal"), Truncated("gone")))
    assert await desk.execute() is RunEnd.FAILED
    error = one(desk.memory.of(engine.ErrorOccurred))
    assert (error.kind, error.message, str(error.action)) == ("truncated", "gone", "retry")
    assert str(error.sentence)
    assert str(error.remedy)


@pytest.mark.parametrize("end", [RunEnd.COMPLETED, RunEnd.CANCELLED, RunEnd.FAILED, RunEnd.LIMIT])
async def test_run_finished__once_and_last_with_its_reason(end: RunEnd) -> None:
    gate = Gate()
    steps = {
        RunEnd.CANCELLED: gate.step,
        RunEnd.FAILED: Truncated("x"),
        RunEnd.LIMIT: MessageDelta(StopReason.MAX_TOKENS),
    }
    desk = Desk(Turn(ContentDelta("a"), steps.get(end, ContentDelta("b"))))
    running = desk.start()
    if end is RunEnd.CANCELLED:
        await gate.until_arrived()
        desk.run.interrupt()
        desk.run.interrupt()
    assert await running is end
    assert desk.memory.of(engine.RunFinished) == [engine.RunFinished(end)]
    assert desk.memory.events[-1] == engine.RunFinished(end)


async def test_errors_before_and_within__are_raised_by_the_call_or_an_item_and_the_session_goes_on() -> None:
    refused = Reply(b'{"error": {"message": "no such model"}}', 404, {"content-type": "application/json"}, "length")
    broken = Reply(sse(chunk({"content": "Hal"}), done=False), cut=True)
    whole = Reply(sse(chunk({"content": "Hello"}), chunk(finish="stop")))
    replies = iter([refused, broken, whole])
    async with Loopback(choose=lambda _: next(replies)) as server, Client(model="m", base_url=server.url) as client:
        with pytest.raises(Exception, match="no such model"):
            await client.send("one")
        events = await listed(client.stream("two"))
        assert one(only(events, engine.ErrorOccurred)).kind == "truncated"
        assert "".join(event.text for event in only(events, ContentDelta)) == "Hal"
        await client.send("three")
        assert [block.text for block in await blocks_of(client.receive)] == ["Hello"]
