"""OAuth records as kept in the keyring, and the library's OAuth flow driven within bounds."""

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
"""Characters of a record. More is no token but an attack."""


class OAuthRecord(BaseModel):
    """`url` is whose it is. `expires_at` is in seconds since 1970; None: nobody said. The rest is as the library has
    it: `tokens`, the `client` that was registered, and the `metadata` of who gave the tokens.
    """

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    url: str
    tokens: JsonObject = Field(repr=False)
    client: JsonObject = Field(repr=False)
    metadata: JsonObject | None = Field(default=None, repr=False)
    expires_at: float | None = None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Those that must be shown nowhere."""
        found = (self.tokens.get("access_token"), self.tokens.get("refresh_token"), self.client.get("client_secret"))
        return tuple(each for each in found if isinstance(each, str))

    @property
    def access_token(self) -> str:
        """For requests to the server."""
        return str(self.tokens.get("access_token", ""))

    def with_tokens(self, tokens: JsonObject) -> "OAuthRecord":
        """The same with other tokens."""
        return self.model_copy(update={"tokens": tokens, "expires_at": expiry_time(tokens)})


def is_valid_token(text: object) -> bool:
    """Whether it can be sent (RFC 6749, appendix A.12)."""
    return isinstance(text, str) and bool(_TOKEN_PATTERN.fullmatch(text))


MAX_TOKEN_LIFETIME = 366 * 86_400
"""Seconds: tokens that would live for longer are renewed by then."""


def expiry_time(tokens: JsonObject) -> float | None:
    """When they expire, from now on."""
    seconds = tokens.get("expires_in")
    return time.time() + min(max(seconds, 0), MAX_TOKEN_LIFETIME) if isinstance(seconds, int) else None


@dataclass(frozen=True, slots=True)
class OAuthRecordStore:
    """Where records lie. `get` and `set` may raise SecretsUnavailable.

    `alone` keeps all other processes out that renew this very record; it says False where one of them does not come
    to an end.
    """

    get: Callable[[], Awaitable[SecretStr | None]]
    set: Callable[[SecretStr], Awaitable[None]]
    exclusive: Callable[[], AbstractAsyncContextManager[bool]]

    async def load(self, url: str) -> OAuthRecord | None:
        """The one of this very server. What cannot be read is none."""
        found = await self.get()
        return self.read(found, url) if found is not None else None

    @staticmethod
    def read(found: SecretStr, url: str) -> OAuthRecord | None:
        """What was kept, if it can be read and is of this very server."""
        try:
            record = OAuthRecord.model_validate_json(found.get_secret_value())
        except ValidationError:
            return None
        return record if record.url == url else None

    async def save(self, record: OAuthRecord) -> None:
        """Keep it. Raises ValueError for one that is too large."""
        text = record.model_dump_json()
        if len(text) > MAX_RECORD_LENGTH:
            raise ValueError("too large")
        await self.set(SecretStr(text))


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
