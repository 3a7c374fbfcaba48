"""Section Semantics: Stop at any moment, and where a run ends by itself."""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from desktop_agent.api.client import Client
from desktop_agent.conversation.items import NoticeItem
from desktop_agent.engine.session_controls import SessionSetup
from desktop_agent.engine.session_opening import in_memory_session
from desktop_agent.processes.run_process import Termination, run_process
from desktop_agent.tools.decorator import tool as made_tool
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.engine_events import (
    LimitReached,
    RunEnd,
    RunFinished,
    ToolFinished,
    ToolStarted,
    UserMessageReturned,
)
from desktop_agent.types.errors import RemedyAction
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.policies import Limits, StopSession, StopTool, StopTurn
from desktop_agent.types.provider_events import ContentDelta, Done, MessageDelta, StopReason, Usage, UsageUpdate
from desktop_agent.types.providers import ProviderConfig
from desktop_agent.types.tool_calls import ToolClass
from tests.contract.scenes import ACT, DONE, LOOK, on_disk, one, only, until
from tests.fakes.agent_run import Desk, call, tool
from tests.fakes.http_server import Loopback, Reply, chunk, sse
from tests.fakes.library import Gate
from tests.fakes.scripted_provider import ScriptedProvider, Turn
from tests.fakes.session import LIMIT, check_invariants


