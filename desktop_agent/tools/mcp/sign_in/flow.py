"""The library's part of a sign-in, driven by us: it says what to ask, we ask within bounds."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from desktop_agent.tools.mcp.sign_in.record import OAuthRecord
from desktop_agent.vocabulary.blocks import JsonObject

if TYPE_CHECKING:
    import httpx2
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

# Of one question to a server that is named for signing in; in seconds. And of questions in all.
_REQUEST_TIMEOUT = 30.0
_MAX_REQUESTS = 30
_HTTP_TOO_MANY_REQUESTS = 429


class TooManyRequests(Exception):
    """There is always one more thing to ask."""


class AuthorizationServerUnavailable(Exception):
    """Who gives tokens cannot answer now (RFC 9110, 15.6): that says nothing about the person."""


@dataclass
class MemoryTokenStorage:
    """The storage that the library wants; the keyring hears of it once, at the end."""

    tokens: "OAuthToken | None" = None
    client: "OAuthClientInformationFull | None" = None

    async def get_tokens(self) -> "OAuthToken | None":
        """Those that are known."""
        return self.tokens

    async def set_tokens(self, tokens: "OAuthToken") -> None:
        """Those that came."""
        self.tokens = tokens

    async def get_client_info(self) -> "OAuthClientInformationFull | None":
        """As whom we are known."""
        return self.client

    async def set_client_info(self, client_info: "OAuthClientInformationFull") -> None:
        """As whom we are known from now on."""
        self.client = client_info


@dataclass(frozen=True, slots=True)
class BrowserRedirect:
    """How the person is asked: `address` is where the answer comes to."""

    address: str
    open: "Callable[[str], Awaitable[None]]"
    answer: "Callable[[], Awaitable[AuthorizationCodeResult]]"


def make_oauth_provider(
    url: str, memory: MemoryTokenStorage, browser: BrowserRedirect | None, client_document: str | None = None
) -> "OAuthClientProvider":
    """The library's. Without a browser it can only renew tokens."""
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata
    from pydantic import AnyUrl

    # It writes what servers answered into the log when something goes wrong: tokens, too.
    logging.getLogger("mcp.client.auth.oauth2").disabled = True
    address = browser.address if browser else "http://127.0.0.1/callback"
    about = OAuthClientMetadata(client_name="Desktop Agent", redirect_uris=[AnyUrl(address)])
    if browser is None:
        return OAuthClientProvider(url, about, memory)
    return OAuthClientProvider(url, about, memory, browser.open, browser.answer, client_metadata_url=client_document)


async def run_oauth_flow(
    provider: "OAuthClientProvider",
    request: "httpx2.Request",
    client: "httpx2.AsyncClient",
    answered: "Callable[[httpx2.Request], Awaitable[httpx2.Response]] | None",
) -> None:
    """Ask what the library wants to have asked, until it would send `request` again with what came of it.

    `answered` says what is answered to `request` itself; without it, only what comes before is asked. Then it raises
    AuthorizationServerUnavailable where tokens cannot be had now.
    """
    flow: AsyncGenerator[Any, Any] = provider.async_auth_flow(request)
    try:
        outgoing = await anext(flow)
        was_asked = False
        for _ in range(_MAX_REQUESTS):
            if outgoing is request and (was_asked or answered is None):
                return
            if outgoing is request and answered is not None:
                was_asked = True
                response = await answered(request)
            else:
                response = await send_bounded(client, outgoing)
                if answered is None and (
                    response.status_code >= 500 or response.status_code == _HTTP_TOO_MANY_REQUESTS
                ):
                    raise AuthorizationServerUnavailable
            outgoing = await flow.asend(response)
        raise TooManyRequests
    except StopAsyncIteration:
        return
    finally:
        await flow.aclose()


async def send_bounded(
    client: "httpx2.AsyncClient", request: "httpx2.Request", *, whole: bool = True
) -> "httpx2.Response":
    """One question, within bounds, and without following anything. Raises TimeoutError."""
    async with asyncio.timeout(_REQUEST_TIMEOUT):
        response = await client.send(request, follow_redirects=False, stream=True)
        try:
            if whole:
                await response.aread()
        finally:
            await response.aclose()
    return response


def make_record(
    url: str, provider: "OAuthClientProvider", memory: MemoryTokenStorage, expires_at: float | None
) -> OAuthRecord | None:
    """What is to be kept; None where no tokens came."""
    if memory.tokens is None or memory.client is None:
        return None
    metadata = provider.context.oauth_metadata
    return OAuthRecord(
        url=url,
        tokens=to_json(memory.tokens),
        client=to_json(memory.client),
        metadata=to_json(metadata) if metadata is not None else None,
        expires_at=expires_at,
    )


def to_json(model: Any) -> JsonObject:
    """As it is kept."""
    return model.model_dump(mode="json", exclude_none=True)
