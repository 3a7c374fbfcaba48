"""Checks of request bodies against the vendors' own request types.

    judge("/v1/messages", {"model": "m", "messages": []})   # ["max_tokens: missing"]

Intended deviations are listed in `deviations.py`. The SDKs are imported when the first body is checked.
"""

import importlib
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Required

from typing_extensions import TypedDict

from tests.desktop_agent.providers.deviations import Dialect, is_allowed
from tests.desktop_agent.providers.wire_shapes import Finding, fields_of, misfits

# Parameters of the SDK's methods that travel as headers.
_HEADERS_OF_ANTHROPIC = ("betas", "user_profile_id", "workspace_id")
ANSWERS = {
    "openai-chat": "openai.types.chat.ChatCompletion",
    "openai-chat stream": "openai.types.chat.ChatCompletionChunk",
    "openai-responses": "openai.types.responses.Response",
    "openai-responses stream": "openai.types.responses.ResponseStreamEvent",
    "anthropic": "anthropic.types.Message",
    "anthropic stream": "anthropic.types.RawMessageStreamEvent",
    "gemini": "google.genai.types.GenerateContentResponse",
    "gemini stream": "google.genai.types.GenerateContentResponse",
}
_GEMINI = re.compile(r"/v1(?:beta)?/(?:models/[^/:]+:(\w+)|cachedContents)$")


def judge_bytes(path: str, body: bytes, headers: Mapping[str, str] | None = None) -> list[str]:
    """Judge a body in bytes; a body that is not JSON is a finding where JSON is expected."""
    if shape_for(path, {}, headers or {}) is None:
        return []
    try:
        parsed = json.loads(body)
    except ValueError as error:
        return [f"the body is not JSON: {error}"]
    return judge(path, parsed, headers)


def judge(path: str, body: Any, headers: Mapping[str, str] | None = None) -> list[str]:
    """Return the misfits of a body with the SDK's types, without allowed deviations; none for unknown paths."""
    return [
        str(finding) for dialect, finding in findings(path, body, headers) if not is_allowed(dialect, finding, body)
    ]


def findings(path: str, body: Any, headers: Mapping[str, str] | None = None) -> list[tuple[Dialect, Finding]]:
    """Return all findings, allowed or not."""
    dialect_and_shape = shape_for(path, body, headers or {})
    if dialect_and_shape is None:
        return []
    dialect, shape = dialect_and_shape
    misfits_found = misfits(body, shape)
    if dialect == "gemini":
        misfits_found = misfits_found or _refused_by_gemini(body)
        if isinstance(body, dict) and "generateContentRequest" in body:
            misfits_found += misfits(
                body["generateContentRequest"], _gemini_shapes()["counted"], "generateContentRequest"
            )
    return [(dialect, finding) for finding in misfits_found]


def shape_for(path: str, body: Any, headers: Mapping[str, str]) -> tuple[Dialect, Any] | None:
    """Return the dialect of a path and the SDK's type for its body; None for a path that no SDK posts to."""
    path = path.partition("?")[0]
    streams = isinstance(body, dict) and body.get("stream") is True
    if path.endswith("/chat/completions"):
        return "openai-chat", _openai_chat(streams=streams)
    if path.endswith(("/responses", "/responses/input_tokens")):
        return "openai-responses", _openai_responses(streams=streams, counts=path.endswith("input_tokens"))
    if path.endswith(("/v1/messages", "/v1/messages/count_tokens")):
        beta = any(name.lower() == "anthropic-beta" for name in headers)
        return "anthropic", _anthropic(streams=streams, counts=path.endswith("count_tokens"), beta=beta)
    if gemini := _GEMINI.search(path):
        shape = {"countTokens": "count", None: "cache"}.get(gemini[1], "generate")
        return "gemini", _gemini_shapes()[shape]
    return None


def response_shape(name: str) -> Any:
    """Return the SDK's type of an answer or of one event of a stream; `name` is a key of ANSWERS."""
    module, _, type_name = ANSWERS[name].rpartition(".")
    return getattr(importlib.import_module(module), type_name)


