"""Events become the blocks of a message."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.vocabulary.blocks import Text, Thinking, ToolUse
from desktop_agent.vocabulary.messages import MessageState
from desktop_agent.vocabulary.provider_events import (
    ContentDelta,
    MessageDelta,
    StopReason,
    ThinkingBlock,
    ThinkingDelta,
    UsageUpdate,
)
from desktop_agent.vocabulary.usage import Usage

START = datetime(2026, 1, 1, tzinfo=UTC)


def build(*events, state=MessageState.COMPLETE):
    builder = AnswerBuilder("m", "model")
    for number, event in enumerate(events):
        builder.feed(event, START + timedelta(seconds=number))
    return builder.message(state, START + timedelta(seconds=len(events)))


def test_blocks_stand_in_the_order_of_their_events() -> None:
    call = ToolUse(id="c", name="n")
    message = build(
        ThinkingDelta("a"),
        ThinkingDelta("b"),
        ThinkingBlock("ab", "p", {"signature": "s"}),
        ContentDelta("x"),
        ContentDelta("y"),
        call,
        MessageDelta(StopReason.TOOL_USE, "tool_calls"),
        UsageUpdate(Usage(input_tokens=5)),
        UsageUpdate(Usage(input_tokens=7, output_tokens=1)),
    )
    thinking = Thinking(text="ab", provider="p", metadata={"signature": "s"}, seconds=2.0)
    assert message.blocks == (thinking, Text(text="xy"), call)
    assert message.stop_reason is StopReason.TOOL_USE
    assert message.usage == Usage(input_tokens=7, output_tokens=1)


def test_a_summary_that_broke_off_is_kept_for_the_eye_only() -> None:
    message = build(ThinkingDelta("half a tho"), state=MessageState.INTERRUPTED)
    (block,) = message.blocks
    assert isinstance(block, Thinking)
    assert (block.text, block.provider, block.metadata) == ("half a tho", "", {})
    assert message.stop_reason is StopReason.CANCELLED


def test_thinking_without_text_is_kept_for_replay() -> None:
    message = build(ThinkingBlock("", "p", {"data": "x"}))
    assert message.blocks == (Thinking(text="", provider="p", metadata={"data": "x"}),)


@given(st.lists(st.text(min_size=1), min_size=1))
def test_joined_pieces_equal_the_committed_text(pieces: list[str]) -> None:
    assert build(*(ContentDelta(piece) for piece in pieces)).text == "".join(pieces)


def test_thinking_never_takes_less_than_no_time() -> None:
    builder = AnswerBuilder("m", "model")
    builder.feed(ThinkingDelta("hm"), START)
    builder.feed(ContentDelta("so"), START - timedelta(days=3650))
    thinking = builder.message(MessageState.COMPLETE, START).blocks[0]
    assert isinstance(thinking, Thinking)
    assert thinking.seconds == 0
