"""Requests of somebody who is signed in: each carries the token."""

import re
from collections.abc import AsyncGenerator, Callable

import httpx2

from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.sign_in.renewing import AuthChallenge, OAuthSession
from desktop_agent.tools.mcp.web.streams import HttpTarget

_HTTP_UNAUTHORIZED, _HTTP_FORBIDDEN = 401, 403
_INSUFFICIENT_SCOPE = re.compile(r'error="?insufficient_scope\b')


class BearerAuth(httpx2.Auth):
    """Adds the token to requests, once there is one. `refused` is called when the server wants the person.

    Raises RenewalUnavailable into the request.
    """

    def __init__(
        self, target: HttpTarget, shared: OAuthSession, log: ServerLog, refused: Callable[[AuthChallenge], None]
    ) -> None:
        self._target = target
        self._session = shared
        self._log = log
        self._refused = refused
        log.add_secrets(shared.record.secrets if shared.record is not None else ())

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """With the token; once more with another one, where the server knows the first no more."""
        used = await self._token("")
        if used:
            request.headers["Authorization"] = f"Bearer {used}"
        response = yield request
        if response.status_code == _HTTP_UNAUTHORIZED:
            renewed = await self._token(used) if used else ""
            if renewed not in ("", used):
                request.headers["Authorization"] = f"Bearer {renewed}"
                response = yield request
            elif self._session.unavailable is not None:
                raise self._session.unavailable
        self._check_challenge(response)

    def _check_challenge(self, response: httpx2.Response) -> None:
        wants = response.headers.get("www-authenticate", "")[:4_000]
        is_short = response.status_code == _HTTP_FORBIDDEN and _INSUFFICIENT_SCOPE.search(wants)
        if response.status_code == _HTTP_UNAUTHORIZED or is_short:
            self._refused(AuthChallenge(response.status_code, wants))

    async def _token(self, used: str) -> str:
        return await self._session.token(used, self._target, self._log)
