"""Streams in shapes that no recording shows."""

import json
from typing import Any

import pytest

from desktop_agent.providers.dialects.gemini.response_stream import FrameReader
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.types.blocks import Base64Source, Image, ServerStep, ToolUse, Unknown
from desktop_agent.types.provider_events import AnswerNamed, ContentDelta, StopReason, UsageUpdate
from tests.desktop_agent.providers.dialects.gemini.stream import USAGE, blocks, chunk, ending, fold, read_events, sse
from tests.fakes.recordings import cut_at, matches, pieces

Events = list[dict[str, Any]]


def text(fragment: str) -> dict[str, Any]:
    return {"type": "content_delta", "text": fragment}


def thought(fragment: str) -> Events:
    block = {"type": "thinking_block", "text": fragment, "provider": "gemini", "metadata": {"thought": True}}
    return [{"type": "thinking_delta", "text": fragment}, block]


def signed(signature: str, **metadata: Any) -> dict[str, Any]:
    state = {"thoughtSignature": signature, **metadata}
    return {"type": "thinking_block", "text": "", "provider": "gemini", "metadata": state}


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def stop(reason: str = "end_turn", raw: str = "STOP", usage: Events | None = None) -> Events:
    return [{"type": "message_delta", "stop_reason": reason, "raw": raw}, *(usage or []), {"type": "done"}]


def tokens(input_count: int | None, output_count: int | None, total: int | None, **more: int) -> Events:
    counts = {"cache_read_tokens": None, "cache_write_tokens": None, "reasoning_tokens": None, **more}
    return [
        {"type": "usage", "input_tokens": input_count, "output_tokens": output_count, "total_tokens": total, **counts}
    ]


def error(error_kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "kind": error_kind, "message": message}


HI = chunk({"text": "hi"}, top={"responseId": "r1"})
STOP = chunk(finish="STOP")
BUSY = {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}

