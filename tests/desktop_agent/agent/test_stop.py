"""Stop, and what goes on all the same: nothing starts any more, and nobody is told twice."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from desktop_agent.agent import turn
from desktop_agent.providers.scripted import Turn, Wait
from desktop_agent.vocabulary.blocks import Outcome
from desktop_agent.vocabulary.engine_events import ErrorOccurred, RunEnd, ToolStarted
from desktop_agent.vocabulary.errors import ConnectionFailed
from desktop_agent.vocabulary.messages import Message, MessageState
from desktop_agent.vocabulary.provider_events import ContentDelta, MessageDelta, StopReason
from desktop_agent.vocabulary.tool_calls import DenyAndStop, Effect
from tests.desktop_agent.agent.desk import Desk, call, tool


class Stubborn:
    """Work that does not heed a cancel until it may."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.may_end = asyncio.Event()
        self.begun: list[str] = []

    async def work(self, word: str) -> str:
        self.begun.append(word)
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
    desk.standing.allow(act)
    running = desk.start()
    await stubborn.reached.wait()
    desk.run.stop()
    stubborn.may_end.set()
    assert await running is RunEnd.CANCELLED
    assert stubborn.begun == ["first"]
    assert desk.memory.outcomes == [Outcome.SUCCEEDED, Outcome.CANCELLED]
    assert len(desk.memory.of(ToolStarted)) == 1


async def test_a_tool_that_outlives_the_grace_changes_nothing_when_it_ends(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turn, "STOP_GRACE", 0.01)
    stubborn = Stubborn()
    act = tool("act", stubborn.work)
    desk = Desk(Turn(call("1", "act")), Turn(), tools=(act,))
    desk.standing.allow(act)
    commit = desk.memory.commit

    async def slow_commit(*messages: Message) -> None:
        stubborn.may_end.set()
        await asyncio.sleep(0.02)
        await commit(*messages)

    running = desk.start()
    await stubborn.reached.wait()
    monkeypatch.setattr(desk.memory, "commit", slow_commit)
    desk.run.stop()
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
    desk.run.stop()
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