class Hanging:
    """A tool that does not end by itself."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.was_cancelled = False

    async def work(self, _: str) -> str:
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return ""


async def test_interrupt__one_tool_ends_cancelled_and_the_others_and_the_run_go_on() -> None:
    hanging = Hanging()
    tools = tool("hang", hanging.work, read_only=True), LOOK, ACT
    desk = Desk(Turn(call("1", "hang"), call("2", "look"), call("3", "act")), DONE, tools=tools)
    running = desk.start()
    await hanging.began.wait()
    assert not desk.run.interrupt(StopTool("nobody"))
    assert desk.run.interrupt(StopTool("1"))
    await desk.approvals_open()
    assert desk.run.interrupt(StopTool("3"))  # one that waits for a person, too
    assert await running is RunEnd.COMPLETED
    assert [str(outcome) for outcome in desk.memory.outcomes] == ["cancelled", "succeeded", "cancelled"]
    assert hanging.was_cancelled


@pytest.mark.parametrize(("target", "after"), [(StopTurn(), "sent"), (StopSession(), "returned")])
async def test_interrupt__the_turn_alone_or_all_that_waits(tmp_path: Path, target: Any, after: str) -> None:
    gate = Gate()
    async with on_disk(tmp_path, Turn(ContentDelta("a"), gate.step), DONE) as stage:
        stage.session.send(Message.user("go"))
        await gate.until_arrived()
        stage.session.steer(Message.user("waits"), "idle")
        assert stage.session.interrupt(target)
        await stage.idle()
        was_returned = bool(stage.of(UserMessageReturned))
        assert ("returned" if was_returned else "sent") == after
        assert (stage.session.history[-1].text == "Done.") is not was_returned
        await stage.session.close()


@asynccontextmanager
async def mute_server() -> AsyncIterator[tuple[str, asyncio.Event, asyncio.Event]]:
    """It takes a question and never even begins an answer."""
    requested, disconnected = asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        requested.set()
        while await reader.read(1000):
            pass
        disconnected.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", requested, disconnected


async def test_interrupt__while_connecting_closes_the_connection() -> None:
    async with mute_server() as (url, requested, disconnected), Client(model="m", base_url=url) as client:
        asking = asyncio.create_task(client.send("hi"))
        async with asyncio.timeout(LIMIT):
            await requested.wait()
            client.interrupt()
            await asking
            await disconnected.wait()
        assert client.ended is RunEnd.CANCELLED
        assert [message.text for message in client.history] == ["hi"]


async def test_interrupt__while_streaming_closes_the_connection_and_keeps_what_came() -> None:
    hold = asyncio.Event()
    begun = Reply(sse(chunk({"content": "Hal"}), done=False), hold=hold)
    async with Loopback(begun) as server, Client(model="m", base_url=server.url) as client:
        events = client.stream("hi")
        async with asyncio.timeout(LIMIT):
            async for event in events:
                if isinstance(event, ContentDelta):
                    client.interrupt()
            await server.disconnected.wait()
        last = client.history[-1]
        assert (last.text, last.state, last.stop_reason) == ("Hal", MessageState.INTERRUPTED, StopReason.CANCELLED)
        assert client.ended is RunEnd.CANCELLED


async def test_interrupt__while_a_card_waits_takes_it_back_and_answers_every_call() -> None:
    desk = Desk(Turn(call("1", "act"), call("2", "act", "b")), DONE, tools=(ACT,))
    running = desk.start()
    await desk.approvals_open(2)
    desk.run.interrupt()
    assert await running is RunEnd.CANCELLED
    assert desk.approvals.open_approvals == ()
    assert desk.memory.outcomes == [Outcome.CANCELLED] * 2
    assert not desk.memory.of(ToolStarted)


async def test_interrupt__while_a_tool_runs_signals_it_and_nothing_else_starts() -> None:
    hanging = Hanging()
    tools = tool("hang", hanging.work, read_only=True), ACT
    desk = Desk(Turn(call("1", "hang"), call("2", "act")), DONE, tools=tools)
    running = desk.start()
    await hanging.began.wait()
    desk.run.interrupt()
    assert await running is RunEnd.CANCELLED
    assert hanging.was_cancelled
    assert desk.memory.outcomes == [Outcome.CANCELLED] * 2
    assert [event.id for event in desk.memory.of(ToolStarted)] == ["1"]
    assert len(desk.memory.of(ToolFinished)) == 2


TREE = r"""
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
os.write(1, b"%d\n" % os.getpid())
time.sleep(60)
"""


QUICK = Termination(grace=0.2)


async def test_interrupt__kills_the_whole_tree_of_a_program(tmp_path: Path) -> None:
    pieces: list[str] = []

    @made_tool(tool_class=ToolClass.READ_ONLY)
    async def program(word: str) -> str:
        await run_process([sys.executable, "-c", TREE], cwd=tmp_path, on_output=pieces.append, ending=QUICK)
        return word

    desk = Desk(Turn(call("1", "program")), DONE, tools=(program,))
    running = desk.start()
    await until(lambda: "".join(pieces).count("\n") == 2)
    pids = [int(line) for line in "".join(pieces).split()]
    assert all(psutil.pid_exists(pid) for pid in pids)
    desk.run.interrupt()
    assert await running is RunEnd.CANCELLED
    await until(lambda: not any(psutil.pid_exists(pid) for pid in pids))
    assert desk.memory.outcomes == [Outcome.CANCELLED]


class Deaf(ScriptedProvider):
    """Its stream heeds no cancel: it says its call after Stop."""

    reached: asyncio.Event
    go: asyncio.Event

    async def stream(self, request: Any) -> AsyncGenerator[Any, None]:
        self.requests.append(request)
        yield ContentDelta("before")
        self.reached.set()
        while not self.go.is_set():
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                continue
        yield call("late", "look")
        yield Done()


async def test_interrupt__calls_that_arrive_later_are_discarded() -> None:
    desk = Desk(tools=(LOOK,))
    deaf = Deaf()
    deaf.reached, deaf.go = asyncio.Event(), asyncio.Event()
    desk.provider = deaf
    running = desk.start()
    await deaf.reached.wait()
    desk.run.interrupt()
    deaf.go.set()
    assert await running is RunEnd.CANCELLED
    assert not desk.memory.of(ToolStarted)
    results = {result.tool_use_id: result.outcome for result in desk.memory.results}
    calls = [use.id for message in desk.memory.messages for use in message.tool_uses]
    assert results == dict.fromkeys(calls, Outcome.CANCELLED)
    assert "before" in desk.memory.messages[1].text


Where = Callable[[Gate, Hanging], Turn]
MOMENTS: dict[str, Where] = {
    "before the first word": lambda gate, _: Turn(gate.step, ContentDelta("b")),
    "among the words": lambda gate, _: Turn(ContentDelta("a"), gate.step, ContentDelta("b")),
    "behind a call": lambda gate, _: Turn(call("1", "look"), gate.step),
    "behind the end mark": lambda gate, _: Turn(call("1", "look"), MessageDelta(StopReason.TOOL_USE), gate.step),
    "in a tool": lambda *_: Turn(ContentDelta("a"), call("1", "hang"), call("2", "look")),
    "at a card": lambda *_: Turn(call("2", "look"), call("1", "act")),
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("times", [1, 3])
async def test_interrupt__ends_the_run_exactly_once_at_any_moment(tmp_path: Path, moment: str, times: int) -> None:
    gate, hanging = Gate(), Hanging()
    tools = tool("hang", hanging.work, read_only=True), LOOK, ACT
    async with on_disk(tmp_path, MOMENTS[moment](gate, hanging), DONE, tools=tools) as stage:
        session = stage.session
        session.send(Message.user("go"))
        await stage.until(lambda: gate.arrived.is_set() or hanging.began.is_set() or session.approvals.open_approvals)
        for _ in range(times):
            session.interrupt()
        await stage.idle()
        assert stage.of(RunFinished) == [RunFinished(RunEnd.CANCELLED)]
        check_invariants(session.history, stage.events)
        answers = [message for message in session.history if message.role is Role.ASSISTANT]
        cut = moment in {"among the words", "behind a call"}
        assert not cut or answers[-1].state is MessageState.INTERRUPTED
        assert await stage.stored() == session.history
        await stage.say("again")
        assert session.history[-1].text == "Done."
        await session.close()


USED = UsageUpdate(Usage(total_tokens=10, cost=0.01))


@pytest.mark.parametrize(
    ("limits", "which"),
    [
        (Limits(turns=2), "turns"),
        (Limits(tool_iterations=2), "tool rounds"),
        (Limits(tokens=20), "tokens"),
        (Limits(cost=0.02), "cost"),
    ],
)
async def test_limits__each_ends_the_run_and_is_an_event(limits: Limits, which: str) -> None:
    desk = Desk(*(Turn(USED, call(str(n), "look", str(n))) for n in range(9)), tools=(LOOK,), limits=limits)
    assert await desk.execute() is RunEnd.LIMIT
    assert [event.which for event in desk.memory.of(LimitReached)] == [which]
    assert len(desk.provider.requests) == 2
    assert [result.tool_use_id for result in desk.memory.results] == ["0", "1"]


async def test_limits__time_ends_it_in_the_middle_and_closes_open_calls_as_limit() -> None:
    hanging = Hanging()
    tools = tool("hang", hanging.work, read_only=True), ACT
    desk = Desk(Turn(call("1", "hang"), call("2", "act")), tools=tools, limits=Limits(seconds=0.05))
    desk.allow(ACT)
    assert await desk.execute() is RunEnd.LIMIT
    assert [event.which for event in desk.memory.of(LimitReached)] == ["time"]
    assert desk.memory.outcomes == [Outcome.LIMIT] * 2
    assert hanging.was_cancelled


@pytest.mark.parametrize("limits", [Limits(tokens=10), Limits(cost=0.01)])
async def test_limits__calls_that_are_open_when_one_is_reached_are_closed_as_limit(limits: Limits) -> None:
    desk = Desk(Turn(call("1", "look"), USED), tools=(LOOK,), limits=limits)
    assert await desk.execute() is RunEnd.LIMIT
    assert desk.memory.outcomes == [Outcome.LIMIT]


async def test_limits__waiting_for_a_person_takes_no_time() -> None:
    desk = Desk(Turn(call("1", "act")), DONE, tools=(ACT,), limits=Limits(seconds=0.15))
    running = desk.start()
    await desk.approvals_open()
    await asyncio.sleep(0.3)
    assert not running.done()
    desk.run.interrupt()
    await running


async def test_limits__waiting_for_an_answer_takes_none_either() -> None:
    provider = ScriptedProvider(Turn(ToolUse(id="q", name="ask_user", input={"question": "Well?"})), DONE)

    async def provide(*_: Any) -> Any:
        return provider

    setup = SessionSetup(
        open_provider=provide, read_picture=provide, tools_for=lambda _: ToolRegistry(),
        config_for=lambda _: ProviderConfig(), limits=lambda: Limits(seconds=0.15), questions=True,
    )  # fmt: skip
    session = in_memory_session(setup, model="m")
    session.send(Message.user("go"))
    await until(lambda: session.questions.open_questions)
    await asyncio.sleep(0.3)
    waits = one(session.questions.open_questions or [None])
    if waits is not None:
        session.questions.answer(waits.question_id, "yes")
    await session.wait_idle()
    await session.close()
    assert session.history[-1].text == "Done."


async def test_limits__continue_is_offered_and_goes_on(tmp_path: Path) -> None:
    async with on_disk(tmp_path, Turn(call("1", "look")), Turn(call("2", "look", "b")), DONE, tools=(LOOK,)) as stage:
        stage.guard_iterations = 1
        await stage.say()
        notices = only(stage.session.transcript, NoticeItem)
        assert [notice.action for notice in notices] == [RemedyAction.CONTINUE]
        stage.guard_iterations = 9
        stage.session.continue_run()
        await stage.idle()
        assert [event.reason for event in stage.of(RunFinished)] == [RunEnd.LIMIT, RunEnd.COMPLETED]
        assert stage.session.history[-1].text == "Done."
        check_invariants(stage.session.history, stage.events)
        await stage.session.close()


async def test_limits__the_longest_answer_is_one_too_and_is_not_asked_for_again() -> None:
    desk = Desk(Turn(ContentDelta("Hal"), MessageDelta(StopReason.MAX_TOKENS)))
    assert await desk.execute() is RunEnd.LIMIT
    assert len(desk.memory.of(LimitReached)) == 1
    assert len(desk.provider.requests) == 1


@pytest.mark.parametrize("turns_of_the_loop", range(6))
async def test_sent_prompt__is_in_the_history_and_its_run_ends_once_whenever_stop_comes(
    tmp_path: Path, turns_of_the_loop: int
) -> None:
    async with on_disk(tmp_path, DONE) as stage:
        stage.session.send(Message.user("go"))
        for _ in range(turns_of_the_loop):
            await asyncio.sleep(0)
        stage.session.interrupt()
        await stage.session.wait_idle()
        assert stage.session.history[0].text == "go"
        events = [envelope.event for envelope in stage.events]
        assert len(only(events, RunFinished)) == 1
        assert not only(events, UserMessageReturned)
