"""Connections to MCP servers: transports with environment, headers and secrets, OAuth sign-ins, one instance per
folder.
"""

import asyncio
import os
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from desktop_agent.engine.mcp_tools import ToolOffer
from desktop_agent.mcp.client import McpClient
from desktop_agent.mcp.diagnostics import ServerLog
from desktop_agent.mcp.host_policy import allowed_private_hosts
from desktop_agent.mcp.http import HttpTarget, http_streams
from desktop_agent.mcp.lifecycle import OnSignInRequired, Transport, load_library
from desktop_agent.mcp.oauth_flow import OAuthRecord, OAuthRecordStore
from desktop_agent.storage.conversation_locks import process_lock
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.types.errors import AgentError, KeyringMissing, SecretsUnavailable, Sentence, ToolFailed, WrongUse
from desktop_agent.types.mcp import (
    CLIENT_SECRET,
    ENGLISH_PAGE_TEXTS,
    HttpConnection,
    McpServer,
    SignInPageTexts,
    StdioConnection,
)

if TYPE_CHECKING:
    from desktop_agent.mcp.oauth_session import AuthChallenge, BearerAuth, OAuthSession


# Seconds that renewals have to come to their end when the program is left.
_CLOSE_TIMEOUT = 5.0
# And for a renewal of another process; longer than one takes: a question, and the keyring.
_LOCK_TIMEOUT = 60.0


