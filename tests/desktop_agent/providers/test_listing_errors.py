"""Errors that servers send in place of a model listing, with status 200 and in their own formats."""

import json
from typing import Any

import pytest
from pydantic import SecretStr

from desktop_agent.providers.provider import make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.errors import AuthenticationFailed, InvalidRequest, ProviderError, UnreadableAnswer
from desktop_agent.types.providers import ModelInfo
from tests.fakes.http_server import Loopback, Reply
from tests.fakes.vendor_streams import DIALECTS, ROOTS

JSON = {"content-type": "application/json"}
WORDS = "no such plan"


async def listed(dialect: str, body: Any) -> tuple[ModelInfo, ...]:
    http = HttpClient()
    try:
        async with Loopback(Reply(json.dumps(body).encode(), headers=JSON, framing="length")) as server:
            return await make_provider(
                dialect, f"{server.root}/{ROOTS[dialect]}", SecretStr("sk-key"), http
            ).list_models()
    finally:
        await http.aclose()


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("body", "error_type"),
    [
        ({"object": "error", "message": WORDS, "code": 401}, AuthenticationFailed),
        ({"code": 401, "msg": WORDS, "data": None}, AuthenticationFailed),
        ([{"error": {"code": 400, "message": WORDS, "status": "INVALID_ARGUMENT"}}], InvalidRequest),
        # A server may say so if it lists nothing; then the person can type a model.
        ({"message": WORDS}, UnreadableAnswer),
        ({"detail": WORDS}, UnreadableAnswer),
        ({"success": False, "msg": WORDS}, UnreadableAnswer),
        ({"errors": [{"message": WORDS}]}, UnreadableAnswer),
    ],
)
async def test_an_error_in_place_of_models_is_told(dialect: str, body: Any, error_type: type[ProviderError]) -> None:
    with pytest.raises(ProviderError, match=WORDS) as caught:
        await listed(dialect, body)
    assert type(caught.value) is error_type


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
async def test_an_empty_listing_is_an_error_only_where_it_says_so(dialect: str) -> None:
    answers: list[Any] = [{"object": "list", "data": None}, {"data": [], "message": "ok"}, []]
    for empty in answers:
        assert await listed(dialect, empty) == ()
    with pytest.raises(UnreadableAnswer, match=WORDS):
        await listed(dialect, {"success": False, "message": WORDS, "data": []})


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_error_of_zeros_and_empty_words_is_none(dialect: str) -> None:
    entries = {"data": [{"id": "m"}], "models": [{"name": "models/m"}]}
    assert [model.id for model in await listed(dialect, {**entries, "error": {"code": 0, "message": ""}})] == ["m"]
