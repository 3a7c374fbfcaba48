"""Cached prompts, with a real server on loopback."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.dialects.gemini.adapter import Gemini, PromptCaches
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.errors import AuthenticationFailed, CachingNotSupported, InvalidRequest, UnreadableAnswer
from desktop_agent.types.messages import Message
from desktop_agent.types.providers import ModelRequest, ProviderConfig, ToolChoice
from tests.desktop_agent.providers.dialects.gemini.stream import MODEL, chunk, sse
from tests.desktop_agent.providers.dialects.gemini.test_request import TOOL
from tests.desktop_agent.providers.sdk_types import judge_bytes
from tests.fakes.http_server import Loopback, Reply, Request
from tests.fakes.recordings import ask
from tests.frame.patience import PATIENCE

JSON = {"content-type": "application/json"}
TALK = (Message.user("one"), Message.assistant("two"), Message.user("three"))
LONGER = (*TALK, Message.assistant("four"), Message.user("five"))


def question(*messages: Message, **more: Any) -> ModelRequest:
    config = ProviderConfig(system_prompt=more.pop("system_prompt", "s"), show_reasoning=False)
    return ModelRequest(more.pop("model", MODEL), messages, (TOOL,), config=config, **more)


class Google:
    """A server with a prompt cache; `refusal` is the status for requests that use a cached prompt."""

    def __init__(self) -> None:
        self.refusal = 0
        self.lost = False
        self.made = 0

    def __call__(self, request: Request) -> Reply:
        if request.method == "POST" and request.path == "/v1beta/cachedContents":
            assert judge_bytes(request.path, request.body) == []
            self.made += 1
            return self._about(f"cachedContents/c{self.made}")
        if request.method == "PATCH":
            return self._refused(404) if self.lost else self._about(request.path.removeprefix("/v1beta/"))
        if request.method == "DELETE":
            return Reply(b"{}", headers=JSON)
        assert judge_bytes(request.path, request.body) == []
        if "cachedContent" in request.json and self.refusal:
            return self._refused(self.refusal)
        return Reply(sse(chunk({"text": "hi"}, finish="STOP")))

    def _about(self, name: str) -> Reply:
        about = {
            "name": name,
            "expireTime": "2026-11-20T12:00:00.123456789Z",
            "usageMetadata": {"totalTokenCount": 5000},
        }
        return Reply(json.dumps(about).encode(), headers=JSON)

    def _refused(self, status: int) -> Reply:
        return Reply(json.dumps({"error": {"code": status, "message": "gone"}}).encode(), status, JSON)


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()


def gemini(server: Loopback, http: HttpClient) -> Gemini:
    return Gemini(base_url=server.root, api_key=SecretStr("k"), http=http)


def requests_sent(server: Loopback) -> list[str]:
    return [
        f"{request.method} {request.path.removeprefix('/v1beta/').partition(':')[0]}" for request in server.requests
    ]


async def test_what_stands_before_the_question_is_kept_and_left_out(http: HttpClient) -> None:
    async with Loopback(choose=Google()) as server:
        adapter = gemini(server, http)
        cache = await adapter.prompt_cache(question(*TALK), seconds=60)
        assert (cache.name, cache.tokens) == ("cachedContents/c1", 5000)
        assert cache.expires_at is not None
        assert cache.expires_at.year == 2026
        cached = server.requests[0].json
        assert cached.keys() == {"model", "contents", "systemInstruction", "tools", "ttl"}
        assert (cached["model"], cached["ttl"]) == (f"models/{MODEL}", "60s")
        assert [content["parts"][0]["text"] for content in cached["contents"]] == ["one", "two"]
        for talk, remaining in ((TALK, ["three"]), (LONGER, ["three", "four", "five"])):
            await ask(adapter, question(*talk))
            body = server.requests[-1].json
            assert body.keys() == {"contents", "cachedContent"}
            assert body["cachedContent"] == "cachedContents/c1"
            assert [content["parts"][0]["text"] for content in body["contents"]] == remaining


async def test_only_exactly_the_same_beginning_uses_it(http: HttpClient) -> None:
    async with Loopback(choose=Google()) as server:
        adapter = gemini(server, http)
        await adapter.prompt_cache(question(*TALK))
        other_requests = [
            question(*TALK, system_prompt="t"),
            question(*TALK, tool_choice=ToolChoice("required")),
            question(*TALK, model="gemini-3.5-flash"),
            question(Message.user("other"), *TALK[1:]),
            question(Message.user("one")),
            question(*TALK[:2]),
        ]
        for request in other_requests:
            await ask(adapter, request)
            assert "cachedContent" not in server.requests[-1].json
            assert server.requests[-1].json["contents"]


async def test_asking_again_makes_it_last_longer(http: HttpClient) -> None:
    google = Google()
    async with Loopback(choose=google) as server:
        adapter = gemini(server, http)
        await adapter.prompt_cache(question(*TALK))
        again = await adapter.prompt_cache(question(*TALK), seconds=90)
        assert again.name == "cachedContents/c1"
        assert server.requests[-1].method == "PATCH"
        assert server.requests[-1].json == {"ttl": "90s"}
        google.lost = True
        anew = await adapter.prompt_cache(question(*TALK))
        assert anew.name == "cachedContents/c2"


async def test_a_longer_one_takes_its_place_and_the_end_deletes_all(http: HttpClient) -> None:
    async with Loopback(choose=Google()) as server:
        adapter = gemini(server, http)
        await adapter.prompt_cache(question(*TALK))
        await adapter.prompt_cache(question(*LONGER))
        assert requests_sent(server)[-1] == "DELETE cachedContents/c1"
        await ask(adapter, question(*LONGER))
        assert server.requests[-1].json["cachedContent"] == "cachedContents/c2"
        await adapter.aclose()
        await adapter.aclose()
        assert requests_sent(server)[-1] == "DELETE cachedContents/c2"
        assert requests_sent(server).count("DELETE cachedContents/c2") == 1


@pytest.mark.parametrize("status", [400, 403, 404])
async def test_a_lost_one_is_sent_in_full_once(http: HttpClient, status: int) -> None:
    google = Google()
    async with Loopback(choose=google) as server:
        adapter = gemini(server, http)
        await adapter.prompt_cache(question(*TALK))
        google.refusal = status
        assert (await ask(adapter, question(*TALK)))[-1] == {"type": "done"}
        assert "cachedContent" not in server.requests[-1].json
        assert len(server.requests[-1].json["contents"]) == 3
        count = len(server.requests)
        await ask(adapter, question(*TALK))
        assert len(server.requests) == count + 1


async def test_other_refusals_are_not_asked_again(http: HttpClient) -> None:
    google = Google()
    async with Loopback(choose=google) as server:
        adapter = gemini(server, http)
        await adapter.prompt_cache(question(*TALK))
        google.refusal = 500
        events = await ask(adapter, question(*TALK))
        assert events[-1]["kind"] == "server"
        assert len(server.requests) == 2


async def test_after_its_time_it_is_not_used(http: HttpClient) -> None:
    async with Loopback(choose=Google()) as server:
        adapter = gemini(server, http)
        await adapter.prompt_cache(question(*TALK), seconds=1)
        await ask(adapter, question(*TALK))
        assert "cachedContent" not in server.requests[-1].json


async def test_where_it_cannot_be_asked_for(http: HttpClient) -> None:
    table = Catalogue(shipped=True)
    await table.warm_up()
    async with Loopback(choose=Google()) as server:
        adapter = Gemini(base_url=server.root, api_key=None, http=http, catalogue=table)
        for request in (
            question(*TALK, model="gemini-4-argon"),
            question(*TALK, model="models/gemini-4-argon-x"),
            question(*TALK),  # far below the minimum
        ):
            with pytest.raises(CachingNotSupported):
                await adapter.prompt_cache(request)
        long = question(Message.user("word " * 9000), *TALK[1:])
        await adapter.prompt_cache(long)
        assert len(server.requests) == 1
        plain = Gemini(base_url=server.root, api_key=None, http=http)
        with pytest.raises(CachingNotSupported):
            await plain.prompt_cache(ModelRequest(MODEL, (Message.user("alone"),)))


async def test_refusals_of_the_server_come_through(http: HttpClient) -> None:
    small = Reply(b'{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"too small"}}', 400, JSON)
    key = Reply(b'{"error":{"code":400,"details":[{"reason":"API_KEY_INVALID"}]}}', 400, JSON)
    strange = Reply(b'{"name":"files/x"}', 200, JSON)
    page = Reply(b"<html>", 200, JSON)
    async with Loopback(small, key, strange, page) as server:
        adapter = gemini(server, http)
        for error_type in (InvalidRequest, AuthenticationFailed, UnreadableAnswer, UnreadableAnswer):
            with pytest.raises(error_type):
                await adapter.prompt_cache(question(*TALK))


async def test_the_end_waits_for_nobody(
    http: HttpClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("desktop_agent.providers.dialects.gemini.adapter._CLOSE_TIMEOUT", 0.05)
    caplog.set_level(logging.INFO)
    google = Google()

    def choose(request: Request) -> Reply:
        if request.method == "DELETE":
            return Reply([b"{"], headers=JSON, hold=asyncio.Event())
        return google(request)

    async with Loopback(choose=choose) as server:
        adapter = gemini(server, http)
        await adapter.prompt_cache(question(*TALK))
        await asyncio.wait_for(adapter.aclose(), PATIENCE)
    assert "did not delete" in caplog.text
    adapter._caches._kept.clear()
    refusing = PromptCaches(_refusing)
    await refusing.create(MODEL, {"contents": [], "systemInstruction": {}}, 0, 60)
    await refusing.aclose()
    assert "not deleted (invalid_request)" in caplog.text


async def _refusing(method: str, _path: str, _body: bytes | None) -> bytes:
    if method == "DELETE":
        raise InvalidRequest("no")
    return b'{"name":"cachedContents/x"}'


async def test_the_persons_own_cache_is_left_alone(http: HttpClient) -> None:
    async with Loopback(choose=Google()) as server:
        adapter = gemini(server, http)
        await adapter.prompt_cache(question(*TALK))
        extra = ProviderConfig(
            extra_options={"cachedContent": "cachedContents/own"}, system_prompt="s", show_reasoning=False
        )
        await ask(adapter, ModelRequest(MODEL, TALK, (TOOL,), config=extra))
        assert server.requests[-1].json["cachedContent"] == "cachedContents/own"
