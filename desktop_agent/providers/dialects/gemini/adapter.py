"""Gemini's generateContent, at Google and behind gateways: the provider, its model listing, and its cached prompts.

Cached prompts (cachedContents, ai.google.dev/api/caching) cost money by the hour, so each is deleted when a longer one
replaces it, and at the end.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from time import monotonic
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from desktop_agent.providers.catalogue.catalogue import estimate_token_count
from desktop_agent.providers.dialects.gemini.messages import PICTURE_LIMITS, wire_name
from desktop_agent.providers.dialects.gemini.request import (
    RequestBody,
    bare_model_name,
    build_body,
    messages_before_question,
)
from desktop_agent.providers.dialects.gemini.response_parts import PROVIDER
from desktop_agent.providers.dialects.gemini.response_stream import FrameReader
from desktop_agent.providers.dialects.request_building import PrefixDigest
from desktop_agent.providers.dialects.response_stream import OpenedStream
from desktop_agent.providers.dialects.server_adapter import ServerAdapter
from desktop_agent.providers.dialects.server_families import api_root
from desktop_agent.providers.transport.error_responses import error_from_listing, has_error, not_a_model_server_error
from desktop_agent.providers.transport.http_client import HttpResponse
from desktop_agent.providers.transport.json_codec import (
    array_in,
    dumps,
    is_object,
    loads,
    loads_or_none,
    object_in,
    objects_in,
    read_time,
    repair_text,
)
from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.errors import (
    AgentError,
    CachingNotSupported,
    InvalidRequest,
    NotFound,
    PermissionRefused,
    Sentence,
    UnreadableAnswer,
)
from desktop_agent.types.providers import CachedPrompt, Capabilities, ImageLimits, ModelInfo, ModelRequest, TokenCount

FetchPage = Callable[[dict[str, str]], Awaitable[bytes]]
_PER_PAGE = "1000"
# Google has some dozens of models; a server whose pages never end is not followed forever.
_MAX_PAGES = 20


async def fetch_models(fetch: FetchPage) -> tuple[ModelInfo, ...]:
    """Return all models that answer questions. `fetch` returns a page by its query. Raises ProviderError."""
    models: dict[str, ModelInfo] = {}
    query = {"pageSize": _PER_PAGE}
    for _ in range(_MAX_PAGES):
        page = _parse_page(await fetch(query))
        for model in map(_parse_model, objects_in(page, "models")):
            if model is not None:
                models.setdefault(model.id, model)
        token = page.get("nextPageToken")
        if not isinstance(token, str) or not token or token == query.get("pageToken"):
            break
        query = {"pageSize": _PER_PAGE, "pageToken": token}
    return tuple(models.values())


def _parse_page(body: bytes) -> dict[str, Any]:
    data = loads_or_none(body)
    # A server without any model sends an empty object.
    is_page = is_object(data) and (not data or bool({"models", "nextPageToken"} & data.keys()))
    if not is_object(data) or not is_page or has_error(data.get("error")):
        raise error_from_listing(body)
    return data


def _parse_model(entry: dict[str, Any]) -> ModelInfo | None:
    name, title = entry.get("name"), entry.get("displayName")
    if not isinstance(name, str) or not name.removeprefix("models/"):
        return None
    if "supportedGenerationMethods" in entry and "generateContent" not in array_in(entry, "supportedGenerationMethods"):
        return None
    thinks = entry.get("thinking")
    return ModelInfo(
        id=repair_text(name.removeprefix("models/")),
        title=repair_text(title) if isinstance(title, str) and title else None,
        capabilities=Capabilities(
            context_window=_parse_size(entry.get("inputTokenLimit")),
            max_output_tokens=_parse_size(entry.get("outputTokenLimit")),
            reasoning=thinks if isinstance(thinks, bool) else None,
        ),
    )


def _parse_size(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


Exchange = Callable[[str, str, bytes | None], Awaitable[bytes]]
# docs.cloud.google.com, Gemini 4 Argon: only implicit caching.
_IMPLICIT_ONLY = ("gemini-4-argon",)
_PREFIX_FIELDS = ("systemInstruction", "tools", "toolConfig")
# A prompt that expires within so many seconds is not used.
_EXPIRY_MARGIN = 5.0
# Seconds that closing the program waits for deletions.
_CLOSE_TIMEOUT = 3.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """One cached prompt: the server's name for it, how many contents it has, and when it expires (monotonic clock)."""

    name: str
    model: str
    size: int
    digest: str
    until: float


