"""Requests of somebody who is signed in: each carries the token, which is renewed when it expires."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace

import httpx2
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import ValidationError

from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.sign_in.flow import Memory, driven, plain, provider_of
from desktop_agent.tools.mcp.sign_in.record import Keeping, Record, is_token
from desktop_agent.tools.mcp.web.streams import Place, new_client
from desktop_agent.vocabulary.errors import SecretsUnavailable

# Renewed so many seconds before it expires.
_EARLY = 30.0
_UNKNOWN, _FORBIDDEN = 401, 403
_INSUFFICIENT = re.compile(r'error="?insufficient_scope\b')


@dataclass(frozen=True, slots=True)
class Challenge:
    """What the server wants before it goes on: its status, and its header that says so."""

    status: int
    wants: str

    @property
    def is_step_up(self) -> bool:
        """It knows who we are, and wants us to be allowed more."""
        return self.status == _FORBIDDEN


class Session(httpx2.Auth):
    """Adds the token to requests, once there is one. `refused` is called when the server wants the person."""

    def __init__(
        self,
        place: Place,
        record: Record | None,
        keeping: Keeping,
        log: ServerLog,
        refused: Callable[[Challenge], None],
    ) -> None:
        self._place = place
        self._record = record
        self._keeping = keeping
        self._log = log
        self._refused = refused
        self._one_at_a_time = asyncio.Lock()
        log.hide(record.secrets if record is not None else ())

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """With the token; once more with another one, where the server knows the first no more."""
        used = await self._token("")
        if used:
            request.headers["Authorization"] = f"Bearer {used}"
        response = yield request
        if response.status_code == _UNKNOWN:
            renewed = await self._token(used) if used else ""
            if renewed != used:
                request.headers["Authorization"] = f"Bearer {renewed}"
                response = yield request
        self._look_at(response)

    def _look_at(self, response: httpx2.Response) -> None:
        wants = response.headers.get("www-authenticate", "")[:4_000]
        is_short = response.status_code == _FORBIDDEN and _INSUFFICIENT.search(wants)
        if response.status_code == _UNKNOWN or is_short:
            self._refused(Challenge(response.status_code, wants))

    async def _token(self, used: str) -> str:
        """The one to use; another than `used`, if there can be another."""
        async with self._one_at_a_time:
            record = self._record
            if record is None:
                return ""
            is_over = record.expires_at is not None and record.expires_at - _EARLY < time.time()
            if record.access_token == used or is_over:
                record = self._record = await self._renewed(record)
            return record.access_token

    async def _renewed(self, record: Record) -> Record:
        """The same where that fails: the server will say what it wants."""
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
        place = replace(self._place, roams=True, headers={}, unknown=lambda: None)
        try:
            async with await new_client(place, self._log) as client:
                await driven(provider, request, client, None)
        except Exception as error:  # noqa: BLE001 - whatever a server brings about, and it may hold what came
            self._log.add(f"the sign-in could not be renewed ({type(error).__name__})", "error")
            return record
        if memory.tokens is before or not is_token(memory.tokens.access_token):
            return record
        renewed = record.renewed(plain(memory.tokens))
        self._log.hide(renewed.secrets)
        try:
            await self._keeping.save(renewed)
        except (SecretsUnavailable, ValueError):
            self._log.add("the renewed sign-in could not be kept in the keyring; it holds for this run", "warning")
        return renewed
