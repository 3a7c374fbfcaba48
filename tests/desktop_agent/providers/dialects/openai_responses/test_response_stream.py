"""Streams that no recording has, made from the API reference and the known gaps of compatible servers."""

import base64
import itertools
import json
from typing import Any

import pytest

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.providers.dialects.openai_responses.response_stream import ResponsesReader
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.types.blocks import Base64Source, Citation, Image, ServerStep, Text, ToolUse, Unknown
from desktop_agent.types.errors import ContextLengthExceeded, InvalidRequest, ProviderError, RateLimited, TimedOut
from desktop_agent.types.messages import Message, MessageState, now
from desktop_agent.types.provider_events import (
    AnswerNamed,
    ContentDelta,
    MessageDelta,
    StopReason,
    TextClosed,
    ThinkingBlock,
    ThinkingDelta,
    ToolArgsDelta,
    UsageUpdate,
)
from tests.desktop_agent.providers.dialects.openai_responses.events import (
    PROVIDER,
    Event,
    Folded,
    added,
    arguments,
    completed,
    done,
    event,
    folded,
    function_call,
    message,
    output_text,
    reasoning,
    stream,
    text,
)

FIRST = 1
"""The part number of the first part of the first item."""
BEGUN = {"id": "m1", "type": "message", "status": "in_progress", "role": "assistant", "content": []}


def text_in(stream: Any) -> str:
    return "".join(provider_event.text for provider_event in stream.all(ContentDelta))


def thinking_in(stream: Any) -> str:
    return "".join(provider_event.text for provider_event in stream.all(ThinkingDelta))


def stored_message(stream: Any) -> Message:
    """Return the message that a conversation stores of the stream."""
    answer = AnswerBuilder("m", "model")
    for provider_event in stream.events:
        answer.feed(provider_event, now())
    return answer.message(MessageState.COMPLETE, now())


def ending(stream: Any) -> MessageDelta:
    (end,) = stream.all(MessageDelta)
    return end


def test_parts_of_one_message_stay_apart_and_keep_what_goes_back_with_them() -> None:
    web_citation = {"type": "url_citation", "start_index": 0, "end_index": 3, "url": "https://a.example", "title": "A"}
    file = {"type": "file_citation", "file_id": "f1", "filename": "b.txt", "index": 4}
    item = message("m1", output_text("One", web_citation), output_text("Two", file), phase="commentary")
    result = folded(
        added(0, **BEGUN, phase="commentary"),
        event("content_part.added", output_index=0, item_id="m1", content_index=0, part={"type": "output_text"}),
        text(0, "m1", "One"),
        event(
            "output_text.annotation.added",
            output_index=0,
            item_id="m1",
            content_index=0,
            annotation_index=0,
            annotation=web_citation,
        ),
        event(
            "content_part.done", output_index=0, item_id="m1", content_index=0, part=output_text("One", web_citation)
        ),
        text(0, "m1", "Two", 1),
        done(0, **item),
        completed(item),
    )
    first, second = result.all(TextClosed)
    assert first.part < second.part
    state = {"id": "m1", "phase": "commentary"}
    assert first == TextClosed(
        PROVIDER,
        {**state, "annotations": [web_citation]},
        (Citation(title="A", url="https://a.example", start=0, end=3),),
        first.part,
    )
    assert second == TextClosed(
        PROVIDER, {**state, "status": "completed", "annotations": [file]}, (Citation(title="b.txt"),), second.part
    )
    assert [part.phase for part in result.all(ContentDelta)] == ["commentary", "commentary"]
    assert result.shape == [
        "content_delta",
        "text_closed",
        "content_delta",
        "text_closed",
        "answer_named",
        "message_delta",
    ]
    assert ending(result).details == {
        "citations": [
            {"title": "A", "url": "https://a.example", "start": 0, "end": 3},
            {"title": "b.txt"},
        ]
    }


