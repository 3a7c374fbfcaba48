"""Streams of compatible servers in shapes that no recording shows."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.providers.dialects.openai_chat.response_stream import FrameReader, parse_citations, parse_usage
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport.sse import DONE, SseDecoder
from desktop_agent.types.blocks import Base64Source, Citation, Image, Unknown, UrlSource
from desktop_agent.types.provider_events import AnswerNamed, ContentDelta, StopReason, TextClosed
from tests.fakes.http_server import chunk, sse
from tests.fakes.recordings import cut_at, fold, normal, pieces
from tests.frame.examples import examples

Events = list[dict[str, Any]]


def text(content: str) -> dict[str, Any]:
    return {"type": "content_delta", "text": content}


def thought(content: str) -> dict[str, Any]:
    return {"type": "thinking_delta", "text": content}


def block(content: str, **metadata: Any) -> dict[str, Any]:
    return {"type": "thinking_block", "text": content, "provider": "openai-compat", "metadata": metadata}


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def stop(reason: str = "end_turn", raw: str | None = "stop") -> Events:
    return [{"type": "message_delta", "stop_reason": reason, "raw": raw}, {"type": "done"}]


def use(*calls: dict[str, Any], finish: str = "tool_calls") -> bytes:
    return sse(*(chunk({"tool_calls": [call_fragment]}) for call_fragment in calls), chunk({}, finish))


def usage(**counts: int) -> dict[str, Any]:
    names = ("input", "output", "cache_read", "cache_write", "reasoning", "total")
    return {"type": "usage", **dict.fromkeys((f"{name}_tokens" for name in names), None), **counts}


def fragment(
    index: int | None = None, call_id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    function: dict[str, Any] = {"function": {"name": name, "arguments": arguments}}
    return {**function, **({} if index is None else {"index": index}), **({} if call_id is None else {"id": call_id})}


HI = chunk({"content": "hi"})
END = chunk({}, "stop")
SIGNED = {"type": "thinking", "thinking": "", "signature": "S"}
USED, USAGE = {"prompt_tokens": 1, "completion_tokens": 2}, usage(input_tokens=1, output_tokens=2, total_tokens=3)


def detail(content: str) -> dict[str, Any]:
    return {"type": "reasoning.text", "text": content, "index": 0}


def choice(delta: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"delta": delta, **more}]}


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
            usage(input_tokens=10, output_tokens=25, reasoning_tokens=20, total_tokens=35),
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
    "usage_beside_no_choices": (sse(HI, END, {"usage": USED}), [text("hi"), stop()[0], USAGE, stop()[1]]),
    "usage_of_groq": (sse(HI, {**END, "x_groq": {"usage": USED}}), [text("hi"), stop()[0], USAGE, stop()[1]]),
    "usage_in_the_choice": (sse(choice({}, finish_reason="stop", usage=USED)), [stop()[0], USAGE, stop()[1]]),
    "usage_and_then_none": (sse({**END, "usage": USED}, {"choices": [], "usage": {}}), [stop()[0], USAGE, stop()[1]]),
    "text_beside_an_error": (
        sse({**HI, "error": "Busy."}),
        [text("hi"), {"type": "error", "kind": "server", "message": "Busy."}],
    ),
    "a_word_under_the_name_of_an_error": (
        b'event: error\ndata: "Boom."\n\n',
        [{"type": "error", "kind": "server", "message": "Boom."}],
    ),
    "text_under_the_name_of_an_error": (
        b"event: error\n" + sse(HI),
        [
            text("hi"),
            {"type": "error", "kind": "server", "message": "the stream carried an error without a message"},
        ],
    ),
    "an_error_behind_the_end_mark": (sse(HI, END) + sse({"error": "late"}), [text("hi"), *stop()]),
    "the_first_error_counts": (
        sse(choice({}, error={"code": 429, "message": "slow"}, finish_reason="error")),
        [{"type": "error", "kind": "rate_limit", "message": "slow"}],
    ),
    "a_detail_beside_choices": (sse({**HI, "detail": "x"}, {**END, "detail": "x"}), [text("hi"), *stop()]),
    "choices_that_are_one": (sse({"choices": {"delta": {"content": "hi"}}}, END), [text("hi"), *stop()]),
    "text_of_completions": (sse({"choices": [{"text": "hi"}]}, choice(text=" you")), [text("hi you"), *stop(raw=None)]),
    "a_message_beside_its_delta": (
        sse(choice({"content": "hi"}, message={"content": "hi"}), END),
        [text("hi"), *stop()],
    ),
    "a_message_behind_its_deltas": (
        sse(
            HI,
            chunk({"tool_calls": [fragment(0, "a", "f", '{"x":1}')]}),
            choice(message={"content": "hi", "tool_calls": [fragment(None, "b", "f", {"x": 1})]}),
            chunk({}, "tool_calls"),
        ),
        [text("hi"), call("a", "f", x=1), *stop("tool_use", "tool_calls")],
    ),
    "a_message_with_what_its_deltas_lacked": (
        sse(
            chunk({"function_call": {"name": "f", "arguments": "{}"}}),
            choice(
                message={"function_call": {"name": "f", "arguments": "{}"}, "tool_calls": [fragment(0, "b", "g", "{}")]}
            ),
            END,
        ),
        [call("call_generated_0", "f"), call("b", "g"), *stop("tool_use")],
    ),
    "words_again_behind_their_message": (
        sse(choice(message={"content": "hi you"}), HI, END),
        [text("hi youhi"), *stop()],
    ),
    "equal_calls_with_ids_of_their_own": (
        use(fragment(0, "a", "f", '{"x":1}'), fragment(1, "b", "f", '{"x":1}')),
        [call("a", "f", x=1), call("b", "f", x=1), *stop("tool_use", "tool_calls")],
    ),
    "equal_calls_in_a_whole_answer": (
        sse(choice(message={"tool_calls": [fragment(None, each, "f", "{}") for each in "ab"]}, finish_reason="stop")),
        [call("a", "f"), call("b", "f"), *stop("tool_use")],
    ),
    "equal_calls_without_ids_in_one_list": (
        sse(chunk({"tool_calls": [fragment(None, None, "f", "{}"), fragment(None, None, "f", "{}")]}), END),
        [call("call_generated_0", "f"), call("call_generated_1", "f"), *stop("tool_use")],
    ),
    "calls_by_their_numbers": (
        sse(chunk({"tool_calls": {"1": fragment(None, None, "g", "{}"), "0": fragment(None, None, "f", "{}")}}), END),
        [call("call_generated_0", "f"), call("call_generated_1", "g"), *stop("tool_use")],
    ),
    "one_call_and_no_list": (
        sse(chunk({"tool_calls": fragment(None, "a", "f", "{}")}), END),
        [call("a", "f"), *stop("tool_use")],
    ),
    "calls_that_are_words": (
        sse(chunk({"tool_calls": [None, "x"]}), chunk({"tool_calls": "y"}), END),
        [{**call("call_generated_0", "unnamed"), "malformed": "xy"}, *stop("tool_use")],
    ),
    "calls_that_are_numbers": (
        sse(chunk({"tool_calls": {"0": 3}}), END),
        [{**call("call_generated_0", "unnamed"), "malformed": "[3]"}, *stop("tool_use")],
    ),
    "calls_in_the_chunk_and_in_the_choice": (
        sse({"tool_calls": [fragment(0, "a", "f", "{}")]}, choice({}, tool_calls=[fragment(1, "b", "g", "{}")]), END),
        [call("a", "f"), call("b", "g"), *stop("tool_use")],
    ),
    "an_index_as_a_text_or_a_fraction": (
        use(
            {**fragment(None, None, "g", '{"b":'), "index": "1"},
            {**fragment(None, None, "f", '{"a":'), "index": 0.0},
            fragment(1, None, None, "2}"),
            {**fragment(None, None, None, "1}"), "index": "0"},
        ),
        [call("call_generated_0", "f", a=1), call("call_generated_1", "g", b=2), *stop("tool_use", "tool_calls")],
    ),
    "an_id_as_a_number": (
        use({**fragment(0, None, "f", "{}"), "id": 7}),
        [call("7", "f"), *stop("tool_use", "tool_calls")],
    ),
    "calls_without_their_function": (
        use(
            {"index": 0, "id": "a", "function": "f", "arguments": "{}"},
            {"index": 1, "id": "b", "name": "g", "input": {"x": 1}},
            {"index": 2, "id": "c", "function": {"name": "h", "parameters": {"y": 2}}},
        ),
        [call("a", "f"), call("b", "g", x=1), call("c", "h", y=2), *stop("tool_use", "tool_calls")],
    ),
    "a_name_that_is_no_text": (
        use({"index": 0, "id": "a", "function": {"name": 3, "arguments": "{}"}, "extra_content": "x"}),
        [{**call("a", "unnamed"), "malformed": "{}"}, *stop("tool_use", "tool_calls")],
    ),
    "thinking_blocks_alone": (
        sse(chunk({"thinking_blocks": [{**SIGNED, "thinking": "Hm"}]}), HI, END),
        [
            thought("Hm"),
            block("Hm", field="thinking_blocks", thinking_blocks=[{**SIGNED, "thinking": "Hm"}]),
            text("hi"),
            *stop(),
        ],
    ),
    "details_of_each_thought": (
        sse(
            chunk({"reasoning": "A", "reasoning_details": [detail("A")]}),
            HI,
            chunk({"reasoning": "B", "reasoning_details": [detail("B")]}),
            chunk({"reasoning_details": [detail("C")]}),
            END,
        ),
        [
            thought("A"),
            block("A", field="reasoning", reasoning_details=[detail("A")]),
            text("hi"),
            thought("B"),
            block("B", field="reasoning", reasoning_details=[detail("BC")]),
            *stop(),
        ],
    ),
    "reasoning_in_objects_and_lists": (
        sse(chunk({"reasoning": {"text": "", "content": "H"}}), chunk({"reasoning": [{"summary": "m"}, "!"]}), END),
        [thought("Hm!"), block("Hm!", field="reasoning"), *stop()],
    ),
    "google_says_that_it_is_no_thought": (
        sse(
            chunk({"content": "hi", "extra_content": {"google": {"thought_signature": "S"}}}),
            chunk({"content": "!", "extra_content": {"google": {"thought": False}}}),
            END,
        ),
        [text("hi!"), *stop()],
    ),
    "parts_without_a_type_and_alone": (
        sse(chunk({"content": [{"text": "hi"}]}), chunk({"content": {"type": "output_text", "text": "!"}}), END),
        [text("hi!"), *stop()],
    ),
    "a_refusal_that_was_cut": (
        sse(chunk({"refusal": "No"}), chunk({}, "length")),
        [text("No"), *stop("max_tokens", "length")],
    ),
    "fields_of_other_types": (
        sse(
            chunk({"annotations": 3, "reasoning_details": 3, "thinking_blocks": 3, "refusal": 3, "extra_content": 3}),
            chunk({"content": [3, {"type": 3, "text": "a"}, {"type": "text", "text": 3}, {"type": "refusal"}]}),
            HI,
            END,
        ),
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
    data, expected = CASES[case]
    events_read = normal(fold([data]))
    if expected:
        assert events_read == normal(expected)
    json.dumps(events_read, ensure_ascii=False).encode()


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_shapes_in_pieces(size: int) -> None:
    for case, (data, _) in CASES.items():
        assert fold(pieces(data, size)) == fold([data]), case


@settings(max_examples=examples(200), deadline=None)
@given(st.sampled_from(sorted(CASES)), st.lists(st.integers(1, 5000), max_size=12))
def test_shapes_cut_anywhere(case: str, offsets: list[int]) -> None:
    data, _ = CASES[case]
    assert fold(cut_at(data, [offset for offset in offsets if offset < len(data)])) == fold([data])


PNG = "iVBORw0KGgo="


def test_the_words_of_speech_are_kept() -> None:
    """Transcripts of OpenAI's speaking models are text."""
    first = chunk({"audio": {"id": "audio_1", "transcript": "Here "}})
    assert events(first, chunk({"audio": {"data": "AAAA", "transcript": "it is."}}), END)[:2] == [
        ContentDelta("Here "),
        ContentDelta("it is."),
    ]


