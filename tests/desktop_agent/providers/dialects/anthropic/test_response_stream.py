"""Streams made from the protocol page, for what no recording shows."""

import json
from typing import Any

import pytest

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.providers.dialects.anthropic.response_stream import FrameReader
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport.sse import SseDecoder
from desktop_agent.types.blocks import Citation, ServerStep, Text, Thinking, ToolUse, Unknown
from desktop_agent.types.messages import Message, MessageState, now
from desktop_agent.types.provider_events import (
    AnswerNamed,
    ContentDelta,
    MessageDelta,
    StopReason,
    TextClosed,
    ThinkingDelta,
    ToolArgsDelta,
    Usage,
    UsageUpdate,
)
from tests.fakes.recordings import counted_ids, fold_with, pieces

Json = dict[str, Any]
HEAD: Json = {"type": "message_start", "message": {"id": "msg_1", "content": [], "usage": {"input_tokens": 5}}}
STOP: Json = {"type": "message_stop"}
PING: Json = {"type": "ping"}


def wire(*events: Json) -> bytes:
    return b"".join(f"event: {event.get('type')}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def block(index: int, start: Json, *deltas: Json, stop: bool = True) -> list[Json]:
    events: list[Json] = [{"type": "content_block_start", "index": index, "content_block": start}]
    events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [*events, {"type": "content_block_stop", "index": index}] if stop else events


def text(index: int, *fragments: str, **start: Any) -> list[Json]:
    deltas = [{"type": "text_delta", "text": fragment} for fragment in fragments]
    return block(index, {"type": "text", "text": "", **start}, *deltas)


def call(index: int, *fragments: str, name: str = "f", call_id: str = "toolu_1", **more: Any) -> list[Json]:
    deltas = [{"type": "input_json_delta", "partial_json": fragment} for fragment in fragments]
    return block(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}, **more}, *deltas)


def end(reason: str | None = "end_turn", usage: Json | None = None, **delta: Any) -> list[Json]:
    report = {"stop_reason": reason, "stop_sequence": None, "stop_details": None, **delta}
    return [{"type": "message_delta", "delta": report, "usage": usage or {"output_tokens": 7}}, STOP]


def reader_for(builder: PartBuilder) -> FrameReader:
    return FrameReader(builder, {})


def events_of(*frames: Json, names: dict[str, str] | None = None) -> list[Any]:
    builder = PartBuilder("anthropic", call_id=counted_ids())
    builder.tool_names = names or {}
    reader = reader_for(builder)
    for name, data in SseDecoder().feed(wire(*frames)):
        reader.read((name, data))
    assert reader.recognised
    assert reader.done
    reader.end()
    return builder.take_events()


def message_of(*frames: Json) -> Message:
    answer = AnswerBuilder("m", "claude")
    for event in events_of(*frames):
        answer.feed(event, now())
    return answer.message(MessageState.COMPLETE, now())


def folded(*frames: Json, size: int = 0) -> list[Json]:
    builder = PartBuilder("anthropic", call_id=counted_ids())
    return fold_with(pieces(wire(*frames), size), builder, reader_for(builder))


def only(event_type: type[Any], events: list[Any]) -> Any:
    matching = [event for event in events if isinstance(event, event_type)]
    assert len(matching) == 1
    return matching[0]


def test_pings_and_unknown_things_anywhere() -> None:
    odd: Json = {"type": "brand_new_event", "delta": {"type": "text_delta", "text": "no"}}
    frames = [PING, HEAD, odd, PING, *text(0, "a")[:-1], PING, odd, *text(0, "b")[1:], PING, *end(), PING]
    assert [event["type"] for event in folded(*frames)] == [
        "content_delta",
        "content_delta",
        "message_delta",
        "usage",
        "done",
    ]
    strange = block(
        0, {"type": "text", "text": ""}, {"type": "sparkle_delta", "text": "no"}, {"type": "text_delta", "text": "x"}
    )
    assert folded(HEAD, *strange, *end())[0] == {"type": "content_delta", "text": "x"}


def test_each_text_block_stays_a_block_of_its_own() -> None:
    message = message_of(HEAD, *text(0, "a", "b"), *text(1, "c"), *end())
    assert [block.text for block in message.blocks if isinstance(block, Text)] == ["ab", "c"]
    assert message.text == "abc"


def test_text_that_starts_with_its_block() -> None:
    assert message_of(HEAD, *text(0, "b", text="a"), *end()).text == "ab"


