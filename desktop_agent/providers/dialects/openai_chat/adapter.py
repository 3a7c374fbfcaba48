"""Chat Completions: OpenAI's own and everybody else's."""

import logging
from collections.abc import AsyncGenerator
from functools import partial

from pydantic import SecretStr

from desktop_agent.providers.catalogue.catalogue import Catalogue, Pricing, estimate_tokens
from desktop_agent.providers.dialects import server_families
from desktop_agent.providers.dialects.openai_chat.messages import Recipient
from desktop_agent.providers.dialects.openai_chat.model_listing import fetch_models
from desktop_agent.providers.dialects.openai_chat.request import RequestBody, build_body, refused_fields
from desktop_agent.providers.dialects.openai_chat.response_stream import FrameReader
from desktop_agent.providers.dialects.request_building import account_digest
from desktop_agent.providers.dialects.response_stream import (
    EVENT_STREAM,
    OpenedStream,
    key_header,
    redact_key,
    request_timeouts,
    send_request,
    stream_events,
)
from desktop_agent.providers.dialects.server_families import api_root, join_url
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.text_builder import ThinkTags
from desktop_agent.providers.transport.http_client import HttpClient, HttpRequest, HttpResponse
from desktop_agent.providers.transport.json_codec import dumps
from desktop_agent.types.errors import CachingNotSupported, InvalidRequest
from desktop_agent.types.provider_events import Origin, ProviderEvent
from desktop_agent.types.providers import (
    CachedPrompt,
    ImageLimits,
    ModelInfo,
    ModelRequest,
    ProviderState,
    Timeouts,
    TokenCount,
)

_log = logging.getLogger(__name__)


class OpenAIChat:
    """One server that speaks Chat Completions.

    `base_url` is what the vendor's own SDK takes, usually ending in /v1. `quirks` overrides what the address suggests.
    The client is shared and not closed here. Raises WrongUse for an address or a key that cannot be used.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: SecretStr | None = None,
        http: HttpClient,
        quirks: server_families.ServerQuirks | None = None,
        catalogue: Catalogue | None = None,
        listing_timeouts: Timeouts | None = None,
    ) -> None:
        self._http = http
        self._is_guess = quirks is None
        self._quirks = quirks or server_families.quirks_for_url(api_root(base_url))
        self._root = api_root(base_url, self._quirks.usual_path)
        self._secret = key_header(api_key, self._quirks.key_header)
        self._catalogue = catalogue or Catalogue()
        self._listing_timeouts = listing_timeouts or Timeouts(connect=10, headers=30, idle=30, total=60)
        self._state = ProviderState()
        self._listed: dict[str, ModelInfo] = {}
        self._refused: dict[str, frozenset[str]] = {}

    @property
    def dialect(self) -> str:
        """Its name in an endpoint."""
        return "openai-chat"

    @property
    def state(self) -> ProviderState:
        """Totals."""
        return self._state

    @property
    def quirks(self) -> server_families.ServerQuirks:
        """What this server is taken for."""
        return self._quirks

    def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Ask, and yield canonical events. A field that the server does not take is dropped and asked again once."""
        return stream_events(partial(self._open, request), self._state)

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """The server's listing with what it tells about each model; also teaches this object who the server is."""
        found = await fetch_models(self._root, self._quirks, self._exchange)
        if self._is_guess:
            self._quirks = found.quirks
        self._listed = {model.id: self._catalogue.merged(self._quirks.family, model) for model in found.models}
        return tuple(self._listed.values())

    def model_info(self, model: str) -> ModelInfo:
        """What is known about a model without asking."""
        return self._listed.get(model) or self._catalogue.merged(self._quirks.family, ModelInfo(model))

    def picture_limits(self, model: str) -> ImageLimits:  # noqa: ARG002  the same for all its models
        """What this family of servers takes."""
        return server_families.picture_limits(self._quirks)

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """An estimate: this dialect has no way to ask."""
        return estimate_tokens(request, self._quirks.family)

    async def prompt_cache(self, request: ModelRequest, *, seconds: int = 300) -> CachedPrompt:  # noqa: ARG002
        """Not in this dialect: its servers cache by themselves, or not at all."""
        raise CachingNotSupported("This server keeps prompts by itself; it cannot be asked to.")

    async def aclose(self) -> None:
        """Nothing of its own is open: the client is shared."""

    async def _exchange(self, url: str, body: bytes | None = None) -> bytes:
        call = HttpRequest(url, self._listing_timeouts, body=body, secret=self._secret)
        return await self._http.exchange(call)

    async def _open(self, request: ModelRequest) -> OpenedStream:
        quirks, account = self._quirks, account_digest(self._root, request.model)
        answer, body = await self._ask(request, Recipient(quirks, account))
        tags = ThinkTags(opened_by_template=quirks.opened_by_template) if quirks.think_tags else None
        builder = PartBuilder(
            quirks.thinking_provider, tags=tags, keeps_arguments=True, may_repeat=server_families.may_repeat(self._root)
        )
        reader = FrameReader(builder, answer.headers, partial(redact_key, secret=self._secret))
        origin = Origin(provider=quirks.thinking_provider, account=account)
        price = self.model_info(request.model).price
        return OpenedStream(
            answer, builder, reader, origin, body.adjustments, pricing=Pricing(price) if price is not None else None
        )

    async def _ask(self, request: ModelRequest, recipient: Recipient) -> tuple[HttpResponse, RequestBody]:
        """The head of a good answer, and what was asked. Raises what the server refuses with."""
        known = self.model_info(request.model).capabilities
        without = self._refused.get(request.model, frozenset())
        body = build_body(request, recipient, known, without)
        try:
            return await self._sent(request, body), body
        except InvalidRequest as error:
            named = refused_fields(error, body) if error.status in (400, 422) else frozenset[str]()
            if not named:
                raise
            without |= named
        _log.info("the server does not take %s; asking once more without", ", ".join(sorted(without)))
        body = build_body(request, recipient, known, without)
        answer = await self._sent(request, body)
        self._refused[request.model] = without
        return answer, body

    async def _sent(self, request: ModelRequest, body: RequestBody) -> HttpResponse:
        url = join_url(self._root, "chat/completions")
        limits = request_timeouts(request, self._root, self.model_info(request.model).capabilities)
        call = HttpRequest(url, limits, dumps(body.fields), self._secret, accept=EVENT_STREAM)
        return await send_request(self._http, call, self._state)
