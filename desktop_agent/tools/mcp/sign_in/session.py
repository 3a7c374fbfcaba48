"""Requests of somebody who is signed in: each carries the token."""

import re
from collections.abc import AsyncGenerator, Callable

import httpx2

from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.sign_in.renewing import Challenge, SharedSignIn
from desktop_agent.tools.mcp.web.streams import Place

_UNKNOWN, _FORBIDDEN = 401, 403
_INSUFFICIENT = re.compile(r'error="?insufficient_scope\b')


class Session(httpx2.Auth):
    """Adds the token to requests, once there is one. `refused` is called when the server wants the person.

    Raises NotRenewed into the request.
    """

    def __init__(
        self, place: Place, shared: SharedSignIn, log: ServerLog, refused: Callable[[Challenge], None]
    ) -> None:
        self._place = place
        self._shared = shared
        self._log = log
        self._refused = refused
        log.hide(shared.record.secrets if shared.record is not None else ())

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """With the token; once more with another one, where the server knows the first no more."""
        used = await self._token("")
        if used:
            request.headers["Authorization"] = f"Bearer {used}"
        response = yield request
        if response.status_code == _UNKNOWN:
            renewed = await self._token(used) if used else ""
            if renewed not in ("", used):
                request.headers["Authorization"] = f"Bearer {renewed}"
                response = yield request
            elif self._shared.out_of_reach is not None:
                raise self._shared.out_of_reach
        self._look_at(response)

    def _look_at(self, response: httpx2.Response) -> None:
        wants = response.headers.get("www-authenticate", "")[:4_000]
        is_short = response.status_code == _FORBIDDEN and _INSUFFICIENT.search(wants)
        if response.status_code == _UNKNOWN or is_short:
            self._refused(Challenge(response.status_code, wants))

    async def _token(self, used: str) -> str:
        return await self._shared.token(used, self._place, self._log)
