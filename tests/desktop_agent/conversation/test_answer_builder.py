"""Events become the blocks of a message."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.types.blocks import Citation, ServerStep, Text, Thinking, ToolUse, Unknown
from desktop_agent.types.engine_events import RetryScheduled
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import MessageState
from desktop_agent.types.provider_events import (
    AnswerNamed,
    AnswerStarted,
    ContentDelta,
    MessageDelta,
    Origin,
    RequestAdjusted,
    StopReason,
    TextClosed,
    ThinkingBlock,
    ThinkingDelta,
    Usage,
    UsageUpdate,
)

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


def test_what_failed_attempts_used_counts_and_how_they_ended_does_not() -> None:
    started = AnswerStarted(Origin(provider="p"))
    message = build(
        started,
        UsageUpdate(Usage(input_tokens=5)),
        UsageUpdate(Usage(input_tokens=5, output_tokens=1)),
        MessageDelta(StopReason.MALFORMED_TOOL_CALL, details={"empty": True}),
        RetryScheduled(0.0, "the server is busy", 1),
        UsageUpdate(Usage(input_tokens=6)),
        started,  # another address answers
        UsageUpdate(Usage(input_tokens=7, output_tokens=2)),
        ContentDelta("x"),
    )
    assert message.usage == Usage(input_tokens=18, output_tokens=3)
    assert (message.stop_reason, message.stop_details) == (None, None)


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


def test_text_that_is_closed_is_a_block_of_its_own_with_what_belongs_to_it() -> None:
    citation = Citation(title="t", start=0, end=1)
    message = build(
        ContentDelta("a"),
        ContentDelta("b"),
        TextClosed("p", {"id": "1"}, (citation,)),
        ContentDelta("c"),
        TextClosed("p", {"id": "2"}),
        ContentDelta("d"),
    )
    assert message.blocks == (
        Text(text="ab", provider="p", metadata={"id": "1"}, citations=(citation,)),
        Text(text="c", provider="p", metadata={"id": "2"}),
        Text(text="d"),
    )


def test_state_of_an_empty_text_is_kept_too() -> None:
    assert build(TextClosed("p", {"s": 1})).blocks == (Text(text="", provider="p", metadata={"s": 1}),)


def test_steps_of_servers_and_unknown_blocks_stand_in_their_place() -> None:
    step, unknown = ServerStep(provider="p", name="search", raw={"q": 1}), Unknown(raw={"x": 1}, provider="p")
    message = build(ThinkingDelta("hm"), step, ContentDelta("a"), unknown, ContentDelta("b"))
    assert message.blocks == (
        Thinking(text="hm", provider="", seconds=1.0),
        step,
        Text(text="a"),
        unknown,
        Text(text="b"),
    )


def test_nothing_said_is_no_content() -> None:
    builder = AnswerBuilder("m", "model")
    builder.feed(AnswerStarted(Origin(provider="p")), START)
    builder.feed(AnswerNamed("r"), START)
    builder.feed(RequestAdjusted((Sentence("x"),)), START)
    assert not builder.has_content
    builder.feed(TextClosed("p", {"s": 1}), START)
    assert builder.has_content


def test_origin_adjustments_and_details_are_kept() -> None:
    before, after = Sentence("A picture was scaled."), Sentence("Stop sequences were left out.")
    message = build(
        RequestAdjusted((before,)),
        AnswerStarted(Origin(provider="p", account="a"), (after, before)),
        AnswerNamed("r"),
        MessageDelta(StopReason.REFUSAL, "refusal", {"category": "cyber"}),
    )
    assert message.origin == Origin(provider="p", account="a", response_id="r")
    assert message.adjustments == (before, after)
    assert (message.stop_reason, message.stop_details) == (StopReason.REFUSAL, {"category": "cyber"})


def test_a_word_for_the_end_that_nobody_knows_is_kept() -> None:
    assert build(MessageDelta(StopReason.UNKNOWN, "weird")).stop_details == {"raw": "weird"}
    assert build(MessageDelta(StopReason.UNKNOWN, "weird", {"a": 1})).stop_details == {"raw": "weird", "a": 1}
    assert build(MessageDelta(StopReason.UNKNOWN)).stop_details is None
    assert build(MessageDelta(StopReason.END_TURN, "stop")).stop_details is None
