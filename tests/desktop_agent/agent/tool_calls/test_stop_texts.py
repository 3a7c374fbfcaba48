"""The result text of an interrupted call: nothing that its tool says is trusted."""

import asyncio
from typing import Any

import pytest

from desktop_agent.agent.tool_calls import tool_execution
from desktop_agent.agent.tool_calls.tool_execution import STOPPED_WHILE_RUNNING
from desktop_agent.tools.tool import RunningCall
from desktop_agent.types.blocks import Outcome
from desktop_agent.types.engine_events import ToolFinished
from desktop_agent.types.permissions import ACCEPT_EDITS_MODE
from desktop_agent.types.tool_calls import Effect, FileChanges, ToolClass
from tests.fakes.tool_batch import Desk, Work, call, tool

CHANGES = FileChanges(created=("a",), count=1)


async def words_of(work: Work, *, stop: bool = True, **more: Any) -> tuple[str, Outcome, FileChanges | None]:
    """Return the text, outcome and changes of a call that does `work` and is then stopped, or times out."""
    inside = asyncio.Event()

    async def watched(word: str, running: RunningCall) -> Any:
        inside.set()
        return await work(word, running)

    desk = Desk(call("1", "act"), tools=[tool("act", watched, **more)], mode=ACCEPT_EDITS_MODE)
    working = desk.start()
    await inside.wait()
    await asyncio.sleep(0)
    if stop:
        assert desk.round.stop_call("1")
    await working
    (finished,) = desk.memory.of(ToolFinished)
    return desk.words[0], desk.outcomes[0], finished.changes


async def test_the_last_word_counts_and_those_at_the_end_too() -> None:
    async def work(_: str, running: RunningCall) -> None:
        running.report_partial_result("Nothing yet.")
        running.progress("one\n")
        try:
            await asyncio.Event().wait()
        finally:
            running.report_partial_result("Half of it.")
            running.report_file_changes(CHANGES)

    words, outcome, changes = await words_of(work)
    assert words == f"{STOPPED_WHILE_RUNNING} The end of what it had written until then:\none\nHalf of it."
    assert (outcome, changes) == (Outcome.CANCELLED, CHANGES)


async def test_long_output_is_cut() -> None:
    async def work(_: str, running: RunningCall) -> None:
        running.report_partial_result("x" * 1_000_000)
        await asyncio.Event().wait()

    words, _, _ = await words_of(work)
    assert len(words) < 11_000


async def test_one_that_only_reads_has_changed_nothing_and_one_that_hands_on_may_have() -> None:
    async def work(_: str, _running: RunningCall) -> None:
        await asyncio.Event().wait()

    words, _, _ = await words_of(work, reads=True)
    assert words == f"{STOPPED_WHILE_RUNNING} It only reads: nothing was changed."
    hands_on = {"tool_class": ToolClass.READ_ONLY, "effects": frozenset({Effect.DELEGATE})}
    words, _, _ = await words_of(work, **hands_on)
    assert words == f"{STOPPED_WHILE_RUNNING} It may have taken effect."


@pytest.mark.parametrize("stop", [True, False])
async def test_one_that_does_not_end_may_still_be_at_work(stop: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_execution, "_GRACE_SECONDS", 0.05)
    may_end = asyncio.Event()

    async def work(_: str, _running: RunningCall) -> None:
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                continue

    words, outcome, _ = await words_of(work, stop=stop, timeout=30.0 if stop else 0.01)
    assert words.endswith("It did not end when it was told to, and may still be at work.")
    assert outcome is (Outcome.CANCELLED if stop else Outcome.TIMED_OUT)
    may_end.set()
    await asyncio.sleep(0)


async def test_a_call_that_took_too_long_says_what_it_had_done() -> None:
    async def work(_: str, running: RunningCall) -> None:
        running.report_partial_result("Half of it.")
        await asyncio.Event().wait()

    words, _, _ = await words_of(work, stop=False, timeout=0.01)
    assert words == "The call took longer than 0.01 s and was stopped. Half of it."


async def test_of_one_that_came_to_its_end_only_the_changes_are_told() -> None:
    async def work(_: str, running: RunningCall) -> str:
        running.report_partial_result("Half of it.")
        running.report_file_changes(CHANGES)
        return "done"

    words, outcome, changes = await words_of(work, stop=False)
    assert (words, outcome, changes) == ("done", Outcome.SUCCEEDED, CHANGES)
