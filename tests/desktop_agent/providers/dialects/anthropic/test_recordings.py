"""Every recorded stream, whole and in pieces, in memory and over a real connection."""

from pathlib import Path
from typing import Any

import pytest

from desktop_agent.providers.dialects.anthropic import Anthropic
from desktop_agent.providers.dialects.anthropic.frames import FrameReader
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport.http_client import HttpClient
from tests.desktop_agent.providers.canon import (
    ask,
    counted_ids,
    cut_at,
    expected,
    fold_with,
    matches,
    pieces,
    recordings,
    splits,
)
from tests.desktop_agent.providers.loopback import Loopback, Reply

STREAMS = recordings("anthropic")
DATA = {path: path.read_bytes() for path in STREAMS}


def name(path: Path) -> str:
    return path.stem


def fold(chunks: list[bytes]) -> list[dict[str, Any]]:
    builder = PartBuilder("anthropic", call_id=counted_ids(), repeats=True)
    return fold_with(chunks, builder, FrameReader(builder, {}))


def test_there_are_recordings() -> None:
    assert len(STREAMS) >= 7


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 4096])
@pytest.mark.parametrize("path", STREAMS, ids=name)
def test_in_memory(path: Path, size: int) -> None:
    matches(fold(pieces(DATA[path], size)), expected(path)["events"])


@pytest.mark.parametrize("path", STREAMS, ids=name)
def test_cut_anywhere_and_at_the_mean_offsets(path: Path) -> None:
    data = DATA[path]
    whole = fold([data])
    for offset in {*splits(path), *range(1, len(data), 5)}:
        assert fold(cut_at(data, [offset])) == whole
    assert fold(cut_at(data, splits(path))) == whole


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("size", [0, 7])
@pytest.mark.parametrize("path", STREAMS, ids=name)
async def test_over_a_connection(path: Path, size: int, framing: Any) -> None:
    about = expected(path)
    http = HttpClient()
    reply = Reply(pieces(DATA[path], size), about["http_status"], about["headers"], framing)
    async with Loopback(reply) as server:
        found = await ask(Anthropic(base_url=server.url, api_key=None, http=http))
        matches(found, about["events"])
        await http.aclose()