class OAuthManager:
    """Of all servers. `document` is the address of a page that says who this program is, where there is one (CIMD)."""

    def __init__(
        self, secrets: SecretStore, private_hosts: Callable[[], frozenset[str]], document: str | None = None
    ) -> None:
        self._secrets = secrets
        self.private_hosts = private_hosts
        self._document = document
        self._sessions: dict[str, OAuthSession] = {}
        self._has_record: dict[str, bool] = {}
        self._renewals: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Let renewals that are under way come to their end, but not for ever."""
        if self._renewals:
            _, late = await asyncio.wait(self._renewals, timeout=_CLOSE_TIMEOUT)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def http_target(self, connection: HttpConnection) -> HttpTarget:
        """Where a server is, and which private hosts it may have."""
        return HttpTarget(connection.url, allowed_private_hosts(connection.url, self.private_hosts()))

    def is_signed_in(self, server_id: str) -> bool | None:
        """Whether a sign-in lies in the keyring, as far as is known; None: nobody looked."""
        return self._has_record.get(server_id)

    async def check(self, server: McpServer) -> None:
        """Whether one lies there; what cannot be read is of no use to anybody."""
        connection, record = server.connection, None
        with suppress(SecretsUnavailable):
            if isinstance(connection, HttpConnection):
                record = await self._record_store(server).load(connection.url)
        self._has_record[server.id] = record is not None

    async def make_auth(
        self, server: McpServer, target: HttpTarget, log: ServerLog, refuse: OnSignInRequired
    ) -> "BearerAuth":
        """For requests to a server, which says what it wants where nobody is signed in. Raises SecretsUnavailable."""
        from desktop_agent.mcp.oauth_session import BearerAuth

        shared = self._session_of(server, target.url)
        await shared.load()
        self._has_record[server.id] = shared.record is not None
        return BearerAuth(
            target, shared, log, partial(_on_challenge, server, refuse, shared, shared.record is not None)
        )

    async def sign_in(
        self, server: McpServer, open_page: Callable[[str], None], words: SignInPageTexts = ENGLISH_PAGE_TEXTS
    ) -> None:
        """Have the person sign in. Raises ToolFailed, SecretsUnavailable, WrongUse."""
        connection = server.connection
        if not isinstance(connection, HttpConnection) or not connection.sign_in:
            what = Sentence("The server “{server}” is not set up for signing in.", {"server": server.title})
            raise WrongUse(what, "Turn on signing in, in the settings of the server.")
        await load_library()
        from desktop_agent.mcp.oauth_login import ClientIdentity, OAuthLogin

        target = replace(self.http_target(connection), allows_other_servers=True)
        identity = ClientIdentity(self._document, connection.client_id or None)
        if identity.client_id:
            identity = replace(identity, client_secret=await self._secrets.get(server.keyring_name(CLIENT_SECRET)))
        shared = self._session_of(server, target.url)
        store = replace(self._record_store(server), set=shared.replace_with)
        await OAuthLogin(target, store, shared.challenge, identity, words).run(open_page)
        self._drop_session(server.id)

    async def sign_out(self, server: McpServer) -> Callable[[], Awaitable[object]]:
        """Forget the tokens; what comes back tells the server so, and never fails. Raises SecretsUnavailable."""
        self._drop_session(server.id)
        connection, found = server.connection, None
        # Without a keyring nothing can lie there.
        with suppress(KeyringMissing):
            found = await self._secrets.get(server.sign_in_keyring_name)
            await self._secrets.delete(server.sign_in_keyring_name)
        self._has_record[server.id] = False
        if found is None or not isinstance(connection, HttpConnection):
            return _no_revocation
        return partial(_revoke, OAuthRecordStore.read(found, connection.url), self.http_target(connection))

    def _session_of(self, server: McpServer, url: str) -> "OAuthSession":
        """The one of all folders."""
        from desktop_agent.mcp.oauth_session import OAuthSession

        shared = self._sessions.get(server.id)
        if shared is None or shared.url != url:
            self._drop_session(server.id)
            shared = self._sessions[server.id] = OAuthSession(url, self._record_store(server), self._renewals)
        return shared

    def _drop_session(self, server_id: str) -> None:
        shared = self._sessions.pop(server_id, None)
        if shared is not None:
            shared.end()

    def _record_store(self, server: McpServer) -> OAuthRecordStore:
        name = server.sign_in_keyring_name
        turn = partial(process_lock, f"mcp-{server.id}", _LOCK_TIMEOUT)
        return OAuthRecordStore(partial(self._secrets.get, name), partial(self._secrets.set, name), turn)


def _on_challenge(
    server: McpServer,
    refuse: OnSignInRequired,
    shared: "OAuthSession",
    was_known: bool,  # noqa: FBT001 - bound by partial
    challenge: "AuthChallenge",
) -> None:
    shared.challenge = challenge
    template = "Nobody is signed in to the server “{server}”."
    if was_known:
        template = "The sign-in to the server “{server}” holds no more."
    if challenge.is_step_up:
        template = "The server “{server}” wants you to allow more than when you signed in."
    refuse(Sentence(template, {"server": server.title}))


async def _no_revocation() -> None:
    """There is nothing to tell."""


async def _revoke(record: OAuthRecord | None, target: HttpTarget) -> None:
    if record is not None:
        await load_library()
        from desktop_agent.mcp.oauth_session import revoke_tokens

        await revoke_tokens(record, target)


@dataclass(eq=False)
class ServerInstance:
    """`trouble`: why it did not say what it offers. `refreshing` asks it, or rests before it does.

    `pause`: how long it rests next, in seconds; `asked`: when it was last asked, by the loop's clock.
    """

    client: McpClient
    offer: ToolOffer = field(default_factory=ToolOffer)
    refresh_task: asyncio.Task[None] | None = None
    failure: AgentError | None = None
    is_paused: bool = False
    next_pause: float = 0.0
    refreshed_at: float = 0.0

    async def close(self) -> None:
        """End it and all that it started."""
        # Whoever listens asks for the server that took its place.
        self.client.on_state = self.client.on_tools_changed = self.client.on_catalog_changed = lambda: None
        if self.refresh_task is not None:
            self.refresh_task.cancel()
        await self.client.close()
        if self.refresh_task is not None:
            await asyncio.wait([self.refresh_task])


def has_same_connection(one: McpServer | None, other: McpServer) -> bool:
    """Whether it can go on running: all else than the connection may change meanwhile."""
    return one is not None and one.connection == other.connection


_INHERITED_VARIABLES = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}
    | {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "APPDATA", "LOCALAPPDATA", "HOMEDRIVE", "HOMEPATH"}
    | {"PATHEXT", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"}
)


class TransportFactory:
    """Makes the transport of a server, for each start anew."""

    def __init__(
        self, secrets: SecretStore, sign_ins: OAuthManager, configured: Callable[[], tuple[McpServer, ...]]
    ) -> None:
        self._secrets = secrets
        self._configured = configured
        self.locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By id of the server: who holds one changes where it is and its secrets together."""
        self._oauth = sign_ins
        self.private_hosts = sign_ins.private_hosts

    async def transport(
        self, config: McpServer, workspace: Path | None, log: ServerLog, refuse: OnSignInRequired
    ) -> Transport:
        """Raises ToolFailed for a secret that is not there or meant for another place, and SecretsUnavailable."""
        async with self.locks[config.id]:
            if not any(has_same_connection(each, config) for each in self._configured()):
                what = Sentence("The server “{server}” was set up otherwise meanwhile.", {"server": config.title})
                raise ToolFailed(what, "Try again: it starts as it is set up now.")
            values = {name: await self._secret(config, name) for name in config.secret_names}
        plain = {name: value.get_secret_value() for name, value in values.items()}
        log.add_secrets(tuple(plain.values()))
        connection = config.connection
        if not isinstance(connection, StdioConnection):
            return await self._http_transport(config, connection, plain, log, refuse)
        # Late: a program is started some time after the window is shown.
        from desktop_agent.mcp.stdio import ServerCommand, stdio_streams

        environment = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
        command = ServerCommand(
            (connection.command, *connection.args),
            workspace or Path(tempfile.gettempdir()),
            {**environment, **connection.env, **plain},
        )
        return partial(stdio_streams, command, log)

    async def _http_transport(
        self,
        config: McpServer,
        connection: HttpConnection,
        headers: dict[str, str],
        log: ServerLog,
        refuse: OnSignInRequired,
    ) -> Transport:
        target = replace(self._oauth.http_target(connection), headers=headers)
        if connection.sign_in:
            return partial(http_streams, target, log, await self._oauth.make_auth(config, target, log, refuse))
        template = "The server “{server}” wants to know who you are: turn on signing in, or correct its key."
        unknown = partial(refuse, Sentence(template, {"server": config.title}))
        return partial(http_streams, replace(target, on_unauthorized=unknown), log)

    async def _secret(self, config: McpServer, name: str) -> SecretStr:
        value = await self._secrets.get(config.keyring_name(name))
        if value is None:
            what = Sentence("The value of “{name}” is not in the keyring.", {"name": name})
            raise ToolFailed(what, "Enter it again in the settings of the server.")
        return value
