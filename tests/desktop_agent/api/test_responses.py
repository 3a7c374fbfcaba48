"""From pieces to the whole."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from desktop_agent.api.responses import Response, ToolCallAssembler, collect_response, collect_text
from desktop_agent.types.blocks import Outcome, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.engine_events import Envelope, ErrorOccurred, RunEnd, RunFinished, ToolFinished, TurnStarted
from desktop_agent.types.errors import Overloaded
from desktop_agent.types.messages import now
from desktop_agent.types.provider_events import (
    ContentDelta,
    Done,
    MessageDelta,
    StopReason,
    ThinkingBlock,
    ThinkingDelta,
    ToolArgsDelta,
    Usage,
    UsageUpdate,
)


async def stream(*items: Any) -> AsyncIterator[Any]:
    for item in items:
        yield item


async def test_text_of_events_envelopes_and_blocks_alike() -> None:
    assert await collect_text(stream(ContentDelta("a"), ThinkingDelta("no"), ContentDelta("b"), Done())) == "ab"
    wrapped = Envelope(1, "r", None, "t", now(), ContentDelta("a"))
    assert await collect_text(stream(wrapped, Text(text="b"), ToolUse(id="c", name="t"))) == "ab"


async def test_an_error_among_the_events_is_no_text_that_ends_early() -> None:
    with pytest.raises(Overloaded, match="busy"):
        await collect_text(stream(ContentDelta("a"), ErrorOccurred.of(Overloaded("busy"))))


async def test_a_response_has_blocks_usage_and_reason() -> None:
    response = await collect_response(
        stream(
            ThinkingDelta("hm"),
            ThinkingBlock("hm", "p", {"s": 1}),
            ContentDelta("a"),
            ContentDelta("b"),
            UsageUpdate(Usage(input_tokens=3)),
            UsageUpdate(Usage(input_tokens=3, output_tokens=2)),
            MessageDelta(StopReason.END_TURN),
            Done(),
        )
    )
    assert [type(block) for block in response.blocks] == [Thinking, Text]
    assert (response.text, response.thinking, response.is_complete) == ("ab", "hm", True)
    assert response.usage == Usage(input_tokens=3, output_tokens=2)
    assert response.stop_reason is StopReason.END_TURN


async def test_several_turns_are_one_response_whose_text_is_what_was_said_last() -> None:
    result = ToolResult(tool_use_id="c", content=(Text(text="4"),), outcome=Outcome.SUCCEEDED)
    response = await collect_response(
        stream(
            TurnStarted("t1", "m1", "m"),
            ContentDelta("Let me see."),
            ToolUse(id="c", name="add"),
            UsageUpdate(Usage(output_tokens=1)),
            MessageDelta(StopReason.TOOL_USE),
            Done(),
            ToolFinished("c", result),
            TurnStarted("t2", "m2", "m"),
            ContentDelta("It is "),
            MessageDelta(StopReason.PAUSE_TURN),
            Done(),
            TurnStarted("t3", "m3", "m"),
            ContentDelta("4."),
            UsageUpdate(Usage(output_tokens=2)),
            MessageDelta(StopReason.END_TURN),
            Done(),
            RunFinished(RunEnd.COMPLETED),
        )
    )
    assert response.text == "It is 4."
    assert [call.id for call in response.tool_uses] == ["c"]
    assert result in response.blocks
    assert response.usage == Usage(output_tokens=3)
    assert response.is_complete


async def test_what_a_limit_cut_is_not_complete() -> None:
    cut = await collect_response(stream(ContentDelta("a"), MessageDelta(StopReason.MAX_TOKENS), Done()))
    assert not cut.is_complete
    ended = await collect_response(
        stream(ContentDelta("a"), MessageDelta(StopReason.END_TURN), Done(), RunFinished(RunEnd.LIMIT))
    )
    assert not ended.is_complete


async def test_an_error_is_kept_beside_what_came_before_it() -> None:
    error = ErrorOccurred.of(Overloaded("busy"))
    response = await collect_response(stream(ContentDelta("a"), error))
    assert (response.text, response.error, response.is_complete) == ("a", error, False)


def test_calls_are_assembled_from_their_pieces() -> None:
    assembler = ToolCallAssembler()
    assembler.add(ToolArgsDelta("c1", "add", '{"a": '))
    assembler.add(ToolArgsDelta("c2", "now", ""))
    assembler.add(ToolArgsDelta("c1", None, "1}"))
    assert assembler.finish() == (
        ToolUse(id="c1", name="add", input={"a": 1}),
        ToolUse(id="c2", name="now", input={}),
    )
    assert assembler.finish() == ()


def test_one_bad_call_is_malformed_and_no_other() -> None:
    assembler = ToolCallAssembler()
    assembler.fragment(index=0, id="c1", name="add", arguments='{"a": oops')
    assembler.fragment(index=1, id="c2", name="add", arguments={"a": 1})
    bad, good = assembler.finish()
    assert (bad.malformed, bad.input) == ('{"a": oops', {})
    assert (good.malformed, good.input) == (None, {"a": 1})


def test_after_a_cut_only_whole_calls_are_left() -> None:
    assembler = ToolCallAssembler()
    assembler.fragment(index=0, id="c1", name="add", arguments='{"a": 1}')
    assembler.fragment(index=1, id="c2", name="add", arguments='{"a"')
    assert [call.id for call in assembler.finish(cut=True)] == ["c1"]


def test_a_response_without_an_end_is_not_complete() -> None:
    assert not Response((Text(text="a"),)).is_complete
