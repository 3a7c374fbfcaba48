"""Every recorded stream, whole and in pieces, in memory and over a real connection."""

from pathlib import Path

import pytest

from desktop_agent.providers.dialects.openai_responses import OpenAIResponses
from desktop_agent.providers.dialects.openai_responses.frames import FrameReader
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

STREAMS = recordings("openai-responses")
DATA = {path: path.read_bytes() for path in STREAMS}
SIZES = (0, 1, 2, 3, 7, 4096)


def fold(chunks: list[bytes]) -> list[dict[str, object]]:
    builder = PartBuilder("openai-responses", call_id=counted_ids(), keeps_arguments=True, repeats=True)
    return fold_with(chunks, builder, FrameReader(builder, {}))


def name(path: Path) -> str:
    return path.stem


def test_there_are_recordings() -> None:
    assert len(STREAMS) >= 8


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("path", STREAMS, ids=name)
def test_in_memory(path: Path, size: int) -> None:
    matches(fold(pieces(path.read_bytes(), size)), expected(path)["events"])


@pytest.mark.parametrize("path", STREAMS, ids=name)
def test_cut_anywhere_and_at_the_mean_offsets(path: Path) -> None:
    data = path.read_bytes()
    whole = fold([data])
    for offset in {*splits(path), *range(1, len(data), 7)}:
        assert fold(cut_at(data, [offset])) == whole
    assert fold(cut_at(data, splits(path))) == whole


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize("path", STREAMS, ids=name)
async def test_over_a_connection(path: Path, size: int, framing: str) -> None:
    about = expected(path)
    http = HttpClient()
    reply = Reply(pieces(DATA[path], size), about["http_status"], about["headers"], framing)  # type: ignore[arg-type]
    async with Loopback(reply) as server:
        found = await ask(OpenAIResponses(base_url=server.url, api_key=None, http=http))
        matches(found, about["events"])
        await http.aclose()
