"""Every recorded stream, cut everywhere: small ones at each single byte, all of them at random places."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.providers.dialects.anthropic.frames import FrameReader as AnthropicReader
from desktop_agent.providers.dialects.gemini.frames import FrameReader as GeminiReader
from desktop_agent.providers.dialects.openai_chat.frames import FrameReader as ChatReader
from desktop_agent.providers.dialects.openai_responses.frames import FrameReader as ResponsesReader
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.think_tags import ThinkTags
from tests.desktop_agent.providers.canon import counted_ids, cut_at, expected, fold_with, matches, pieces, recordings

READERS: dict[str, tuple[str, Callable[..., Any]]] = {
    "openai-chat": ("openai-compat", ChatReader),
    "compat": ("openai-compat", ChatReader),
    "openai-responses": ("openai-responses", ResponsesReader),
    "anthropic": ("anthropic", AnthropicReader),
    "gemini": ("gemini", GeminiReader),
}
STREAMS = recordings(*READERS)
SMALL = 1600


def fold(path: Path, chunks: list[bytes]) -> list[dict[str, Any]]:
    provider, reader = READERS[path.parent.name]
    tags = ThinkTags() if provider.startswith("openai") else None
    builder = PartBuilder(provider, tags=tags, call_id=counted_ids(), repeats=True)
    return fold_with(chunks, builder, reader(builder, {}))


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_cutting_makes_no_difference(path: Path) -> None:
    data = path.read_bytes()
    whole = fold(path, [data])
    matches(whole, expected(path)["events"])
    assert fold(path, pieces(data, 1)) == whole
    chance = random.Random(path.name)
    for _ in range(25):
        assert fold(path, cut_at(data, chance.sample(range(1, len(data)), chance.randint(1, 12)))) == whole
    for offset in range(1, len(data)) if len(data) <= SMALL else ():
        assert fold(path, cut_at(data, [offset])) == whole, offset


def test_there_are_strange_ones() -> None:
    assert len(STREAMS) >= 110
