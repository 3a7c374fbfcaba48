"""Every recorded stream, whole and in pieces, in memory and over a real connection."""

from pathlib import Path

import pytest

from desktop_agent.providers.dialects.openai_chat import OpenAIChat
from desktop_agent.providers.transport.http_client import HttpClient
from tests.desktop_agent.providers.canon import ask, cut_at, expected, fold, matches, pieces, recordings, splits
from tests.desktop_agent.providers.loopback import Loopback, Reply

STREAMS = recordings("openai-chat", "compat")
DATA = {path: path.read_bytes() for path in STREAMS}
SIZES = (0, 1, 2, 3, 7, 4096)


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def test_there_are_recordings() -> None:
    assert len(STREAMS) >= 15


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("path", STREAMS, ids=name)
def test_in_memory(path: Path, size: int) -> None:
    matches(fold(pieces(path.read_bytes(), size)), expected(path)["events"])


@pytest.mark.parametrize("path", STREAMS, ids=name)
def test_cut_anywhere_and_at_the_mean_offsets(path: Path) -> None:
    data = path.read_bytes()
    whole = fold([data])
    for offset in {*splits(path), *range(1, len(data), 5)}:
        assert fold(cut_at(data, [offset])) == whole
    assert fold(cut_at(data, splits(path))) == whole


@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize("path", STREAMS, ids=name)
async def test_over_a_connection(path: Path, size: int) -> None:
    about = expected(path)
    http = HttpClient()
    reply = Reply(pieces(DATA[path], size), about["http_status"], about["headers"])
    async with Loopback(reply) as server:
        found = await ask(OpenAIChat(base_url=server.url, api_key=None, http=http))
        matches(found, about["events"])
        await http.aclose()


@pytest.mark.parametrize("framing", ["length", "close"])
@pytest.mark.parametrize("path", STREAMS, ids=name)
async def test_with_other_framings(path: Path, framing: str) -> None:
    about = expected(path)
    http = HttpClient()
    reply = Reply(cut_at(DATA[path], splits(path)), about["http_status"], about["headers"], framing)  # type: ignore[arg-type]
    async with Loopback(reply) as server:
        matches(await ask(OpenAIChat(base_url=server.url, api_key=None, http=http)), about["events"])
        await http.aclose()