def test_phases_belong_to_their_messages() -> None:
    first, second = message("m1", "Looking.", phase="commentary"), message("m2", "Done.", phase="final_answer")
    result = folded(
        added(0, **BEGUN, phase="commentary"),
        text(0, "m1", "Looking."),
        done(0, **first),
        added(1, **BEGUN | {"id": "m2"}, phase="final_answer"),
        text(1, "m2", "Done."),
        done(1, **second),
        completed(first, second),
    )
    assert [(part.text, part.phase) for part in result.all(ContentDelta)] == [
        ("Looking.", "commentary"),
        ("Done.", "final_answer"),
    ]
    assert [part.metadata["id"] for part in result.all(TextClosed)] == ["m1", "m2"]


def test_items_are_shown_side_by_side_and_stand_in_their_order() -> None:
    result = folded(
        added(0, **BEGUN),
        added(1, **BEGUN | {"id": "m2"}),
        text(1, "m2", "x"),
        text(0, "m1", "a"),
        text(1, "m2", "y"),
        done(1, **message("m2", "xy")),
        text(0, "m1", "b"),
        done(0, **message("m1", "ab")),
        completed(message("m1", "ab"), message("m2", "xy")),
    )
    texts = [[part.text for part in batch if isinstance(part, ContentDelta)] for batch in result.client]
    assert texts == [[], [], ["x"], ["a"], ["y"], [], ["b"], [], [], []]
    assert [(part.text, part.metadata["id"]) for part in stored_message(result).blocks] == [
        ("ab", "m1"),
        ("xy", "m2"),
    ]


def test_a_call_beside_text_keeps_its_place() -> None:
    call = function_call("fc1", "call_1", "f", '{"a":1}')
    result = folded(
        added(0, **BEGUN),
        added(1, **call | {"arguments": "", "status": "in_progress"}),
        arguments(1, "fc1", '{"a"'),
        text(0, "m1", "Hi"),
        arguments(1, "fc1", ":1}"),
        done(1, **call),
        done(0, **message("m1", "Hi")),
        completed(message("m1", "Hi"), call),
    )
    assert result.shape[-4:] == ["text_closed", "tool_use", "answer_named", "message_delta"]
    assert [type(block) for block in stored_message(result).blocks] == [Text, ToolUse]
    assert result.all(ToolUse)[0].input == {"a": 1}
    assert ending(result).stop_reason is StopReason.TOOL_USE


def test_pieces_of_parts_that_come_mixed_are_shown_at_once_and_kept_in_order() -> None:
    result = folded(
        added(0, **BEGUN),
        text(0, "m1", "a"),
        text(0, "m1", "x", 1),
        text(0, "m1", "b"),
        text(0, "m1", "y", 1),
        done(0, **message("m1", "ab", "xy")),
        completed(),
    )
    assert text_in(result) == "axby"
    assert [block.text for block in stored_message(result).blocks] == ["ab", "xy"]


def test_a_part_of_an_item_that_nobody_announced_holds_nothing_up() -> None:
    result = folded(
        event("content_part.added", item_id="rs1", part={"type": "reasoning_text", "text": ""}),
        added(0, **BEGUN),
        text(0, "m1", "Hi"),
    )
    assert text_in(result) == "Hi"


def test_ends_of_items_that_were_not_announced_under_one_number() -> None:
    first, second = message("m1", "One."), message("m2", "Two.")
    result = folded(done(0, **first), done(0, **second), completed(first, second))
    assert text_in(result) == "One.Two."
    assert len(result.all(ContentDelta)) == len(result.all(TextClosed)) == 2
    assert [len(batch) for batch in result.client][:2] == [2, 2]


