"""What the adapters of all dialects share: a server's address, its key, its listing, and totals."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from desktop_agent.network.hosts import is_local_host
from desktop_agent.providers.catalogue.catalogue import Catalogue, Pricing
from desktop_agent.providers.dialects.request_building import account_digest, names_by_wire_name, wire_name
from desktop_agent.providers.dialects.response_stream import (
    EVENT_STREAM,
    BaseFrameReader,
    OpenedStream,
    key_header,
    send_request,
    stream_events,
)
from desktop_agent.providers.dialects.server_families import may_repeat
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.text_builder import ThinkTags
from desktop_agent.providers.transport.error_responses import request_id
from desktop_agent.providers.transport.http_client import HttpClient, HttpRequest, HttpResponse, SecretHeader
from desktop_agent.providers.transport.json_codec import dumps
from desktop_agent.types.errors import CachingNotSupported, Sentence
from desktop_agent.types.provider_events import Origin, ProviderEvent
from desktop_agent.types.providers import (
    CachedPrompt,
    Capabilities,
    ModelInfo,
    ModelRequest,
    ProviderState,
    ReasoningDisabled,
    Timeouts,
)

LISTING_TIMEOUTS = Timeouts(connect=10, headers=30, idle=30, total=60)


class ServerAdapter(ABC):
    """One server. A dialect adds how a request is written and how an answer is read.

    The HTTP client is shared and not closed here. Raises WrongUse for a key that no header can carry.
    """

    dialect: str
    # As in the catalogue.
    _vendor: str
    _key_header: str = "Authorization"

    def __init__(
        self,
        *,
        base_url: str,
        api_key: SecretStr | None = None,
        http: HttpClient,
        catalogue: Catalogue | None = None,
    ) -> None:
        self._root = self._parse_root(base_url)
        self._secret: SecretHeader | None = key_header(api_key, self._key_header)
        self._http = http
        self._catalogue = catalogue or Catalogue()
        self._state = ProviderState()
        self._listed: dict[str, ModelInfo] = {}

    @abstractmethod
    def _parse_root(self, base_url: str) -> str: ...

    @abstractmethod
    async def _open(self, request: ModelRequest) -> OpenedStream: ...

    @property
    def state(self) -> ProviderState:
        return self._state

    def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Yield canonical events of the answer. What a server refuses is left out, and the request sent once more."""
        return stream_events(partial(self._open, request), self._state)

    def model_info(self, model: str) -> ModelInfo:
        """Return what is known about a model without a request."""
        return self._listed.get(model) or self._catalogue.merged(self._vendor, ModelInfo(model))

    async def prompt_cache(self, request: ModelRequest, *, seconds: int = 300) -> CachedPrompt:  # noqa: ARG002
        """Raise CachingNotSupported: most servers cache automatically, or not at all."""
        raise CachingNotSupported("This server caches prompts by itself; this cannot be changed.")

    async def aclose(self) -> None:  # noqa: B027  only Gemini keeps something on its server
        """Close nothing: the client is shared."""

    def _set_listing(self, models: Iterable[ModelInfo]) -> tuple[ModelInfo, ...]:
        self._listed = {model.id: self._catalogue.merged(self._vendor, model) for model in models}
        return tuple(self._listed.values())

    def _account(self, model: str) -> str:
        return account_digest(self._root, model)

    def _capabilities(self, model: str) -> Capabilities:
        return self.model_info(model).capabilities

    def _limits(self, request: ModelRequest) -> Timeouts:
        return request_timeouts(request, self._root, self._capabilities(request.model))

    async def _send(self, request: ModelRequest, url: str, fields: Mapping[str, Any]) -> HttpResponse:
        """Return the head of a good answer. Raises the server's error."""
        call = HttpRequest(url, self._limits(request), dumps(fields), self._secret, accept=EVENT_STREAM)
        return await send_request(self._http, call, self._state)

    async def _exchange(self, url: str, body: bytes | None = None, method: str | None = None) -> bytes:
        call = HttpRequest(url, LISTING_TIMEOUTS, body, self._secret, method=method)
        return await self._http.exchange(call)

    def _wire_name(self, name: str) -> str:
        return wire_name(name)

    def _part_builder(
        self,
        request: ModelRequest,
        provider: str,
        *,
        has_think_tags: bool | None = None,
        keeps_arguments: bool = False,
    ) -> PartBuilder:
        """Return a builder for one answer. Servers that may repeat themselves may also put reasoning into tags."""
        repeats = may_repeat(self._root)
        tags = ThinkTags() if (repeats if has_think_tags is None else has_think_tags) else None
        builder = PartBuilder(provider, tags=tags, keeps_arguments=keeps_arguments, may_repeat=repeats)
        builder.tool_names = names_by_wire_name(request.tools, self._wire_name)
        return builder

    def _opened_stream(
        self,
        request: ModelRequest,
        answer: HttpResponse,
        builder: PartBuilder,
        reader: BaseFrameReader,
        adjustments: tuple[Sentence, ...],
        *,
        prefix: str = "",
        long_lived: bool = False,
    ) -> OpenedStream:
        """Return a stream to be read; `long_lived`: what is written to the cache stays there longer, and costs more."""
        origin = Origin(
            provider=builder.provider,
            account=self._account(request.model),
            prefix=prefix,
            request_id=request_id(answer.headers),
        )
        price = self.model_info(request.model).price
        pricing = Pricing(price, long_lived=long_lived) if price is not None else None
        return OpenedStream(answer, builder, reader, origin, adjustments, pricing)


def request_timeouts(request: ModelRequest, base_url: str, known: Capabilities) -> Timeouts:
    """Return the limits of one request. A local server loads its model and reads the prompt before it answers, and a
    model that reasons may be silent meanwhile."""
    reasoning = request.config.reasoning
    if reasoning is None:
        reasons = bool(known.reasoning if known.reasons_by_default is None else known.reasons_by_default)
    else:
        reasons = not isinstance(reasoning, ReasoningDisabled)
    return request.config.timeouts.for_start(slow=reasons or is_local_host(urlsplit(base_url).hostname or ""))