@lru_cache
def _openai_chat(*, streams: bool) -> Any:
    from openai.types.chat import completion_create_params as params

    return params.CompletionCreateParamsStreaming if streams else params.CompletionCreateParamsNonStreaming


@lru_cache
def _openai_responses(*, streams: bool, counts: bool) -> Any:
    from openai.types.responses import input_token_count_params
    from openai.types.responses import response_create_params as params

    if counts:
        return input_token_count_params.InputTokenCountParams
    return params.ResponseCreateParamsStreaming if streams else params.ResponseCreateParamsNonStreaming


@lru_cache
def _anthropic(*, streams: bool, counts: bool, beta: bool) -> Any:
    from anthropic.types import message_count_tokens_params, message_create_params
    from anthropic.types.beta import message_count_tokens_params as beta_count
    from anthropic.types.beta import message_create_params as beta_create

    if counts:
        owner = beta_count if beta else message_count_tokens_params
        return _without_headers(owner.MessageCountTokensParams)
    create = beta_create if beta else message_create_params
    return _without_headers(create.MessageCreateParamsStreaming if streams else create.MessageCreateParamsNonStreaming)


def _without_headers(params: Any) -> Any:
    fields = {
        name: Required[field.annotation] if field.is_required else field.annotation
        for name, field in (fields_of(params) or {}).items()
        if name not in _HEADERS_OF_ANTHROPIC
    }
    return TypedDict(params.__name__, fields, total=False)


@lru_cache
def _gemini_shapes() -> dict[str, Any]:
    """Return types of REST bodies, made of the SDK's models, as its methods have no type for the whole body.

    The place of each field is taken from the SDK's `_GenerateContentConfig_to_mldev`.
    """
    from google.genai import types

    config = fields_of(types.GenerateContentConfig) or {}
    for_vertex = {
        "routingConfig",
        "modelSelectionConfig",
        "audioTimestamp",
        "modelArmorConfig",
        "enableAffectiveDialog",
    }
    generation = {
        name: field.annotation
        for name, field in (fields_of(types.GenerationConfig) or {}).items()
        if name not in for_vertex
    }
    generation["imageConfig"] = config["imageConfig"].annotation
    prompt = {
        "contents": Required[list[types.Content]],
        "systemInstruction": types.Content,
        "tools": list[types.Tool],
        "toolConfig": types.ToolConfig,
    }
    beside = ("safetySettings", "cachedContent", "serviceTier", "store", "continuationToken", "labels")
    request_fields = {
        **prompt,
        **{name: config[name].annotation for name in beside},
        "generationConfig": TypedDict("GenerationConfig", generation, total=False),
    }
    cache_fields = {**prompt, "contents": list[types.Content], "model": Required[str]}
    cache_fields |= {"ttl": str, "expireTime": str, "displayName": str}
    return {
        "generate": TypedDict("GenerateContentRequest", request_fields, total=False),
        "counted": TypedDict("CountedRequest", {**request_fields, "model": Required[str]}, total=False),
        "count": TypedDict("CountTokensRequest", {"contents": list[types.Content]}, total=False),
        "cache": TypedDict("CachedContent", cache_fields, total=False),
    }


def _refused_by_gemini(body: dict[str, Any]) -> list[Finding]:
    """Find fields that the SDK's models have, but that its writer refuses outside of Vertex."""
    from google.genai import models, types

    parts = [
        (f"contents[{index}]", value, types.Content, models._Content_to_mldev)
        for index, value in enumerate(body.get("contents", ()))
    ]
    parts += [
        (f"tools[{index}]", value, types.Tool, models._Tool_to_mldev)
        for index, value in enumerate(body.get("tools", ()))
    ]
    if "toolConfig" in body:
        parts.append(("toolConfig", body["toolConfig"], types.ToolConfig, models._ToolConfig_to_mldev))
    refused: list[Finding] = []
    for path, value, model, write in parts:
        try:
            write(model.model_validate(value))
        except ValueError as error:
            refused.append(Finding(path, "value", "…", f"what the SDK sends: {error}"))
    return refused