def test_citations_go_along_and_back() -> None:
    location = {
        "type": "web_search_result_location",
        "cited_text": "So it is.",
        "encrypted_index": "Eo8BCioIAhgB",
        "title": "A page",
        "url": "https://example.org/a",
    }
    page = {"type": "page_location", "cited_text": "q", "document_title": "Book", "document_index": 0}
    cites = [{"type": "citations_delta", "citation": citation} for citation in (location, page)]
    message = message_of(
        HEAD,
        *block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Yes."}, *cites),
        *text(1, " Plain."),
        *end(),
    )
    first, second = message.blocks
    assert first == Text(
        text="Yes.",
        citations=(
            Citation(title="A page", url="https://example.org/a", quoted="So it is."),
            Citation(title="Book", quoted="q"),
        ),
        provider="anthropic",
        metadata={"wire_citations": [location, page]},
    )
    assert second == Text(text=" Plain.", provider="anthropic")
    assert message.stop_details is not None
    assert len(message.stop_details["citations"]) == 2


def test_steps_of_the_servers() -> None:
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    search_result = {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [
            {
                "type": "web_search_result",
                "title": "T",
                "url": "https://example.org",
                "encrypted_content": "Eo8B",
                "page_age": None,
            }
        ],
    }
    deltas = [{"type": "input_json_delta", "partial_json": fragment} for fragment in ('{"que', 'ry": "cats"}')]
    message = message_of(HEAD, *text(0, "Look."), *block(1, use, *deltas), *block(2, search_result), *end("pause_turn"))
    assert message.stop_reason is StopReason.PAUSE_TURN
    assert message.blocks[1:] == (
        ServerStep(provider="anthropic", name="web_search", text="cats", raw={**use, "input": {"query": "cats"}}),
        ServerStep(
            provider="anthropic", name="web_search_tool_result", text="T https://example.org", raw=search_result
        ),
    )


@pytest.mark.parametrize(
    ("raw", "name", "expected"),
    [
        ({"type": "container_upload", "file_id": "file_1"}, "container_upload", "file_1"),
        (
            {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "echo", "server_name": "s", "input": {"a": 1}},
            "echo",
            '{"a":1}',
        ),
        (
            {
                "type": "mcp_tool_result",
                "tool_use_id": "mcptoolu_1",
                "is_error": False,
                "content": [{"type": "text", "text": "hi"}],
            },
            "mcp_tool_result",
            "hi",
        ),
        (
            {
                "type": "bash_code_execution_tool_result",
                "tool_use_id": "s",
                "content": {"type": "bash_code_execution_result", "stdout": "1", "stderr": "2", "content": []},
            },
            "bash_code_execution_tool_result",
            "1\n2",
        ),
        (
            {
                "type": "web_search_tool_result",
                "tool_use_id": "s",
                "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
            },
            "web_search_tool_result",
            "max_uses_exceeded",
        ),
        ({"type": "mcp_tool_result", "tool_use_id": "m", "is_error": True, "content": "no"}, "mcp_tool_result", "no"),
        ({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, "web_search", ""),
    ],
)
def test_every_kind_of_step(raw: Json, name: str, expected: str) -> None:
    step = only(ServerStep, events_of(HEAD, *block(0, raw), *end()))
    assert (step.name, step.text, step.raw) == (name, expected, raw)


def test_a_step_whose_input_broke_off_was_never_taken() -> None:
    use = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    events = events_of(HEAD, *block(0, use, {"type": "input_json_delta", "partial_json": '{"q'}), *end("max_tokens"))
    assert not [event for event in events if isinstance(event, ServerStep)]


def test_unknown_blocks_are_kept_with_what_their_deltas_say() -> None:
    fallback = {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}, "trigger": {"type": "refusal"}}
    novel = {"type": "poem", "text": "Roses"}
    compaction = {"type": "compaction", "content": None}
    deltas: list[Json] = [{"type": "compaction_delta", "content": "Summary.", "encrypted_content": "EuYB"}]
    events = events_of(
        HEAD,
        *block(0, fallback),
        *block(1, compaction, *deltas),
        *block(2, novel, {"type": "text_delta", "text": " are"}, {"type": "signature_delta", "signature": "c2ln"}),
        *end("compaction"),
    )
    raws = [event.raw for event in events if isinstance(event, Unknown)]
    assert raws == [
        fallback,
        {"type": "compaction", "content": "Summary.", "encrypted_content": "EuYB"},
        {"type": "poem", "text": "Roses are", "signature": "c2ln"},
    ]
    assert all(event.provider == "anthropic" for event in events if isinstance(event, Unknown))
    last = only(MessageDelta, events)
    assert (last.stop_reason, last.raw) == (StopReason.UNKNOWN, "compaction")


