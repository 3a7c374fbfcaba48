"""The Messages API: Anthropic's own server, and those that imitate it."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import urlsplit

from desktop_agent.providers.catalogue.catalogue import estimate_token_count
from desktop_agent.providers.dialects.anthropic.model_listing import fetch_models, picture_limits_for
from desktop_agent.providers.dialects.anthropic.request import RequestBody, build_body
from desktop_agent.providers.dialects.anthropic.response_stream import PROVIDER, FrameReader, UsageCounter
from desktop_agent.providers.dialects.response_stream import EVENT_STREAM, OpenedStream, send_request, sum_known
from desktop_agent.providers.dialects.server_adapter import LISTING_TIMEOUTS, ServerAdapter
from desktop_agent.providers.dialects.server_families import api_root, join_url
from desktop_agent.providers.transport.http_client import LISTING_LIMIT, HttpRequest, HttpResponse, SecretHeader
from desktop_agent.providers.transport.json_codec import dumps, is_object, loads, object_in, read_count
from desktop_agent.types.errors import (
    AuthenticationFailed,
    CachingNotSupported,
    InvalidRequest,
    NotFound,
    Sentence,
    TooLarge,
    UnreadableAnswer,
)
from desktop_agent.types.messages import now
from desktop_agent.types.provider_events import Usage
from desktop_agent.types.providers import (
    CachedPrompt,
    ImageLimits,
    ModelInfo,
    ModelRequest,
    PromptCaching,
    Timeouts,
    TokenCount,
)

_log = logging.getLogger(__name__)
T = TypeVar("T")

VERSION = "2026-10-21"
_KEY_HEADER = "x-api-key"
_VENDORS_HOST = "api.anthropic.com"
_MAX_BODY_SIZE = 32 * 1024 * 1024
_SHORT_LIFETIME, _LONG_LIFETIME = 300, 3600
_WITHOUT_OLDER_REASONING = Sentence(
    "The server refused reasoning of earlier turns, so it was asked once more without that reasoning."
)


class Anthropic(ServerAdapter):
    """One server that speaks the Messages API.

    `base_url` may end in /v1 or not. Local servers need no key. A request with thinking of earlier turns that is
    refused is sent once more without it; one whose key is refused, with the key in the other header, unless the server
    is the vendor's own. Raises WrongUse for an address or a key that cannot be used.
    """

    dialect = "anthropic"
    _vendor = PROVIDER
    _key_header = _KEY_HEADER

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Return all pages of the server's listing, filled up from the catalogue."""
        return self._set_listing(await self._with_either_header(lambda: fetch_models(self._page)))

    def picture_limits(self, model: str) -> ImageLimits:
        """Return the limits: four formats, 10 MB in base64, 8000 pixels; less for many pictures and small windows."""
        return picture_limits_for(self._capabilities(model))

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """Let the server count, which costs nothing; estimate if it does not."""
        body = self._body(request)

        def send() -> Awaitable[bytes]:
            limits = self._limits(request)
            return self._http.exchange(self._call("v1/messages/count_tokens", body, body.count_fields, limits))

        try:
            answer = loads(await self._with_either_header(send))
        except (NotFound, ValueError):
            answer = None
        tokens = read_count(answer.get("input_tokens")) if is_object(answer) else None
        if tokens is None:
            return estimate_token_count(
                request, PROVIDER, useful_edge=self.picture_limits(request.model).downscale_edge
            )
        return TokenCount(tokens)

    async def prompt_cache(self, request: ModelRequest, *, seconds: int = _SHORT_LIFETIME) -> CachedPrompt:
        """Let the server cache the prompt, without an answer; for an hour if `seconds` is more than five minutes."""
        caching = PromptCaching(lifetime="long" if seconds > _SHORT_LIFETIME else "short")
        config = request.config.model_copy(update={"caching": caching})
        body = self._body(replace(request, config=config))
        try:
            answer = await self._send_fields(request, body, body.cache_warming_fields)
            data = loads(await answer.read(LISTING_LIMIT))
        except (InvalidRequest, NotFound) as error:
            if self._is_vendors:
                raise
            raise CachingNotSupported("This server does not cache prompts on request.", detail=error.detail) from None
        except ValueError:
            raise UnreadableAnswer(Sentence("the answer to caching a prompt is not JSON"), retryable=False) from None
        return self._cached_prompt(data, _LONG_LIFETIME if caching.lifetime == "long" else _SHORT_LIFETIME)

    def _cached_prompt(self, data: Any, seconds: int) -> CachedPrompt:
        usage = UsageCounter().take(object_in(data, "usage")) or Usage()
        self._state.input_tokens += usage.input_tokens or 0
        self._state.cached_tokens += usage.cache_read_tokens or 0
        tokens = sum_known(usage.cache_read_tokens, usage.cache_write_tokens)
        # Prompts below the model's minimum are not cached: then the server counts no tokens.
        return CachedPrompt(tokens=tokens, expires_at=now() + timedelta(seconds=seconds) if tokens else None)

    @property
    def _is_vendors(self) -> bool:
        return urlsplit(self._root).hostname == _VENDORS_HOST

    def _parse_root(self, base_url: str) -> str:
        parts = urlsplit(api_root(base_url))
        return parts._replace(path=parts.path.removesuffix("/v1")).geturl()

    async def _open(self, request: ModelRequest) -> OpenedStream:
        answer, body, more = await self._ask(request)
        builder = self._part_builder(request, PROVIDER)
        reader = FrameReader(builder, answer.headers)
        is_long = request.config.caching.lifetime == "long"
        adjustments = (*body.adjustments, *more)
        return self._opened_stream(
            request, answer, builder, reader, adjustments, prefix=body.prefix, long_lived=is_long
        )

    async def _ask(self, request: ModelRequest) -> tuple[HttpResponse, RequestBody, tuple[Sentence, ...]]:
        """Return the head of a good answer. Raises the server's error."""
        body = self._body(request)
        try:
            return await self._send_fields(request, body, body.fields), body, ()
        except InvalidRequest as error:
            if not body.carries_older or error.status != 400:
                raise
        _log.info("refused with reasoning of earlier turns; asking once more without")
        body = self._body(request, older=False)
        return await self._send_fields(request, body, body.fields), body, (_WITHOUT_OLDER_REASONING,)

    async def _send_fields(self, request: ModelRequest, body: RequestBody, fields: dict[str, Any]) -> HttpResponse:
        def send() -> Awaitable[HttpResponse]:
            call = self._call("v1/messages", body, fields, self._limits(request))
            return send_request(self._http, call, self._state)

        return await self._with_either_header(send)

    async def _with_either_header(self, send: Callable[[], Awaitable[T]]) -> T:
        """Send a request, and once more with the key in the other header if it is refused.

        Servers that imitate the vendor's may accept it as a bearer token only.
        """
        first = self._secret
        try:
            return await send()
        except AuthenticationFailed:
            if self._is_vendors or first is None:
                raise
        _log.info("the server does not take the key; asking once more with it in the other header")
        self._secret = (
            SecretHeader.bearer(first.value) if first.name == _KEY_HEADER else SecretHeader(_KEY_HEADER, first.value)
        )
        try:
            return await send()
        except AuthenticationFailed:
            self._secret = first
            raise

    def _body(self, request: ModelRequest, *, older: bool = True) -> RequestBody:
        known = self._capabilities(request.model)
        return build_body(request, known, self._account(request.model), older=older, signed=self._is_vendors)

    def _call(self, path: str, body: RequestBody, fields: dict[str, Any], timeouts: Timeouts) -> HttpRequest:
        data = dumps(fields)
        if self._is_vendors and len(data) > _MAX_BODY_SIZE:
            size = {"size": str(_MAX_BODY_SIZE // (1024 * 1024))}
            raise TooLarge(Sentence("the request is larger than {size} MB", size), retryable=False)
        headers = _headers(body.betas)
        return HttpRequest(join_url(self._root, path), timeouts, data, self._secret, headers, EVENT_STREAM)

    async def _page(self, query: str) -> bytes:
        url = join_url(self._root, "v1/models")
        url += ("&" if urlsplit(url).query else "?") + query
        call = HttpRequest(url, LISTING_TIMEOUTS, secret=self._secret, headers=_headers())
        return await self._http.exchange(call)


def _headers(betas: tuple[str, ...] = ()) -> dict[str, str]:
    return {"anthropic-version": VERSION, **({"anthropic-beta": ",".join(betas)} if betas else {})}
