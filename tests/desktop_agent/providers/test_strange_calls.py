"""Calls of servers that disagree about ids, indices and names are read in the only possible way, or fail."""

import json
import random
from collections.abc import Iterable
from typing import Any

import pytest

from desktop_agent.providers.dialects.anthropic.response_stream import FrameReader as AnthropicReader
from desktop_agent.providers.dialects.gemini.response_stream import FrameReader as GeminiReader
from desktop_agent.providers.dialects.openai_chat.response_stream import FrameReader
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport.sse import DONE
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.provider_events import ContentDelta

A = '{"a": 1}'
STOP = {"finishReason": "STOP"}


def text_and_calls(*chunks: dict[str, Any], reader: Any = FrameReader) -> tuple[str, list[tuple[str, Any]]]:
    """Return the text and the calls, with the raw arguments of malformed ones."""
    builder = PartBuilder("p", may_repeat=True)
    frames = reader(builder, {})
    for chunk in chunks:
        frames.read(("", chunk))
    frames.end()
    events = builder.take_events()
    calls = [(event.name, event.input if event.malformed is None else event.malformed) for event in uses(events)]
    return "".join(event.text for event in events if isinstance(event, ContentDelta)), calls


def uses(events: Iterable[object]) -> list[ToolUse]:
    return [event for event in events if isinstance(event, ToolUse)]


def outcome(*chunks: dict[str, Any]) -> list[tuple[str, Any, bool]]:
    """Return each call and whether it is malformed."""
    builder = PartBuilder("p", may_repeat=True)
    frames = FrameReader(builder, {})
    for chunk in chunks:
        frames.read(("", chunk))
    frames.end()
    return [(use.name, use.input, use.malformed is not None) for use in uses(builder.take_events())]


def piece(name: str | None, arguments: Any, **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return {"choices": [{"delta": {"tool_calls": [{**more, "function": function}]}}]}


def text_chunk(text: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text, **more}}]}


@pytest.mark.parametrize(
    "pieces",
    [
        (piece("get", "", id="a"), piece("get", '{"a":'), piece("get", " 1}")),
        (piece("get", A, id="a"), piece("get", "")),
        (piece("get", A), piece("get", "")),
        (piece("get", "{}", id="a"), piece("get", A)),
        (piece("get", "", id="a"), piece(None, '{"a":', id="b"), piece(None, " 1}", id="c")),
        (piece("get", "{}", id="a", index=0), piece(None, A, id="b", index=0)),
        (piece("get", "", id="a", index=0), piece(None, A, id="b", index=0), piece(None, "", id="c", index=0)),
        (piece("get", A, id="a", index=0), piece(None, "\n", id="b", index=0)),
        (piece("get", "", id="a", index=0), piece(None, '{"a"', index=1), piece(None, ": 1}", index=2)),
        (piece("get", '{"a":', id="a", index=0.0), piece(None, " 1}", index=0.0)),
    ],
)
def test_one_call_in_pieces_is_one_call(pieces: tuple[dict[str, Any], ...]) -> None:
    assert text_and_calls(*pieces)[1] == [("get", {"a": 1})]


@pytest.mark.parametrize("more", [{"index": 0}, {}])
@pytest.mark.parametrize("arguments", ["", "{}", '{"b": 2}'])
def test_another_name_beside_the_same_id_is_another_call(more: dict[str, Any], arguments: str) -> None:
    calls = text_and_calls(piece("get", A, id="x", **more), piece("put", arguments, id="x", **more))[1]
    assert [name for name, _ in calls] == ["get", "put"]


def test_an_empty_call_beside_pieces_that_nobody_owns_has_failed() -> None:
    builder = PartBuilder("p")
    builder.add_call_fragment(index=0, id="a", name="get", arguments="")
    builder.add_call_fragment(index=1, arguments='{"a"')
    builder.end_calls()
    assert [call.malformed is not None for call in builder.take_events() if isinstance(call, ToolUse)] == [True, True]


@pytest.mark.parametrize(
    "more",
    [
        {"function_call": {}},
        {"function_call": {"name": "", "arguments": ""}},
        {"tool_calls": [{}]},
        {"tool_calls": [{"index": 0, "id": "", "function": {"name": "", "arguments": "{}"}}]},
    ],
)
def test_an_empty_filler_beside_text_is_no_call(more: dict[str, Any]) -> None:
    assert text_and_calls(text_chunk("Hel", **more), text_chunk("lo", **more)) == ("Hello", [])