@pytest.mark.parametrize("address", [{"url": f"data:image/jpeg;base64,{PNG}"}, f"data:image/png;base64,{PNG}"])
@pytest.mark.parametrize("field", ["images", "content"])
def test_pictures_that_the_model_made_are_pictures(address: Any, field: str) -> None:
    """OpenRouter and LiteLLM send `images`, others a list of parts; the media type is that of the bytes."""
    picture = {"type": "image_url", "index": 0, "image_url": address}
    (image, end, *_) = events(chunk({"role": "assistant", "content": "", field: [picture]}), END, provider="p")
    assert image == Image(source=Base64Source(media_type="image/png", data=PNG), provider="p")
    assert end.details is None  # it is not empty


@pytest.mark.parametrize("place", ["images", "content"])
def test_a_picture_that_is_repeated_in_the_whole_message_comes_once(place: str) -> None:
    pictures = [{"type": "image_url", "image_url": {"url": f"https://example.org/{name}.png"}} for name in "ab"]
    whole = {"choices": [{"message": {"role": "assistant", place: pictures}}]}
    found = events(chunk({"content": "Here:"}), chunk({place: pictures[:1]}), whole, END, provider="p")
    assert [event.source.url[-5] for event in found if isinstance(event, Image)] == ["a", "b"]


