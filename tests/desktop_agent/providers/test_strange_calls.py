"""Calls as servers write them that disagree about ids, indices and names: read in one way, or told as failed."""

import json
import random
from collections.abc import Iterable
from typing import Any

import pytest

from desktop_agent.providers.dialects.gemini.response_stream import FrameReader as GeminiReader
from desktop_agent.providers.dialects.openai_chat.response_stream import FrameReader
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.provider_events import ContentDelta

A = '{"a": 1}'
STOP = {"finishReason": "STOP"}


def read(*chunks: dict[str, Any], reader: Any = FrameReader) -> tuple[str, list[tuple[str, Any]]]:
    """The text and the calls; of a call that failed, what it said."""
    builder = PartBuilder("p", may_repeat=True)
    frames = reader(builder, {})
    for chunk in chunks:
        frames.read(("", chunk))
    frames.end()
    events = builder.take_events()
    calls = [(each.name, each.input if each.malformed is None else each.malformed) for each in uses(events)]
    return "".join(each.text for each in events if isinstance(each, ContentDelta)), calls


def uses(events: Iterable[object]) -> list[ToolUse]:
    return [each for each in events if isinstance(each, ToolUse)]


def outcome(*chunks: dict[str, Any]) -> list[tuple[str, Any, bool]]:
    """Each call, and whether it failed."""
    builder = PartBuilder("p", may_repeat=True)
    frames = FrameReader(builder, {})
    for chunk in chunks:
        frames.read(("", chunk))
    frames.end()
    return [(each.name, each.input, each.malformed is not None) for each in uses(builder.take_events())]


def piece(name: str | None, arguments: Any, **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return {"choices": [{"delta": {"tool_calls": [{**more, "function": function}]}}]}


def said(text: str, **more: Any) -> dict[str, Any]:
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
    assert read(*pieces)[1] == [("get", {"a": 1})]


@pytest.mark.parametrize("more", [{"index": 0}, {}])
@pytest.mark.parametrize("arguments", ["", "{}", '{"b": 2}'])
def test_another_name_beside_the_same_id_is_another_call(more: dict[str, Any], arguments: str) -> None:
    calls = read(piece("get", A, id="x", **more), piece("put", arguments, id="x", **more))[1]
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
    assert read(said("Hel", **more), said("lo", **more)) == ("Hello", [])


def test_calls_beside_the_delta_and_beside_the_choices_are_read() -> None:
    call = {"id": "x", "function": {"name": "get", "arguments": A}}
    beside = {"choices": [{"index": 0, "delta": {"content": "Hi"}, "tool_calls": [call]}]}
    assert read(beside) == ("Hi", [("get", {"a": 1})])
    assert read({**said("Hi"), "tool_calls": [call]}) == ("Hi", [("get", {"a": 1})])


def test_an_id_that_is_no_text_is_none() -> None:
    entry = {"id": [1], "function": {"name": "get", "arguments": A}, "extra_content": {"google": {}}}
    assert read(said("Hi", tool_calls=[entry])) == ("Hi", [("get", {"a": 1})])


def gemini(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(parts)}, "finishReason": "STOP"}]}


def test_gemini_reads_the_text_beside_an_empty_call() -> None:
    for filler in ({}, {"name": "", "args": {}}):
        assert read(gemini({"text": "Hello", "functionCall": filler}), reader=GeminiReader) == ("Hello", [])


def test_a_server_of_gemini_that_says_all_again_makes_its_call_once() -> None:
    call = {"functionCall": {"name": "get", "args": {"a": 1}}}
    texts = ["Let me look", "Let me look that", "Let me look that up"]
    chunks = [gemini({"text": text}) for text in texts]
    text, calls = read(*chunks, *(gemini({"text": texts[-1]}, call) for _ in range(2)), reader=GeminiReader)
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
    """Two true calls, or one that is named again in each piece."""
    calls = outcome(*pieces)
    assert [arguments for _, arguments, has_failed in calls if not has_failed] == [{"a": 1}]
    assert sum(has_failed for _, _, has_failed in calls) == len(calls) - 1 > 0


