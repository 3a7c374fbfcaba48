"""Chat Completions: OpenAI's own and everybody else's."""

import logging

from desktop_agent.providers.catalogue.catalogue import estimate_tokens
from desktop_agent.providers.dialects.openai_chat.messages import Recipient
from desktop_agent.providers.dialects.openai_chat.request import RequestBody, build_body, refused_fields
from desktop_agent.providers.dialects.openai_chat.response_stream import FrameReader
from desktop_agent.providers.dialects.openai_server import OpenAIServer
from desktop_agent.providers.dialects.response_stream import OpenedStream
from desktop_agent.providers.dialects.server_families import join_url
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport.http_client import HttpResponse
from desktop_agent.types.errors import InvalidRequest
from desktop_agent.types.providers import ModelRequest, TokenCount

_log = logging.getLogger(__name__)


class OpenAIChat(OpenAIServer):
    """One server that speaks Chat Completions."""

    dialect = "openai-chat"

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """Return an estimate: this dialect has no way to ask."""
        return estimate_tokens(request, self._vendor)

    async def _open(self, request: ModelRequest) -> OpenedStream:
        quirks = self._quirks
        answer, body = await self._ask(request, Recipient(quirks, self._account(request.model)))
        builder = PartBuilder(
            quirks.thinking_provider, tags=self._think_tags(), keeps_arguments=True, may_repeat=self._may_repeat
        )
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