@pytest.mark.parametrize("lost", ["end", "all", "item", "events"])
def test_what_was_lost_is_taken_from_the_truth_and_nothing_is_said_twice(lost: str) -> None:
    item, call = message("m1", "Hello world"), function_call("fc1", "call_1", "f", '{"a": 1}')
    events = [
        added(0, **BEGUN),
        text(0, "m1", "Hello"),
        text(0, "m1", " world"),
        done(0, **item),
        added(1, **call | {"arguments": ""}),
        arguments(1, "fc1", '{"a":'),
        arguments(1, "fc1", " 1}"),
        done(1, **call),
        completed(item, call),
    ]
    missing = {"end": (2, 6), "all": (1, 2, 5, 6), "item": (2, 3, 6, 7), "events": range(8)}[lost]
    result = folded(*(frame for index, frame in enumerate(events) if index not in missing))
    assert text_in(result) == "Hello world"
    (use,) = result.all(ToolUse)
    assert (use.id, use.input, use.metadata["arguments"]) == ("call_1", {"a": 1}, '{"a": 1}')
    assert [frame.metadata["id"] for frame in result.all(TextClosed)] == ["m1"]


def test_arguments_that_differ_from_their_pieces_are_believed_at_the_end() -> None:
    call = function_call("fc1", "call_1", "f", '{"a":2}')
    result = folded(
        added(0, **call | {"arguments": ""}), arguments(0, "fc1", '{"a":1}'), done(0, **call), completed(call)
    )
    assert [(use.id, use.input) for use in result.all(ToolUse)] == [("call_1", {"a": 2})]


def test_an_end_without_arguments_does_not_take_those_that_came() -> None:
    call = function_call("fc1", "call_1", "f", "")
    result = folded(added(0, **call), arguments(0, "fc1", '{"a":1}'), done(0, **call), completed(call))
    assert result.all(ToolUse)[0].input == {"a": 1}


def test_a_call_is_announced_before_its_arguments_and_keeps_what_the_item_says() -> None:
    call = function_call("fc1", "call_1", "f", "{}", caller={"type": "direct"})
    result = folded(added(0, **call | {"arguments": ""}), done(0, **call), completed(call))
    assert result.all(ToolArgsDelta)[0] == ToolArgsDelta("call_1", "f", "")
    assert result.all(ToolUse)[0].metadata == {
        "item": {"id": "fc1", "type": "function_call", "status": "completed", "caller": {"type": "direct"}}
    }


@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter", "max_messages", "steered", None])
def test_calls_of_an_incomplete_answer_never_end_in_tool_use(reason: str | None) -> None:
    complete, cut = function_call("fc1", "call_1", "f", "{}"), function_call("fc2", "call_2", "g", '{"a":1}')
    details = {"incomplete_details": {"reason": reason}} if reason else {}
    result = folded(
        done(0, **complete),
        added(1, **cut | {"arguments": "", "status": "in_progress"}),
        arguments(1, "fc2", '{"a":1}'),
        event("incomplete", response={"status": "incomplete", "output": [complete, cut], **details}),
    )
    assert [use.id for use in result.all(ToolUse)] == ["call_1"]
    expected = StopReason.CONTENT_FILTER if reason == "content_filter" else StopReason.MAX_TOKENS
    assert (ending(result).stop_reason, ending(result).raw) == (
        expected,
        f"incomplete:{reason}" if reason else "incomplete",
    )


