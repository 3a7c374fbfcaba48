"""Every recorded stream of every dialect, cut at every offset in memory, and sent over a real connection.

A reader sees frames and no bytes, so that equal frames make equal events: all cuttings are compared as frames, which
costs a tenth, and folded to events once.
"""

import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from desktop_agent.providers.dialects.anthropic.response_stream import FrameReader as AnthropicReader
from desktop_agent.providers.dialects.gemini.response_stream import FrameReader as GeminiReader
from desktop_agent.providers.dialects.openai_chat.response_stream import FrameReader as ChatReader
from desktop_agent.providers.dialects.openai_responses.response_stream import ResponsesReader
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.provider import make_provider
from desktop_agent.providers.text_builder import ThinkTags
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.providers.transport.sse import Frame, SseDecoder
from tests.fakes.http_server import Loopback, Reply
from tests.fakes.recordings import ask, counted_ids, cut_at, expected, fold_frames, matches, pieces, recordings, splits
from tests.fakes.vendor_streams import ROOTS

READERS: dict[str, tuple[str, Callable[..., Any]]] = {
    "openai-chat": ("openai-compat", ChatReader),
    "compat": ("openai-compat", ChatReader),
    "openai-responses": ("openai-responses", ResponsesReader),
    "anthropic": ("anthropic", AnthropicReader),
    "gemini": ("gemini", GeminiReader),
}
STREAMS = recordings(*READERS)
ALL_OFFSETS = 1600
SIZES = (1, 2, 3, 7, 4096)
Framing = Literal["chunked", "length", "close"]
WAYS: tuple[tuple[int, Framing], ...] = tuple(itertools.product((0, 1, 7), ("chunked", "length", "close")))


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def frames_of(chunks: list[bytes]) -> tuple[list[Frame], int, str]:
    """Return the frames, the number of bad events, and the first unexpected line."""
    decoder = SseDecoder()
    frames = [frame for chunk in chunks for frame in decoder.feed(chunk)] + decoder.finish()
    return frames, decoder.bad_events, decoder.unexpected_line


def fold(path: Path, frames: list[Frame]) -> list[dict[str, Any]]:
    provider, reader = READERS[path.parent.name]
    tags = ThinkTags() if provider.startswith("openai") else None
    builder = PartBuilder(provider, tags=tags, call_id=counted_ids(), may_repeat=True)
    return fold_frames(frames, builder, reader(builder, {}))


@pytest.mark.parametrize("path", STREAMS, ids=name)
def test_the_cutting_makes_no_difference(path: Path) -> None:
    data = path.read_bytes()
    uncut = frames_of([data])
    matches(fold(path, uncut[0]), expected(path)["events"])
    for size in SIZES:
        assert frames_of(pieces(data, size)) == uncut, size
    chance = random.Random(path.name)
    cuttings = [chance.sample(range(1, len(data)), chance.randint(1, 12)) for _ in range(25)]
    for offsets in (splits(path), *cuttings):
        assert frames_of(cut_at(data, offsets)) == uncut, offsets
    # A long stream repeats the same shapes, so fewer offsets are enough.
    step = 1 if len(data) <= ALL_OFFSETS else 1 + len(data) // 400
    for offset in {*splits(path), *range(1, len(data), step)}:
        assert frames_of(cut_at(data, [offset])) == uncut, offset


def of_medium_length(folder: str) -> Path:
    streams = sorted(recordings(folder), key=lambda path: path.stat().st_size)
    return streams[len(streams) // 2]


def connections() -> list[tuple[Path, int, Framing]]:
    """Return each stream once with alternating sizes and framings, and one stream of each dialect with all."""
    once = [(path, *WAYS[number % len(WAYS)]) for number, path in enumerate(STREAMS)]
    all_ways = [(of_medium_length(folder), *framing_and_size) for folder in READERS for framing_and_size in WAYS]
    return list(dict.fromkeys([*once, *all_ways]))


@pytest.mark.parametrize(
    ("path", "size", "framing"), connections(), ids=lambda value: name(value) if isinstance(value, Path) else str(value)
)
async def test_over_a_connection(path: Path, size: int, framing: Framing) -> None:
    recording = expected(path)
    http = HttpClient()
    dialect = "openai-chat" if path.parent.name == "compat" else path.parent.name
    reply = Reply(pieces(path.read_bytes(), size), recording["http_status"], recording["headers"], framing)  # noqa: ASYNC240 - nothing else waits here
    async with Loopback(reply) as server:
        received = await ask(make_provider(dialect, f"{server.root}/{ROOTS[dialect]}", None, http))
        matches(received, recording["events"])
        await http.aclose()


def test_there_are_strange_ones_of_every_dialect() -> None:
    assert len(STREAMS) >= 110
    assert all(len(recordings(folder)) >= 5 for folder in READERS)
