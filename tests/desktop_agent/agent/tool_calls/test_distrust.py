"""A tool may do anything; its call gets a result, and the others go on."""

import asyncio
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic import model_validator

from desktop_agent.tools.checkpoints.checkpointer import Checkpointer
from desktop_agent.tools.decorator import tool as made_tool
from desktop_agent.tools.tool import ModelSchema, RunningCall
from desktop_agent.types.blocks import Image, Json, Outcome, Text, ToolUse, UrlSource
from desktop_agent.types.engine_events import ToolProgress
from desktop_agent.types.errors import OutsideWorkspace, ToolFailed
from desktop_agent.types.permissions import ACCEPT_EDITS_MODE, Rule, RuleEffect
from desktop_agent.types.policies import Limits
from desktop_agent.types.tool_calls import AllowOnce, ToolClass
from tests.fakes.tool_batch import Desk, Stubborn, Words, call, tool, until


class Mute(ToolFailed):
    def __str__(self) -> str:
        raise RuntimeError


def raising(error: BaseException) -> Callable[..., Any]:
    async def work(_word: str, _call: RunningCall) -> str:
        await asyncio.sleep(0)
        raise error

    return work


def giving(value: Any) -> Callable[..., Any]:
    async def work(_word: str, _call: RunningCall) -> Any:
        return value

    return work


async def beside_a_good_one(bad: Any, **more: Any) -> Desk:
    desk = Desk(
        *(call("1", "bad"), call("2", "good")),
        tools=[tool("bad", bad, reads=True, **more), tool("good", reads=True)],
    )
    assert await desk.run()
    assert desk.outcomes[1] is Outcome.SUCCEEDED
    return desk


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError(),
        SystemExit(1),
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError(),
        RecursionError(),
        MemoryError(),
        StopAsyncIteration(),
        TimeoutError(),
        BaseException(),
        BaseExceptionGroup("several", [SystemExit(), ValueError()]),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_it_raises_is_a_failed_call(error: BaseException) -> None:
    desk = await beside_a_good_one(raising(error))
    assert desk.outcomes[0] is Outcome.FAILED
    assert type(error).__name__ in desk.words[0]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration])
@pytest.mark.parametrize("place", ["run", "preview", "subjects", "changes", "checked"])
async def test_whatever_any_part_of_it_raises_is_a_failed_call_at_most(kind: type[BaseException], place: str) -> None:
    class Burst(Words):
        @model_validator(mode="before")
        @classmethod
        def burst(cls, _data: Any) -> Any:
            raise kind

    async def burst(*_arguments: Any) -> Any:
        raise kind

    original = tool("bad", reads=True)
    bad = replace(original, schema=ModelSchema(Burst)) if place == "checked" else replace(original, **{place: burst})
    desk = Desk(call("1", "bad"), call("2", "good"), tools=[bad, tool("good", reads=True)])
    desk.permission_policy.add(Rule(effect=RuleEffect.ASK, tool="bad"))
    object.__setattr__(desk.context, "checkpointer", Checkpointer(None, None, None, "c"))  # type: ignore[arg-type]
    running = desk.start()
    await until(lambda: desk.approvals.open_approvals or running.done())
    if desk.approvals.open_approvals:
        desk.decide(AllowOnce())
    assert await running
    # A call whose preview or subjects fail is asked about; here a person allows it all the same.
    outcome = Outcome.SUCCEEDED if place in {"preview", "subjects"} else Outcome.FAILED
    assert desk.outcomes == [outcome, Outcome.SUCCEEDED]


async def test_a_function_in_a_thread_that_ends_the_program_is_a_failed_call() -> None:
    @made_tool(tool_class=ToolClass.READ_ONLY)
    def leave() -> str:
        """Leave."""
        sys.exit(3)

    desk = Desk(ToolUse(id="1", name="leave"), tools=[leave])
    assert await desk.run()
    assert (desk.outcomes, "SystemExit" in desk.words[0]) == ([Outcome.FAILED], True)


async def test_what_it_says_itself_reaches_the_model_with_its_remedy() -> None:
    desk = await beside_a_good_one(raising(OutsideWorkspace("That is outside.")))
    assert desk.outcomes[0] is Outcome.FAILED
    assert "That is outside. Use a path inside" in desk.words[0]


async def test_what_an_error_says_is_not_written_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    await beside_a_good_one(raising(ValueError("key sk-" + "12345")))
    assert "ValueError" in caplog.text
    assert "sk-12345" not in caplog.text


async def test_one_that_cancels_its_own_task_failed() -> None:
    async def work(word: str, _call: RunningCall) -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1)
        return word

    desk = await beside_a_good_one(work)
    assert desk.outcomes[0] is Outcome.FAILED


async def test_one_that_is_no_coroutine_function_failed() -> None:
    desk = Desk(call("1", "bad"), tools=[tool("bad", reads=True)])
    object.__setattr__(desk.context.tools.get("bad"), "run", lambda *_arguments: (Text(text="not awaited"),))
    await desk.run()
    assert desk.outcomes == [Outcome.FAILED]