def test_text_that_was_cut_is_a_message_that_is_not_complete() -> None:
    result = folded(
        added(0, **BEGUN),
        text(0, "m1", "half"),
        event("incomplete", response={"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}),
    )
    assert result.all(TextClosed)[0].metadata == {"id": "m1", "status": "incomplete"}


def test_a_refusal_beside_text() -> None:
    item = message("m1", "Well.", {"type": "refusal", "refusal": "No."})
    result = folded(
        added(0, **BEGUN),
        text(0, "m1", "Well."),
        event("refusal.delta", output_index=0, item_id="m1", content_index=1, delta="N"),
        event("refusal.delta", output_index=0, item_id="m1", content_index=1, delta="o."),
        event("refusal.done", output_index=0, item_id="m1", content_index=1, refusal="No."),
        done(0, **item),
        completed(item),
    )
    assert text_in(result) == "Well.No."
    assert [closed.metadata.get("refusal") for closed in result.all(TextClosed)] == [None, True]
    assert ending(result).stop_reason is StopReason.REFUSAL


def test_known_steps_and_unknown_items_are_kept_whole_where_they_were() -> None:
    search = {"id": "ws1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}}
    odd = {"id": "zz1", "type": "telepathy_call", "thought": {"deep": [1, 2.5, None]}}
    result = folded(
        added(0, id="ws1", type="web_search_call", status="in_progress"),
        event("web_search_call.searching", output_index=0, item_id="ws1"),
        done(0, **search),
        event("telepathy_call.listening", output_index=1, item_id="zz1", delta="?"),
        done(1, **odd),
        event("future.event", anything=1),
        {"type": "keepalive"},
        done(2, **message("m1", "Found.")),
        completed(search, odd, message("m1", "Found.")),
    )
    assert result.all(ServerStep) == [ServerStep(provider=PROVIDER, name="web_search_call", text="q", raw=search)]
    assert result.all(Unknown) == [Unknown(raw=odd, provider=PROVIDER)]
    assert result.shape[:4] == ["server_step", "unknown", "content_delta", "text_closed"]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"type": "file_search_call", "queries": ["a", "b"]}, "a\nb"),
        ({"type": "code_interpreter_call", "code": "1 + 1"}, "1 + 1"),
        ({"type": "mcp_call", "server_label": "wiki", "name": "find", "arguments": "{}"}, "wiki: find {}"),
        ({"type": "mcp_list_tools", "server_label": "w", "tools": [{"name": "a"}, {"name": "b"}]}, "a, b"),
        ({"type": "shell_call", "action": {"commands": ["ls", "pwd"]}}, "ls\npwd"),
        ({"type": "image_generation_call", "revised_prompt": "a cat", "result": "AAAA"}, "a cat"),
        ({"type": "compaction", "encrypted_content": "blob"}, ""),
    ],
)
def test_steps_are_said_in_words(item: dict[str, Any], expected: str) -> None:
    (step,) = folded(done(0, **item), completed(item)).all(ServerStep)
    assert (step.name, step.text, step.raw) == (item["type"], expected, item)


def test_a_picture_that_the_server_made_is_a_picture_and_the_rest_of_its_item_goes_back_with_it() -> None:
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 40).decode()
    item = {"id": "ig1", "type": "image_generation_call", "status": "completed", "revised_prompt": "a cat"}
    made = {**item, "result": data}
    result = folded(
        added(0, **item | {"status": "in_progress"}),
        event("image_generation_call.partial_image", output_index=0, item_id="ig1", partial_image_b64=data),
        done(0, **made),
        completed(made),
    )
    source = Base64Source(media_type="image/png", data=data)
    assert result.all(Image) == [Image(source=source, provider=PROVIDER, metadata={"item": item})]
    # One that came to nothing is still said.
    failed = {**item, "status": "failed", "result": None}
    (step,) = folded(done(0, **failed), completed(failed)).all(ServerStep)
    assert (step.text, step.raw) == ("a cat", failed)


def test_a_part_of_an_unknown_type_is_kept_under_its_message() -> None:
    odd = {"type": "output_smell", "smell": "coffee"}
    item = message("m1", "Mm.", odd)
    result = folded(done(0, **item), completed(item))
    assert result.all(Unknown) == [Unknown(raw={**item, "content": [odd]}, provider=PROVIDER)]


def test_a_call_with_free_text() -> None:
    call = {"id": "ct1", "type": "custom_tool_call", "call_id": "call_9", "name": "sql", "input": "SELECT 1"}
    result = folded(
        added(0, **call | {"input": ""}),
        event("custom_tool_call_input.delta", output_index=0, item_id="ct1", delta="SELECT"),
        done(0, **call),
        completed(call),
    )
    (use,) = result.all(ToolUse)
    assert (use.id, use.name, use.input) == ("call_9", "sql", {"input": "SELECT 1"})
    assert use.metadata == {"item": {"type": "custom_tool_call", "id": "ct1"}}
    assert ending(result).stop_reason is StopReason.TOOL_USE


