"""Servers that repeat the whole text, and text that repeats itself: over real sockets, and without."""

import json
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.providers.dialects.openai_chat.response_stream import FrameReader
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.provider import make_provider
from desktop_agent.providers.text_builder import RepeatFilter
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.blocks import JsonObject, ToolUse
from desktop_agent.types.errors import Truncated
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import ModelRequest
from tests.desktop_agent.providers.test_strange_servers import answer_of, failure_of, head, raw
from tests.fakes.http_server import chunk, sse
from tests.frame.examples import examples

LINE = "I will not talk in class.\n"
ROW = "Row, row, row your boat\n"
WHOLE = "The moon is a stone, said the wise one."


def filtered(*pieces: str) -> str:
    repeated = RepeatFilter()
    return "".join(repeated.fresh(piece) for piece in pieces) + repeated.flush()


def message(content: str) -> bytes:
    return sse({"choices": [{"index": 0, "message": {"content": content}, "finish_reason": "stop"}]})


@pytest.mark.parametrize("finish", [None, "stop"], ids=["plain", "finish on every chunk"])
@pytest.mark.parametrize(
    "pieces",
    [
        (LINE,) * 10,
        (ROW, ROW, "Row", " gently ", "Row, ", "end"),
        (ROW, f"{ROW}Row", " gently ", "Row, ", "end"),
        ("ha", "haha", "hah", "!"),
        ("Yes.", "Yes.", " Yes.", "Yes."),
    ],
    ids=["lines", "song", "song in one piece", "laughter", "yes"],
)
async def test_text_that_repeats_itself_is_kept(pieces: tuple[str, ...], finish: str | None) -> None:
    chunks = [chunk({"content": piece}, finish=finish) for piece in pieces]
    async with raw(head(), sse(*chunks, chunk(finish="stop"))) as address:
        assert await answer_of(address) == "".join(pieces)


@pytest.mark.parametrize("size", [1, 3, 7, 20])
def test_a_growing_whole_is_said_once(size: int) -> None:
    growing = [WHOLE[:end] for end in range(size, len(WHOLE), size)]
    assert filtered(*growing, WHOLE) == WHOLE
    assert filtered(*growing, WHOLE, WHOLE, "") == WHOLE


ALIKE = {
    "refrain": [f"Verse {number} of the song.\n{line}" for number in range(4) for line in (ROW, ROW, LINE)],
    "log": ["GET / 200 OK\n"] * 6 + ["GET / 404\n"] + ["GET / 200 OK\n"] * 6,
    "rows": ["name,amount\n", "apple,1\n", "apple,1\n", "apple,10\n", "apple,1\n"] * 3,
    "table": ["| --- |", " --- |\n", "| --- |", " --- |\n"] * 4,
    "numbers": ["1", "1", "11", "1", "0", "10"] * 3,
    "code": ["print(", "print(x)", ")\n", "print(", "x", ")\n"],
}


def text_read(pieces: Sequence[str], finish: str | None) -> str:
    """Return the text that the reader makes of a stream of deltas."""
    builder = PartBuilder("p", may_repeat=True)
    reader = FrameReader(builder, {})
    for piece in pieces:
        reader.read(("", chunk({"content": piece}, finish=finish)))
    reader.read(("", chunk(finish="stop")))
    reader.end()
    return "".join(event.text for event in builder.take_events() if isinstance(event, ContentDelta))


