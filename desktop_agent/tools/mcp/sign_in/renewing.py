"""The sign-in of one server, for all folders in which it runs: one record, renewed by one at a time.

Many servers take a refresh token once only (RFC 9700, section 4.14.2): a second copy of it would end the sign-in. Other
processes share the keyring, and so the record: whoever renews keeps them out, and looks first what they made of it.
"""

import asyncio
import time
from dataclasses import dataclass, replace

import httpx2
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import SecretStr, ValidationError

from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.sign_in.flow import Memory, OutOfOrder, driven, plain, provider_of
from desktop_agent.tools.mcp.sign_in.record import Keeping, Record, is_token
from desktop_agent.tools.mcp.web.hosts import host_of
from desktop_agent.tools.mcp.web.streams import Place, new_client
from desktop_agent.vocabulary.errors import SecretsUnavailable, Sentence, ToolFailed

# Renewed so many seconds before it expires.
_EARLY = 30.0
_FORBIDDEN = 403
# Seconds until who gives tokens is asked again, when that cannot be reached: all calls that wait hear of one try.
_PAUSE = 5.0
_ELSEWHERE = "The sign-in to “{host}” is being renewed by another window of the program, which does not come to an end."


@dataclass(frozen=True, slots=True)
class Challenge:
    """What the server wants before it goes on: its status, and its header that says so."""

    status: int
    wants: str

    @property
    def is_step_up(self) -> bool:
        """It knows who we are, and wants us to be allowed more."""
        return self.status == _FORBIDDEN


class NotRenewed(ToolFailed):
    """The sign-in is over, and who renews it cannot be reached: the person is signed in all the same."""

    kind = "not_renewed"
    default_remedy = "Try again later; you stay signed in until then."


class SharedSignIn:
    """`challenge` is what the server wanted last. `under_way` gets each renewal: none of them is cut off.

    A renewal goes on when whoever asked for it is gone: the server may know only the new token by then.
    """

    def __init__(self, url: str, keeping: Keeping, under_way: set[asyncio.Task[None]]) -> None:
        self.url = url
        self.record: Record | None = None
        self.challenge: Challenge | None = None
        self.out_of_reach: NotRenewed | None = None
        self._keeping = keeping
        self._kept: Record | None = None
        self._under_way = under_way
        self._renewal: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._is_newer = False
        self._is_over = False

    async def load(self) -> None:
        """Read it from the keyring, but where a newer one is known. Raises SecretsUnavailable."""
        before = self.record
        found = await self._keeping.load(self.url)
        if self.record is before and not self._is_newer and (self._renewal is None or self._renewal.done()):
            self.record = self._kept = found

    async def token(self, used: str, place: Place, log: ServerLog) -> str:
        """The one to use; another than `used`, if there can be another. Empty: nobody is signed in."""
        record = self.record
        if record is None:
            return ""
        if (record.access_token == used or _is_old(record)) and not self._is_over:
            if self._renewal is None or self._renewal.done():
                self._renewal = asyncio.create_task(self._renew(record, place, log))
                self._under_way.add(self._renewal)
                self._renewal.add_done_callback(self._under_way.discard)
            await asyncio.shield(self._renewal)
            record = self.record
        if record is None:
            return ""
        log.hide(record.secrets)
        return record.access_token

    async def give_way(self, value: SecretStr) -> None:
        """Keep another sign-in in the place of this one, which is renewed no more. Raises SecretsUnavailable."""
        self._is_over = True
        try:
            await self._keeping.set(value)
        except BaseException:
            self._is_over = False
            raise

    def end(self) -> None:
        """It is forgotten: nothing of it is kept from now on."""
        self._is_over = True

    async def _renew(self, record: Record, place: Place, log: ServerLog) -> None:
        """The same stays where that fails: it may hold still, and the server will say what it wants."""
        if self.out_of_reach is not None and asyncio.get_running_loop().time() < self._not_before:
            return
        self.out_of_reach = None
        # Held for one question, which is bounded, and for the keyring.
        async with self._keeping.alone() as is_alone:
            if not is_alone:
                log.add("another process of this program does not come to the end of its renewal", "error")
                self._put_off(_ELSEWHERE, "Close other windows of the program that do not answer, then try again.")
                return
            if await self._is_other():
                record = self.record or record
                if self.record is None or not _is_old(record):
                    return
            await self._ask(record, place, log)

    async def _ask(self, record: Record, place: Place, log: ServerLog) -> None:
        try:
            renewed = await _given_anew(record, place, log)
        except (httpx2.TransportError, OutOfOrder, TimeoutError) as error:
            log.add(f"who renews the sign-in cannot be reached ({type(error).__name__})", "error")
            self._put_off("The sign-in to “{host}” could not be renewed: who gives it cannot be reached.")
        except Exception as error:  # noqa: BLE001 - whatever a server brings about, and it may hold what came
            log.add(f"the sign-in could not be renewed ({type(error).__name__})", "error")
        else:
            if renewed is not record:
                await self._take(renewed, log)

    def _put_off(self, template: str, remedy: str | None = None) -> None:
        self.out_of_reach = NotRenewed(Sentence(template, {"host": host_of(self.url)}), remedy)
        self._not_before = asyncio.get_running_loop().time() + _PAUSE

    async def _is_other(self) -> bool:
        """Whether another process keeps another one by now, or none: that one counts. Unknown is no."""
        try:
            found = await self._keeping.load(self.url)
        except SecretsUnavailable:
            return False
        if found == self._kept or self._is_over:
            return False
        self.record = self._kept = found
        self._is_newer = False
        return True

    async def _take(self, renewed: Record, log: ServerLog) -> None:
        log.hide(renewed.secrets)
        # Somebody may have signed in anew elsewhere, or out.
        if await self._is_other():
            return
        self.record = renewed
        if self._is_over:
            return
        self._is_newer = True
        try:
            await self._keeping.save(renewed)
        except (SecretsUnavailable, ValueError):
            log.add("the renewed sign-in could not be kept in the keyring; it holds for this run", "warning")
        else:
            self._kept = renewed
            self._is_newer = False


def _is_old(record: Record) -> bool:
    return record.expires_at is not None and record.expires_at - _EARLY < time.time()


async def _given_anew(record: Record, place: Place, log: ServerLog) -> Record:
    """Another one; the same where none was given."""
    try:
        memory = Memory(
            OAuthToken.model_validate(record.tokens), OAuthClientInformationFull.model_validate(record.client)
        )
        provider = provider_of(record.url, memory, None)
        if record.metadata is not None:
            provider.context.oauth_metadata = OAuthMetadata.model_validate(record.metadata)
    except ValidationError:
        return record
    if memory.tokens is None or not memory.tokens.refresh_token:
        return record
    provider.context.token_expiry_time = 1.0
    before = memory.tokens
    request = httpx2.Request("POST", record.url, headers={"mcp-protocol-version": "2025-11-25"})
    async with await new_client(replace(place, roams=True, headers={}, unknown=lambda: None), log) as client:
        await driven(provider, request, client, None)
    if memory.tokens is before or not is_token(memory.tokens.access_token):
        return record
    return record.renewed(plain(memory.tokens))