@pytest.mark.parametrize("ends", ["input", "item without input", "neither"])
def test_free_text_that_comes_in_pieces_only(ends: str) -> None:
    call = {"id": "ct1", "type": "custom_tool_call", "call_id": "call_9", "name": "sql"}
    position: dict[str, Any] = {"output_index": 0, "item_id": "ct1"}
    events = [
        added(0, **call, input=""),
        event("custom_tool_call_input.delta", **position, delta="SELECT"),
        event("custom_tool_call_input.delta", **position, delta=" 1"),
    ]
    if ends == "input":
        events.append(event("custom_tool_call_input.done", **position, input="SELECT 1"))
    elif ends == "item without input":
        events.append(done(0, **call))
    (use,) = folded(*events, completed()).all(ToolUse)
    # Without an end nobody knows whether that is all, so it does not run.
    assert (use.input, use.malformed) == (
        ({}, '{"input":"SELECT 1"}') if ends == "neither" else ({"input": "SELECT 1"}, None)
    )


def test_reasoning_state_is_that_of_the_end_not_of_the_announcement() -> None:
    final = reasoning("rs1")
    result = folded(added(0, **final | {"encrypted_content": "gAAA"}), done(0, **final), completed(final))
    assert result.all(ThinkingBlock) == [ThinkingBlock("", PROVIDER, {"item": final}, FIRST)]


def test_a_summary_and_raw_text_of_the_same_thought_are_shown_once() -> None:
    final = reasoning("rs1", "Short.", content=[{"type": "reasoning_text", "text": "Long."}])
    result = folded(
        added(0, **final),
        event("reasoning_text.delta", output_index=0, item_id="rs1", content_index=0, delta="Long."),
        event("reasoning_summary_text.delta", output_index=0, item_id="rs1", summary_index=0, delta="Short."),
        done(0, **final),
        completed(final),
    )
    assert thinking_in(result) == "Long."
    assert result.all(ThinkingBlock)[0].text == "Long."


def test_summaries_that_were_lost_come_from_the_item_with_blank_lines_between() -> None:
    final = reasoning("rs1", "One.", "", "Two.")
    result = folded(
        added(0, **final | {"summary": []}),
        event("reasoning_summary_text.delta", output_index=0, item_id="rs1", summary_index=0, delta="On"),
        done(0, **final),
        completed(final),
    )
    assert thinking_in(result) == "One.\n\nTwo."


def test_reasoning_that_a_server_repeats_is_kept_as_it_was_shown() -> None:
    data = stream(
        added(0, **reasoning("rs1")),
        event("reasoning_text.delta", output_index=0, item_id="rs1", delta="Think it over."),
        event("reasoning_text.delta", output_index=0, item_id="rs1", delta="Think it over. Yes."),
        event("completed", response={"id": "resp_1", "status": "incomplete", "output": []}),
    )
    result = Folded(data, may_repeat=True)
    assert thinking_in(result) == "Think it over. Yes."
    assert [block.text for block in result.all(ThinkingBlock)] == ["Think it over. Yes."]


def test_reasoning_without_its_end_has_no_state_to_send_back() -> None:
    result = folded(
        added(0, **reasoning("rs1")),
        event("reasoning_summary_text.delta", output_index=0, item_id="rs1", summary_index=0, delta="Hm"),
    )
    assert result.all(ThinkingBlock) == [ThinkingBlock("Hm", PROVIDER, {}, FIRST)]
    assert not result.reader.has_ended


FLAT = {"type": "error", "code": "context_length_exceeded", "message": "too long", "param": "input"}