def test_omitted_thinking_is_state_without_text() -> None:
    start = {"type": "thinking", "thinking": "", "signature": ""}
    message = message_of(
        HEAD, *block(0, start, {"type": "signature_delta", "signature": "c2ln"}), *text(1, "x"), *end()
    )
    assert message.blocks[0].model_copy(update={"seconds": None}) == Thinking(
        text="", provider="anthropic", metadata={"type": "thinking", "signature": "c2ln"}
    )


def test_thinking_without_signature_deltas() -> None:
    start = {"type": "thinking", "thinking": "Hm", "signature": "whole"}
    message = message_of(HEAD, *block(0, start), *end())
    assert isinstance(message.blocks[0], Thinking)
    assert (message.blocks[0].text, message.blocks[0].metadata["signature"]) == ("Hm", "whole")


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        ((), {}),
        (("",), {}),
        ((" ",), {}),
        (("{}",), {}),
        (('{"a":', "1}"), {"a": 1}),
        (('{"a":"\\ud83d', '\\ude00"}'), {"a": "😀"}),
    ],
)
def test_inputs_of_calls(fragments: tuple[str, ...], expected: Json) -> None:
    events = events_of(HEAD, *call(0, *fragments), *end("tool_use"))
    assert only(ToolUse, events) == ToolUse(id="toolu_1", name="f", input=expected)
    assert only(MessageDelta, events).stop_reason is StopReason.TOOL_USE


def test_a_call_is_there_at_the_end_of_its_block() -> None:
    builder = PartBuilder("anthropic")
    reader = reader_for(builder)
    for frame in SseDecoder().feed(wire(HEAD, *call(0, '{"a":', "1}"))):
        reader.read(frame)
    assert builder.take_events() == [
        AnswerNamed("msg_1"),
        ToolArgsDelta("toolu_1", "f", ""),
        ToolArgsDelta("toolu_1", "f", '{"a":'),
        ToolArgsDelta("toolu_1", "f", "1}"),
        ToolUse(id="toolu_1", name="f", input={"a": 1}),
    ]


def test_an_input_that_came_with_the_start_of_its_block() -> None:
    assert only(ToolUse, events_of(HEAD, *call(0, input={"a": 1}), *end("tool_use"))).input == {"a": 1}
    assert only(ToolUse, events_of(HEAD, *call(0, '{"b":2}', input={"a": 1}), *end("tool_use"))).input == {"b": 2}


def test_what_else_stands_on_a_call_is_kept_for_its_way_back() -> None:
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
    tool_use = only(ToolUse, events_of(HEAD, *call(0, "{}", caller=caller), *end("tool_use")))
    assert (tool_use.provider, tool_use.metadata) == ("anthropic", {"caller": caller})


@pytest.mark.parametrize("fragments", [('{"a": "b',), ("",), (), ('{"a": 1',)])
@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal"])
def test_a_cut_call_is_none(fragments: tuple[str, ...], reason: str) -> None:
    events = events_of(HEAD, *call(0, '{"a":1}'), *call(1, *fragments, call_id="toolu_2"), *end(reason))
    assert only(ToolUse, events).id == "toolu_1"


def test_a_broken_call_in_the_middle_is_shown_and_never_runs() -> None:
    events = events_of(HEAD, *call(0, '{"a": '), *call(1, call_id="toolu_2"), *text(2, "x"), *end("tool_use"))
    kinds = [event for event in events if isinstance(event, (ToolUse, ContentDelta))]
    assert [getattr(event, "id", None) for event in kinds] == ["toolu_1", "toolu_2", None]
    assert isinstance(kinds[0], ToolUse)
    assert kinds[0].malformed == '{"a": '


def test_calls_whose_pieces_come_in_turns() -> None:
    first = call(0, '{"a":1}', call_id="toolu_1")
    second = call(1, '{"b":2}', call_id="toolu_2")
    events = events_of(HEAD, first[0], second[0], first[1], second[1], first[2], second[2], *end("tool_use"))
    assert [event.input for event in events if isinstance(event, ToolUse)] == [{"a": 1}, {"b": 2}]