@pytest.mark.parametrize("more", [{}, {"index": 0}])
def test_calls_with_ids_of_their_own_are_calls_of_their_own(more: dict[str, Any]) -> None:
    """Ollama (ollama/ollama#15457): each call whole in its chunk, all of them under number 0."""
    calls = [piece("get", each, id=f"c{at}", **more) for at, each in enumerate(("{}", A, A, "{}"))]
    assert outcome(*calls) == [("get", each, False) for each in ({}, {"a": 1}, {"a": 1}, {})]


@pytest.mark.parametrize("more", [{}, {"index": 0}])
def test_where_only_heads_are_named_a_name_begins_a_call(more: dict[str, Any]) -> None:
    pieces = [piece("get", '{"a":', **more), piece(None, " 1}", **more), piece("get", "", **more)]
    assert read(*pieces, piece(None, "{}", **more))[1] == [("get", {"a": 1}), ("get", {})]
    twice = [piece("get", A, **more), piece(None, A, **more), piece("get", "{}", **more), piece(None, "{}", **more)]
    assert read(*twice)[1] == [("get", {"a": 1}), ("get", {})]


def test_equal_calls_in_one_list_are_several() -> None:
    entries = [{"id": each, "index": 0, "function": {"name": "roll", "arguments": "{}"}} for each in "ab"]
    assert read(said("", tool_calls=entries))[1] == [("roll", {}), ("roll", {})]


def test_no_call_in_pieces_runs_with_empty_arguments_or_twice() -> None:
    rnd = random.Random(3)
    for _ in range(400):
        text = rnd.choice(['{"a": "Paris, France", "b": [1, {"c": null}]}', '{"path": "/x", "n": 2}'])
        cut = rnd.randint(1, len(text) - 1)
        pieces = ["", text[:cut], text[cut:], ""]
        ways = [["", text], ["{}", text], [text, text], [text, ""], pieces, pieces[1:3], [text[:cut], text]]
        ids, indices, names = rnd.choice(["head", "each", "new", "none"]), rnd.random() < 0.5, rnd.random() < 0.5
        chunks: list[dict[str, Any]] = []
        for place, each in enumerate(rnd.choice(ways)):
            more: dict[str, Any] = {"index": 0} if indices else {}
            if ids in ("each", "new") or (ids == "head" and not place):
                more["id"] = f"c{place}" if ids == "new" else "c"
            chunks.append(piece("get" if names or not place else None, each, **more))
        calls = outcome(*chunks)
        ran = [found for _, found, has_failed in calls if not has_failed]
        if names and ids == "new":  # calls of their own, by all that can be seen
            ran = ran[-1:]
        assert ran == [json.loads(text)], chunks
        # Only names that come again may be calls of their own.
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
    assert read({"candidates": candidates}, reader=GeminiReader) == ("Hello", [])


def test_text_beside_an_error_is_kept_and_an_error_of_nothing_is_none() -> None:
    def told(chunk: dict[str, Any]) -> tuple[str, bool]:
        builder = PartBuilder("p")
        frames = FrameReader(builder, {})
        frames.read(("", chunk))
        text = "".join(each.text for each in builder.take_events() if isinstance(each, ContentDelta))
        return text, frames.failure is not None

    assert told({**said("Hello"), "error": {"message": "overloaded"}}) == ("Hello", True)
    assert told({"choices": [{**said("Hello")["choices"][0], "error": {"message": "overloaded"}}]}) == ("Hello", True)
    assert told({**said("Hello"), "error": {"code": 0, "message": ""}}) == ("Hello", False)


@pytest.mark.parametrize("way", ["text", "message"])
def test_a_finish_reason_on_every_chunk_is_no_end_where_text_stands_elsewhere(way: str) -> None:
    frames = FrameReader(PartBuilder("p"), {})
    for piece_ in ("Hel", "lo"):
        value: Any = piece_ if way == "text" else {"content": piece_}
        frames.read(("", {"choices": [{"index": 0, way: value, "finish_reason": "stop"}]}))
    assert not frames.has_ended