@pytest.mark.parametrize(
    ("last", "error_type"),
    [
        (FLAT, ContextLengthExceeded),
        ({"type": "error", "error": {"code": "context_length_exceeded", "message": "too long"}}, ContextLengthExceeded),
        ({"error": {"code": "rate_limit_exceeded", "message": "slow"}}, RateLimited),
        ({"type": "response.error", "error": {"code": "rate_limit_exceeded", "message": "slow"}}, RateLimited),
        (
            event("failed", response={"status": "failed", "error": {"code": "bio_policy", "message": "m"}}),
            InvalidRequest,
        ),
        (event("failed", response={"error": {"code": "image_parse_error", "message": "m"}}), InvalidRequest),
        (event("failed", response={"error": {"code": "vector_store_timeout", "message": "m"}}), TimedOut),
        (event("failed", response={"status": "failed", "error": None, "usage": None}), ProviderError),
        (event("completed", response={"status": "cancelled"}), ProviderError),
    ],
)
def test_errors_in_the_stream(last: dict[str, Any], error_type: type[ProviderError]) -> None:
    result = folded(added(0, **BEGUN), text(0, "m1", "half"), {"type": "x"} | last)
    assert isinstance(result.reader.failure, error_type)
    assert text_in(result) == "half"
    assert not result.reader.has_ended


CODES = """data_residency_mismatch misalignment_policy_violation invalid_prompt invalid_image invalid_image_format
    invalid_base64_image invalid_image_url image_too_large image_too_small image_content_policy_violation
    invalid_image_mode image_file_too_large unsupported_image_media_type empty_image_file failed_to_download_image
    image_file_not_found invalid_encrypted_content"""


@pytest.mark.parametrize("code", CODES.split())
def test_asking_again_does_not_help_against_what_was_sent(code: str) -> None:
    failure = folded(event("failed", response={"error": {"code": code, "message": "m"}})).reader.failure
    assert isinstance(failure, InvalidRequest)
    assert not failure.retryable


def test_nothing_is_lost_when_the_answer_fails() -> None:
    result = folded(
        added(0, **BEGUN),
        added(1, **BEGUN | {"id": "m2"}),
        text(1, "m2", "later"),
        text(0, "m1", "now "),
        FLAT,
    )
    assert [block.text for block in stored_message(result).blocks] == ["now ", "later"]


def test_an_error_does_not_show_the_key_that_a_server_echoed() -> None:
    builder = PartBuilder(PROVIDER)
    builder.redact_key = lambda text: text.replace("sk-1", "[key]")
    reader = ResponsesReader(builder, {})
    reader.read(("error", {"type": "error", "message": "bad key sk-1", "code": None}))
    assert reader.failure is not None
    assert "sk-1" not in str(reader.failure) + reader.failure.detail


def test_a_queued_answer_whose_every_field_is_missing() -> None:
    result = folded(
        event("queued", response={"id": "resp_q", "status": "queued"}),
        event("in_progress", response={"id": "resp_q", "status": None}),
        event("output_text.delta", delta="Hi"),
        event("output_text.delta", delta=" there", content_index=None, item_id=None, output_index=None, logprobs=None),
        event("completed", response={"status": None}),
        "[DONE]",
    )
    assert text_in(result) == "Hi there"
    assert result.all(AnswerNamed) == [AnswerNamed("resp_q")]
    assert (ending(result).stop_reason, ending(result).raw) == (StopReason.END_TURN, "completed")


def test_the_end_mark_of_others_is_an_end_behind_items_that_all_ended() -> None:
    begun = folded(event("created", response={"id": "r"}), "[DONE]")
    assert not begun.reader.has_finished
    is_open = folded(added(0, **BEGUN), text(0, "m1", "Hi"), "[DONE]")
    assert (is_open.reader.has_finished, is_open.reader.has_ended) == (True, False)
    is_open.reader.end()
    complete = folded(added(0, **BEGUN), text(0, "m1", "Hi"), done(0, **message("m1", "Hi")), "[DONE]")
    assert complete.reader.has_ended
    assert (ending(complete).stop_reason, ending(complete).raw) == (StopReason.END_TURN, None)


