"""Blocks as soon as they are finished."""

import pytest

from desktop_agent.api.run_events import BlockCollector
from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.types.blocks import Block, Text, ToolResult
from desktop_agent.types.engine_events import ContextCompacted, ToolCallPending, ToolFinished, TurnStarted
from desktop_agent.types.provider_events import Usage, UsageUpdate
from desktop_agent.types.tool_calls import ToolClass
from tests.fakes.library import call, says


def test_what_is_open_is_finished_without_making_a_message_of_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    # An answer with n calls has n of these ends: each may cost only what is new.
    monkeypatch.delattr(AnswerBuilder, "message")
    finished = BlockCollector()
    blocks: list[Block] = []
    for event in (
        says("a"),
        call("1"),
        call("2"),
        says("b"),
        ToolCallPending("1", "add", {}, ToolClass.MUTATING),
        ToolFinished("1", _result("1")),
    ):
        blocks += finished.feed(event)
    assert blocks == [Text(text="a"), call("1"), call("2"), Text(text="b"), _result("1")]
    assert finished.finish() == ()


def test_summaries_of_older_messages_count_as_used() -> None:
    collector = BlockCollector()
    for event in (
        TurnStarted("t1", "m1", "m"),
        UsageUpdate(Usage(input_tokens=100, output_tokens=5)),
        ContextCompacted("m1", "In short.", 100, Usage(input_tokens=40, output_tokens=2)),
        TurnStarted("t2", "m2", "m"),
        UsageUpdate(Usage(input_tokens=50, output_tokens=5)),
    ):
        collector.feed(event)
    assert collector.usage == Usage(input_tokens=190, output_tokens=12)


def _result(call_id: str) -> ToolResult:
    return ToolResult(tool_use_id=call_id)
