"""Chat Completions: OpenAI's own and everybody else's."""

import logging

from pydantic import SecretStr

from desktop_agent.providers.catalogue.catalogue import Catalogue, estimate_tokens
from desktop_agent.providers.dialects import server_families
from desktop_agent.providers.dialects.openai_chat.messages import Recipient
from desktop_agent.providers.dialects.openai_chat.model_listing import fetch_models
from desktop_agent.providers.dialects.openai_chat.request import RequestBody, build_body, refused_fields
from desktop_agent.providers.dialects.openai_chat.response_stream import FrameReader
from desktop_agent.providers.dialects.response_stream import OpenedStream
from desktop_agent.providers.dialects.server_adapter import ServerAdapter
from desktop_agent.providers.dialects.server_families import api_root, join_url
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.text_builder import ThinkTags
from desktop_agent.providers.transport.http_client import HttpClient, HttpResponse
from desktop_agent.types.errors import InvalidRequest
from desktop_agent.types.providers import ImageLimits, ModelInfo, ModelRequest, Timeouts, TokenCount

_log = logging.getLogger(__name__)


class OpenAIChat(ServerAdapter):
    """One server that speaks Chat Completions.

    `base_url` is what the vendor's own SDK takes, usually ending in /v1. `quirks` overrides what the address suggests.
    A field that the server does not take is left out, and it is asked once more. Raises WrongUse for an address or a
    key that cannot be used.
    """

    dialect = "openai-chat"

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
        self._is_guess = quirks is None
        self._quirks = quirks or server_families.quirks_for_url(api_root(base_url))
        root, key_name = api_root(base_url, self._quirks.usual_path), self._quirks.key_header
        super().__init__(root, api_key, http, catalogue, listing_timeouts, key_name=key_name)
        self._refused: dict[str, frozenset[str]] = {}

    @property
    def quirks(self) -> server_families.ServerQuirks:
        return self._quirks

    @property
    def _vendor(self) -> str:
        return self._quirks.family

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Return the server's listing, and learn from it which family the server belongs to."""
        listing = await fetch_models(self._root, self._quirks, self._exchange)
        if self._is_guess:
            self._quirks = listing.quirks
        return self._set_listing(listing.models)

    def picture_limits(self, model: str) -> ImageLimits:  # noqa: ARG002  the same for all its models
        """Return what this family of servers takes."""
        return server_families.picture_limits(self._quirks)

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """Return an estimate: this dialect has no way to ask."""
        return estimate_tokens(request, self._vendor)

    async def _open(self, request: ModelRequest) -> OpenedStream:
        quirks = self._quirks
        answer, body = await self._ask(request, Recipient(quirks, self._account(request.model)))
        tags = ThinkTags(opened_by_template=quirks.opened_by_template) if quirks.think_tags else None
        builder = PartBuilder(quirks.thinking_provider, tags=tags, keeps_arguments=True, may_repeat=self._may_repeat)
        reader = FrameReader(builder, answer.headers, self._redact_key)
        return self._opened_stream(request, answer, builder, reader, body.adjustments)

    async def _ask(self, request: ModelRequest, recipient: Recipient) -> tuple[HttpResponse, RequestBody]:
        """Return the head of a good answer, and what was asked. Raises the server's error."""
        known = self._capabilities(request.model)
        without = self._refused.get(request.model, frozenset())
        body, url = build_body(request, recipient, known, without), join_url(self._root, "chat/completions")
        try:
            return await self._send(request, url, body.fields), body
        except InvalidRequest as error:
            named = refused_fields(error, body) if error.status in (400, 422) else frozenset[str]()
            if not named:
                raise
            without |= named
        _log.info("the server does not take %s; asking once more without", ", ".join(sorted(without)))
        body = build_body(request, recipient, known, without)
        answer = await self._send(request, url, body.fields)
        self._refused[request.model] = without
        return answer, body