def test_calls_beside_the_delta_and_beside_the_choices_are_read() -> None:
    call = {"id": "x", "function": {"name": "get", "arguments": A}}
    beside = {"choices": [{"index": 0, "delta": {"content": "Hi"}, "tool_calls": [call]}]}
    assert text_and_calls(beside) == ("Hi", [("get", {"a": 1})])
    assert text_and_calls({**text_chunk("Hi"), "tool_calls": [call]}) == ("Hi", [("get", {"a": 1})])


def test_an_id_that_is_no_text_is_none() -> None:
    entry = {"id": [1], "function": {"name": "get", "arguments": A}, "extra_content": {"google": {}}}
    assert text_and_calls(text_chunk("Hi", tool_calls=[entry])) == ("Hi", [("get", {"a": 1})])


def gemini(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(parts)}, "finishReason": "STOP"}]}


def test_gemini_reads_the_text_beside_an_empty_call() -> None:
    for filler in ({}, {"name": "", "args": {}}):
        assert text_and_calls(gemini({"text": "Hello", "functionCall": filler}), reader=GeminiReader) == ("Hello", [])


def test_a_server_of_gemini_that_says_all_again_makes_its_call_once() -> None:
    call = {"functionCall": {"name": "get", "args": {"a": 1}}}
    texts = ["Let me look", "Let me look that", "Let me look that up"]
    chunks = [gemini({"text": text}) for text in texts]
    text, calls = text_and_calls(*chunks, *(gemini({"text": texts[-1]}, call) for _ in range(2)), reader=GeminiReader)
    assert (text, calls) == (texts[-1], [("get", {"a": 1})])


@pytest.mark.parametrize(
    "pieces",
    [
        [piece("get", "{}", index=0), piece("get", A, index=0)],
        [piece("get", "{}"), piece("get", A)],
        [piece("get", {}), piece("get", {"a": 1})],
        [piece("get", "{", index=0), piece("get", "}", index=0), piece("get", A, index=0)],
        [piece("get", A, index=0), piece("get", "{}", index=0)],
        [piece("get", "", id="a"), piece("get", A, id="b"), piece("get", "", id="c")],
    ],
)
def test_one_call_or_two_runs_once_and_the_rest_is_heard(pieces: list[dict[str, Any]]) -> None:
    """Either two calls, or one whose name is repeated in each piece."""
    calls = outcome(*pieces)
    assert [arguments for _, arguments, has_failed in calls if not has_failed] == [{"a": 1}]
    assert sum(has_failed for _, _, has_failed in calls) == len(calls) - 1 > 0


@pytest.mark.parametrize("more", [{}, {"index": 0}])
def test_calls_with_ids_of_their_own_are_calls_of_their_own(more: dict[str, Any]) -> None:
    """Ollama (ollama/ollama#15457) sends each call whole in its chunk, all with index 0."""
    calls = [piece("get", arguments, id=f"c{number}", **more) for number, arguments in enumerate(("{}", A, A, "{}"))]
    assert outcome(*calls) == [("get", arguments, False) for arguments in ({}, {"a": 1}, {"a": 1}, {})]


@pytest.mark.parametrize("more", [{}, {"index": 0}])
def test_where_only_heads_are_named_a_name_begins_a_call(more: dict[str, Any]) -> None:
    pieces = [piece("get", '{"a":', **more), piece(None, " 1}", **more), piece("get", "", **more)]
    assert text_and_calls(*pieces, piece(None, "{}", **more))[1] == [("get", {"a": 1}), ("get", {})]
    twice = [piece("get", A, **more), piece(None, A, **more), piece("get", "{}", **more), piece(None, "{}", **more)]
    assert text_and_calls(*twice)[1] == [("get", {"a": 1}), ("get", {})]


def test_equal_calls_in_one_list_are_several() -> None:
    entries = [{"id": call_id, "index": 0, "function": {"name": "roll", "arguments": "{}"}} for call_id in "ab"]
    assert text_and_calls(text_chunk("", tool_calls=entries))[1] == [("roll", {}), ("roll", {})]


