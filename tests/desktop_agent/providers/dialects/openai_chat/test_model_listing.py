import json
from collections.abc import AsyncIterator
from datetime import date
from typing import Any

import pytest

from desktop_agent.providers.dialects.openai_chat.adapter import OpenAIChat
from desktop_agent.providers.dialects.server_families import FAMILIES
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.errors import ImagesNotSupported, ProviderError, UnreadableAnswer
from desktop_agent.types.messages import Message
from desktop_agent.types.providers import Capabilities, ModelInfo, Price
from tests.fakes.http_server import Loopback, Reply, Request
from tests.fakes.recordings import simple_request

JSON = {"content-type": "application/json"}


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()


def serving(pages: dict[str, Any]) -> Loopback:
    def choose(request: Request) -> Reply:
        page = pages.get(request.path)
        if callable(page):
            page = page(request.json)
        if page is None:
            return Reply(b"404 page not found", 404, {"content-type": "text/plain"}, "length")
        return Reply(json.dumps(page).encode(), headers=JSON, framing="length")

    return Loopback(choose=choose)


async def models(http: HttpClient, family: str, pages: dict[str, Any]) -> tuple[ModelInfo, ...]:
    async with serving(pages) as server:
        adapter = OpenAIChat(base_url=server.url, http=http, quirks=FAMILIES[family] if family != "stranger" else None)
        return await adapter.list_models()


def listed(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"object": "list", "data": list(entries)}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, Capabilities()),
        (
            {
                "context_length": 200_000,
                "architecture": {"input_modalities": ["text", "image"]},
                "supported_parameters": ["tools", "reasoning"],
                "top_provider": {"max_completion_tokens": 64_000},
            },
            Capabilities(True, True, True, 200_000, 64_000),
        ),
        (
            {"architecture": {"input_modalities": ["text"], "output_modalities": ["text", "image", "smell"]}},
            Capabilities(False, outputs=("image", "text")),
        ),
        (
            {"architecture": {"input_modalities": ["text"]}, "supported_parameters": []},
            Capabilities(False, False, False),
        ),
        (
            {
                "capabilities": {"completion_chat": True, "function_calling": True, "reasoning": False, "vision": True},
                "max_context_length": 131_072,
            },
            Capabilities(True, True, False, 131_072),
        ),
        (
            {"context_window": 8192, "max_completion_tokens": 4096},
            Capabilities(context_window=8192, max_output_tokens=4096),
        ),
        ({"meta": {"n_ctx_train": 99_999, "n_ctx": 4096}}, Capabilities(context_window=4096)),
        ({"meta": {"n_ctx_train": 99_999}}, Capabilities()),
        ({"context_length": "8k", "capabilities": ["completion"], "top_provider": None, "meta": None}, Capabilities()),
    ],
)
async def test_facts_in_the_listing(http: HttpClient, entry: dict[str, Any], expected: Capabilities) -> None:
    (model,) = await models(http, "stranger", {"/v1/models": listed({"id": "a/b", **entry})})
    assert model == ModelInfo("a/b", capabilities=expected)


async def test_models_that_answer_no_questions_are_left_out(http: HttpClient) -> None:
    entries = [{"id": "mistral-embed", "capabilities": {"completion_chat": False}}, {"id": "mistral-medium"}]
    listed_models = await models(http, "mistral", {"/v1/models": listed(*entries)})
    assert [model.id for model in listed_models] == ["mistral-medium"]


@pytest.mark.parametrize(
    ("shutdown_date", "day"),
    [
        ("2026-12-11", date(2026, 12, 11)),
        ("2026-12-11T08:00:00Z", date(2026, 12, 11)),
        (1_796_947_200, date(2026, 12, 11)),
        (None, None),
        ("soon", None),
        (10**30, None),
        (-1, None),
    ],
)
async def test_the_day_a_model_goes(http: HttpClient, shutdown_date: Any, day: date | None) -> None:
    (model,) = await models(http, "stranger", {"/v1/models": listed({"id": "o3", "shutdown_date": shutdown_date})})
    assert model.retires == day


