"""The Responses API: OpenAI's own, and servers that offer the same."""

import logging

from desktop_agent.providers.catalogue.catalogue import estimate_tokens
from desktop_agent.providers.dialects.openai_responses.messages import Recipient
from desktop_agent.providers.dialects.openai_responses.output_items import PROVIDER
from desktop_agent.providers.dialects.openai_responses.request import (
    RequestBody,
    build_body,
    count_fields,
    refused_fields,
)
from desktop_agent.providers.dialects.openai_responses.response_stream import FrameReader
from desktop_agent.providers.dialects.openai_server import OpenAIServer
from desktop_agent.providers.dialects.response_stream import OpenedStream
from desktop_agent.providers.dialects.server_families import join_url
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport.http_client import HttpResponse
from desktop_agent.providers.transport.json_codec import dumps, loads
from desktop_agent.types.errors import InvalidRequest, NotFound, Sentence, UnreadableAnswer
from desktop_agent.types.providers import ModelRequest, TokenCount

_log = logging.getLogger(__name__)
_WITHOUT_EARLIER_REASONING = Sentence(
    "The server did not take earlier reasoning back, so the question was asked without it."
)


class OpenAIResponses(OpenAIServer):
    """One server that speaks the Responses API.

    The reasoning of earlier answers is left out, too, if the server does not take it. Servers cache prompts by
    themselves in this dialect: a key for each conversation and, where a model takes it, a longer lifetime are sent
    along, but nothing can be cached ahead.
    """

    dialect = "openai-responses"
    # Keys of earlier reasoning that the server refused.
    _unreadable: frozenset[str] = frozenset()

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """Ask OpenAI's servers for the count; estimate for others, and where they do not count after all."""
        if self._quirks.switch == "openai":
            body = dumps(count_fields(self._body(request)))
            try:
                answer = await self._exchange(join_url(self._root, "responses/input_tokens"), body)
                tokens = loads(answer)["input_tokens"]
            except (InvalidRequest, NotFound, UnreadableAnswer, ValueError, KeyError, TypeError):
                tokens = None
            if type(tokens) is int and tokens >= 0:
                return TokenCount(tokens)
        return estimate_tokens(request, self._vendor)

    async def _open(self, request: ModelRequest) -> OpenedStream:
        answer, body, adjustments = await self._ask(request)
        builder = PartBuilder(PROVIDER, tags=self._think_tags(), keeps_arguments=True, may_repeat=self._may_repeat)
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
