"""Stop, whatever is going on: over real sockets, real processes and a real store."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.agent.run import STOP_GRACE
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.types.blocks import Outcome, Text, ToolResult
from desktop_agent.types.engine_events import RunEnd, RunFinished, ToolFinished, ToolProgress
from desktop_agent.types.policies import StopTool
from tests.desktop_agent.engine.stop_stand import WAYS, BySession, RunRecording, Way, by, by_session, stopped, until
from tests.desktop_agent.engine.stop_states import DEAF, STATES, Plain, State, Word, begun, waiting_tool
from tests.fakes.session import LIMIT, check_invariants, results_of
from tests.fakes.stopping_server import SILENCE, Answer, calls, says

# The measured times are printed. They may be so many times the grace period on a busy machine.
FACTOR = 5
AtWork = tuple[BySession, RunRecording, asyncio.Event]
AGAIN = [state for state in STATES if state.name in {"mid-text", "waiting for approval"} or state.works]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.name)
async def test_stop_ends_it_and_nothing_is_left(state: State, way: Way, tmp_path: Path) -> None:
    measured = await stopped(state, way, tmp_path)
    print(f"{state.name}, by {way}: {measured.to_the_end * 1000:.0f} ms, {measured.to_nothing_left * 1000:.0f} ms")
    assert measured.to_the_end < FACTOR * STOP_GRACE


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("state", AGAIN, ids=lambda state: state.name)
async def test_stop_twice_is_stop_once(state: State, way: Way, tmp_path: Path) -> None:
    measured = await stopped(state, way, tmp_path, times=2)
    assert measured.to_the_end < FACTOR * STOP_GRACE


@pytest.mark.parametrize("way", WAYS)
async def test_stop_after_the_end_does_nothing(way: Way, tmp_path: Path) -> None:
    recording = RunRecording()
    async with (
        begun(Plain(), (says("one"), says("two")), tmp_path) as (_, url),
        by(way, State(""), url, tmp_path, recording) as face,
    ):
        for prompt in ("one", "two"):
            face.begin("go")
            await face.until_idle()
            assert face.history[-1].text == prompt
            events = list(recording.events)
            face.interrupt()
            await asyncio.sleep(0)
            assert recording.events == events
    ends = [envelope.event for envelope in recording.events if isinstance(envelope.event, RunFinished)]
    assert ends == [RunFinished(RunEnd.COMPLETED)] * 2


async def test_a_second_stop_does_not_disturb_a_tool_that_tidies_up(tmp_path: Path) -> None:
    recording, tidying, may_end = RunRecording(), asyncio.Event(), asyncio.Event()
    tidied_at: list[int] = []

    async def run(_: Word, call: RunningCall) -> tuple[Text, ...]:
        call.progress("there")
        try:
            await asyncio.Event().wait()
        finally:
            tidying.set()
            await may_end.wait()
            tidied_at.append(len(recording.events))
        return ()

    careful = Tool("careful", "Tidies up.", ModelSchema(Word), run)
    async with (
        begun(Plain(), (calls(("c1", "careful", {})),), tmp_path) as (_, url),
        by_session(State(""), url, tmp_path, recording, (careful,)) as face,
    ):
        face.begin("go")
        await until(lambda: any(isinstance(envelope.event, ToolProgress) for envelope in recording.events))
        assert face.session.interrupt()
        await until(tidying.is_set)
        event_count = len(recording.events)
        for _ in range(3):
            assert face.session.interrupt()
            await asyncio.sleep(0)
        may_end.set()
        await face.until_idle()
        assert tidied_at == [event_count]
        assert [envelope.event for envelope in recording.events[-1:]] == [RunFinished(RunEnd.CANCELLED)]
        check_invariants(face.history, recording.events)


@asynccontextmanager
async def at_work(tmp_path: Path, *answers: Answer, depth: int, count: int) -> AsyncGenerator[AtWork]:
    """A session with so many tools at work, which wait, so deep below the first run."""
    recording, opened = RunRecording(), asyncio.Event()

    def are_there() -> bool:
        return sum(isinstance(event, ToolProgress) for event in recording.events_at(depth)) == count

    async with (
        begun(Plain(), answers, tmp_path) as (_, url),
        by_session(State(""), url, tmp_path, recording, (waiting_tool(DEAF.name, opened),)) as face,
    ):
        face.begin("go")
        await until(are_there)
        yield face, recording, opened


async def test_stopping_one_of_two_calls_lets_the_other_go_on(tmp_path: Path) -> None:
    both = calls(("a", DEAF.name, {"word": "A"}), ("b", DEAF.name, {"word": "B"}))
    async with at_work(tmp_path, both, says("done"), depth=0, count=2) as (face, recording, opened):
        assert face.session.interrupt(StopTool("a"))
        await until(lambda: _ended(recording) == [("a", Outcome.CANCELLED)])
        assert face.session.working
        # It has ended, so there is nothing to stop.
        assert not face.session.interrupt(StopTool("a"))
        assert not face.session.interrupt(StopTool("nobody"))
        opened.set()
        await face.until_idle()
        results = results_of(face.history)
        assert list(results) == ["a", "b"]
        assert results["b"].content == (Text(text="B"),)
        assert _ended(recording) == [("a", Outcome.CANCELLED), ("b", Outcome.SUCCEEDED)]
        assert face.history[-1].text == "done"
        check_invariants(face.history, recording.events)
        assert recording.events[-1].event == RunFinished(RunEnd.COMPLETED)


async def test_stopping_a_call_of_a_specialist_ends_that_call_alone(tmp_path: Path) -> None:
    """Its model is told, and the specialist goes on; so does whoever called it."""
    hand_on = calls(("c1", "inner", {"task": "t"}))
    answers = (hand_on, calls(("c2", DEAF.name, {})), says("without it"), says("done"))
    async with at_work(tmp_path, *answers, depth=1, count=1) as (face, recording, _):
        assert face.session.interrupt(StopTool("c2"))
        await face.until_idle()
        assert _ended(recording) == [("c2", Outcome.CANCELLED), ("c1", Outcome.SUCCEEDED)]
        assert results_of(face.history)["c1"].content == (Text(text="without it"),)
        assert face.history[-1].text == "done"
        check_invariants(face.history, recording.events)


async def test_stopping_a_call_that_is_a_specialist_stops_all_below_it_and_nothing_else(tmp_path: Path) -> None:
    first = calls(("c1", "outer", {"task": "t"}), ("d", DEAF.name, {"word": "D"}))
    answers = (first, calls(("c2", "inner", {"task": "t"})), calls(("c3", DEAF.name, {})), says("done"))
    async with at_work(tmp_path, *answers, depth=2, count=1) as (face, recording, opened):
        assert face.session.interrupt(StopTool("c1"))
        await until(lambda: ("c1", Outcome.CANCELLED) in _ended(recording))
        assert all(recording.events_at(depth)[-1] == RunFinished(RunEnd.CANCELLED) for depth in (1, 2))
        opened.set()
        await face.until_idle()
        outcomes = {id_: result.outcome for id_, result in results_of(face.history).items()}
        assert outcomes == {"c1": Outcome.CANCELLED, "d": Outcome.SUCCEEDED}
        assert face.history[-1].text == "done"
        check_invariants(face.history, recording.events)


async def test_stop_while_older_messages_are_summarised_on_demand(tmp_path: Path) -> None:
    recording = RunRecording()
    async with (
        begun(Plain(), (says("hello"), says("more"), SILENCE), tmp_path) as (place, url),
        by_session(State(""), url, tmp_path, recording) as face,
    ):
        for prompt in ("one", "two"):
            face.begin(prompt)
            await face.until_idle()
        history = face.history
        face.session.compact()
        await until(lambda: place.server.is_holding)
        face.interrupt()
        async with asyncio.timeout(LIMIT):
            await face.until_idle()
        await until(lambda: not place.server.open)
        assert recording.events[-1].event == RunFinished(RunEnd.CANCELLED)
        assert face.history == history
        face.begin("and now?")
        await face.until_idle()
        assert face.history[-1].text == "fine"
        check_invariants(face.history, recording.events)


def _ended(recording: RunRecording) -> list[tuple[Any, Any]]:
    ends = [envelope.event for envelope in recording.events if isinstance(envelope.event, ToolFinished)]
    assert all(isinstance(end.result, ToolResult) for end in ends)
    return [(end.id, end.result.outcome) for end in ends]