@pytest.mark.parametrize("is_done_before", [False, True])
@pytest.mark.parametrize("said_arguments", ['{"a":1}', '{"a":', ""])
def test_a_call_that_is_said_to_be_incomplete_is_heard_of_but_never_runs(
    said_arguments: str, is_done_before: bool
) -> None:
    item = function_call("f1", "call_1", "get", said_arguments, status="incomplete")
    before = [added(0, **item | {"arguments": ""}), done(0, **item)] if is_done_before else []
    (call,) = folded(*before, completed(item)).all(ToolUse)
    assert (call.name, call.id, call.malformed) == ("get", "call_1", said_arguments)
    cut = event("incomplete", response={"id": "r", "status": "incomplete", "output": [item]})
    assert folded(*before, cut).all(ToolUse) == []


def test_one_number_for_all_items_and_new_ids_all_the_time() -> None:
    result = folded(
        added(0, **BEGUN | {"id": "a1"}),
        text(0, "a2", "Hi"),
        done(0, **message("a3", "Hi")),
        added(0, **function_call("b1", "call_1", "f", "")),
        done(0, **function_call("b2", "call_1", "f", "{}")),
        added(0, **BEGUN | {"id": "c1"}),
        text(0, "c1", "Bye"),
        done(0, **message("c1", "Bye")),
        completed(message("a4", "Hi"), function_call("b3", "call_1", "f", "{}"), message("c2", "Bye")),
    )
    assert text_in(result) == "HiBye"
    assert [use.id for use in result.all(ToolUse)] == ["call_1"]


def test_an_item_that_turns_out_to_be_another() -> None:
    call = function_call("x1", "call_1", "f", "{}")
    result = folded(added(0, id="x1", type="reasoning", summary=[]), done(0, **call), completed(call))
    assert [use.id for use in result.all(ToolUse)] == ["call_1"]


def test_a_whole_answer_in_place_of_a_stream() -> None:
    item, call = message("m1", "Hi"), function_call("fc1", "call_1", "f", "{}")
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    answer = {"id": "resp_2", "object": "response", "status": "completed", "output": [item, call], "usage": usage}
    result = folded(json.dumps({**answer, "error": None}))
    assert text_in(result) == "Hi"
    assert ending(result).stop_reason is StopReason.TOOL_USE
    assert result.all(UsageUpdate)[0].usage.total_tokens == 5


@pytest.mark.parametrize("status", [{}, {"status": None}, {"status": ""}])
def test_a_whole_answer_whose_status_nobody_filled_in(status: dict[str, Any]) -> None:
    answer = {"id": "resp_2", "object": "response", **status, "output": [message("m1", "Hi")]}
    result = folded(json.dumps(answer))
    assert text_in(result) == "Hi"
    assert ending(result).stop_reason is StopReason.END_TURN


def test_a_whole_answer_that_says_only_how_it_failed() -> None:
    result = folded(json.dumps({"object": "response", "error": {"code": "rate_limit_exceeded", "message": "slow"}}))
    assert isinstance(result.reader.failure, RateLimited)


def test_an_empty_answer_says_so() -> None:
    assert ending(folded(completed())).details == {"empty": True}


def test_what_the_server_withheld_from_the_model_is_told() -> None:
    withheld = [{"id": "rs_1", "action": "removed", "type": "reasoning", "reason": "prefix_mismatch"}]
    end = ending(folded(completed(message("m1", "Hi"), input_transformations=withheld, tool_usage={})))
    assert end.details == {"input_transformations": withheld}


