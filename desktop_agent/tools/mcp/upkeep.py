"""Keeps one server there: starts it when it is needed, waits longer each time that fails, puts it away."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from desktop_agent.tools.mcp.answering import Answering
from desktop_agent.tools.mcp.connection import Connection, Ears
from desktop_agent.tools.mcp.faults import not_started
from desktop_agent.tools.mcp.library import load_library
from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.web.hosts import host_of, may_be_opened, own_hosts
from desktop_agent.vocabulary.endpoints import is_loopback
from desktop_agent.vocabulary.errors import AgentError, Sentence, ToolFailed
from desktop_agent.vocabulary.mcp.asking import Answerers
from desktop_agent.vocabulary.mcp.log import LogLine
from desktop_agent.vocabulary.mcp.servers import McpServer, StdioConnection

Transport = Callable[[], AbstractAsyncContextManager[Any]]
Refuse = Callable[[Sentence], None]
"""Called when the server wants the person to sign in, or to correct a key."""
OpenTransport = Callable[[ServerLog, Refuse], Coroutine[Any, Any, Transport]]

_State = Literal["idle", "starting", "running", "failed", "signed_out"]

_SIGN_IN = "Sign in again in the settings of the server."

START = 60.0
"""Seconds that a server has to start: some are fetched first."""
# Seconds to wait before the next start when several in a row failed.
_FIRST_WAIT = 1.0
_LONGEST_WAIT = 60.0
# One that ran for so long and then ended may be started again at once.
_RAN_WELL = 10.0


@dataclass
class Setting:
    """In what a server lives. `open_transport` is called for each start and may read secrets.

    `people` is asked for at each question. `told` hears what the person should read.
    """

    open_transport: OpenTransport
    workspace: Path | None = None
    people: Callable[[], Answerers] = Answerers
    logged: Callable[[LogLine], None] = lambda _: None
    told: Callable[[Sentence], None] = lambda _: None
    private_hosts: Callable[[], frozenset[str]] = frozenset
    clock: Callable[[], float] | None = None
    start_seconds: float = START


@dataclass(frozen=True, slots=True)
class Standing:
    """How a server is, why, and what helps."""

    state: _State
    why: Sentence | None = None
    remedy: Sentence | None = None


class PutAway(ToolFailed):
    """The person turned it off, or removed it, before it was there."""

    kind = "put_away"
    default_remedy = "Turn it on in the settings."


class Upkeep:
    """One server's connection; `starts` is how many there were. `moved` is called when `standing` is another."""

    def __init__(
        self,
        server: McpServer,
        setting: Setting,
        log: ServerLog,
        changed: Callable[[], None],
        moved: Callable[[], None],
        renewed: Callable[[], None] = lambda: None,
    ) -> None:
        self.starts = 0
        self.server = server
        self.standing = Standing("idle")
        self._setting = setting
        self._log = log
        self._changed = changed
        self._moved = moved
        self._renewed = renewed
        self._clock = setting.clock or asyncio.get_running_loop().time
        self._connection: Connection | None = None
        self._opening: Connection | None = None
        self._starting = asyncio.Lock()
        self._failures = 0
        self._not_before = 0.0
        self._began = 0.0
        self._is_closed = False
        self._failure: AgentError | None = None
        self.refusal: Sentence | None = None
        self.refusals = 0

    @property
    def connection(self) -> Connection | None:
        """The one that is live, or None."""
        connection = self._connection
        return connection if connection is not None and connection.is_live else None

    def forgive(self) -> None:
        """Forget that starts failed."""
        self._failures, self._not_before = 0, 0.0

    async def close(self) -> None:
        """End it for good, also one that is only being started."""
        self._is_closed = True
        for connection in (self._opening, self._connection):
            if connection is not None:
                await connection.close()

    async def connected(self) -> Connection:
        """The server, started where needed. Raises ToolFailed."""
        async with self._starting:
            connection = self._connection
            if connection is not None and connection.is_live:
                return connection
            if connection is not None:
                await self._put_away(connection)
            self._require_wanted()
            wait = self._not_before - self._clock()
            if wait > 0:
                raise self._not_started(f"{wait:.0f}")
            return await self._start()

    def _may_open(self, url: str) -> bool:
        """A page that the server wants opened: a program of this machine may have one here."""
        connection = self.server.connection
        if isinstance(connection, StdioConnection):
            host = host_of(url)
            return may_be_opened(url, frozenset({host}) if is_loopback(host) else frozenset())
        return may_be_opened(url, own_hosts(connection.url, self._setting.private_hosts()))

    def _require_wanted(self) -> None:
        if self._is_closed:
            raise PutAway(Sentence("The server “{server}” was put away.", {"server": self.server.title}))

    async def _put_away(self, connection: Connection) -> None:
        await connection.close()
        self._connection = None
        if self._clock() - self._began < _RAN_WELL:
            self._wait_longer()
        else:
            self._failures = 0

    async def _start(self) -> Connection:
        setting, log = self._setting, self._log
        self.starts += 1
        self.refusal = None
        log.begin()
        self._stand("starting")
        try:
            await load_library()
            transport = await setting.open_transport(log, self._refused)
            # The keyring may have asked the person, who changed their mind meanwhile.
            self._require_wanted()
            answering = Answering(
                lambda: self.server.title, setting.people, setting.workspace, log, setting.told, self._may_open
            )
            connection = self._opening = Connection(
                transport, Ears(answering, log, self._changed, self._ended, self._renewed)
            )
            await connection.open(setting.start_seconds)
            if self._is_closed:
                await connection.close()
                self._require_wanted()
        except PutAway:
            self._stand("idle")
            raise
        except Exception as error:
            self._wait_longer()
            raise self._told_failure(error) from error
        except BaseException:
            self._stand("idle")
            raise
        finally:
            self._opening = None
        self._began, self._failure = self._clock(), None
        self._connection = connection
        # It was asked in several ways, of which it took one.
        self.refusal = None
        self._stand("running")
        return connection

    def _ended(self, by_itself: bool, why: AgentError | None) -> None:  # noqa: FBT001 - told by position
        template = "The server “{server}” ended by itself; it is started again when it is needed."
        if self.standing.state == "signed_out":
            return
        if by_itself:
            what = Sentence(template, {"server": self.server.title})
            self._fall(why or ToolFailed(what, "If it happens again, look at its log."))
        else:
            self._stand("idle")

    def _fall(self, failure: AgentError) -> None:
        self._stand("failed", failure.sentence, failure.remedy)

    def _stand(self, state: _State, why: Sentence | None = None, remedy: Sentence | None = None) -> None:
        self.standing = Standing(state, why, remedy)
        self._moved()

    def _told_failure(self, error: Exception) -> ToolFailed:
        if self.refusal is not None:
            self._failure = ToolFailed(self.refusal, _SIGN_IN)
            self._stand("signed_out", self.refusal)
            return ToolFailed(self.refusal, _SIGN_IN)
        self._failure = not_started(error, self.server, self._log, self._setting.start_seconds)
        failure = self._not_started(f"{self._not_before - self._clock():.0f}")
        self._stand("failed", failure.sentence, self._failure.remedy)
        return failure

    def _refused(self, why: Sentence) -> None:
        self.refusal, self.refusals = why, self.refusals + 1
        self._stand("signed_out", why)

    def _wait_longer(self) -> None:
        """The first time nothing is waited for: one that ended is back at once."""
        wait = min(_FIRST_WAIT * 2 ** (self._failures - 1), _LONGEST_WAIT) if self._failures else 0.0
        self._failures += 1
        self._not_before = self._clock() + wait

    def _not_started(self, seconds: str) -> ToolFailed:
        failure = self._failure or ToolFailed(Sentence("it ended again"), "Look at its log.")
        values: dict[str, str | Sentence] = {"server": self.server.title, "why": failure.sentence}
        is_program = isinstance(self.server.connection, StdioConnection)
        template = "The server “{server}” could not be started: {why}"
        what = Sentence(template if is_program else "The server “{server}” could not be reached: {why}", values)
        remedy = Sentence("{remedy} It can be tried again in {n} s.", {"remedy": failure.remedy, "n": seconds})
        return ToolFailed(what, remedy)
