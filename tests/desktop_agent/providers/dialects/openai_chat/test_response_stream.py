"""Shapes of compatible servers that no recording shows."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.providers.dialects.openai_chat.response_stream import FrameReader, parse_usage
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport.sse import SseDecoder
from desktop_agent.types.blocks import Citation, Unknown
from desktop_agent.types.provider_events import ContentDelta, StopReason, TextClosed
from tests.fakes.http_server import chunk, sse
from tests.fakes.recordings import cut_at, fold, normal, pieces
from tests.frame.examples import examples

Events = list[dict[str, Any]]


def text(piece: str) -> dict[str, Any]:
    return {"type": "content_delta", "text": piece}


def thought(piece: str) -> dict[str, Any]:
    return {"type": "thinking_delta", "text": piece}


def block(piece: str, **metadata: Any) -> dict[str, Any]:
    return {"type": "thinking_block", "text": piece, "provider": "openai-compat", "metadata": metadata}


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def stop(reason: str = "end_turn", raw: str | None = "stop") -> Events:
    return [{"type": "message_delta", "stop_reason": reason, "raw": raw}, {"type": "done"}]


def use(*calls: dict[str, Any], finish: str = "tool_calls") -> bytes:
    return sse(*(chunk({"tool_calls": [each]}) for each in calls), chunk({}, finish))


def fragment(
    index: int | None = None, call_id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    found: dict[str, Any] = {"function": {"name": name, "arguments": arguments}}
    return {**found, **({} if index is None else {"index": index}), **({} if call_id is None else {"id": call_id})}


HI = chunk({"content": "hi"})
END = chunk({}, "stop")
SIGNED = {"type": "thinking", "thinking": "", "signature": "S"}

CASES: dict[str, tuple[bytes, Events]] = {
    "two_events_no_blank": (
        b"".join(b"data: " + json.dumps(each).encode() + b"\n" for each in (HI, chunk({"content": "!"}), END))
        + b"data: [DONE]\n\n",
        [text("hi!"), *stop()],
    ),
    "bare_words_in_a_list": (
        sse(chunk({"content": ["hi", " ", {"type": "text", "text": "you"}]}), END),
        [text("hi you"), *stop()],
    ),
    "words_behind_an_early_end_mark": (
        sse(HI) + b"data: [DONE]\n\n" + sse(chunk({"content": " you"}), END),
        [text("hi you"), *stop()],
    ),
    "mistral_lists": (
        sse(
            chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]}),
            chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "m"}], "closed": True}]}),
            chunk({"content": [{"type": "text", "text": "Yes"}, {"type": "reference", "reference_ids": [1]}]}),
            END,
        ),
        [thought("Hmm"), block("Hmm", field="content.thinking"), text("Yes"), *stop()],
    ),
    "mistral_signature": (
        sse(
            chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}], "signature": "S"}]}),
            HI,
            END,
        ),
        [thought("Hm"), block("Hm", field="content.thinking", signature="S"), text("hi"), *stop()],
    ),
    "mistral_null_ids_and_object_arguments": (
        use(fragment(call_id="null", name="f", arguments={"a": 1})),
        [call("call_generated_0", "f", a=1), *stop("tool_use", "tool_calls")],
    ),
    "mistral_error_finish": (
        sse(HI, chunk({}, "error")),
        [text("hi"), {"type": "error", "kind": "server", "message": "the server ended the answer with an error"}],
    ),
    "x_groq_error": (
        sse(HI, chunk({}, x_groq={"error": "boom"})),
        [text("hi"), {"type": "error", "kind": "server", "message": "boom"}],
    ),
    "groq_tool_use_failed_in_stream": (
        sse({"error": {"message": "Failed to call", "type": "invalid_request_error", "code": "tool_use_failed"}}),
        [{"type": "error", "kind": "tool_use_failed", "message": "Failed to call"}],
    ),
    "xai_usage_and_empty_finish": (
        sse(
            chunk({"content": "hi"}, ""),
            END,
            {
                "choices": [],
                "usage": {
                    "prompt_tokens": 10,
                    "completion_tokens": 5,
                    "total_tokens": 35,
                    "completion_tokens_details": {"reasoning_tokens": 20},
                },
            },
        ),
        [
            text("hi"),
            stop()[0],
            {
                "type": "usage",
                "input_tokens": 10,
                "output_tokens": 25,
                "cache_read_tokens": None,
                "cache_write_tokens": None,
                "reasoning_tokens": 20,
                "total_tokens": 35,
            },
            stop()[1],
        ],
    ),
    "azure_first_chunk": (
        sse({"choices": [], "prompt_filter_results": [{}]}, {"choices": [{"index": 0, "delta": None}]}, HI, END),
        [text("hi"), *stop()],
    ),
    "litellm_thinking_blocks": (
        sse(
            chunk({"reasoning_content": "Hm", "thinking_blocks": [{"type": "thinking", "thinking": "Hm"}]}),
            chunk({"reasoning_content": "m", "thinking_blocks": [{"type": "thinking", "thinking": "m"}]}),
            chunk({"reasoning_content": "", "thinking_blocks": [SIGNED]}),
            HI,
            END,
        ),
        [
            thought("Hmm"),
            block(
                "Hmm",
                field="reasoning_content",
                thinking_blocks=[{"type": "thinking", "thinking": "Hmm", "signature": "S"}],
            ),
            text("hi"),
            *stop(),
        ],
    ),
    "google_extra_content": (
        use({**fragment(0, "c1", "f", "{}"), "extra_content": {"google": {"thought_signature": "SIG"}}}, finish="stop"),
        [
            block("", field="extra_content", extra_content={"google": {"thought_signature": "SIG"}}, call_id="c1"),
            call("c1", "f"),
            *stop("tool_use", "stop"),
        ],
    ),
    "google_thought_flag": (
        sse(chunk({"content": "Hm", "extra_content": {"google": {"thought": True}}}), HI, END),
        [thought("Hm"), block("Hm", field="content"), text("hi"), *stop()],
    ),
    "deprecated_function_call": (
        sse(
            chunk({"function_call": {"name": "f", "arguments": ""}}),
            chunk({"function_call": {"arguments": '{"a":'}}),
            chunk({"function_call": {"arguments": "1}"}}),
            chunk({}, "function_call"),
        ),
        [call("call_generated_0", "f", a=1), *stop("tool_use", "function_call")],
    ),
    "json_instead_of_a_stream": (
        b"\n\n"
        + json.dumps(
            {
                "choices": [
                    {
                        "message": {
                            "role": "assistant",
                            "reasoning_content": "Hm",
                            "content": "hi",
                            "tool_calls": [
                                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                            ],
                        },
                        "finish_reason": "tool_calls",
                    }
                ]
            },
            indent=1,
        ).encode(),
        [
            thought("Hm"),
            block("Hm", field="reasoning_content"),
            text("hi"),
            call("c1", "f"),
            *stop("tool_use", "tool_calls"),
        ],
    ),
    "string_error": (
        sse(HI, {"error": "Model crashed"}),
        [text("hi"), {"type": "error", "kind": "server", "message": "Model crashed"}],
    ),
    "flat_vllm_error": (
        sse({"object": "error", "message": "too long", "type": "BadRequestError", "code": 400}),
        [{"type": "error", "kind": "invalid_request", "message": "too long"}],
    ),
    "detail_list": (
        b'{"detail":[{"loc":["body","x"],"msg":"no"}]}',
        [{"type": "error", "kind": "server", "message": "body.x: no"}],
    ),
    "array_error": (
        b'[{"error":{"code":503,"message":"busy"}}]',
        [{"type": "error", "kind": "overloaded", "message": "busy"}],
    ),
    "event_named_error": (
        b'event: error\ndata: {"message":"Compute error."}\n\n',
        [{"type": "error", "kind": "server", "message": "Compute error."}],
    ),
    "vllm_error_then_done": (
        sse(HI, {"error": {"message": "died", "type": "InternalServerError", "code": 500}}),
        [text("hi"), {"type": "error", "kind": "server", "message": "died"}],
    ),
    "openrouter_error_in_choice": (
        sse({"choices": [{"delta": {}, "error": {"code": 429, "message": "slow"}, "finish_reason": None}]}),
        [{"type": "error", "kind": "rate_limit", "message": "slow"}],
    ),
    "null_error_is_none": (sse({**HI, "error": None}, {**END, "error": None}), [text("hi"), *stop()]),
    "both_reasoning_fields": (
        sse(chunk({"reasoning_content": "Hm", "reasoning": "Hm"}), HI, END),
        [thought("Hm"), block("Hm", field="reasoning_content"), text("hi"), *stop()],
    ),
    "reasoning_details_alone": (
        sse(
            chunk({"reasoning_details": [{"type": "reasoning.summary", "summary": "Su", "index": 0}]}),
            chunk({"reasoning_details": [{"type": "reasoning.summary", "summary": "m", "index": 0}]}),
            chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "E", "index": 0, "id": "r1"}]}),
            HI,
            END,
        ),
        [
            thought("Sum"),
            block(
                "Sum",
                field="reasoning_details",
                reasoning_details=[
                    {"type": "reasoning.summary", "summary": "Sum", "index": 0},
                    {"type": "reasoning.encrypted", "data": "E", "index": 0, "id": "r1"},
                ],
            ),
            text("hi"),
            *stop(),
        ],
    ),
    "interleaved_thinking": (
        sse(chunk({"reasoning": "A"}), HI, chunk({"reasoning": "B"}), chunk({"content": "!"}), END),
        [
            thought("A"),
            block("A", field="reasoning"),
            text("hi"),
            thought("B"),
            block("B", field="reasoning"),
            text("!"),
            *stop(),
        ],
    ),
    "think_tags_cut": (
        sse(
            *(
                chunk({"content": each})
                for each in ("\n<th", "ink>A", "B</thi", "nk", ">\n", "\nhi <think>x", "</think>")
            ),
            END,
        ),
        [thought("AB"), block("AB", field="content.think"), text("hi <think>x</think>"), *stop()],
    ),
    "think_tag_never_closed": (
        sse(chunk({"content": "<think>A</thin"}), chunk({}, "length")),
        [thought("A</thin"), block("A</thin", field="content.think"), *stop("max_tokens", "length")],
    ),
    "nearly_a_think_tag": (sse(chunk({"content": "<thi"}), chunk({"content": "s>"}), END), [text("<this>"), *stop()]),
    "only_the_start_of_a_tag": (sse(chunk({"content": " <th"}), END), [text(" <th"), *stop()]),
    "lone_closing_tag_stays": (sse(chunk({"content": "A</think>B"}), END), [text("A</think>B"), *stop()]),
    "refusal_and_calls": (
        sse(chunk({"refusal": "No."}), END),
        [text("No."), *stop("refusal")],
    ),
    "done_without_finish": (sse(HI), [text("hi"), *stop(raw=None)]),
    "finish_without_done": (sse(HI, END, done=False), [text("hi"), *stop()]),
    "unknown_finish": (sse(HI, chunk({}, "weird")), [text("hi"), *stop("unknown", "weird")]),
    "unknown_finish_with_a_call": (
        use(fragment(0, "c", "f", "{}"), finish="eos"),
        [call("c", "f"), *stop("tool_use", "eos")],
    ),
    "tool_calls_without_any": (sse(HI, chunk({}, "tool_calls")), [text("hi"), *stop("end_turn", "tool_calls")]),
    "length_drops_the_cut_call": (
        use(
            fragment(0, "a", "f", "{}"), fragment(1, "b", "g", '{"x": "un'), fragment(2, "c", "h", ""), finish="length"
        ),
        [call("a", "f"), *stop("max_tokens", "length")],
    ),
    "filter_drops_the_cut_call": (
        use(fragment(0, "b", "g", '{"x": "un'), finish="content_filter"),
        stop("content_filter", "content_filter"),
    ),
    "malformed_arguments": (
        use(fragment(0, "a", "f", '{"x": '), fragment(1, "b", "g", "[1]"), fragment(2, "c", "h", "{}")),
        [
            {**call("a", "f"), "malformed": '{"x": '},
            {**call("b", "g"), "malformed": "[1]"},
            call("c", "h"),
            *stop("tool_use", "tool_calls"),
        ],
    ),
    "arguments_that_are_no_object": (
        use(fragment(0, "a", "f", [1])),
        [{**call("a", "f"), "malformed": "[1]"}, *stop("tool_use", "tool_calls")],
    ),
    "indices_out_of_order": (
        use(fragment(1, "b", "g", "{}"), fragment(0, "a", "f", "{}")),
        [call("a", "f"), call("b", "g"), *stop("tool_use", "tool_calls")],
    ),
    "same_id_twice": (
        use(fragment(0, "x", "f", "{}"), fragment(1, "x", "g", "{}")),
        [call("x", "f"), call("call_generated_0", "g"), *stop("tool_use", "tool_calls")],
    ),
    "same_index_no_ids": (
        use(fragment(0, "", "f", "{}"), fragment(0, "", "f", '{"a":1}'), fragment(0, "", "g", "{}")),
        [
            # One call or two: the empty one does not run by itself, and is not passed over.
            {**call("call_generated_0", "f"), "malformed": "{}"},
            call("call_generated_1", "f", a=1),
            call("call_generated_2", "g"),
            *stop("tool_use", "tool_calls"),
        ],
    ),
    "back_to_an_earlier_id_on_the_same_index": (
        use(fragment(0, "x", "f", '{"a":'), fragment(0, "y", "g", "{}"), fragment(0, "x", "", "1}")),
        [call("x", "f", a=1), call("y", "g"), *stop("tool_use", "tool_calls")],
    ),
    "by_id_without_index": (
        use(fragment(None, "x", "f", '{"a":'), fragment(None, "y", "g", "{}"), fragment(None, "x", None, "1}")),
        [call("x", "f", a=1), call("y", "g"), *stop("tool_use", "tool_calls")],
    ),
    "neither_id_nor_index": (
        use(fragment(None, None, "f", '{"a":'), fragment(None, None, None, "1}"), fragment(None, None, "f", "{}")),
        [call("call_generated_0", "f", a=1), call("call_generated_1", "f"), *stop("tool_use", "tool_calls")],
    ),
    "surrogate_halves_in_neighbours": (
        b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n'
        b'data: {"choices":[{"delta":{"content":"\\ude00b"}}]}\n\n' + sse(END),
        [text("a😀b"), *stop()],
    ),
    "lone_surrogates": (
        b'data: {"choices":[{"delta":{"content":"a\\ude00"}}]}\n\n'
        b'data: {"choices":[{"delta":{"content":"b\\ud83d"}}]}\n\n' + sse(END),
        [text("a\ufffdb\ufffd"), *stop()],
    ),
    "nothing_but_garbage_between": (
        b"data: {broken\n\n" + sse(HI, END),
        [text("hi"), *stop()],
    ),
    "strange_types_everywhere": (
        sse(
            [],
            "7",
            {"choices": [None], "usage": "x"},
            {"choices": [{"delta": "x", "finish_reason": 7}], "x_groq": 3},
            chunk({"content": 7, "tool_calls": [None, {"index": "0", "function": None}, 3], "reasoning": 1}),
            HI,
            END,
        ),
        [],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_shapes(case: str) -> None:
    data, wanted = CASES[case]
    found = normal(fold([data]))
    if wanted:
        assert found == normal(wanted)
    json.dumps(found, ensure_ascii=False).encode()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_shapes_in_pieces(case: str, size: int) -> None:
    data, _ = CASES[case]
    assert fold(pieces(data, size)) == fold([data])


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from(sorted(CASES)), st.lists(st.integers(1, 5000), max_size=12))
def test_shapes_cut_anywhere(case: str, offsets: list[int]) -> None:
    data, _ = CASES[case]
    assert fold(cut_at(data, [offset for offset in offsets if offset < len(data)])) == fold([data])


def test_an_empty_answer_says_so() -> None:
    from desktop_agent.providers.dialects.openai_chat.response_stream import FrameReader
    from desktop_agent.providers.part_builder import PartBuilder
    from desktop_agent.types.provider_events import MessageDelta

    builder = PartBuilder("p")
    reader = FrameReader(builder, {})
    reader.read(("", chunk({"content": ""}, "stop")))
    reader.end()
    (end,) = builder.take_events()
    assert isinstance(end, MessageDelta)
    assert end.details == {"empty": True}


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({}, {}),
        ({"prompt_tokens": 1, "completion_tokens": 2}, {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
        ({"prompt_tokens": -1, "completion_tokens": "2", "total_tokens": 3.0}, {"total_tokens": 3}),
        ({"prompt_tokens": True}, {}),
        ({"cost": 0.25}, {"cost": 0.25}),
        ({"cost": float("inf")}, {}),
        ({"cost": 10**400}, {}),
        ({"cost_in_usd_ticks": 10**400}, {}),
        ({"cost_in_usd_ticks": 200_000_000}, {"cost": 0.02}),
        ({"prompt_cache_hit_tokens": 7}, {"cache_read_tokens": 7}),
        ({"prompt_tokens_details": {"cached_tokens": 5}, "prompt_cache_hit_tokens": 7}, {"cache_read_tokens": 5}),
    ],
)
def test_usage(data: dict[str, Any], found: dict[str, Any]) -> None:
    assert parse_usage(data).model_dump(exclude_none=True) == found


def events(*chunks: Any, provider: str = "openai-compat/mistral") -> list[Any]:
    """As they come from the builder, neighbours not joined."""
    builder = PartBuilder(provider)
    reader, decoder = FrameReader(builder, {}), SseDecoder()
    for frame in decoder.feed(sse(*chunks)) + decoder.finish():
        reader.read(frame)
    reader.end()
    return builder.take_events()


URL = {"url": "https://x.example", "title": "X", "content": "quoted", "start_index": 0, "end_index": 2}


@pytest.mark.parametrize("where", ["reasoning_text", "thinking"])
def test_lists_in_lists_say_nothing_however_deep(where: str) -> None:
    deep: list[Any] = ["never read"]
    for _ in range(900):
        deep = [deep]
    delta = {where: deep} if where == "reasoning_text" else {"content": [{"type": where, where: deep}]}
    assert ContentDelta("hi") in events(chunk(delta), HI, END)


def annotated(**more: Any) -> dict[str, Any]:
    return chunk({"annotations": [{"type": "url_citation", "url_citation": {**URL, **more}}, {"type": "file"}]})


def test_citations_come_with_the_end_of_their_text() -> None:
    found = events(HI, annotated(), annotated(start_index=-1, end_index="x", title=None), END)
    first = Citation(url="https://x.example", title="X", quoted="quoted", start=0, end=2)
    second = Citation(url="https://x.example", quoted="quoted")
    assert found[:2] == [ContentDelta("hi"), TextClosed("openai-compat/mistral", {}, (first, second))]
    assert found[2].details["citations"][0]["title"] == "X"
    # Before calls, and nothing is closed where there is nothing to keep.
    calling = chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]})
    kinds = [type(each).__name__ for each in events(HI, annotated(), calling, END)]
    assert kinds.index("TextClosed") < kinds.index("ToolArgsDelta")
    assert not any(isinstance(each, TextClosed) for each in events(HI, calling, END))


def test_parts_that_nobody_knows_are_kept_in_their_place() -> None:
    reference = {"type": "reference", "reference_ids": [1]}
    parts = [{"type": "text", "text": "a"}, reference, {"no": "type"}, {"type": "text", "text": "b"}]
    found = events(chunk({"content": parts}), END)
    assert found[:3] == [
        ContentDelta("a"),
        Unknown(raw=reference, provider="openai-compat/mistral"),
        ContentDelta("b"),
    ]


def test_a_refusal_among_the_parts() -> None:
    found = events(chunk({"content": [{"type": "refusal", "refusal": "No."}]}), END)
    assert found[0] == ContentDelta("No.")
    assert found[1].stop_reason is StopReason.REFUSAL


@pytest.mark.parametrize("word", ["error", "insufficient_system_resource"])
def test_an_answer_that_ends_in_an_error_keeps_the_id_of_its_request(word: str) -> None:
    reader = FrameReader(PartBuilder("p"), {"x-request-id": "req_7"})
    reader.read(("", {"choices": [{"delta": {}, "finish_reason": word}]}))
    assert reader.failure is not None
    assert reader.failure.request_id == "req_7"