class PromptCaches:
    """The prompts that one provider has cached. `ask(method, path, body)` sends a request to the server."""

    def __init__(self, ask: Exchange) -> None:
        self._ask = ask
        self._kept: list[CachedPrefix] = []
        self._lock = asyncio.Lock()

    def shortened(self, model: str, fields: JsonObject) -> tuple[JsonObject, CachedPrefix | None]:
        """Replace the beginning of a request by the longest cached prompt, and return which one that is."""
        if "cachedContent" in fields:
            return fields, None
        prefix = max(self._matching(model, fields), key=lambda prompt: prompt.size, default=None)
        # Contents must not be empty.
        if prefix is None or prefix.size >= len(fields["contents"]):
            return fields, None
        other_fields = {name: value for name, value in fields.items() if name not in _PREFIX_FIELDS}
        return {**other_fields, "contents": fields["contents"][prefix.size :], "cachedContent": prefix.name}, prefix

    def forget(self, prefix: CachedPrefix) -> None:
        """Drop a prompt that the server no longer has."""
        with suppress(ValueError):
            self._kept.remove(prefix)

    async def create(self, model: str, fields: JsonObject, size: int, seconds: int) -> CachedPrompt:
        """Cache the first contents and the instructions above them, or extend their lifetime.

        Raises CachingNotSupported and ProviderError.
        """
        if model.startswith(_IMPLICIT_ONLY):
            raise CachingNotSupported(
                Sentence("{model} caches prompts by itself; it cannot be asked to.", {"model": model})
            )
        prefix_fields = {name: fields[name] for name in _PREFIX_FIELDS if name in fields}
        if not size and not prefix_fields:
            raise CachingNotSupported(
                "Nothing stands before the question, so there is nothing to keep.",
                "Put instructions, tools or earlier messages before it.",
            )
        async with self._lock:
            matching = self._matching(model, fields)
            renewable = next((prompt for prompt in matching if prompt.size == size), None)
            description = await self._renew(renewable, seconds) if renewable is not None else None
            if description is None:
                kept_contents = {"contents": fields["contents"][:size]} if size else {}
                path = model if "/" in model else f"models/{model}"
                body = {"model": path, **kept_contents, **prefix_fields, "ttl": f"{seconds}s"}
                description = await self._ask("POST", "cachedContents", dumps(body))
            prompt = _parse_cached_prompt(description)
            digest = _digest(model, fields, size)
            self._kept = [prompt for prompt in self._kept if prompt not in matching]
            self._kept.append(CachedPrefix(prompt.name or "", model, size, digest, monotonic() + seconds))
            await self._delete_all([entry for entry in matching if entry.name != prompt.name])
        return prompt

    async def aclose(self) -> None:
        """Delete what is cached. Raises nothing, and waits for a few seconds only."""
        prompts, self._kept = [prompt for prompt in self._kept if prompt.until > monotonic()], []
        await self._delete_all(prompts)

    def _matching(self, model: str, fields: JsonObject) -> list[CachedPrefix]:
        """Return the unexpired prompts that the request begins with."""
        self._kept = [prompt for prompt in self._kept if prompt.until > monotonic()]
        return [
            prompt
            for prompt in self._kept
            if prompt.model == model
            and prompt.until - _EXPIRY_MARGIN > monotonic()
            and prompt.size <= len(fields["contents"])
            and prompt.digest == _digest(model, fields, prompt.size)
        ]

    async def _renew(self, prefix: CachedPrefix, seconds: int) -> bytes | None:
        """Return its new description, or None if the server no longer has it."""
        try:
            return await self._ask("PATCH", prefix.name, dumps({"ttl": f"{seconds}s"}))
        except (InvalidRequest, NotFound, PermissionRefused):
            self.forget(prefix)
            return None

    async def _delete_all(self, prompts: list[CachedPrefix]) -> None:
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await asyncio.gather(*(self._delete(prompt) for prompt in prompts))
        except TimeoutError:
            _log.info("the server did not delete %d kept prompts in time; they end by themselves", len(prompts))

    async def _delete(self, prefix: CachedPrefix) -> None:
        try:
            await self._ask("DELETE", prefix.name, None)
        except AgentError as error:
            _log.info("a kept prompt was not deleted (%s); it ends by itself", error.kind)


def _digest(model: str, fields: JsonObject, size: int) -> str:
    digest = PrefixDigest(model)
    for name in _PREFIX_FIELDS:
        digest.add(fields.get(name))
    for content in fields["contents"][:size]:
        digest.add(content)
    return digest.value


def _parse_cached_prompt(body: bytes) -> CachedPrompt:
    data = loads_or_none(body)
    description: JsonObject = data if is_object(data) else {}
    name, tokens = description.get("name"), object_in(description, "usageMetadata").get("totalTokenCount")
    if not isinstance(name, str) or not name.startswith("cachedContents/"):
        raise not_a_model_server_error({}, body[:200].decode("utf-8", "replace"))
    return CachedPrompt(name, tokens if type(tokens) is int else None, read_time(description.get("expireTime")))


_DEFAULT_VERSION = "/v1beta"  # has the newest fields
_VERSION = re.compile(r"/v\d+[a-z0-9]*$")