@pytest.mark.parametrize("same", [{"output_index": 0}, {"item_id": "r"}, {"output_index": 0, "item_id": "r"}])
@pytest.mark.parametrize("is_announced", [False, True])
@pytest.mark.parametrize("order", list(itertools.permutations(["message", "reasoning", "function_call"])))
def test_items_of_several_kinds_under_one_number_or_id_lose_nothing(
    order: tuple[str, ...], is_announced: bool, same: Event
) -> None:
    deltas = {
        "message": event("output_text.delta", content_index=0, delta="Hello", **same),
        "reasoning": event("reasoning_text.delta", delta="hm", **same),
        "function_call": event("function_call_arguments.delta", delta='{"a":1}', **same),
    }
    index = {"output_index": same["output_index"]} if "output_index" in same else {}
    item_id = {"id": same["item_id"]} if "item_id" in same else {}
    events: list[Event] = []
    for item_type in order:
        if is_announced:
            events.append(event("output_item.added", item={"type": item_type, "name": "get", **item_id}, **index))
        events.append(deltas[item_type])
    cut, complete = folded(*events), folded(*events, completed())
    assert (text_in(cut), thinking_in(cut)) == (text_in(complete), thinking_in(complete)) == ("Hello", "hm")
    (call,) = complete.all(ToolUse)
    # A call without a name cannot run, but is reported.
    assert call.input == {"a": 1} if is_announced else call.malformed


@pytest.mark.parametrize("has_output", [False, True])
@pytest.mark.parametrize("indices", [(None, None), (0, 0), (0, 1)])
def test_items_of_one_kind_under_one_id_are_several(indices: tuple[int | None, int | None], has_output: bool) -> None:
    calls = [function_call("same", call_id, "get", f'{{"a":"{call_id}"}}') for call_id in ("c1", "c2")]
    messages = [message("same", text) for text in ("one ", "two")]
    for items in (calls, messages):
        events: list[Event] = []
        for item, index in zip(items, indices, strict=True):
            position = {} if index is None else {"output_index": index}
            begun = {**item, "arguments": "", "content": []}
            events += [
                event("output_item.added", item=begun, **position),
                event("output_item.done", item=item, **position),
            ]
            events.append(events[-1])  # said again, it is the same
        result = folded(*events, completed(*(items if has_output else ())))
        assert [call.input["a"] for call in result.all(ToolUse)] == (["c1", "c2"] if items is calls else [])
        assert text_in(result) == ("" if items is calls else "one two")


def test_halves_of_a_pair_are_joined_across_pieces() -> None:
    head = '{"type":"response.output_text.delta","item_id":"m1","output_index":0,"content_index":0,"delta":'
    pieces = [f'{head}"{half}"}}' for half in ("\\ud83d", "\\ude00!")]
    result = folded(added(0, **BEGUN), *pieces, done(0, **message("m1", "😀!")), completed(message("m1", "😀!")))
    assert text_in(result) == "😀!"


@pytest.mark.parametrize(
    "odd",
    [
        [],
        7,
        "text",
        {},
        {"type": None},
        {"type": "response.output_text.delta"},
        {"type": "response.output_text.delta", "item_id": 1, "content_index": [], "delta": 5},
        {"type": "response.output_item.added", "item": "x", "output_index": "0"},
        {"type": "response.output_item.done", "item": []},
        {"type": "response.content_part.done", "part": 3, "item_id": "?", "content_index": {}},
        {"type": "response.reasoning_summary_text.delta", "summary_index": "a", "delta": None},
        {"type": "response.function_call_arguments.delta", "delta": {}},
        {"type": "response.output_text.annotation.added", "annotation": 4},
        {"type": "response.created", "response": None},
        {"type": "response.completed", "response": {"status": "in_progress"}},
    ],
)
def test_nonsense_never_raises(odd: Any) -> None:
    builder = PartBuilder(PROVIDER)
    reader = ResponsesReader(builder, {})
    reader.read(("", odd))
    for frame in (added(0, **BEGUN), text(0, "m1", "Hi"), done(0, **message("m1", "Hi")), completed()):
        if reader.failure is None:
            reader.read((frame["type"], frame))
    if reader.failure is None:
        reader.end()


def test_framing_of_the_helper_is_that_of_the_recordings() -> None:
    assert stream(event("created", response={})).startswith(b"event: response.created\ndata: {")
