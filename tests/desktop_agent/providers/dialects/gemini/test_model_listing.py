"""Model listings: pages, entries that are not chat models, and responses that are no listing."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from desktop_agent.providers.dialects.gemini.adapter import fetch_models
from desktop_agent.types.errors import AuthenticationFailed, ProviderError, UnreadableAnswer
from desktop_agent.types.providers import Capabilities, ModelInfo

FLASH = {
    "name": "models/gemini-3.8-flash",
    "displayName": "Gemini 3.8 Flash",
    "inputTokenLimit": 1048576,
    "outputTokenLimit": 65536,
    "supportedGenerationMethods": ["generateContent", "countTokens"],
    "thinking": True,
}


def server(*pages: Any) -> tuple[Callable[[dict[str, str]], Awaitable[bytes]], list[dict[str, str]]]:
    queries: list[dict[str, str]] = []

    async def fetch(query: dict[str, str]) -> bytes:
        queries.append(query)
        page = pages[min(len(queries), len(pages)) - 1]
        return page if isinstance(page, bytes) else json.dumps(page).encode()

    return fetch, queries


async def test_all_pages_and_only_models_that_answer() -> None:
    embedding = {"name": "models/e", "supportedGenerationMethods": ["embedContent"]}
    plain = {"name": "models/plain", "inputTokenLimit": 0, "thinking": "yes"}
    fetch, queries = server(
        {"models": [FLASH, embedding], "nextPageToken": "p2"}, {"models": [FLASH, plain, {}, {"name": "models/"}, 3]}
    )
    assert await fetch_models(fetch) == (
        ModelInfo(
            "gemini-3.8-flash",
            "Gemini 3.8 Flash",
            Capabilities(context_window=1048576, max_output_tokens=65536, reasoning=True),
        ),
        ModelInfo("plain"),
    )
    assert queries == [{"pageSize": "1000"}, {"pageSize": "1000", "pageToken": "p2"}]


async def test_pages_that_never_end() -> None:
    fetch, queries = server({"models": [FLASH], "nextPageToken": "again"})
    assert len(await fetch_models(fetch)) == 1
    assert len(queries) == 2
    fresh, queries = server(*({"models": [], "nextPageToken": str(number)} for number in range(100)))
    assert await fetch_models(fresh) == ()
    assert len(queries) == 20


async def test_a_server_without_models() -> None:
    assert await fetch_models(server({})[0]) == ()


@pytest.mark.parametrize(
    ("page", "error_type"),
    [
        (b"<html>", UnreadableAnswer),
        ([], UnreadableAnswer),
        ({"data": []}, UnreadableAnswer),
        ({"error": {"code": 400, "details": [{"reason": "API_KEY_INVALID"}]}}, AuthenticationFailed),
    ],
)
async def test_what_is_no_listing(page: Any, error_type: type[ProviderError]) -> None:
    with pytest.raises(error_type):
        await fetch_models(server(page)[0])