class Gemini(ServerAdapter):
    """One server that speaks generateContent.

    `base_url` is a host, or ends in a version such as /v1 or /v1beta. If the server lost a cached prompt, the request
    is sent in full, once. Raises WrongUse for an address or a key that cannot be used.
    """

    dialect = PROVIDER
    _vendor = PROVIDER
    _key_header = "x-goog-api-key"

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Return the server's models that answer questions, filled up from the catalogue."""

        async def page(query: dict[str, str]) -> bytes:
            return await self._exchange(self._url("models", query))

        return self._set_listing(await fetch_models(page))

    def model_info(self, model: str) -> ModelInfo:
        """Return what is known about a model, with or without `models/` in front of its name."""
        return super().model_info(bare_model_name(model))

    def picture_limits(self, model: str) -> ImageLimits:  # noqa: ARG002  the same for all its models
        """Return what Google accepts."""
        return PICTURE_LIMITS

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """Let the server count, with instructions and tools; estimate if it does not."""
        path = _model_path(request.model)
        fields = {"model": path, **self._body(request).fields}
        fields.pop("continuationToken", None)
        try:
            answer = loads(await self._ask("POST", f"{path}:countTokens", dumps({"generateContentRequest": fields})))
        except (InvalidRequest, NotFound, UnreadableAnswer, ValueError) as error:
            _log.info("the server does not count tokens (%s)", type(error).__name__)
            answer = None
        tokens = answer.get("totalTokens") if is_object(answer) else None
        return TokenCount(tokens) if type(tokens) is int and tokens >= 0 else estimate_token_count(request, PROVIDER)

    async def prompt_cache(self, request: ModelRequest, *, seconds: int = 300) -> CachedPrompt:
        """Cache everything before the last question, in cachedContents.

        Requests that begin with it use it automatically. Raises CachingNotSupported if the model cannot or the prompt
        is too short for it, and ProviderError.
        """
        body, model = self._body(request), bare_model_name(request.model)
        minimum = self._capabilities(model).cache_minimum
        size = estimate_token_count(replace(request, messages=messages_before_question(request.messages)), PROVIDER)
        if minimum is not None and size.tokens * (1 + size.margin) < minimum:
            values = {"model": model, "count": str(minimum)}
            sentence = Sentence("{model} caches no prompts of fewer than {count} tokens.", values)
            raise CachingNotSupported(sentence, "Nothing is lost.")
        return await self._caches.create(model, body.fields, body.prefix_size, seconds)

    async def aclose(self) -> None:
        """Delete the cached prompts; the client is shared."""
        await self._caches.aclose()

    @cached_property
    def _caches(self) -> PromptCaches:
        return PromptCaches(self._ask)

    def _parse_root(self, base_url: str) -> str:
        """Return the base URL with a version at its end."""
        parts = urlsplit(api_root(base_url))
        path = parts.path.rstrip("/")
        return parts._replace(path=path if _VERSION.search(path) else path + _DEFAULT_VERSION).geturl()

    def _wire_name(self, name: str) -> str:
        return wire_name(name)

    async def _open(self, request: ModelRequest) -> OpenedStream:
        body = self._body(request)
        answer = await self._ask_with_cache(request, body)
        builder = self._part_builder(request, PROVIDER)
        reader = FrameReader(builder, answer.headers)
        return self._opened_stream(request, answer, builder, reader, body.adjustments)

    async def _ask_with_cache(self, request: ModelRequest, body: RequestBody) -> HttpResponse:
        """Return the head of a good answer. Raises the server's error."""
        url = self._url(f"{_model_path(request.model)}:streamGenerateContent", {"alt": "sse"})
        fields, prefix = self._caches.shortened(bare_model_name(request.model), body.fields)
        try:
            return await self._send(request, url, fields)
        except (InvalidRequest, NotFound, PermissionRefused) as error:
            # An expired prompt is reported as missing, as not permitted, or as a bad argument.
            if prefix is None or error.status not in (400, 403, 404):
                raise
        _log.info("the server refused a kept prompt; asking once more without it")
        answer = await self._send(request, url, body.fields)
        self._caches.forget(prefix)
        return answer

    async def _ask(self, method: str, path: str, body: bytes | None) -> bytes:
        return await self._exchange(self._url(path), body, method)

    def _body(self, request: ModelRequest) -> RequestBody:
        return build_body(request, self._account(request.model), self._capabilities(request.model))

    def _account(self, model: str) -> str:
        return super()._account(bare_model_name(model))

    def _url(self, path: str, query: dict[str, str] | None = None) -> str:
        parts = urlsplit(self._root)
        joined_query = "&".join(filter(None, (parts.query, urlencode(query or {}))))
        return parts._replace(path=f"{parts.path}/{path}", query=joined_query).geturl()


def _model_path(model: str) -> str:
    """Return `models/…`; the person's own models are in another folder (tunedModels/…)."""
    name = bare_model_name(model)
    return quote(name if "/" in name else f"models/{name}", safe="/")
