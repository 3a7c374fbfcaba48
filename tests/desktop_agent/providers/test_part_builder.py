"""The part builder: text, thinking, blocks and the end. Formats of servers are tested with their dialects."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.providers.part_builder import PartBuilder, new_call_id
from desktop_agent.providers.text_builder import ThinkTags
from desktop_agent.types.blocks import Citation, ServerStep, ToolUse, Unknown
from desktop_agent.types.errors import Sentence
from desktop_agent.types.provider_events import (
    AnswerNamed,
    ContentDelta,
    MessageDelta,
    RequestAdjusted,
    StopReason,
    TextClosed,
    ThinkingBlock,
    ThinkingDelta,
    Usage,
    UsageUpdate,
)

CITATION = Citation(title="t", url="https://x.example", start=0, end=1)
STEP = ServerStep(provider="p", name="search", raw={"q": 1})
UNKNOWN = Unknown(raw={"x": 1}, provider="p")


def builder(**more: Any) -> PartBuilder:
    return PartBuilder("p", **more)


def test_a_text_is_closed_once_with_what_belongs_to_it() -> None:
    parts = builder()
    parts.main.text("a")
    parts.main.end_text((CITATION,), id="1")
    parts.main.end_text(id="2")
    parts.main.text("b")
    parts.main.end_text()
    assert parts.take_events() == [
        ContentDelta("a"),
        TextClosed("p", {"id": "1"}, (CITATION,)),
        ContentDelta("b"),
        TextClosed("p"),
    ]


def test_nothing_is_closed_where_no_text_is_open_but_citations_are_never_lost() -> None:
    parts = builder()
    parts.main.end_text((CITATION,))
    parts.main.thinking("hm")
    parts.main.end_text()
    parts.end(StopReason.END_TURN, "stop")
    *_, end = parts.take_events()
    assert end.details["citations"] == [{"title": "t", "url": "https://x.example", "start": 0, "end": 1}]


def test_text_before_thinking_calls_and_blocks_is_over() -> None:
    for after in (
        lambda parts: parts.main.thinking("hm"),
        lambda parts: parts.add_call_fragment(index=0, id="c", name="f", arguments="{}"),
        lambda parts: parts.add_block(STEP),
    ):
        parts = builder()
        parts.main.text("a")
        after(parts)
        parts.take_events()
        parts.main.end_text(id="late")
        assert not any(isinstance(event, TextClosed) for event in parts.take_events())


def test_lone_halves_of_characters_never_get_into_state() -> None:
    parts = builder()
    parts.main.text("a\ud83d")
    parts.main.end_text(id="\ud83d")
    assert parts.take_events() == [ContentDelta("a"), ContentDelta("\ufffd"), TextClosed("p", {"id": "\ufffd"})]


def test_tags_are_settled_before_a_text_is_closed() -> None:
    parts = builder(tags=ThinkTags())
    parts.main.text("<thi")
    parts.main.end_text(id="1")
    assert parts.take_events() == [ContentDelta("<thi"), TextClosed("p", {"id": "1"})]


def test_whole_blocks_stand_in_their_place_and_are_something() -> None:
    parts = builder()
    parts.main.thinking("hm")
    parts.add_block(STEP)
    parts.main.text("a")
    parts.add_block(UNKNOWN)
    parts.end(StopReason.END_TURN, "stop")
    assert parts.take_events() == [
        ThinkingDelta("hm"),
        ThinkingBlock("hm", "p"),
        STEP,
        ContentDelta("a"),
        UNKNOWN,
        MessageDelta(StopReason.END_TURN, "stop"),
    ]
    silent = builder()
    silent.add_block(STEP)
    silent.end(StopReason.END_TURN, "stop")
    assert silent.take_events()[-1].details is None


def test_the_first_name_of_an_answer_counts() -> None:
    parts = builder()
    for name in (None, "", 7, "r1", "r2"):
        parts.set_response_id(name)
    assert parts.take_events() == [AnswerNamed("r1")]
    long = builder()
    long.set_response_id("r" * 5000)
    assert len(long.take_events()[0].response_id) == 256


def test_the_name_of_an_answer_is_kept_as_one_text_without_the_key() -> None:
    parts = builder()
    parts.redact_key = lambda text: text.replace("KEY", "***")
    parts.set_response_id("r-KEY-\ud83d")
    assert parts.take_events() == [AnswerNamed("r-***-\ufffd")]


def test_each_event_is_taken_once_and_progress_counts_it_before_and_after() -> None:
    parts = builder()
    pieces: list[Callable[[], None]] = [
        lambda: parts.main.text("a"),
        lambda: parts.main.thinking("hm"),
        # A call without an id is not shown before its end.
        lambda: parts.add_call_fragment(index=0, name="f", arguments='{"x":'),
        lambda: parts.add_call_fragment(index=0, arguments="1}"),
        lambda: parts.add_block(STEP),
    ]
    for add in pieces:
        before = parts.progress
        add()
        progress = parts.progress
        assert progress > before
        parts.take_events()
        assert (parts.take_events(), parts.progress) == ([], progress)


def test_what_was_adapted_is_reported_once() -> None:
    parts = builder()
    first, second = Sentence("One."), Sentence("Two.")
    for sentence in (first, second, first):
        parts.note_adjustment(sentence)
    assert parts.take_events() == [RequestAdjusted((first,)), RequestAdjusted((second,))]
    parts.note_adjustment(second)
    assert parts.take_events() == []


@pytest.mark.parametrize("says_again", [False, True])
def test_what_a_server_says_again_is_passed_over_only_where_it_may_be_a_repetition(says_again: bool) -> None:
    parts = builder(may_repeat=True) if says_again else builder()
    pieces = ["I am here.", "I am here. And", "I am here. And you?"]
    for piece in pieces:
        parts.main.text(piece)
    parts.close_parts()
    text = "".join(event.text for event in parts.take_events() if isinstance(event, ContentDelta))
    assert text == (pieces[-1] if says_again else "".join(pieces))


def test_pieces_of_items_side_by_side_are_shown_as_they_come() -> None:
    parts = builder()
    for number in (5, 2):
        parts.open_item(number)
        parts.part(number).text(f"a{number}")
    parts.part(5).thinking("hm")
    parts.part(2).text("b2")
    parts.part(2).end_text(id="2")
    parts.part(5).end_thinking(id="5")
    assert parts.take_events() == [
        ContentDelta("a5", None, 5),
        ContentDelta("a2", None, 2),
        ThinkingDelta("hm", 5),
        ContentDelta("b2", None, 2),
        TextClosed("p", {"id": "2"}, (), 2),
        ThinkingBlock("hm", "p", {"id": "5"}, 5),
    ]


def test_whole_blocks_wait_for_the_items_beside_theirs_and_follow_in_order() -> None:
    parts = builder()
    for number in (5, 2):
        parts.open_item(number)
    parts.add_block(STEP, 5)
    parts.add_call_fragment(index=0, id="c", name="f", arguments="{}")
    parts.take_events()
    assert parts.end_calls(number=2) == 1
    parts.end_item(5)
    assert parts.take_events() == []
    parts.end_item(2)
    assert parts.take_events() == [ToolUse(id="c", name="f", input={}), STEP]
    parts.end_item(2)
    assert parts.take_events() == []
    # A block of the only open item does not wait, nor does one when no item is open.
    parts.open_item(7)
    parts.add_block(UNKNOWN, 7)
    assert parts.take_events() == [UNKNOWN]
    parts.end_item(7)
    parts.add_block(STEP, 8)
    assert parts.take_events() == [STEP]


def test_the_end_closes_what_is_still_open_and_lets_nothing_wait() -> None:
    parts = builder()
    for number in (5, 2):
        parts.open_item(number)
        parts.part(number).thinking(f"t{number}")
    parts.add_block(STEP, 5)
    parts.add_block(UNKNOWN, 2)
    parts.add_call_fragment(index=0, id="c", name="f", arguments="{}")
    parts.main.thinking("hm")
    parts.take_events()
    parts.end(StopReason.END_TURN, "stop")
    assert parts.take_events() == [
        ThinkingBlock("hm", "p"),
        ThinkingBlock("t2", "p", {}, 2),
        ThinkingBlock("t5", "p", {}, 5),
        UNKNOWN,
        STEP,
        ToolUse(id="c", name="f", input={}),
        MessageDelta(StopReason.TOOL_USE, "stop"),
    ]


def test_thinking_is_closed_with_its_state() -> None:
    parts = builder()
    parts.main.thinking("hm", field="f")
    parts.main.end_thinking(signature="S")
    parts.main.end_thinking()
    assert parts.take_events() == [
        ThinkingDelta("hm"),
        ThinkingBlock("hm", "p", {"field": "f", "signature": "S"}),
    ]


def test_pieces_carry_the_phase_of_their_moment() -> None:
    parts = builder()
    parts.main.phase = "commentary"
    parts.main.text("a")
    parts.main.text("ä")
    parts.main.phase = None
    parts.main.text("b")
    assert parts.take_events() == [ContentDelta("a", "commentary"), ContentDelta("ä", "commentary"), ContentDelta("b")]


def test_arguments_are_kept_as_they_were_written_where_that_is_asked_for() -> None:
    def call_with(arguments: str, *, keeps: bool) -> ToolUse:
        parts = builder(keeps_arguments=True) if keeps else builder()
        parts.add_call_fragment(index=0, id="c", name="f", arguments=arguments)
        parts.end_calls()
        (call,) = [event for event in parts.take_events() if isinstance(event, ToolUse)]
        return call

    spaced = '{ "a":  1.0 }'
    assert call_with(spaced, keeps=True).metadata == {"arguments": spaced}
    assert call_with(spaced, keeps=True).provider == "p"
    assert call_with(spaced, keeps=False).metadata == {}
    assert call_with('{"a":1}', keeps=True).metadata == {}
    assert call_with('{"a":1}', keeps=True).provider == ""
    assert call_with('{"a":', keeps=True).metadata == {}
    # Arguments that are invalid JSON would be refused by servers.
    assert call_with('{"a":"x\ny"}', keeps=True).input == {"a": "x\ny"}
    assert call_with('{"a":"x\ny"}', keeps=True).metadata == {}


def test_what_belongs_to_a_call_is_kept_with_it() -> None:
    parts = builder()
    parts.add_call_fragment(index=0, id="a", name="f", arguments="{}")
    parts.add_call_fragment(index=1, id="b", name="g", arguments="{}")
    parts.calls.attach_metadata("a", {"signature": "A\ud83d"})
    parts.calls.attach_metadata(None, {"signature": "B"})
    parts.calls.attach_metadata("unknown", {"more": 1})
    parts.end_calls()
    calls = [event for event in parts.take_events() if isinstance(event, ToolUse)]
    assert [(call.metadata, call.provider) for call in calls] == [
        ({"signature": "A\ufffd"}, "p"),
        ({"signature": "B", "more": 1}, "p"),
    ]
    parts.calls.attach_metadata("a", {"late": 1})


def test_the_state_of_a_call_stands_right_before_it() -> None:
    parts = builder()
    parts.main.text("a")
    for call_id in ("c", "d"):
        parts.add_call_fragment(index=len(call_id), id=call_id, name="f", arguments="{}")
    parts.calls.attach_state("d", {"field": "x", "half": "\ud83d"})
    parts.take_events()
    assert parts.end_calls() == 2
    first, second = (ToolUse(id=call_id, name="f", input={}) for call_id in ("c", "d"))
    state = ThinkingBlock("", "p", {"field": "x", "half": "\ufffd", "call_id": "d"})
    assert parts.take_events() == [first, state, second]


@pytest.mark.parametrize("filler", [{}, {"index": 0}, {"index": 0, "id": "", "name": "", "arguments": ""}])
def test_filler_beside_a_text_closes_nothing(filler: dict[str, Any]) -> None:
    parts = builder()
    parts.main.text("a")
    parts.add_call_fragment(**filler)
    parts.main.end_text(id="1")
    assert parts.take_events() == [ContentDelta("a"), TextClosed("p", {"id": "1"})]


def test_calls_may_end_one_by_one() -> None:
    parts = builder()
    parts.add_call_fragment(index=0, id="a", name="f", arguments='{"x":')
    parts.add_call_fragment(index=1, id="b", name="g", arguments="{}")
    assert parts.end_calls(index=7) == 0
    assert parts.end_calls(index=1) == 1
    parts.add_call_fragment(index=0, arguments="1}")
    assert parts.end_calls(index=0) == 1
    assert parts.end_calls() == 0
    calls = [event for event in parts.take_events() if isinstance(event, ToolUse)]
    assert [(call.id, call.input) for call in calls] == [("b", {}), ("a", {"x": 1})]
    # Ended calls still make it a turn with tools.
    parts.end(StopReason.END_TURN, "stop")
    assert parts.take_events() == [MessageDelta(StopReason.TOOL_USE, "stop")]


def test_an_index_that_is_used_again_after_its_end_is_another_call() -> None:
    parts = builder()
    for call_id in ("a", "b"):
        parts.add_call_fragment(index=0, id=call_id, name="f", arguments="{}")
        parts.end_calls(index=0)
    assert [event.id for event in parts.take_events() if isinstance(event, ToolUse)] == ["a", "b"]


def test_usage_is_told_at_the_end_and_details_are_joined() -> None:
    parts = builder()
    parts.usage = Usage(input_tokens=1)
    parts.end(StopReason.END_TURN, None, {"x": 1})
    assert parts.take_events() == [
        MessageDelta(StopReason.END_TURN, None, {"x": 1, "empty": True}),
        UsageUpdate(Usage(input_tokens=1)),
    ]


CUT, DONE = '{"x": "un', '{"x": 1}'


@pytest.mark.parametrize(
    ("reason", "arguments", "expected", "details", "calls"),
    [
        # A call counts more than the reason, unless the answer was cut or refused.
        (StopReason.END_TURN, DONE, StopReason.TOOL_USE, None, 1),
        (StopReason.TOOL_USE, DONE, StopReason.TOOL_USE, None, 1),
        (StopReason.STOP_SEQUENCE, DONE, StopReason.TOOL_USE, None, 1),
        (StopReason.UNKNOWN, CUT, StopReason.TOOL_USE, None, 1),
        (StopReason.REFUSAL, DONE, StopReason.REFUSAL, None, 1),
        (StopReason.MAX_TOKENS, DONE, StopReason.MAX_TOKENS, None, 1),
        # After a cut only complete calls count.
        (StopReason.MAX_TOKENS, CUT, StopReason.MAX_TOKENS, None, 0),
        (StopReason.CONTENT_FILTER, CUT, StopReason.CONTENT_FILTER, None, 0),
        # Without any call.
        (StopReason.TOOL_USE, None, StopReason.END_TURN, {"empty": True, "no_call": True}, 0),
        (StopReason.END_TURN, None, StopReason.END_TURN, {"empty": True}, 0),
        (StopReason.UNKNOWN, None, StopReason.UNKNOWN, None, 0),
        (StopReason.MAX_TOKENS, None, StopReason.MAX_TOKENS, None, 0),
    ],
)
def test_the_reason_of_the_end_is_corrected_by_what_came(
    reason: StopReason, arguments: str | None, expected: StopReason, details: dict[str, Any] | None, calls: int
) -> None:
    parts = builder()
    if arguments is not None:
        parts.add_call_fragment(index=0, id="c", name="f", arguments=arguments)
    parts.end(reason, "raw \ud83d")
    events = parts.take_events()
    assert events[-1] == MessageDelta(expected, "raw \ufffd", details)
    assert len([event for event in events if isinstance(event, ToolUse)]) == calls


def test_details_can_be_written_down() -> None:
    parts = builder()
    parts.end(StopReason.REFUSAL, None, {"half \ud83d": ["\ude00"]})
    (end,) = parts.take_events()
    assert isinstance(end, MessageDelta)
    assert end.details == {"half \ufffd": ["\ufffd"]}


@given(st.lists(st.tuples(st.sampled_from(["text", "thinking"]), st.text(max_size=4)), max_size=20))
def test_pieces_together_are_what_came_and_blocks_what_was_shown(pieces: list[tuple[str, str]]) -> None:
    parts = builder()
    for kind, piece in pieces:
        getattr(parts.main, kind)(piece)
    parts.close_parts()
    events = parts.take_events()
    expected = {
        kind: "".join(piece for piece_kind, piece in pieces if piece_kind == kind) for kind in ("text", "thinking")
    }
    assert "".join(event.text for event in events if isinstance(event, ContentDelta)) == expected["text"]
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == expected["thinking"]
    assert "".join(event.text for event in events if isinstance(event, ThinkingBlock)) == expected["thinking"]


def test_made_ids_are_unique() -> None:
    assert len({new_call_id() for _ in range(100)}) == 100
