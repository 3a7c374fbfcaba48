"""OAuth records: sign-ins as they are saved in the keyring."""

import re
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from desktop_agent.types.blocks import JsonObject

_TOKEN_PATTERN = re.compile(r"[\x21-\x7e]+")
MAX_RECORD_LENGTH = 100_000
"""Characters of a record. A longer one is no token but an attack."""
MAX_TOKEN_LIFETIME = 366 * 86_400
"""Seconds: tokens that are valid for longer are renewed by then."""


class OAuthRecord(BaseModel):
    """A sign-in to the server at `url`.

    `expires_at` is in seconds since 1970; None: unknown. `tokens`, the registered `client` and the `metadata` of the
    authorization server are as the library represents them.
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


def expiry_time(tokens: JsonObject) -> float | None:
    """Return when tokens that came now expire."""
    seconds = tokens.get("expires_in")
    return time.time() + min(max(seconds, 0), MAX_TOKEN_LIFETIME) if isinstance(seconds, int) else None


@dataclass(frozen=True, slots=True)
class OAuthRecordStore:
    """Where a record is saved. `get` and `set` may raise SecretsUnavailable.

    `exclusive` blocks other processes from renewing the same record; it yields False if one of them does not finish.
    """

    get: Callable[[], Awaitable[SecretStr | None]]
    set: Callable[[SecretStr], Awaitable[None]]
    exclusive: Callable[[], AbstractAsyncContextManager[bool]]

    async def load(self, url: str) -> OAuthRecord | None:
        """Return the record of this server; None also for one that cannot be read."""
        return self.read(await self.get(), url)

    @staticmethod
    def read(secret: SecretStr | None, url: str) -> OAuthRecord | None:
        """Parse a saved record; None where there is none, it cannot be read or belongs to another server."""
        try:
            record = OAuthRecord.model_validate_json(secret.get_secret_value() if secret is not None else "")
        except ValidationError:
            return None
        return record if record.url == url else None

    async def save(self, record: OAuthRecord) -> None:
        """Save a record. Raises ValueError for one that is too large."""
        text = record.model_dump_json()
        if len(text) > MAX_RECORD_LENGTH:
            raise ValueError("too large")
        await self.set(SecretStr(text))