@pytest.mark.parametrize(
    "value",
    [None, 5, {"a": 1}, b"bytes", ("text",), (Text(text="good"), 5), (Json(value={1, 2}),), (Json(value=object()),)],
    # No addresses: two processes must name them alike.
    ids=range(8),
)
async def test_what_is_no_result_is_a_failed_call(value: Any) -> None:
    desk = await beside_a_good_one(giving(value))
    assert desk.outcomes[0] is Outcome.FAILED


async def test_json_that_runs_in_a_circle_is_a_failed_call() -> None:
    circle: list[Any] = []
    circle.append(circle)
    desk = await beside_a_good_one(giving((Json(value=circle),)))
    assert desk.outcomes[0] is Outcome.FAILED


async def test_text_keeps_its_words_and_nothing_that_goes_back_to_a_provider_as_its_own() -> None:
    desk = await beside_a_good_one(giving([Text(text="said", provider="anthropic", metadata={"signature": "forged"})]))
    assert desk.results[0].content == (Text(text="said"),)


async def test_a_result_is_cut_to_its_limit_with_a_word_about_it() -> None:
    parts = (Text(text="a" * 60), Json(value={"b": "b" * 100}), Text(text="c"), Text(text="d"))
    picture = Image(source=UrlSource(url="https://example.org/a.png"))
    desk = Desk(
        call("1", "look"),
        tools=[tool("look", giving((picture, *parts)), reads=True)],
        limits=Limits(result_characters=100),
    )
    await desk.run()
    content = desk.results[0].content
    assert content[0] == picture
    assert content[1] == parts[0]
    assert content[2] == Text(text='{"b":"' + "b" * 34 + "\n[cut: 108 characters in all]")
    assert content[3] == Text(text="[left out: 2 more parts]")
    assert len(content) == 4


async def test_one_that_never_ends_is_out_of_time() -> None:
    async def forever(word: str, _call: RunningCall) -> str:
        await asyncio.Event().wait()
        return word

    desk = await beside_a_good_one(forever, timeout=0.01)
    assert desk.outcomes[0] is Outcome.TIMED_OUT
    assert "0.01 s" in desk.words[0]


async def test_one_that_is_out_of_time_and_does_not_heed_it_is_left_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("desktop_agent.agent.tool_calls.tool_execution._GRACE_SECONDS", 0.01)
    stubborn = Stubborn()
    desk = Desk(
        *(call("1", "act"), call("2", "good", "y")),
        tools=[tool("act", stubborn.work, timeout=0.01), tool("good")],
        mode=ACCEPT_EDITS_MODE,
    )
    assert await desk.run()
    assert desk.outcomes == [Outcome.TIMED_OUT, Outcome.SUCCEEDED]
    assert "left behind" in caplog.text
    stubborn.may_end.set()
    await asyncio.sleep(0)


async def test_one_that_ends_in_time_after_its_time_ran_out_was_out_of_time() -> None:
    async def late(word: str, _call: RunningCall) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return word
        return word

    desk = await beside_a_good_one(late, timeout=0.01)
    assert desk.outcomes[0] is Outcome.TIMED_OUT


class TestProgress:
    """Live output."""

    async def test_it_is_told_in_order_between_start_and_end(self) -> None:
        async def work(word: str, running: RunningCall) -> str:
            running.progress("one")
            await asyncio.sleep(0)
            running.progress("two")
            return word

        desk = await beside_a_good_one(work)
        assert [event.text for event in desk.memory.of(ToolProgress)] == ["one", "two"]
        about = desk.memory.about("1")
        assert about == ["tool_call_pending", "tool_started", "tool_progress", "tool_progress", "tool_finished"]

    async def test_after_the_end_it_is_not_heard(self) -> None:
        senders: list[Callable[[str], None]] = []

        async def work(word: str, running: RunningCall) -> str:
            senders.append(running.progress)
            asyncio.get_running_loop().call_soon(running.progress, "just after")
            return word

        desk = await beside_a_good_one(work)
        senders[0]("much later")
        assert not desk.memory.of(ToolProgress)

    async def test_from_another_thread_it_comes_through_the_loop(self) -> None:
        threads: list[int] = []

        async def work(word: str, running: RunningCall) -> str:
            await asyncio.to_thread(running.progress, "from a thread")
            await asyncio.sleep(0)
            return word

        desk = Desk(call("1", "look"), tools=[tool("look", work, reads=True)])
        desk.memory.told = lambda _event: threads.append(threading.get_ident())
        await desk.run()
        assert [event.text for event in desk.memory.of(ToolProgress)] == ["from a thread"]
        assert set(threads) == {threading.get_ident()}

    @pytest.mark.parametrize("piece", ["", "x" * 30])
    async def test_a_flood_ends(self, piece: str) -> None:
        async def work(word: str, running: RunningCall) -> str:
            for _ in range(1_000):
                running.progress(piece)
            return word

        desk = Desk(call("1", "look"), tools=[tool("look", work, reads=True)], limits=Limits(result_characters=160))
        await desk.run()
        texts = [event.text for event in desk.memory.of(ToolProgress)]
        assert texts[-1] == "[more output is not shown]"
        assert len(texts) <= 11
        assert sum(map(len, texts[:-1])) <= 160
        assert desk.outcomes == [Outcome.SUCCEEDED]
