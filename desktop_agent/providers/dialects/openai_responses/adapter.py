"""The Responses API: OpenAI's own, and servers that offer the same."""

import logging

from pydantic import SecretStr

from desktop_agent.providers.catalogue.catalogue import Catalogue, estimate_tokens
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
from desktop_agent.providers.dialects.response_stream import OpenedStream
from desktop_agent.providers.dialects.server_adapter import ServerAdapter
from desktop_agent.providers.dialects.server_families import api_root, join_url
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.text_builder import ThinkTags
from desktop_agent.providers.transport.http_client import HttpClient, HttpResponse
from desktop_agent.providers.transport.json_codec import dumps, loads
from desktop_agent.types.errors import InvalidRequest, NotFound, Sentence, UnreadableAnswer
from desktop_agent.types.providers import ImageLimits, ModelInfo, ModelRequest, Timeouts, TokenCount

_log = logging.getLogger(__name__)
_WITHOUT_EARLIER_REASONING = Sentence(
    "The server did not take earlier reasoning back, so the question was asked without it."
)


class OpenAIResponses(ServerAdapter):
    """One server that speaks the Responses API.

    `base_url` is what the vendor's own SDK takes, usually ending in /v1. A field that the server does not take is left
    out, and so is the reasoning of earlier answers; then it is asked once more.
    Servers cache prompts by themselves in this dialect: a key for each conversation and, where a model takes it, a
    longer lifetime are sent along, but nothing can be cached ahead. Raises WrongUse for an address or a key that
    cannot be used.
    """

    dialect = "openai-responses"

    def __init__(
        self,
        *,
        base_url: str,
        api_key: SecretStr | None = None,
        http: HttpClient,
        catalogue: Catalogue | None = None,
        listing_timeouts: Timeouts | None = None,
    ) -> None:
        self._quirks = server_families.quirks_for_url(api_root(base_url))
        root, key_name = api_root(base_url, self._quirks.usual_path), self._quirks.key_header
        super().__init__(root, api_key, http, catalogue, listing_timeouts, key_name=key_name)
        self._refused: dict[str, frozenset[str]] = {}
        self._unreadable: frozenset[str] = frozenset()

    @property
    def _vendor(self) -> str:
        return self._quirks.family

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Return the server's listing, and learn from it which family the server belongs to."""
        listing = await fetch_models(self._root, self._quirks, self._exchange)
        self._quirks = listing.quirks
        return self._set_listing(listing.models)

    def picture_limits(self, model: str) -> ImageLimits:  # noqa: ARG002  the same for all its models
        """Return what this family of servers takes."""
        return server_families.picture_limits(self._quirks)

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """Ask OpenAI's servers for the count; estimate for others, and where they do not count after all."""
        if self._quirks.switch == "openai":
            body = dumps(count_fields(self._body(request)))
            try:
                tokens = loads(await self._exchange(join_url(self._root, "responses/input_tokens"), body))[
                    "input_tokens"
                ]
            except (InvalidRequest, NotFound, UnreadableAnswer, ValueError, KeyError, TypeError):
                tokens = None
            if type(tokens) is int and tokens >= 0:
                return TokenCount(tokens)
        return estimate_tokens(request, self._vendor)

    async def _open(self, request: ModelRequest) -> OpenedStream:
        answer, body, adjustments = await self._ask(request)
        tags = ThinkTags(opened_by_template=self._quirks.opened_by_template) if self._quirks.think_tags else None
        builder = PartBuilder(PROVIDER, tags=tags, keeps_arguments=True, may_repeat=self._may_repeat)
        reader = FrameReader(builder, answer.headers, self._redact_key)
        is_long = "ttl" in body.fields.get("prompt_cache_options", ())
        return self._opened_stream(
            request, answer, builder, reader, adjustments, prefix=body.prefix, long_lived=is_long
        )

    async def _ask(self, request: ModelRequest) -> tuple[HttpResponse, RequestBody, tuple[Sentence, ...]]:
        """Return the head of a good answer, and what was asked in the end. Raises the server's error."""
        without, forgotten = self._refused.get(request.model, frozenset[str]()), frozenset[str]()
        dropped = False
        while True:
            body = self._body(request, without, forgotten)
            try:
                answer = await self._send(request, join_url(self._root, "responses"), body.fields)
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
        known = self._capabilities(request.model)
        recipient = Recipient(
            self._quirks,
            self._account(request.model),
            binds=known.binds_prefix is not False,
            unreadable=self._unreadable | forgotten,
        )
        return build_body(request, recipient, known, without)
