"""What a sign-in left: tokens, and as whom we are known there. It lies in the keyring alone."""

import re
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from desktop_agent.vocabulary.blocks import JsonObject

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