@pytest.mark.parametrize("finish", [None, "stop"], ids=["plain", "finish on every chunk"])
@pytest.mark.parametrize("name", ALIKE)
def test_lines_that_are_alike_come_through(name: str, finish: str | None) -> None:
    """In one piece per line, and cut anywhere else."""
    text = "".join(ALIKE[name])
    assert text_read(ALIKE[name], finish) == text
    chance = random.Random(name)
    for _ in range(40):
        offsets = sorted(chance.sample(range(1, len(text)), chance.randint(len(text) // 8, len(text) - 1)))
        assert text_read(cut(text, offsets), finish) == text, offsets


@settings(max_examples=examples(100), deadline=None)
@given(st.text(alphabet="ab \nß😀", min_size=1, max_size=200), st.integers(1, 23), st.sampled_from([None, "stop"]))
def test_any_text_in_equal_pieces_comes_through(text: str, size: int, finish: str | None) -> None:
    assert text_read(cut(text, range(size, len(text), size)), finish) == text


def cut(text: str, offsets: Sequence[int]) -> list[str]:
    return [text[first:end] for first, end in zip([0, *offsets], [*offsets, len(text)], strict=True)]


def test_a_server_that_stops_growing_is_believed() -> None:
    assert filtered("The moon", "The moon is", "The moon is a", " stone", "The moon") == "The moon is a stoneThe moon"


@pytest.mark.parametrize(
    ("pieces", "whole", "expected"),
    [
        (("Hello there, ", "my friend."), "Hello there, my friend.", "Hello there, my friend."),
        ((" Hello there, my",), "Hello there, my friend.", " Hello there, my friend."),
        (("Hello there.\n",), "Hello there.", "Hello there.\n"),
        (("<think>hm</think>Hello there, my friend.",), "Hello there, my friend.", "Hello there, my friend."),
        (("<think>hm</think>\n\nHello there",), "Hello there, my friend.", "Hello there, my friend."),
        (("Something else was said.",), "Hello there, my friend.", "Something else was said."),
        ((), "Hello there, my friend.", "Hello there, my friend."),
    ],
    ids=["equal", "blank before", "blank behind", "tags", "tags and a tail", "differs", "alone"],
)
async def test_the_whole_at_the_end_adds_what_was_lost_alone(
    pieces: tuple[str, ...], whole: str, expected: str
) -> None:
    chunks = [chunk({"content": piece}) for piece in pieces]
    async with raw(head(), sse(*chunks, done=False), message(whole)) as address:
        assert await answer_of(address) == expected


def test_a_whole_that_says_something_else_is_told() -> None:
    repeated = RepeatFilter()
    repeated.fresh("Something else was said.")
    assert repeated.missing_text(WHOLE) == ""
    assert repeated.differs


def gemini(text: str) -> bytes:
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0}
    return f"data: {json.dumps({'candidates': [candidate]})}\n\n".encode()


@pytest.mark.parametrize("dialect", ["openai-chat", "gemini"])
@pytest.mark.parametrize("end", ["whole", "cut", "in the middle of an event"])
async def test_a_finish_on_every_chunk_is_no_end_mark(dialect: str, end: str) -> None:
    events = [sse(chunk({"content": word}, finish="stop"), done=False) for word in ("one ", "two ", "three")]
    if dialect == "gemini":
        events = [gemini(word) for word in ("one ", "two ", "three")]
    events += [events[-1][:40]] if end == "in the middle of an event" else []
    body = b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in events)
    chunked = head("200 OK", "text/event-stream", "transfer-encoding: chunked")
    async with raw(chunked, body + (b"0\r\n\r\n" if end != "cut" else b"")) as address:
        if end == "whole":
            assert await answer_of(address, dialect) == "one two three"
        else:
            assert isinstance(await failure_of(address, dialect), Truncated)


async def calls_of(address: str) -> list[tuple[str, JsonObject]]:
    http = HttpClient()
    stream = make_provider("openai-chat", f"{address}/v1", None, http).stream(ModelRequest("m", (Message.user("hi"),)))
    try:
        return [(event.name, event.input) async for event in stream if isinstance(event, ToolUse)]
    finally:
        await stream.aclose()
        await http.aclose()


def call(arguments: str, **more: object) -> dict[str, object]:
    return {"function": {"name": "f", "arguments": arguments}, **more}


LARGE = json.dumps({"path": "a", "text": "x" * 100_000})


@pytest.mark.parametrize(
    ("lists", "last", "count"),
    [
        ([[call('{"d": 6}'), call('{"d": 6}')]], None, 2),
        ([[call('{"a": 1}'), call('{"a": 1, "b": 2}')]], None, 2),
        ([[call(LARGE, index=0, id="a")]], [call(LARGE, id="b")], 1),
        ([[call(LARGE, index=0, id="a")]], [call(LARGE.replace(": ", ":"), id="b")], 1),
        ([[call("{}", index=0, id="a")], [call('{"a": 1}', index=0)]], None, 1),
    ],
    ids=["alike in one list", "wider in one list", "large, said again", "large, written otherwise", "empty first"],
)
async def test_calls_are_as_many_as_the_server_made(
    lists: list[list[dict[str, object]]], last: list[dict[str, object]] | None, count: int
) -> None:
    chunks = [chunk({"tool_calls": tool_calls}) for tool_calls in lists]
    message = {"choices": [{"index": 0, "message": {"tool_calls": last}, "finish_reason": "tool_calls"}]}
    async with raw(head(), sse(*chunks, message if last else chunk(finish="tool_calls"))) as address:
        calls = await calls_of(address)
    assert len(calls) == count
    assert all(arguments for _, arguments in calls)


def test_figures_that_begin_alike_are_no_growing_whole() -> None:
    text = RepeatFilter()
    assert "".join(map(text.fresh, ("1", "12", "123"))) + text.flush() == "112123"
