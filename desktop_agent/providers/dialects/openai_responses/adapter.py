"""The Responses API: OpenAI's own, and servers that offer the same."""

import logging
from collections.abc import AsyncGenerator
from functools import partial

from pydantic import SecretStr

from desktop_agent.providers.catalogue.catalogue import Catalogue, Pricing, estimate_tokens
from desktop_agent.providers.dialects import server_families
from desktop_agent.providers.dialects.openai_chat.model_listing import fetch_models
from desktop_agent.providers.dialects.openai_responses.messages import Recipient
from desktop_agent.providers.dialects.openai_responses.output_items import PROVIDER
from desktop_agent.providers.dialects.openai_responses.request import (
    RequestBody,
    build_body,
    count_fields,
    refused_fields,
)
from desktop_agent.providers.dialects.openai_responses.response_stream import FrameReader
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
from desktop_agent.providers.transport.json_codec import dumps, loads
from desktop_agent.types.errors import (
    CachingNotSupported,
    InvalidRequest,
    NotFound,
    Sentence,
    UnreadableAnswer,
)
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
_WITHOUT_EARLIER_REASONING = Sentence(
    "The server did not take earlier reasoning back, so the question was asked without it."
)


class OpenAIResponses:
    """One server that speaks the Responses API.

    `base_url` is what the vendor's own SDK takes, usually ending in /v1. The client is shared and not closed here.
    Caching of prompts is the servers' own affair in this dialect: a key per conversation and, where a model takes it,
    a longer lifetime are sent along, but nothing can be cached ahead. Raises WrongUse for an address or a key that
    cannot be used.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: SecretStr | None = None,
        http: HttpClient,
        catalogue: Catalogue | None = None,
        listing_timeouts: Timeouts | None = None,
    ) -> None:
        self._http = http
        self._quirks = server_families.quirks_for_url(api_root(base_url))
        self._root = api_root(base_url, self._quirks.usual_path)
        self._secret = key_header(api_key, self._quirks.key_header)
        self._catalogue = catalogue or Catalogue()
        self._listing_timeouts = listing_timeouts or Timeouts(connect=10, headers=30, idle=30, total=60)
        self._state = ProviderState()
        self._listed: dict[str, ModelInfo] = {}
        self._refused: dict[str, frozenset[str]] = {}
        self._unreadable: frozenset[str] = frozenset()

    @property
    def dialect(self) -> str:
        """Its name in an endpoint."""
        return "openai-responses"

    @property
    def state(self) -> ProviderState:
        """Totals."""
        return self._state

    def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Ask, and yield canonical events.

        A field that the server does not take is dropped and asked again once; so is the reasoning of earlier answers.
        """
        return stream_events(partial(self._open, request), self._state)

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """The server's listing with what it tells about each model; also teaches this object who the server is."""
        found = await fetch_models(self._root, self._quirks, self._exchange)
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
        """Counted by OpenAI's servers, which can be asked; estimated for others, and where they cannot after all."""
        if self._quirks.switch != "openai":
            return estimate_tokens(request, self._quirks.family)
        body = dumps(count_fields(self._body(request)))
        try:
            data = loads(await self._exchange(join_url(self._root, "responses/input_tokens"), body))
            tokens = data["input_tokens"]
        except (InvalidRequest, NotFound, UnreadableAnswer, ValueError, KeyError, TypeError):
            return estimate_tokens(request, self._quirks.family)
        return (
            TokenCount(tokens) if type(tokens) is int and tokens >= 0 else estimate_tokens(request, self._quirks.family)
        )

    async def prompt_cache(self, request: ModelRequest, *, seconds: int = 300) -> CachedPrompt:  # noqa: ARG002
        """Not in this dialect: its servers cache by themselves, or not at all."""
        raise CachingNotSupported("This server keeps prompts by itself; it cannot be asked to.")

    async def aclose(self) -> None:
        """Nothing of its own is open: the client is shared."""

    async def _exchange(self, url: str, body: bytes | None = None) -> bytes:
        call = HttpRequest(url, self._listing_timeouts, body=body, secret=self._secret)
        return await self._http.exchange(call)

    async def _open(self, request: ModelRequest) -> OpenedStream:
        answer, body, adjustments = await self._ask(request)
        tags = ThinkTags(opened_by_template=self._quirks.opened_by_template) if self._quirks.think_tags else None
        builder = PartBuilder(
            PROVIDER, tags=tags, keeps_arguments=True, may_repeat=server_families.may_repeat(self._root)
        )
        reader = FrameReader(builder, answer.headers, partial(redact_key, secret=self._secret))
        origin = Origin(provider=PROVIDER, account=self._account(request), prefix=body.prefix)
        price = self.model_info(request.model).price
        is_long = "ttl" in body.fields.get("prompt_cache_options", ())
        pricing = Pricing(price, long_lived=is_long) if price is not None else None
        return OpenedStream(answer, builder, reader, origin, adjustments, pricing)

    async def _ask(self, request: ModelRequest) -> tuple[HttpResponse, RequestBody, tuple[Sentence, ...]]:
        """The head of a good answer, and how it was asked for in the end. Raises what the server refuses with."""
        without, forgotten = self._refused.get(request.model, frozenset[str]()), frozenset[str]()
        dropped = False
        while True:
            body = self._body(request, without, forgotten)
            try:
                answer = await self._sent(request, body)
            except InvalidRequest as error:
                if error.status not in (400, 422):
                    raise
                named = frozenset[str]() if dropped else refused_fields(error, body)
                if named:
                    without, dropped = without | named, True
                    _log.info("the server does not take %s; asking once more without", ", ".join(sorted(named)))
                elif body.reasoning and not forgotten:
                    forgotten = body.reasoning
                    _log.info("the server refuses a question with earlier reasoning; asking once more without")
                else:
                    raise
                continue
            if dropped:
                self._refused[request.model] = without
            self._unreadable |= forgotten
            return answer, body, (*body.adjustments, *([_WITHOUT_EARLIER_REASONING] if forgotten else []))

    def _body(
        self,
        request: ModelRequest,
        without: frozenset[str] = frozenset(),
        forgotten: frozenset[str] = frozenset(),
    ) -> RequestBody:
        known = self.model_info(request.model).capabilities
        recipient = Recipient(
            self._quirks,
            self._account(request),
            binds=known.binds_prefix is not False,
            unreadable=self._unreadable | forgotten,
        )
        return build_body(request, recipient, known, without)

    def _account(self, request: ModelRequest) -> str:
        return account_digest(self._root, request.model)

    async def _sent(self, request: ModelRequest, body: RequestBody) -> HttpResponse:
        url = join_url(self._root, "responses")
        limits = request_timeouts(request, self._root, self.model_info(request.model).capabilities)
        call = HttpRequest(url, limits, dumps(body.fields), self._secret, accept=EVENT_STREAM)
        return await send_request(self._http, call, self._state)
