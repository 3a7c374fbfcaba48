"""OAuth records as saved in the keyring, and the library's OAuth flow driven within bounds."""

import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from desktop_agent.types.blocks import JsonObject

if TYPE_CHECKING:
    import httpx2
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken


_TOKEN_PATTERN = re.compile(r"[\x21-\x7e]+")
MAX_RECORD_LENGTH = 100_000
"""Characters of a record. What is longer is no token but an attack."""


class OAuthRecord(BaseModel):
    """A sign-in to the server at `url`.

    `expires_at` is in seconds since 1970; None: unknown. `tokens`, the registered `client` and the `metadata` of the
    authorization server are as the library has them.
    """

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    url: str
    tokens: JsonObject = Field(repr=False)
    client: JsonObject = Field(repr=False)
    metadata: JsonObject | None = Field(default=None, repr=False)
    expires_at: float | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must be shown nowhere."""
        values = (self.tokens.get("access_token"), self.tokens.get("refresh_token"), self.client.get("client_secret"))
        return tuple(value for value in values if isinstance(value, str))

    @property
    def access_token(self) -> str:
        return str(self.tokens.get("access_token", ""))

    def with_tokens(self, tokens: JsonObject) -> "OAuthRecord":
        """Return the record with other tokens."""
        return self.model_copy(update={"tokens": tokens, "expires_at": expiry_time(tokens)})


def is_valid_token(text: object) -> bool:
    """Whether a token can be sent (RFC 6749, appendix A.12)."""
    return isinstance(text, str) and bool(_TOKEN_PATTERN.fullmatch(text))


MAX_TOKEN_LIFETIME = 366 * 86_400
"""Seconds: tokens that would live longer are renewed by then."""


def expiry_time(tokens: JsonObject) -> float | None:
    """Return when tokens that came now expire."""
    seconds = tokens.get("expires_in")
    return time.time() + min(max(seconds, 0), MAX_TOKEN_LIFETIME) if isinstance(seconds, int) else None


@dataclass(frozen=True, slots=True)
class OAuthRecordStore:
    """Where a record is saved. `get` and `set` may raise SecretsUnavailable.

    `exclusive` keeps other processes from renewing the same record; it yields False where one of them does not finish.
    """

    get: Callable[[], Awaitable[SecretStr | None]]
    set: Callable[[SecretStr], Awaitable[None]]
    exclusive: Callable[[], AbstractAsyncContextManager[bool]]

    async def load(self, url: str) -> OAuthRecord | None:
        """Return the record of this server; None also for one that cannot be read."""
        secret = await self.get()
        return self.read(secret, url) if secret is not None else None

    @staticmethod
    def read(secret: SecretStr, url: str) -> OAuthRecord | None:
        """Parse a saved record; None where it cannot be read or belongs to another server."""
        try:
            record = OAuthRecord.model_validate_json(secret.get_secret_value())
        except ValidationError:
            return None
        return record if record.url == url else None

    async def save(self, record: OAuthRecord) -> None:
        """Save a record. Raises ValueError for one that is too large."""
        text = record.model_dump_json()
        if len(text) > MAX_RECORD_LENGTH:
            raise ValueError("too large")
        await self.set(SecretStr(text))


# Seconds of one request to a server that is named for signing in, and the number of requests in one flow.
_REQUEST_TIMEOUT = 30.0
_MAX_REQUESTS = 30
_HTTP_TOO_MANY_REQUESTS = 429


class TooManyRequests(Exception):
    """The flow does not come to an end."""


class AuthorizationServerUnavailable(Exception):
    """The authorization server cannot answer now (RFC 9110, 15.6): that says nothing about the sign-in."""


@dataclass
class MemoryTokenStorage:
    """The token storage of the library; the keyring gets the result at the end."""

    tokens: "OAuthToken | None" = None
    client: "OAuthClientInformationFull | None" = None

    async def get_tokens(self) -> "OAuthToken | None":
        """Return the tokens."""
        return self.tokens

    async def set_tokens(self, tokens: "OAuthToken") -> None:
        """Take new tokens."""
        self.tokens = tokens

    async def get_client_info(self) -> "OAuthClientInformationFull | None":
        """Return the registered client."""
        return self.client

    async def set_client_info(self, client_info: "OAuthClientInformationFull") -> None:
        """Take a newly registered client."""
        self.client = client_info


@dataclass(frozen=True, slots=True)
class BrowserRedirect:
    """How the person is asked. `address` is the redirect URI."""

    address: str
    open: "Callable[[str], Awaitable[None]]"
    answer: "Callable[[], Awaitable[AuthorizationCodeResult]]"


def make_oauth_provider(
    url: str, memory: MemoryTokenStorage, browser: BrowserRedirect | None, client_document: str | None = None
) -> "OAuthClientProvider":
    """Return the library's provider. Without a browser it can only renew tokens."""
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata
    from pydantic import AnyUrl

    # The library logs what servers answered when something goes wrong, tokens too.
    logging.getLogger("mcp.client.auth.oauth2").disabled = True
    address = browser.address if browser else "http://127.0.0.1/callback"
    metadata = OAuthClientMetadata(client_name="Desktop Agent", redirect_uris=[AnyUrl(address)])
    if browser is None:
        return OAuthClientProvider(url, metadata, memory)
    return OAuthClientProvider(url, metadata, memory, browser.open, browser.answer, client_metadata_url=client_document)


async def run_oauth_flow(
    provider: "OAuthClientProvider",
    request: "httpx2.Request",
    client: "httpx2.AsyncClient",
    answer_request: "Callable[[httpx2.Request], Awaitable[httpx2.Response]] | None",
) -> None:
    """Send the library's requests until it would send `request` again with the result.

    `answer_request` returns the response to `request` itself; without it the flow ends there, and raises
    AuthorizationServerUnavailable where tokens cannot be had now.
    """
    flow: AsyncGenerator[Any, Any] = provider.async_auth_flow(request)
    try:
        outgoing = await anext(flow)
        was_sent = False
        for _ in range(_MAX_REQUESTS):
            if outgoing is request and (was_sent or answer_request is None):
                return
            if outgoing is request and answer_request is not None:
                was_sent = True
                response = await answer_request(request)
            else:
                response = await send_bounded(client, outgoing)
                if answer_request is None and (
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
    """Send one request without following redirects. Raises TimeoutError."""
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
    """Return the record to save; None where no tokens came."""
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
    """Return a model of the library as it is saved."""
    return model.model_dump(mode="json", exclude_none=True)