@pytest.mark.parametrize(("name", "read"), [("cat", "cat"), ("\ud800", "\ufffd")])
def test_a_picture_by_its_address_stays_one(name: str, read: str) -> None:
    picture = {"type": "image_url", "image_url": {"url": f"https://example.org/{name}.png"}}
    assert events(chunk({"images": [picture]}), END, provider="p")[0] == Image(
        source=UrlSource(url=f"https://example.org/{read}.png"), provider="p"
    )


@pytest.mark.parametrize(
    "text", ["data:image/png;base64,???", "data:audio/wav;base64,AAAA", "file:///etc/passwd", "", 7]
)
def test_what_is_no_picture_is_kept(text: Any) -> None:
    part = {"type": "image_url", "image_url": {"url": text}}
    assert events(chunk({"images": [part]}), END, provider="p")[0] == Unknown(raw=part, provider="p")


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
    ("data", "expected"),
    [
        ({}, {}),
        ({"prompt_tokens": 1, "completion_tokens": 2}, {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
        ({"prompt_tokens": -1, "completion_tokens": "2", "total_tokens": 3.0}, {"total_tokens": 3}),
        ({"prompt_tokens": True}, {}),
        ({"prompt_tokens": 1}, {"input_tokens": 1}),
        ({"completion_tokens": 2}, {"output_tokens": 2}),
        (
            {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 7},
            {"input_tokens": 1, "output_tokens": 2, "total_tokens": 7},
        ),
        # Reasoning is counted apart only if the total is larger than input and output.
        (
            {**USED, "total_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 2}},
            {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "reasoning_tokens": 2},
        ),
        ({"prompt_tokens_details": {"cache_write_tokens": 4}}, {"cache_write_tokens": 4}),
        ({"cost": 0}, {"cost": 0.0}),
        ({"cost": -0.25}, {}),
        ({"cost": True}, {}),
        ({"cost": "0.25"}, {}),
        ({"cost": 0.25}, {"cost": 0.25}),
        ({"cost": float("inf")}, {}),
        ({"cost": 10**400}, {}),
        ({"cost": 0.25, "is_byok": False, "cost_details": {"upstream_inference_cost": 5}}, {"cost": 0.25}),
        ({"cost": 0.25, "is_byok": True, "cost_details": {"upstream_inference_cost": 5}}, {"cost": 5.25}),
        ({"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": None}}, {"cost": 0.0}),
        ({"cost_in_usd_ticks": 10**400}, {}),
        ({"cost_in_usd_ticks": 200_000_000}, {"cost": 0.02}),
        ({"prompt_cache_hit_tokens": 7}, {"cache_read_tokens": 7}),
        ({"prompt_tokens_details": {"cached_tokens": 5}, "prompt_cache_hit_tokens": 7}, {"cache_read_tokens": 5}),
    ],
)
def test_usage(data: dict[str, Any], expected: dict[str, Any]) -> None:
    assert parse_usage(data).model_dump(exclude_none=True) == expected


def events(*chunks: Any, provider: str = "openai-compat/mistral") -> list[Any]:
    """Return the events of the builder, without joining neighbours."""
    builder = PartBuilder(provider)
    reader, decoder = FrameReader(builder, {}), SseDecoder()
    for frame in decoder.feed(sse(*chunks)) + decoder.finish():
        reader.read(frame)
    reader.end()
    return builder.take_events()


URL = {"url": "https://x.example", "title": "X", "content": "quoted", "start_index": 0, "end_index": 2}


@pytest.mark.parametrize("field", ["reasoning_text", "thinking"])
def test_lists_in_lists_say_nothing_however_deep(field: str) -> None:
    deep: list[Any] = ["never read"]
    for _ in range(900):
        deep = [deep]
    delta = {field: deep} if field == "reasoning_text" else {"content": [{"type": field, field: deep}]}
    assert ContentDelta("hi") in events(chunk(delta), HI, END)


def reader_after(*chunks: Any) -> FrameReader:
    reader = FrameReader(PartBuilder("p"), {})
    for data in chunks:
        reader.read(("", data))
    return reader


@pytest.mark.parametrize(
    ("chunks", "recognised", "has_finished", "has_ended"),
    [
        ((), False, False, False),
        (({"model": "m"},), False, False, False),
        ((HI,), True, False, False),
        (({"choices": []},), True, False, False),
        ((HI, END), True, True, True),
        ((HI, END, {"choices": [], "usage": USED}), True, True, True),
        # A server that writes a finish reason on every chunk: only the end mark is the end.
        ((chunk({"content": "hi"}, "stop"), HI), True, True, False),
        ((END, HI, END), True, True, False),
        ((END, HI, DONE), True, True, True),
        ((HI, DONE), True, True, True),
    ],
)
def test_how_far_an_answer_is(chunks: tuple[Any, ...], recognised: bool, has_finished: bool, has_ended: bool) -> None:
    reader = reader_after(*chunks)
    assert (reader.recognised, reader.has_finished, reader.has_ended) == (recognised, has_finished, has_ended)


PLAIN = {"index": 0, "delta": {"content": "hi"}, "finish_reason": None, "logprobs": None}


@pytest.mark.parametrize(
    ("more", "of_choice", "is_only_text"),
    [
        ({}, {}, True),
        ({"id": "r", "usage": None}, {"finish_reason": ""}, True),
        ({"usage": USED}, {}, False),
        ({"error": None}, {}, False),
        ({"x_groq": {}}, {}, False),
        ({"tool_calls": None}, {}, False),
        ({}, {"finish_reason": "stop"}, False),
        ({}, {"message": {}}, False),
        ({}, {"delta": {"content": "hi", "role": "assistant"}}, False),
        ({}, {"delta": {"reasoning": "hi"}}, False),
        ({}, {"delta": {"content": ["hi"]}}, False),
    ],
)
def test_a_chunk_is_one_more_piece_of_text_where_nothing_else_is_in_it(
    more: dict[str, Any], of_choice: dict[str, Any], is_only_text: bool
) -> None:
    assert reader_after().read(("", {"choices": [{**PLAIN, **of_choice}], **more})) is is_only_text


def test_the_id_that_the_server_gave_names_the_answer() -> None:
    assert AnswerNamed("r1") in events({**chunk({"role": "assistant"}), "id": "r1"}, HI, END)


def annotated(**more: Any) -> dict[str, Any]:
    return chunk({"annotations": [{"type": "url_citation", "url_citation": {**URL, **more}}, {"type": "file"}]})


def test_citations_come_with_the_end_of_their_text() -> None:
    events_read = events(HI, annotated(), annotated(start_index=-1, end_index="x", title=None), END)
    first = Citation(url="https://x.example", title="X", quoted="quoted", start=0, end=2)
    second = Citation(url="https://x.example", quoted="quoted")
    assert events_read[:2] == [ContentDelta("hi"), TextClosed("openai-compat/mistral", {}, (first, second))]
    assert events_read[2].details["citations"][0]["title"] == "X"
    # Before calls, and nothing is closed where there is nothing to keep.
    calling = chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]})
    kinds = [type(event).__name__ for event in events(HI, annotated(), calling, END)]
    assert kinds.index("TextClosed") < kinds.index("ToolArgsDelta")
    assert not any(isinstance(event, TextClosed) for event in events(HI, calling, END))
    # The details list each citation once, however often a text is closed.
    assert len(events(HI, annotated(), calling, END)[-1].details["citations"]) == 1