def test_usage_is_cumulative_and_null_keeps() -> None:
    head = {
        "type": "message_start",
        "message": {
            "usage": {
                "input_tokens": 10,
                "cache_read_input_tokens": 200,
                "cache_creation_input_tokens": 30,
                "output_tokens": 1,
            }
        },
    }
    first: Json = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 4, "input_tokens": None}}
    last = end(
        "end_turn",
        {"output_tokens": 9, "cache_read_input_tokens": None, "output_tokens_details": {"thinking_tokens": 3}},
    )
    assert only(UsageUpdate, events_of(head, first, *text(0, "x"), *last)).usage == Usage(
        input_tokens=240,
        output_tokens=9,
        cache_read_tokens=200,
        cache_write_tokens=30,
        reasoning_tokens=3,
        total_tokens=249,
    )


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": None, "output_tokens": None}, {"input_tokens": -1}, "?"])
def test_unknown_usage_is_not_zero(usage: Any) -> None:
    head = {"type": "message_start", "message": {"usage": usage}}
    events = events_of(head, *text(0, "x"), {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, STOP)
    assert not [event for event in events if isinstance(event, UsageUpdate)]
    assert only(UsageUpdate, events_of(head, *text(0, "x"), *end())).usage == Usage(output_tokens=7)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("end_turn", StopReason.END_TURN),
        ("stop_sequence", StopReason.STOP_SEQUENCE),
        ("max_tokens", StopReason.MAX_TOKENS),
        ("model_context_window_exceeded", StopReason.CONTEXT_WINDOW_EXCEEDED),
        ("pause_turn", StopReason.PAUSE_TURN),
        ("refusal", StopReason.REFUSAL),
        ("tool_use", StopReason.END_TURN),  # without any call
        ("something_new", StopReason.UNKNOWN),
        (None, StopReason.END_TURN),
    ],
)
def test_stop_reasons(raw: str | None, reason: StopReason) -> None:
    delta = only(MessageDelta, events_of(HEAD, *text(0, "x"), *end(raw)))
    details = {"no_call": True} if raw == "tool_use" else None
    assert (delta.stop_reason, delta.raw, delta.details) == (reason, raw, details)


def test_details_of_the_end() -> None:
    refusal = {"type": "refusal", "category": "bio", "explanation": None}
    final = only(MessageDelta, events_of(HEAD, *text(0, "x"), *end("refusal", stop_details=refusal)))
    assert final.details == refusal
    final = only(MessageDelta, events_of(HEAD, *text(0, "x"), *end("stop_sequence", stop_sequence="END")))
    assert final.details == {"stop_sequence": "END"}
    container = {"id": "container_1", "expires_at": "2026-11-20T12:00:00Z"}
    final = only(MessageDelta, events_of(HEAD, *text(0, "x"), *end("end_turn", container=container)))
    assert final.details == {"container": container}
    assert only(MessageDelta, events_of(HEAD, *end())).details == {"empty": True}


def test_an_error_ends_everything() -> None:
    error: Json = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    events = folded(
        HEAD, *call(0, '{"a":1}'), *call(1, call_id="toolu_2"), *call(2, '{"b"', call_id="toolu_3"), error, *end()
    )
    assert [(event["type"], event.get("id")) for event in events] == [
        ("tool_use", "toolu_1"),
        ("tool_use", "toolu_2"),
        ("usage", None),
        ("error", None),
    ]
    assert (events[-1]["kind"], events[-1]["message"]) == ("overloaded", "busy")
    for bare in ({"error": {"type": "api_error", "message": "m"}}, {"type": "error"}):
        assert folded(HEAD, *text(0, "x"), bare)[-1]["kind"] == "server"


@pytest.mark.parametrize("size", [0, 1])
def test_an_end_without_a_stop_reason_is_a_cut_and_one_without_message_stop_is_none(size: int) -> None:
    complete = [HEAD, *text(0, "x"), *end()]
    assert complete[-2]["delta"]["stop_reason"] == "end_turn"
    for length in range(1, len(complete) - 1):
        assert folded(*complete[:length], size=size)[-1] == {"type": "error", "kind": "truncated", "message": ""}
    for length in (len(complete) - 1, len(complete)):
        events = folded(*complete[:length], size=size)
        assert events[-1] == {"type": "done"}
        assert [event["stop_reason"] for event in events if event["type"] == "message_delta"] == ["end_turn"]


