"""Gemini's generateContent, at Google and behind gateways that speak it."""

import logging
import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from functools import partial
from urllib.parse import quote, urlencode, urlsplit

from pydantic import SecretStr

from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.catalogue.estimating import estimate_tokens
from desktop_agent.providers.catalogue.pricing import Pricing
from desktop_agent.providers.dialects import servers
from desktop_agent.providers.dialects.answering import (
    EVENT_STREAM,
    OpenedStream,
    key_header,
    redact_key,
    request_timeouts,
    send_request,
    stream_events,
)
from desktop_agent.providers.dialects.gemini.caching import PromptCaches, is_cache_missing
from desktop_agent.providers.dialects.gemini.frames import FrameReader
from desktop_agent.providers.dialects.gemini.listing import fetch_models
from desktop_agent.providers.dialects.gemini.media import PICTURE_LIMITS
from desktop_agent.providers.dialects.gemini.parts import PROVIDER
from desktop_agent.providers.dialects.gemini.request import (
    RequestBody,
    bare_model_name,
    build_body,
    messages_before_question,
)
from desktop_agent.providers.dialects.prefix import account_digest
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.think_tags import ThinkTags
from desktop_agent.providers.transport.addresses import api_root
from desktop_agent.providers.transport.http_client import HttpClient, HttpRequest, HttpResponse
from desktop_agent.providers.transport.json_text import dumps, is_object, loads
from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.errors import (
    CachingNotSupported,
    InvalidRequest,
    NotFound,
    ProviderError,
    UnreadableAnswer,
)
from desktop_agent.vocabulary.provider_events import Origin, ProviderEvent
from desktop_agent.vocabulary.requests import (
    CachedPrompt,
    ImageLimits,
    ModelInfo,
    ModelRequest,
    ProviderState,
    Timeouts,
    TokenCount,
)

_DEFAULT_VERSION = "/v1beta"  # has the newest fields
_VERSION = re.compile(r"/v\d+[a-z0-9]*$")
_log = logging.getLogger(__name__)