@pytest.mark.parametrize("annotation", [None, "x", {"url_citation": 3}, {"url_citation": {"url": 3}}])
def test_what_nobody_could_follow_is_no_citation(annotation: Any) -> None:
    expected = Citation(url="https://x.example", title="X", quoted="quoted", start=0, end=2)
    assert parse_citations([annotation, {"url_citation": URL}]) == [expected]


def test_parts_that_nobody_knows_are_kept_in_their_place() -> None:
    reference = {"type": "reference", "reference_ids": [1]}
    parts = [{"type": "text", "text": "a"}, reference, {"no": "type"}, {"type": "text", "text": "b"}]
    events_read = events(chunk({"content": parts}), END)
    assert events_read[:3] == [
        ContentDelta("a"),
        Unknown(raw=reference, provider="openai-compat/mistral"),
        ContentDelta("b"),
    ]


def test_a_refusal_among_the_parts() -> None:
    events_read = events(chunk({"content": [{"type": "refusal", "refusal": "No."}]}), END)
    assert events_read[0] == ContentDelta("No.")
    assert events_read[1].stop_reason is StopReason.REFUSAL


@pytest.mark.parametrize("finish_reason", ["error", "insufficient_system_resource"])
def test_an_answer_that_ends_in_an_error_keeps_the_id_of_its_request(finish_reason: str) -> None:
    reader = FrameReader(PartBuilder("p"), {"x-request-id": "req_7"})
    reader.read(("", {"choices": [{"delta": {}, "finish_reason": finish_reason}]}))
    assert reader.failure is not None
    assert reader.failure.request_id == "req_7"