CASES: dict[str, tuple[bytes, Events]] = {
    "signature_in_the_middle": (
        sse(
            chunk({"text": "A"}, {"text": "B", "thoughtSignature": "S1"}),
            chunk({"text": "C"}),
            chunk({"text": "D", "thoughtSignature": "S2"}),
            STOP,
        ),
        [
            text("AB"),
            signed("S1", on="text", part_text="B"),
            text("CD"),
            signed("S2", on="text", part_text="D"),
            *stop(),
        ],
    ),
    "two_signatures_on_empty_text": (
        sse(chunk({"text": "", "thoughtSignature": "S1"}), chunk({"thoughtSignature": "S2"}), STOP),
        [signed("S1", on="text", part_text=""), signed("S2", on="text", part_text=""), *stop()],
    ),
    "signature_behind_thoughts": (
        sse(chunk({"text": "Hm", "thought": True}, {"text": "", "thoughtSignature": "S"}), HI, STOP),
        [*thought("Hm"), signed("S", on="text", part_text=""), text("hi"), *stop()],
    ),
    "signed_thought_stands_alone": (
        sse(chunk({"text": "Hm", "thought": True}, {"text": "m", "thought": True, "thoughtSignature": "S"}), HI, STOP),
        [
            *thought("Hm"),
            {"type": "thinking_delta", "text": "m"},
            {**thought("m")[1], "metadata": {"thought": True, "thoughtSignature": "S"}},
            text("hi"),
            *stop(),
        ],
    ),
    "thoughts_only_and_cut": (
        sse(
            chunk({"text": "Hm", "thought": True}),
            chunk(finish="MAX_TOKENS", top={"usageMetadata": {"promptTokenCount": 5, "thoughtsTokenCount": 40}}),
        ),
        [*thought("Hm"), *stop("max_tokens", "MAX_TOKENS", tokens(5, 40, 45, reasoning_tokens=40))],
    ),
    "no_content_at_all": (
        sse({"candidates": [{"finishReason": "STOP"}]}),
        stop(),
    ),
    "empty_pieces_of_everything": (
        sse(
            {},
            {"candidates": []},
            {"candidates": [{}]},
            chunk(content={}),
            chunk(content=None),
            chunk(content={"parts": None}),
            chunk({}),
            chunk({"text": ""}),
            chunk({"text": "", "thought": True}),
            {"candidates": None, "usageMetadata": None, "promptFeedback": {}},
            HI,
            STOP,
        ),
        [text("hi"), *stop()],
    ),
    "calls_without_arguments_or_ids": (
        sse(
            chunk({"functionCall": {"name": "f"}}, {"functionCall": {"name": "f", "args": None, "id": ""}}),
            chunk({"functionCall": {"name": "g", "args": {"a": [1]}, "id": "x"}, "thoughtSignature": "S"}),
            chunk({"functionCall": {"name": "g", "args": {}, "id": "x"}}, finish="STOP"),
        ),
        [
            call("call_generated_0", "f"),
            call("call_generated_1", "f"),
            signed("S", on="functionCall", call_id="x"),
            call("x", "g", a=[1]),
            call("call_generated_2", "g"),
            *stop("tool_use"),
        ],
    ),
    "text_between_calls": (
        sse(chunk({"text": "Let me"}, {"functionCall": {"name": "f"}}), chunk({"text": "see"}), STOP),
        [text("Let me"), call("call_generated_0", "f"), text("see"), *stop("tool_use")],
    ),
    "arguments_that_are_none": (
        sse(chunk({"functionCall": {"name": "f", "args": [1], "id": "a"}}), STOP),
        [{**call("a", "f"), "malformed": "[1]"}, *stop("tool_use")],
    ),
    "a_slip_after_a_call": (
        sse(chunk({"functionCall": {"name": "f", "id": "a"}}), chunk(finish="TOO_MANY_TOOL_CALLS")),
        [call("a", "f"), *stop("malformed_tool_call", "TOO_MANY_TOOL_CALLS")],
    ),
    "the_last_usage_counts": (
        sse(
            chunk({"text": "a"}, top={"usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5}}),
            chunk({"text": "b"}, top={"usageMetadata": USAGE}),
            chunk({"text": "c"}),
            STOP,
            {"usageMetadata": {**USAGE, "toolUsePromptTokenCount": 3, "totalTokenCount": 10}},
        ),
        [text("abc"), *stop(usage=tokens(8, 2, 10))],
    ),
    "usage_beside_nothing_but_text": (
        sse(chunk({"text": "a"}, top={"usageMetadata": USAGE}), STOP),
        [text("a"), *stop(usage=tokens(5, 2, 7))],
    ),
    "blocked_beside_text": (
        sse(chunk({"text": "a"}, top={"promptFeedback": {"blockReason": "SAFETY"}})),
        [text("a"), *stop("content_filter", "blockReason:SAFETY")],
    ),
    "comments_and_a_done_mark_of_proxies": (
        sse(": ping", HI, ": OPENROUTER PROCESSING", STOP, "data: [DONE]", end="\n"),
        [text("hi"), *stop()],
    ),
    "a_done_mark_without_an_end": (
        sse(HI, "data: [DONE]"),
        [text("hi"), error("truncated", "")],
    ),
    "only_the_first_candidate": (
        sse({"candidates": [chunk({"text": "b"}, index=1)["candidates"][0], HI["candidates"][0]]}, STOP),
        [text("hi"), *stop()],
    ),
    "bare_array": (
        ("[" + ",\r\n".join(json.dumps(each, indent=2) for each in (HI, STOP)) + "\n]\n").encode(),
        [text("hi"), *stop()],
    ),
    "bare_array_on_one_line": (
        json.dumps([HI, STOP]).encode(),
        [text("hi"), *stop()],
    ),
    "one_whole_answer": (
        json.dumps(chunk({"text": "hi"}, finish="STOP", top={"usageMetadata": USAGE}), indent=1).encode(),
        [text("hi"), *stop(usage=tokens(5, 2, 7))],
    ),
    "cut_array": (
        json.dumps([HI, STOP], indent=1).encode()[:-40],
        [text("hi"), error("truncated", "")],
    ),
    "error_as_data": (sse(HI, BUSY, STOP), [text("hi"), error("overloaded", "busy")]),
    "error_bare_and_pretty": (
        sse(HI) + json.dumps(BUSY, indent=2).replace("\n", "\r\n").encode() + b"\r\n",
        [text("hi"), error("overloaded", "busy")],
    ),
    "error_in_an_array": (
        sse(HI) + json.dumps([BUSY], indent=2).encode(),
        [text("hi"), error("overloaded", "busy")],
    ),
    "error_by_its_name": (
        sse(HI, 'event: error\ndata: {"code": 503, "message": "busy"}', end="\n"),
        [text("hi"), error("overloaded", "busy")],
    ),
    "error_behind_a_signature": (
        sse(chunk({"text": "hi", "thoughtSignature": "S"}), BUSY),
        [text("hi"), signed("S", on="text", part_text="hi"), error("overloaded", "busy")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_shape(name: str) -> None:
    data, expected = CASES[name]
    for size in (0, 1, 2, 3, 7):
        matches(fold(pieces(data, size)), expected)
    for offset in range(1, len(data), 3):
        matches(fold(cut_at(data, [offset])), expected)


SLIPS = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE")
REASONS = {
    "STOP": StopReason.END_TURN,
    "MAX_TOKENS": StopReason.MAX_TOKENS,
    "CONTINUATION": StopReason.MAX_TOKENS,  # without a token the answer cannot be continued
    **dict.fromkeys((*SLIPS, "MISSING_THOUGHT_SIGNATURE"), StopReason.MALFORMED_TOOL_CALL),
    **dict.fromkeys(("OTHER", "FINISH_REASON_UNSPECIFIED", "PUP_LIMITED_DISABLED", "BRAND_NEW"), StopReason.UNKNOWN),
    "stop": StopReason.END_TURN,  # a gateway's
}


def test_every_finish_reason_of_the_sdk() -> None:
    from google.genai.types import FinishReason

    names = {reason.value for reason in FinishReason} | REASONS.keys()
    names.remove("FINISH_REASON_UNSPECIFIED")  # nothing was said
    assert len(names) >= 24
    for name in names:
        end = ending(sse(chunk({"text": "hi"}, finish=name, finishMessage="Why")))
        assert end.stop_reason is REASONS.get(name, StopReason.CONTENT_FILTER), name
        assert (end.raw, end.details) == (name, {"finishMessage": "Why"})


def test_every_block_reason_of_the_sdk() -> None:
    from google.genai.types import BlockedReason

    for name in [reason.value for reason in BlockedReason if "UNSPECIFIED" not in reason.value] + ["NEW"]:
        end = ending(sse({"promptFeedback": {"blockReason": name}}))
        assert (end.stop_reason, end.raw) == (StopReason.CONTENT_FILTER, f"blockReason:{name}")
    with_message = ending(sse({"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "No."}}))
    assert with_message.details == {"blockReasonMessage": "No."}


def test_continuation() -> None:
    parts = sse(chunk({"text": "1"}, continuationToken="T1"), chunk(finish="CONTINUATION", continuationToken="T2"))
    end = ending(parts)
    assert (end.stop_reason, end.raw) == (StopReason.CONTINUATION, "CONTINUATION")
    assert end.details == {"continuation_token": "T2"}
    without_token = ending(sse(chunk({"text": "1"}, continuationToken="T1"), STOP))
    assert (without_token.stop_reason, without_token.details) == (StopReason.END_TURN, None)


def test_an_answer_without_words_says_so() -> None:
    assert ending(sse(STOP)).details == {"empty": True}
    assert ending(sse(chunk({"text": "", "thoughtSignature": "S"}), STOP)).details == {"empty": True}


_BLOCKED = {"promptFeedback": {"blockReason": "SAFETY"}}


@pytest.mark.parametrize("block_reason", ["", "BLOCK_REASON_UNSPECIFIED"])
def test_a_block_reason_that_says_nothing_is_no_end(block_reason: str) -> None:
    reader = FrameReader(PartBuilder("gemini"), {})
    reader.read(("", chunk({"text": "Hel"}, top={"promptFeedback": {"blockReason": block_reason}})))
    assert (reader.has_finished, reader.has_ended) == (False, False)


def test_a_block_reason_with_more_behind_it_is_no_end() -> None:
    reader = FrameReader(PartBuilder("gemini"), {})
    reader.read(("", _BLOCKED))
    assert (reader.has_finished, reader.has_ended) == (True, True)
    reader.read(("", chunk({"text": "Hel"})))
    assert (reader.has_finished, reader.has_ended) == (False, False)
    reader.read(("", STOP))
    assert (reader.has_finished, reader.has_ended) == (True, True)


def test_text_beside_an_error_is_kept() -> None:
    events, failure = read_events(sse(chunk({"text": "lo"}, top=BUSY)))
    assert failure is not None
    assert [event.text for event in events if isinstance(event, ContentDelta)] == ["lo"]


def test_an_error_that_says_nothing_ends_nothing() -> None:
    events = fold([sse(chunk({"text": "a"}, top={"error": {"code": 0, "message": ""}}), STOP)])
    assert events == [text("a"), *stop()]


def test_a_count_of_zeros_does_not_replace_the_real_one() -> None:
    zeros: dict[str, Any] = dict.fromkeys(USAGE, 0)
    nulls: dict[str, Any] = dict.fromkeys(USAGE)
    tops = [{"usageMetadata": USAGE}, {"usageMetadata": zeros}, {"usageMetadata": nulls}]
    events = fold([sse(*(chunk({"text": "a"}, top=top) for top in tops), STOP)])
    assert events[-2] == tokens(5, 2, 7)[0]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"parts": {"text": "hi"}}, ["hi"]),
        ({"parts": ["h", "i"]}, ["h", "i"]),
        ({"parts": "hi"}, ["hi"]),
        ([{"text": "hi"}], ["hi"]),
        ("hi", ["hi"]),
        ({"text": "hi"}, ["hi"]),
    ],
)
def test_text_in_other_shapes_is_read(content: Any, expected: list[str]) -> None:
    assert fold([sse({"candidates": [{"content": content, "index": "0"}]}, STOP)]) == [*map(text, expected), *stop()]


def piece(fragment: str | None, index: int | None) -> dict[str, Any]:
    """Return one chunk of text, or the end of the answer, with or without its index."""
    candidate = {"finishReason": "STOP"} if fragment is None else {"content": {"parts": [{"text": fragment}]}}
    return {"candidates": [candidate if index is None else {**candidate, "index": index}]}


@pytest.mark.parametrize(
    "pieces",
    [
        [("a", 1), ("x", 0), ("b", 1), ("y", 0), (None, 1)],
        [("a", 0), ("x", 1), ("b", 0), (None, 0)],
        [("a", None), ("x", 1), ("b", 0), (None, None)],
        [("a", 1), ("b", None), (None, None)],
    ],
)
def test_one_answer_is_read_and_nothing_of_it_dropped(pieces: list[tuple[str | None, int | None]]) -> None:
    assert fold([sse(*(piece(*numbered) for numbered in pieces))]) == [text("a"), text("b"), *stop()]


def test_the_answer_that_is_read_may_stand_behind_one_without_a_number() -> None:
    candidates = piece("x", None)["candidates"] + piece("b", 1)["candidates"]
    assert fold([sse(piece("a", 1), {"candidates": candidates}, piece(None, 1))]) == [text("a"), text("b"), *stop()]


def test_one_without_a_number_is_the_first_where_there_are_several() -> None:
    beside = {"candidates": piece("x", None)["candidates"] + piece("y", 2)["candidates"]}
    for other_chunk in (piece("x", 0), piece("x", 2), beside):
        stream = sse(piece("a", 1), other_chunk, piece("z", None), piece("b", 1), piece(None, None), piece(None, 1))
        assert fold([stream]) == [text("a"), text("b"), *stop()]


def test_ids_of_the_server_are_remembered() -> None:
    data = sse(
        chunk({"functionCall": {"name": "f", "id": "a"}}, {"functionCall": {"name": "f", "id": "b"}}),
        chunk({"functionCall": {"name": "f"}}),
        STOP,
    )
    calls = [tool_use for tool_use in read_events(data)[0] if isinstance(tool_use, ToolUse)]
    assert [tool_use.metadata for tool_use in calls] == [{"id": "a"}, {"id": "b"}, {}]
    assert [tool_use.provider for tool_use in calls] == ["gemini", "gemini", ""]
    assert len({tool_use.id for tool_use in calls}) == 3


def test_the_answer_is_named_once() -> None:
    events = read_events(sse(STOP, HI, chunk({"text": "!"}, top={"responseId": "r2"})))[0]
    assert [event.response_id for event in events if isinstance(event, AnswerNamed)] == ["r1"]


def test_errors_carry_the_answers_name() -> None:
    failure = read_events(sse(HI, BUSY))[1]
    assert failure is not None
    assert (failure.request_id, failure.retryable) == ("r1", True)


def test_code_that_the_server_ran() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "print(1)", "id": "e"}, "thoughtSignature": "S"}
    result = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n", "id": "e"}}
    steps = blocks(sse(chunk({"text": "So"}, code), chunk(result, {"text": "1"}), STOP))
    assert steps == [
        ServerStep(provider="gemini", name="code_execution", text="print(1)", raw=code),
        ServerStep(provider="gemini", name="code_execution_result", text="1\n", raw=result),
    ]


def test_tools_that_the_server_called() -> None:
    tool_call = {"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB", "args": {"q": 1}}, "thoughtSignature": "S"}
    tool_response = {"toolResponse": {"id": "t", "response": {}}}
    steps = blocks(sse(chunk(tool_call, tool_response), STOP))
    assert steps == [
        ServerStep(provider="gemini", name="google_search_web", text='{"q":1}', raw=tool_call),
        ServerStep(provider="gemini", name="toolResponse", raw=tool_response),
    ]


@pytest.mark.parametrize(
    "part",
    [
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thoughtSignature": "S"},
        {"brandNew": [1]},
        {"text": 7},
        {"functionCall": "f"},
        {"executableCode": {}},
    ],
)
def test_what_nobody_knows_is_kept(part: dict[str, Any]) -> None:
    assert blocks(sse(chunk({"text": "a"}, part, {"text": "b"}), STOP)) == [Unknown(raw=part, provider="gemini")]


PNG = "iVBORw0KGgo="


def test_a_picture_comes_with_its_signature_and_its_drafts_are_passed_over() -> None:
    draft = {"inlineData": {"mimeType": "image/png", "data": PNG}, "thought": True}
    part = {"inlineData": {"mimeType": "image/jpeg", "data": PNG}, "thoughtSignature": "S"}
    plain = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    source = Base64Source(media_type="image/png", data=PNG)
    assert blocks(sse(chunk({"text": "a"}, draft, part, plain), STOP)) == [
        Image(source=source, provider="gemini", metadata={"thoughtSignature": "S"}),
        Image(source=source, provider="gemini"),
    ]


def test_calls_in_pieces_are_not_run() -> None:
    begun = {"functionCall": {"name": "f", "id": "a", "willContinue": True}}
    (tool_use,) = [event for event in read_events(sse(chunk(begun), STOP))[0] if isinstance(event, ToolUse)]
    assert tool_use.malformed is not None


def test_a_key_in_an_error_is_taken_out() -> None:
    builder = PartBuilder("gemini")
    builder.redact_key = lambda text: text.replace("K", "*")
    reader = FrameReader(builder, {})
    reader.read(("", {"error": {"message": "bad K"}}))
    assert reader.failure is not None
    assert reader.failure.message == "bad *"


def test_odd_numbers_are_unknown() -> None:
    odd = {"promptTokenCount": -1, "candidatesTokenCount": True, "thoughtsTokenCount": "3", "totalTokenCount": 7.0}
    events = read_events(sse(chunk(finish="STOP", top={"usageMetadata": odd})))[0]
    (counted,) = [event.usage for event in events if isinstance(event, UsageUpdate)]
    assert (counted.input_tokens, counted.output_tokens, counted.reasoning_tokens, counted.total_tokens) == (
        None,
        None,
        None,
        7,
    )