class Gemini:
    """One server that speaks generateContent.

    `base_url` is a host, or ends in a version such as /v1 or /v1beta. The client is shared and not closed here.
    Raises WrongUse for an address or a key that cannot be used.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: SecretStr | None,
        http: HttpClient,
        catalogue: Catalogue | None = None,
        listing_timeouts: Timeouts | None = None,
    ) -> None:
        self._http = http
        self._root = _root(base_url)
        self._secret = key_header(api_key, "x-goog-api-key")
        self._catalogue = catalogue or Catalogue()
        self._listing_timeouts = listing_timeouts or Timeouts(connect=10, headers=30, idle=30, total=60)
        self._state = ProviderState()
        self._listed: dict[str, ModelInfo] = {}
        self._caches = PromptCaches(self._ask)

    @property
    def dialect(self) -> str:
        """Its name in an endpoint."""
        return PROVIDER

    @property
    def state(self) -> ProviderState:
        """Totals."""
        return self._state

    def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Ask, and yield canonical events. A kept prompt that the server lost is sent in full, once."""
        return stream_events(partial(self._open, request), self._state)

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """The server's models that answer questions, filled up from the catalogue."""

        async def page(query: dict[str, str]) -> bytes:
            call = HttpRequest(self._url("models", query), self._listing_timeouts, secret=self._secret)
            return await self._http.exchange(call)

        models = await fetch_models(page)
        self._listed = {model.id: self._catalogue.merged(PROVIDER, model) for model in models}
        return tuple(self._listed.values())

    def model_info(self, model: str) -> ModelInfo:
        """What is known about a model without asking."""
        name = bare_model_name(model)
        return self._listed.get(name) or self._catalogue.merged(PROVIDER, ModelInfo(name))

    def picture_limits(self, model: str) -> ImageLimits:  # noqa: ARG002  the same for all its models
        """What Google takes."""
        return PICTURE_LIMITS

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """Counted by the server, with instructions and tools; an estimate where it does not count."""
        path = _model_path(request.model)
        asked = {"model": path, **self._body(request).fields}
        asked.pop("continuationToken", None)
        try:
            answer = loads(await self._ask("POST", f"{path}:countTokens", dumps({"generateContentRequest": asked})))
        except (InvalidRequest, NotFound, UnreadableAnswer, ValueError) as error:
            _log.info("the server does not count tokens (%s)", type(error).__name__)
            answer = None
        tokens = answer.get("totalTokens") if is_object(answer) else None
        return TokenCount(tokens) if type(tokens) is int and tokens >= 0 else estimate_tokens(request, PROVIDER)

    async def prompt_cache(self, request: ModelRequest, *, seconds: int = 300) -> CachedPrompt:
        """Keep everything before the last question, in cachedContents.

        Requests that begin with it use it by themselves. Raises CachingNotSupported where the model has no such
        thing or the prompt is too short for it, and ProviderError.
        """
        body, model = self._body(request), bare_model_name(request.model)
        minimum = self.model_info(model).capabilities.cache_minimum
        size = estimate_tokens(replace(request, messages=messages_before_question(request.messages)), PROVIDER)
        if minimum is not None and size.tokens * (1 + size.margin) < minimum:
            raise CachingNotSupported(f"{model} keeps no prompts of fewer than {minimum} tokens.", "Nothing is lost.")
        return await self._caches.create(model, body.fields, body.settled, seconds)

    async def aclose(self) -> None:
        """Delete the prompts that are kept; the client is shared."""
        await self._caches.aclose()

    async def _open(self, request: ModelRequest) -> OpenedStream:
        body = self._body(request)
        answer = await self._ask_with_cache(request, body)
        is_anothers = servers.may_repeat(self._root)
        builder = PartBuilder(PROVIDER, tags=ThinkTags() if is_anothers else None, may_repeat=is_anothers)
        reader = FrameReader(builder, answer.headers, partial(redact_key, secret=self._secret))
        origin = Origin(provider=PROVIDER, account=self._account(request.model))
        price = self.model_info(request.model).price
        pricing = Pricing(price) if price is not None else None
        return OpenedStream(answer, builder, reader, origin, body.adjustments, pricing)

    async def _ask_with_cache(self, request: ModelRequest, body: RequestBody) -> HttpResponse:
        """The head of a good answer. Raises what the server refuses with."""
        fields, kept = self._caches.shortened(bare_model_name(request.model), body.fields)
        try:
            return await self._sent(request, fields)
        except ProviderError as error:
            if kept is None or not is_cache_missing(error):
                raise
        _log.info("the server refused a kept prompt; asking once more without it")
        answer = await self._sent(request, body.fields)
        self._caches.forget(kept)
        return answer

    async def _sent(self, request: ModelRequest, fields: JsonObject) -> HttpResponse:
        url = self._url(f"{_model_path(request.model)}:streamGenerateContent", {"alt": "sse"})
        limits = request_timeouts(request, self._root, self.model_info(request.model).capabilities)
        call = HttpRequest(url, limits, dumps(fields), self._secret, accept=EVENT_STREAM)
        return await send_request(self._http, call, self._state)

    async def _ask(self, method: str, path: str, body: bytes | None) -> bytes:
        call = HttpRequest(self._url(path), self._listing_timeouts, body, self._secret, method=method)
        return await self._http.exchange(call)

    def _body(self, request: ModelRequest) -> RequestBody:
        return build_body(request, self._account(request.model), self.model_info(request.model).capabilities)

    def _account(self, model: str) -> str:
        return account_digest(self._root, bare_model_name(model))

    def _url(self, path: str, query: dict[str, str] | None = None) -> str:
        parts = urlsplit(self._root)
        together = "&".join(filter(None, (parts.query, urlencode(query or {}))))
        return parts._replace(path=f"{parts.path}/{path}", query=together).geturl()


def _root(base_url: str) -> str:
    """The base URL with a version at its end."""
    parts = urlsplit(api_root(base_url))
    path = parts.path.rstrip("/")
    return parts._replace(path=path if _VERSION.search(path) else path + _DEFAULT_VERSION).geturl()


def _model_path(model: str) -> str:
    """`models/…`; a model of the person's own has a folder of its own (tunedModels/…)."""
    name = bare_model_name(model)
    return quote(name if "/" in name else f"models/{name}", safe="/")