def test_no_call_in_pieces_runs_with_empty_arguments_or_twice() -> None:
    rnd = random.Random(3)
    for _ in range(400):
        text = rnd.choice(['{"a": "Paris, France", "b": [1, {"c": null}]}', '{"path": "/x", "n": 2}'])
        cut = rnd.randint(1, len(text) - 1)
        pieces = ["", text[:cut], text[cut:], ""]
        ways = [["", text], ["{}", text], [text, text], [text, ""], pieces, pieces[1:3], [text[:cut], text]]
        ids, indices, names = rnd.choice(["head", "each", "new", "none"]), rnd.random() < 0.5, rnd.random() < 0.5
        chunks: list[dict[str, Any]] = []
        for index, arguments in enumerate(rnd.choice(ways)):
            more: dict[str, Any] = {"index": 0} if indices else {}
            if ids in ("each", "new") or (ids == "head" and not index):
                more["id"] = f"c{index}" if ids == "new" else "c"
            chunks.append(piece("get" if names or not index else None, arguments, **more))
        calls = outcome(*chunks)
        ran = [parsed for _, parsed, has_failed in calls if not has_failed]
        if names and ids == "new":  # calls of their own, by all that can be seen
            ran = ran[-1:]
        assert ran == [json.loads(text)], chunks
        # Only repeated names may be separate calls.
        assert len(calls) == 1 or (names and ids in ("new", "none")), chunks


@pytest.mark.parametrize(
    "candidates",
    [
        [{"index": 1, "content": {"parts": [{"text": "Hello"}]}, **STOP}],
        {"content": {"parts": [{"text": "Hello"}]}, **STOP},
        [{"content": [{"role": "model", "parts": [{"text": "Hel"}]}, {"parts": [{"text": "lo"}]}], **STOP}],
        [{"index": 1, "content": {"parts": [{"text": "no"}]}}, {"content": {"parts": [{"text": "Hello"}]}, **STOP}],
    ],
)
def test_gemini_is_read_in_the_shapes_of_gateways(candidates: Any) -> None:
    assert text_and_calls({"candidates": candidates}, reader=GeminiReader) == ("Hello", [])


def test_text_beside_an_error_is_kept_and_an_error_of_nothing_is_none() -> None:
    def text_and_failure(chunk: dict[str, Any]) -> tuple[str, bool]:
        builder = PartBuilder("p")
        frames = FrameReader(builder, {})
        frames.read(("", chunk))
        text = "".join(event.text for event in builder.take_events() if isinstance(event, ContentDelta))
        return text, frames.failure is not None

    assert text_and_failure({**text_chunk("Hello"), "error": {"message": "overloaded"}}) == ("Hello", True)
    assert text_and_failure(
        {"choices": [{**text_chunk("Hello")["choices"][0], "error": {"message": "overloaded"}}]}
    ) == ("Hello", True)
    assert text_and_failure({**text_chunk("Hello"), "error": {"code": 0, "message": ""}}) == ("Hello", False)


@pytest.mark.parametrize("field", ["text", "message"])
def test_a_finish_reason_on_every_chunk_is_no_end_where_text_stands_elsewhere(field: str) -> None:
    frames = FrameReader(PartBuilder("p"), {})
    for piece_ in ("Hel", "lo"):
        value: Any = piece_ if field == "text" else {"content": piece_}
        frames.read(("", {"choices": [{"index": 0, field: value, "finish_reason": "stop"}]}))
    assert not frames.has_ended


@pytest.mark.parametrize(
    ("arguments", "calls"), [('{"a":', []), ("", []), (A, [("f", {"a": 1})])], ids=["half", "not begun", "whole"]
)
def test_a_finish_reason_on_every_chunk_makes_no_call_whole(arguments: str, calls: list[tuple[str, Any]]) -> None:
    chunks = [text_chunk("Look: "), piece("f", arguments, id="c1")]
    for chunk in chunks:
        chunk["choices"][0]["finish_reason"] = "stop"
    assert text_and_calls(*chunks) == ("Look: ", calls)


def test_an_end_mark_under_the_name_of_an_error_is_an_error() -> None:
    frames = AnthropicReader(PartBuilder("p"), {})
    frames.read(("error", DONE))
    assert "the stream carried an error without a message" in str(frames.failure)
