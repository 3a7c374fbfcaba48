"""Stop: nothing starts after it, and every event is sent once, whatever does not heed it."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from desktop_agent.agent import run
from desktop_agent.types.blocks import Outcome
from desktop_agent.types.engine_events import ErrorOccurred, RunEnd, ToolStarted
from desktop_agent.types.errors import ConnectionFailed
from desktop_agent.types.messages import Message, MessageState
from desktop_agent.types.provider_events import ContentDelta, Done, MessageDelta, StopReason
from desktop_agent.types.tool_calls import DenyAndStop, Effect
from tests.fakes.agent_run import Desk, call, tool
from tests.fakes.scripted_provider import Turn, Wait

SECRET = "sk-" + "secret"


class Stubborn:
    """Work that does not heed a cancel until it may."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.may_end = asyncio.Event()
        self.has_begun: list[str] = []

    async def work(self, word: str) -> str:
        self.has_begun.append(word)
        self.reached.set()
        while not self.may_end.is_set():
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                continue
        return word


async def test_after_stop_no_call_starts_even_behind_a_tool_that_does_not_heed_it() -> None:
    stubborn = Stubborn()
    act = tool("act", stubborn.work)
    desk = Desk(Turn(call("1", "act", "first"), call("2", "act", "second")), Turn(), tools=(act,))
    desk.allow(act)
    running = desk.start()
    await stubborn.reached.wait()
    desk.run.interrupt()
    stubborn.may_end.set()
    assert await running is RunEnd.CANCELLED
    assert stubborn.has_begun == ["first"]
    assert desk.memory.outcomes == [Outcome.SUCCEEDED, Outcome.CANCELLED]
    assert len(desk.memory.of(ToolStarted)) == 1


async def test_a_tool_that_outlives_the_grace_changes_nothing_when_it_ends(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run, "STOP_GRACE", 0.01)
    stubborn = Stubborn()
    act = tool("act", stubborn.work)
    desk = Desk(Turn(call("1", "act")), Turn(), tools=(act,))
    desk.allow(act)
    commit = desk.memory.commit

    async def slow_commit(*messages: Message) -> None:
        stubborn.may_end.set()
        await asyncio.sleep(0.02)
        await commit(*messages)

    running = desk.start()
    await stubborn.reached.wait()
    monkeypatch.setattr(desk.memory, "commit", slow_commit)
    desk.run.interrupt()
    assert await running is RunEnd.CANCELLED
    assert desk.memory.outcomes == [Outcome.CANCELLED]
    assert not desk.memory.of(ErrorOccurred)
    assert [entry.levelname for entry in caplog.records] == ["WARNING"]


async def test_what_fails_because_of_stop_is_no_error() -> None:
    reached = asyncio.Event()
    desk = Desk(Turn(ContentDelta("Hel"), Wait(asyncio.Event(), reached)))
    stream = desk.provider.stream

    async def failing(request: Any) -> Any:
        try:
            async for event in stream(request):
                yield event
        except asyncio.CancelledError:
            raise ConnectionFailed("closed by us") from None

    desk.provider.stream = failing  # type: ignore[method-assign]
    running = desk.start()
    await reached.wait()
    desk.run.interrupt()
    assert await running is RunEnd.CANCELLED
    assert not desk.memory.of(ErrorOccurred)
    assert desk.memory.messages[-1].text == "Hel"


async def test_deny_and_stop_holds_among_calls_that_wait_side_by_side() -> None:
    asking = replace(tool("fetch", read_only=True), effects=frozenset({Effect.NETWORK}))
    desk = Desk(Turn(call("1", "fetch"), call("2", "fetch", "y")), tools=(asking,))
    running = desk.start()
    await desk.approvals_open(2)
    desk.decide(DenyAndStop())
    assert await running is RunEnd.CANCELLED
    assert desk.memory.outcomes == [Outcome.DENIED, Outcome.CANCELLED]
    assert not desk.approvals.open_approvals


async def test_calls_of_a_withheld_answer_do_not_run() -> None:
    desk = Desk(Turn(call("1", "look"), MessageDelta(StopReason.CONTENT_FILTER)), tools=(tool("look", read_only=True),))
    assert await desk.execute() is RunEnd.COMPLETED
    assert not desk.memory.of(ToolStarted)
    assert desk.memory.outcomes == [Outcome.CANCELLED]
    assert desk.memory.messages[1].state is MessageState.INTERRUPTED


async def test_a_server_that_does_not_heed_stop_makes_no_whole_answer_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    reached = asyncio.Event()

    async def stream(_request: object):
        reached.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(5)
        yield ContentDelta("whole")
        yield MessageDelta(StopReason.END_TURN)
        yield Done()

    monkeypatch.setattr(desk.provider, "stream", stream)
    running = desk.start()
    await reached.wait()
    desk.run.interrupt()
    assert await running is RunEnd.CANCELLED
    assert desk.memory.messages[-1].state is MessageState.INTERRUPTED


async def test_whoever_waits_may_be_cancelled_twice_and_the_run_still_ends_in_order() -> None:
    stubborn = Stubborn()
    desk = Desk(Turn(call("1", "look")), tools=(tool("look", stubborn.work, read_only=True),))
    running = asyncio.create_task(desk.run.execute())
    await stubborn.reached.wait()
    for _ in range(3):
        running.cancel()
        await asyncio.sleep(0)
    stubborn.may_end.set()
    assert await running is RunEnd.CANCELLED
    assert desk.memory.end is RunEnd.CANCELLED
    assert len(desk.memory.results) == 1


@pytest.mark.parametrize("error", [GeneratorExit, SystemExit, KeyboardInterrupt, StopAsyncIteration, MemoryError])
async def test_whatever_a_provider_raises_the_run_ends_once_and_says_that_it_failed(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk()

    async def open_provider(_model: str) -> object:
        raise error(f"{SECRET}")

    desk.run = run.Run(replace(desk.context, open_provider=open_provider), desk.settings)  # type: ignore[arg-type]
    assert await desk.execute() is RunEnd.FAILED
    assert desk.memory.end is RunEnd.FAILED
    assert SECRET not in caplog.text


async def test_what_is_said_after_the_end_was_not_said() -> None:
    desk = Desk(
        Turn(ContentDelta("a"), MessageDelta(StopReason.END_TURN), Done(), call("1", "look"), ContentDelta("b"))
    )
    assert await desk.execute() is RunEnd.COMPLETED
    assert (desk.memory.messages[-1].text, desk.memory.results) == ("a", [])
