"""OAuth session of one server, shared by all folders: bearer tokens and their renewal. Loaded late.

Many servers accept a refresh token only once (RFC 9700, section 4.14.2): a second copy of it would end the sign-in.
Other processes share the keyring and so the record: a renewal locks them out, and first checks whether one of them
replaced it.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable
from http import HTTPStatus

import httpx2
from pydantic import SecretStr

from desktop_agent.mcp.diagnostics import ServerLog
from desktop_agent.mcp.host_policy import HttpTarget, host_of_url
from desktop_agent.mcp.oauth_flow import AuthChallenge, AuthorizationServerUnavailable, refresh_tokens
from desktop_agent.mcp.oauth_records import OAuthRecord, OAuthRecordStore
from desktop_agent.types.errors import SecretsUnavailable, Sentence, ToolFailed

# Tokens are renewed so many seconds before they expire.
_RENEW_BEFORE = 30.0
# Seconds until an authorization server that could not be reached is tried again: waiting calls share one attempt.
_RETRY_PAUSE = 5.0
_RENEWING_ELSEWHERE = (
    "The sign-in to “{host}” is being renewed by another window of the program, which does not finish."
)


class RenewalUnavailable(ToolFailed):
    """The token expired and the authorization server cannot be reached: the person stays signed in."""

    kind = "not_renewed"
    default_remedy = "Try again later; you stay signed in until then."


class OAuthSession:
    """The sign-in of one server. `challenge` is the server's last one; `renewals` gets the task of each renewal.

    A renewal goes on when the call that needed it is gone: the server may accept only the new token by then.
    """

    def __init__(self, url: str, store: OAuthRecordStore, renewals: set[asyncio.Task[None]]) -> None:
        self.url = url
        self.record: OAuthRecord | None = None
        self.challenge: AuthChallenge | None = None
        self.unavailable: RenewalUnavailable | None = None
        self._store = store
        self._stored_record: OAuthRecord | None = None
        self._renewals = renewals
        self._renewal: asyncio.Task[None] | None = None
        self._retry_at = 0.0
        self._is_ended = False

    async def load(self) -> None:
        """Read the record from the keyring, unless a newer one is known. Raises SecretsUnavailable."""
        before = self.record
        loaded = await self._store.load(self.url)
        is_saved = self.record is self._stored_record
        if self.record is before and is_saved and (self._renewal is None or self._renewal.done()):
            self.record = self._stored_record = loaded

    async def token(self, used: str, target: HttpTarget, log: ServerLog) -> str:
        """Return a token, if possible not the `used` one. Empty: nobody is signed in."""
        record = self.record
        if record is None:
            return ""
        if (record.access_token == used or _is_expiring(record)) and not self._is_ended:
            if self._renewal is None or self._renewal.done():
                self._renewal = asyncio.create_task(self._renew(record, target, log))
                self._renewals.add(self._renewal)
                self._renewal.add_done_callback(self._renewals.discard)
            await asyncio.shield(self._renewal)
            record = self.record
        if record is None:
            return ""
        log.add_secrets(record.secrets)
        return record.access_token

    async def replace_with(self, value: SecretStr) -> None:
        """Save another sign-in in place of this one, which is not renewed any more. Raises SecretsUnavailable."""
        self._is_ended = True
        try:
            await self._store.set(value)
        except BaseException:
            self._is_ended = False
            raise

    def end(self) -> None:
        """Save nothing from now on: the sign-in was forgotten."""
        self._is_ended = True

    async def _renew(self, record: OAuthRecord, target: HttpTarget, log: ServerLog) -> None:
        """If that fails, the record stays: it may still be valid, and if not, the server will refuse it."""
        if self.unavailable is not None and asyncio.get_running_loop().time() < self._retry_at:
            return
        self.unavailable = None
        # Locked during one request, which has a timeout, and during access to the keyring.
        async with self._store.exclusive() as is_alone:
            if not is_alone:
                log.add("another process of this program does not come to the end of its renewal", "error")
                self._postpone(
                    _RENEWING_ELSEWHERE, "Close other windows of the program that do not answer, then try again."
                )
                return
            if await self._was_replaced():
                record = self.record or record
                if self.record is None or not _is_expiring(record):
                    return
            await self._refresh(record, target, log)

    async def _refresh(self, record: OAuthRecord, target: HttpTarget, log: ServerLog) -> None:
        try:
            renewed = await refresh_tokens(record, target, log)
        except (httpx2.TransportError, AuthorizationServerUnavailable, TimeoutError) as error:
            log.add(f"who renews the sign-in cannot be reached ({type(error).__name__})", "error")
            self._postpone("The sign-in to “{host}” could not be renewed: its sign-in server cannot be reached.")
        except Exception as error:  # noqa: BLE001 - whatever a server brings about, and it may hold what came
            log.add(f"the sign-in could not be renewed ({type(error).__name__})", "error")
        else:
            if renewed is not record:
                await self._store_renewed(renewed, log)

    def _postpone(self, template: str, remedy: str | None = None) -> None:
        self.unavailable = RenewalUnavailable(Sentence(template, {"host": host_of_url(self.url)}), remedy)
        self._retry_at = asyncio.get_running_loop().time() + _RETRY_PAUSE

    async def _was_replaced(self) -> bool:
        """Whether another process has replaced or removed the record; its record then counts. Unknown is no."""
        try:
            loaded = await self._store.load(self.url)
        except SecretsUnavailable:
            return False
        if loaded == self._stored_record or self._is_ended:
            return False
        self.record = self._stored_record = loaded
        return True

    async def _store_renewed(self, renewed: OAuthRecord, log: ServerLog) -> None:
        log.add_secrets(renewed.secrets)
        # Another process may have signed in anew, or out.
        if await self._was_replaced():
            return
        self.record = renewed
        if self._is_ended:
            return
        try:
            await self._store.save(renewed)
            self._stored_record = renewed
        except (SecretsUnavailable, ValueError):
            log.add("the renewed sign-in could not be kept in the keyring; it holds for this run", "warning")


def _is_expiring(record: OAuthRecord) -> bool:
    return record.expires_at is not None and record.expires_at - _RENEW_BEFORE < time.time()


_INSUFFICIENT_SCOPE = re.compile(r'error="?insufficient_scope\b')


class BearerAuth(httpx2.Auth):
    """Adds the token to requests. `on_challenge` is called when the server requires the person to sign in.

    Raises RenewalUnavailable into the request.
    """

    def __init__(
        self, target: HttpTarget, session: OAuthSession, log: ServerLog, on_challenge: Callable[[AuthChallenge], None]
    ) -> None:
        self._target = target
        self._session = session
        self._log = log
        self._on_challenge = on_challenge
        log.add_secrets(session.record.secrets if session.record is not None else ())

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send the request with the token, and once more with a renewed one after a 401."""
        used = await self._token("")
        if used:
            request.headers["Authorization"] = f"Bearer {used}"
        response = yield request
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            renewed = await self._token(used) if used else ""
            if renewed not in ("", used):
                request.headers["Authorization"] = f"Bearer {renewed}"
                response = yield request
            elif self._session.unavailable is not None:
                raise self._session.unavailable
        self._check_challenge(response)

    def _check_challenge(self, response: httpx2.Response) -> None:
        header = response.headers.get("www-authenticate", "")[:4_000]
        lacks_scope = response.status_code == HTTPStatus.FORBIDDEN and _INSUFFICIENT_SCOPE.search(header)
        if response.status_code == HTTPStatus.UNAUTHORIZED or lacks_scope:
            self._on_challenge(AuthChallenge(response.status_code, header))

    async def _token(self, used: str) -> str:
        return await self._session.token(used, self._target, self._log)
