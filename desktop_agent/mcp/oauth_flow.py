"""The library's OAuth flow within bounds: for a sign-in, a renewal (RFC 6749, section 6), a revocation (RFC 7009).
Loaded late.

The library uses its provider as the authentication of each request. Here it runs apart from them: its requests go to
other servers than the calls, a renewal outlives the call that needed it, and pages open only when the person signs in.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, cast

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from desktop_agent.mcp.diagnostics import ServerLog
from desktop_agent.mcp.host_policy import HttpTarget
from desktop_agent.mcp.http import make_http_client
from desktop_agent.mcp.oauth_records import OAuthRecord, is_valid_token
from desktop_agent.types.blocks import JsonObject

# Seconds of one request to a server that is named for signing in, and the number of requests in one flow.
_REQUEST_TIMEOUT = 30.0
_MAX_REQUESTS = 30
_REVOKE_TIMEOUT = 10.0


class TooManyRequests(Exception):
    """The flow does not end."""


class AuthorizationServerUnavailable(Exception):
    """The authorization server cannot answer now (RFC 9110, 15.6): the sign-in may still be valid."""


@dataclass(frozen=True, slots=True)
class AuthChallenge:
    """The status and the WWW-Authenticate header with which a server refused a request."""

    status: int
    header: str

    @property
    def is_step_up(self) -> bool:
        """Whether the server knows the person, and wants more scopes."""
        return self.status == HTTPStatus.FORBIDDEN


@dataclass
class TokenMemory:
    """The token storage of the library; the keyring gets the result at the end."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens."""
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Set new tokens."""
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the registered client."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Set a newly registered client."""
        self.client = client_info


def make_oauth_provider(
    url: str,
    memory: TokenMemory,
    address: str = "http://127.0.0.1/callback",
    open_page: Callable[[str], Awaitable[None]] | None = None,
    answer: Callable[[], Awaitable[AuthorizationCodeResult]] | None = None,
    client_document: str | None = None,
) -> OAuthClientProvider:
    """Return the library's provider; `address` is the redirect URI. Without a page it can only renew tokens."""
    metadata = OAuthClientMetadata(client_name="Desktop Agent", redirect_uris=[AnyUrl(address)])
    return OAuthClientProvider(url, metadata, memory, open_page, answer, client_document)


async def run_oauth_flow(
    provider: OAuthClientProvider, client: httpx2.AsyncClient, request: httpx2.Request, response: httpx2.Response
) -> None:
    """Send the requests of the flow for `request`, which itself is not sent: its response is `response`."""
    async with aclosing(cast("AsyncGenerator[Any, Any]", provider.async_auth_flow(request))) as flow:
        outgoing = await anext(flow)
        with suppress(StopAsyncIteration):
            for _ in range(_MAX_REQUESTS):
                outgoing = await flow.asend(response if outgoing is request else await send_bounded(client, outgoing))
            raise TooManyRequests


async def send_bounded(client: httpx2.AsyncClient, request: httpx2.Request, *, whole: bool = True) -> httpx2.Response:
    """Send one request without following redirects. Raises TimeoutError."""
    async with asyncio.timeout(_REQUEST_TIMEOUT):
        response = await client.send(request, follow_redirects=False, stream=True)
        try:
            if whole:
                await response.aread()
        finally:
            await response.aclose()
    return response


async def refresh_tokens(record: OAuthRecord, target: HttpTarget, log: ServerLog) -> OAuthRecord:
    """Return a renewed record, or the same where no token came. Raises AuthorizationServerUnavailable, and what the
    library raises.
    """
    try:
        memory = TokenMemory(
            tokens := OAuthToken.model_validate(record.tokens), OAuthClientInformationFull.model_validate(record.client)
        )
        metadata = _metadata(record)
    except ValidationError:
        return record
    if not tokens.refresh_token:
        return record
    provider = make_oauth_provider(record.url, memory)
    provider.context.oauth_metadata = metadata
    provider.context.token_expiry_time = 1.0
    request = httpx2.Request("POST", record.url, headers={"mcp-protocol-version": "2025-11-25"})
    async with await make_http_client(_authorization_target(target), log) as client:
        client.event_hooks["response"].append(_require_available)
        await run_oauth_flow(provider, client, request, httpx2.Response(200, request=request))
    renewed = memory.tokens
    if renewed is None or renewed is tokens or not is_valid_token(renewed.access_token):
        return record
    return record.with_tokens(to_json(renewed))


async def revoke_tokens(record: OAuthRecord, target: HttpTarget) -> bool:
    """Revoke the tokens and return whether that succeeded. Raises nothing: tokens also expire by themselves."""
    try:
        async with asyncio.timeout(_REVOKE_TIMEOUT):
            return await _revoke_tokens(record, _authorization_target(target))
    except Exception:  # noqa: BLE001 - whatever a server brings about, and it may hold what came
        return False


async def _revoke_tokens(record: OAuthRecord, target: HttpTarget) -> bool:
    metadata = _metadata(record)
    if metadata is None or metadata.revocation_endpoint is None:
        return False
    context = make_oauth_provider(record.url, TokenMemory()).context
    client_info = context.client_info = OAuthClientInformationFull.model_validate(record.client)
    # Revoking the first ends the second if the server is correct (section 2.1); both are revoked anyway.
    kinds = [kind for kind in ("refresh_token", "access_token") if isinstance(record.tokens.get(kind), str)]
    statuses: list[int] = []
    async with await make_http_client(target, ServerLog()) as client:
        for kind in kinds:
            fields = {"token": str(record.tokens[kind]), "token_type_hint": kind, "client_id": client_info.client_id}
            form, headers = context.prepare_token_auth(fields, {})
            url = str(metadata.revocation_endpoint)
            response = await send_bounded(client, httpx2.Request("POST", url, data=form, headers=headers))
            statuses.append(response.status_code)
    return bool(statuses) and all(status == HTTPStatus.OK for status in statuses)


async def _require_available(response: httpx2.Response) -> None:
    if response.is_server_error or response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        raise AuthorizationServerUnavailable


def _authorization_target(target: HttpTarget) -> HttpTarget:
    return replace(target, allows_other_servers=True, headers={}, on_unauthorized=lambda: None)


def _metadata(record: OAuthRecord) -> OAuthMetadata | None:
    return OAuthMetadata.model_validate(record.metadata) if record.metadata is not None else None


def to_json(model: BaseModel) -> JsonObject:
    """Return a model of the library as it is saved."""
    return model.model_dump(mode="json", exclude_none=True)