def test_a_call_that_nobody_stopped_has_the_input_of_its_start() -> None:
    start = {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {"city": "Paris"}}
    events = folded(HEAD, *block(0, start, stop=False), *end("tool_use"))
    assert [event["input"] for event in events if event["type"] == "tool_use"] == [{"city": "Paris"}]


@pytest.mark.parametrize(
    "after", [{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "toolu_2", "name": "get"}]
)
def test_a_call_has_the_input_of_its_start_also_where_another_block_takes_its_place(after: Json) -> None:
    start = {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {"city": "Paris"}}
    events = folded(HEAD, *block(0, start, stop=False), *block(0, after, stop=False), *end("tool_use"))
    assert next(event["input"] for event in events if event["type"] == "tool_use") == {"city": "Paris"}


def test_a_call_has_the_input_that_came_in_an_odd_place() -> None:
    start = {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {"city": "Paris"}}
    empty, complete = (
        {"type": "input_json_delta", "partial_json": fragment} for fragment in ("{}", '{"city":"Paris"}')
    )
    late = {"type": "content_block_delta", "index": 0, "delta": complete}
    for events in (block(0, start, empty), [*block(0, {**start, "input": {}}), late]):
        canonical = folded(HEAD, *events, *end("tool_use"))
        assert [fragment["input"] for fragment in canonical if fragment["type"] == "tool_use"] == [{"city": "Paris"}]


def test_a_call_that_never_began_is_heard_of() -> None:
    delta = {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": '{"a":1}'},
    }
    events = folded(HEAD, delta, {"type": "content_block_stop", "index": 1}, *end("tool_use"))
    assert [bool(event["malformed"]) for event in events if event["type"] == "tool_use"] == [True]


@pytest.mark.parametrize("block_type", ["text", "thinking", "redacted_thinking", "tool_use"])
def test_a_delta_that_its_block_did_not_announce_is_what_it_says(block_type: str) -> None:
    deltas: list[Json] = [{"type": "thinking_delta", "thinking": "Hm"}, {"type": "text_delta", "text": "Hello"}]
    start = {"type": block_type, "id": "toolu_1", "name": "get", "input": {}}
    events = events_of(HEAD, *block(0, start, *deltas), *end())
    assert "".join(event.text for event in events if isinstance(event, ContentDelta)) == "Hello"
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == "Hm"


def test_cut_thinking_has_no_signature() -> None:
    start = {"type": "thinking", "thinking": "", "signature": ""}
    events = folded(HEAD, *block(0, start, {"type": "thinking_delta", "thinking": "Hm"}, stop=False))
    assert events[1]["metadata"] == {"type": "thinking", "signature": ""}


def test_a_whole_message_in_place_of_a_stream() -> None:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm", "signature": "c2ln"},
            {"type": "text", "text": "Hi", "citations": [{"type": "page_location", "cited_text": "q"}]},
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
            {"type": "tool_use", "id": "toolu_2", "name": "g", "input": {}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }
    builder = PartBuilder("anthropic")
    events = fold_with([json.dumps(message).encode()], builder, reader_for(builder))
    assert [event["type"] for event in events] == [
        "thinking_delta",
        "thinking_block",
        "content_delta",
        "tool_use",
        "tool_use",
        "message_delta",
        "usage",
        "done",
    ]
    assert events[3]["input"] == {"a": 1}


def test_careless_servers_are_understood() -> None:
    loose = [
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": None}},
        {"type": "content_block_delta", "index": 0, "delta": None},
        {"type": "content_block_stop", "index": 9},
        {"type": "content_block_start", "index": None, "content_block": {"type": "text", "text": "b"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "c"}},
    ]
    events = folded(HEAD, *loose, *end())
    assert "".join(event.get("text", "") for event in events) == "abc"


def test_names_of_tools_are_their_own_again() -> None:
    events = events_of(HEAD, *call(0, "{}", name="a_b_1234"), *end("tool_use"), names={"a_b_1234": "a.b"})
    assert only(ToolUse, events).name == "a.b"


def test_text_closes_where_its_block_does() -> None:
    events = events_of(HEAD, *text(0, "a"), *text(1, "b"), *end())
    assert [type(event) for event in events[1:5]] == [ContentDelta, TextClosed, ContentDelta, TextClosed]