@pytest.mark.parametrize(
    ("pricing", "price"),
    [
        (
            {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003", "request": "0"},
            Price(input=3, output=15, cache_read=0.3),
        ),
        ({"prompt": "0", "completion": 0}, Price(input=0, output=0)),
        ({"prompt": "-1", "completion": "-1"}, None),
        ({"prompt": "nan", "completion": "1e400", "input_cache_read": [], "input_cache_write": None}, None),
        ("free", None),
    ],
)
async def test_what_a_token_costs(http: HttpClient, pricing: Any, price: Price | None) -> None:
    (model,) = await models(http, "openrouter", {"/v1/models": listed({"id": "lab/new-model", "pricing": pricing})})
    assert model.price == price


async def test_vllm_is_recognised_by_its_listing(http: HttpClient) -> None:
    entry = {"id": "q", "owned_by": "vllm", "max_model_len": 32_768}
    async with serving({"/v1/models": listed(entry)}) as server:
        adapter = OpenAIChat(base_url=server.url, http=http)
        (model,) = await adapter.list_models()
        assert adapter._quirks.family == "vllm"
        fixed = OpenAIChat(base_url=server.url, http=http, quirks=FAMILIES["stranger"])
        await fixed.list_models()
        assert fixed._quirks.family == "stranger"
    assert model.capabilities.context_window == 32_768


async def test_ollama_tells_more_on_asking(http: HttpClient) -> None:
    def show(body: Any) -> Any:
        if body["model"] == "llava":
            return {
                "capabilities": ["completion", "vision"],
                "model_info": {"general.architecture": "llama", "llama.context_length": 32_768},
                "parameters": 'stop "x"\nnum_ctx    8192',
            }
        if body["model"] == "qwen3":
            return {"capabilities": ["completion", "tools", "thinking"], "model_info": {"qwen3.context_length": 40_960}}
        return None

    pages = {"/v1/models": listed({"id": "llava"}, {"id": "qwen3"}, {"id": "gone"}), "/api/show": show}
    assert await models(http, "ollama", pages) == (
        ModelInfo("llava", capabilities=Capabilities(True, False, False, 8192)),
        ModelInfo("qwen3", capabilities=Capabilities(False, True, True, 40_960)),
        ModelInfo("gone"),
    )


async def test_ollama_without_models(http: HttpClient) -> None:
    assert await models(http, "ollama", {"/v1/models": {"object": "list", "data": None}}) == ()


async def test_lm_studio(http: HttpClient) -> None:
    v1 = {
        "models": [
            {
                "key": "a",
                "max_context_length": 99_999,
                "capabilities": {"vision": True, "trained_for_tool_use": True},
                "loaded_instances": [{"id": "a:2", "config": {"context_length": 8192}}],
            },
            {"key": "b", "max_context_length": 4096, "capabilities": {"vision": False, "trained_for_tool_use": False}},
        ]
    }
    entries = listed({"id": "a"}, {"id": "b"}, {"id": "a:2"})
    listed_models = await models(http, "lmstudio", {"/v1/models": entries, "/api/v1/models": v1})
    assert [model.capabilities for model in listed_models] == [
        Capabilities(True, True, None, 8192),
        Capabilities(False, None, None, 4096),
        Capabilities(True, True, None, 8192),
    ]
    v0 = {
        "data": [
            {
                "id": "a",
                "type": "vlm",
                "max_context_length": 9,
                "loaded_context_length": 5,
                "capabilities": ["tool_use"],
            }
        ]
    }
    (first, *_) = await models(http, "lmstudio", {"/v1/models": entries, "/api/v0/models": v0})
    assert first.capabilities == Capabilities(True, True, None, 5)


async def test_llama_cpp(http: HttpClient) -> None:
    props = {"default_generation_settings": {"n_ctx": 4096}, "modalities": {"vision": True}}
    pages = {"/v1/models": listed({"id": "g", "meta": {"n_ctx_train": 131_072}}), "/props": props}
    (model,) = await models(http, "llamacpp", pages)
    assert model.capabilities == Capabilities(images=True, context_window=4096)


async def test_litellm(http: HttpClient) -> None:
    facts = {
        "max_input_tokens": 200_000,
        "max_output_tokens": 64_000,
        "supports_vision": True,
        "supports_reasoning": None,
    }
    pages = {"/v1/models": listed({"id": "c"}), "/model/info": {"data": [{"model_name": "c", "model_info": facts}, {}]}}
    (model,) = await models(http, "litellm", pages)
    assert model.capabilities == Capabilities(True, None, None, 200_000, 64_000)


@pytest.mark.parametrize("family", ["ollama", "lmstudio", "litellm", "llamacpp"])
async def test_a_silent_side_door_is_no_error(http: HttpClient, family: str) -> None:
    assert await models(http, family, {"/v1/models": listed({"id": "x"})}) == (ModelInfo("x"),)


async def test_other_shapes(http: HttpClient) -> None:
    assert await models(http, "stranger", {"/v1/models": [{"id": "x", "name": "The X"}, {"no": "id"}, 7]}) == (
        ModelInfo("x", "The X"),
    )
    with pytest.raises(UnreadableAnswer):
        await models(http, "stranger", {"/v1/models": {"hello": 1}})
    with pytest.raises(ProviderError, match="busy"):
        await models(http, "stranger", {"/v1/models": {"error": "busy"}})
    with pytest.raises(ProviderError, match="404"):
        await models(http, "stranger", {})
    async with Loopback(Reply(b"<html>")) as server:
        with pytest.raises(UnreadableAnswer, match="web page"):
            await OpenAIChat(base_url=server.url, http=http).list_models()


async def test_what_was_listed_is_checked_before_the_network(http: HttpClient) -> None:
    entry = {"id": "m", "architecture": {"input_modalities": ["text"]}}
    async with serving({"/v1/models": listed(entry)}) as server:
        adapter = OpenAIChat(base_url=server.url, http=http)
        await adapter.list_models()
        with pytest.raises(ImagesNotSupported):
            await anext(adapter.stream(simple_request(messages=(Message.user_with_image("x", "https://x/y.png"),))))
        assert len(server.requests) == 1
