"""Connections to MCP servers: transports with environment, headers and secrets, and OAuth sign-ins."""

import asyncio
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import SecretStr

from desktop_agent.mcp.diagnostics import ServerLog
from desktop_agent.mcp.host_policy import HttpTarget, allowed_private_hosts
from desktop_agent.mcp.lifecycle import OnSignInRequired, Transport, load_library
from desktop_agent.mcp.oauth_records import OAuthRecord, OAuthRecordStore
from desktop_agent.storage.locks.conversation_locks import process_lock
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.tools.replaced_folders import require_in_place
from desktop_agent.types.errors import KeyringMissing, SecretsUnavailable, Sentence, ToolFailed, WrongUse
from desktop_agent.types.mcp import (
    CLIENT_SECRET,
    ENGLISH_PAGE_TEXTS,
    HttpConnection,
    McpServer,
    SignInPageTexts,
    StdioConnection,
)

if TYPE_CHECKING:
    from desktop_agent.mcp.oauth_flow import AuthChallenge
    from desktop_agent.mcp.oauth_session import BearerAuth, OAuthSession

_UNSENDABLE_CHARACTERS = re.compile(r"[\r\n\0]")
# Seconds that token renewals get to end when the program is left.
_CLOSE_TIMEOUT = 5.0
# Seconds to wait for a renewal in another process; longer than one takes: a request, and the keyring.
_LOCK_TIMEOUT = 60.0


class ServerSecrets:
    """Values of servers' variables, headers and client secrets in the keyring; none where there is no keyring."""

    def __init__(self, store: SecretStore) -> None:
        self.store = store

    async def get(self, server: McpServer, name: str) -> SecretStr | None:
        """Return the value, or None. Raises SecretsUnavailable for a keyring that cannot be read."""
        with suppress(KeyringMissing):
            return await self.store.get(server.secret_name(name))
        return None

    async def write(self, server: McpServer, values: Mapping[str, SecretStr | None]) -> None:
        """Store these values; None deletes. Raises SecretsUnavailable."""
        for name, value in values.items():
            if value is not None:
                await self.store.set(server.secret_name(name), value)
                continue
            with suppress(KeyringMissing):
                await self.store.delete(server.secret_name(name))

    async def restore(self, server: McpServer, values: Mapping[str, SecretStr | None]) -> None:
        """Put back what was there before (None: nothing), as far as the keyring allows it."""
        for name, value in values.items():
            with suppress(SecretsUnavailable):
                await self.write(server, {name: value})


def validate_secrets(server: McpServer, secrets: Mapping[str, SecretStr]) -> None:
    """Raise WrongUse for a secret that the server does not have, or a value that cannot be sent."""
    for name, value in secrets.items():
        values = {"name": name}
        if name not in server.all_secret_names:
            raise WrongUse(Sentence("The server has no secret “{name}”.", values), "Name it among them.")
        if not value.get_secret_value() or _UNSENDABLE_CHARACTERS.search(value.get_secret_value()):
            sentence = Sentence("The value of “{name}” is empty, or has more than one line.", values)
            raise WrongUse(sentence, "Copy it again, without line breaks.")


def obsolete_secrets(old: McpServer, new: McpServer) -> set[str]:
    """Return the names of the secrets that the changed server must not get."""
    obsolete = {*old.all_secret_names} - {*new.all_secret_names}
    if _client_identity(old) != _client_identity(new):
        # It was given for that client id at that address, and goes to no other.
        obsolete.add(CLIENT_SECRET)
    # What was entered for one program or host is given to no other unseen.
    return obsolete | {*new.all_secret_names} if _secret_recipient(old) != _secret_recipient(new) else obsolete


def _client_identity(server: McpServer) -> tuple[str, str] | None:
    connection = server.connection
    if isinstance(connection, HttpConnection) and connection.client_id:
        return connection.url, connection.client_id
    return None


def _secret_recipient(server: McpServer) -> tuple[str, ...]:
    """Return the program, or the scheme, host and port, to which the secrets are given."""
    if not isinstance(server.connection, HttpConnection):
        # With its arguments: `npx` alone, or `python`, is any program.
        return (server.connection.command, *server.connection.args)
    parts = urlsplit(server.connection.url)
    return (parts.scheme, parts.netloc.rpartition("@")[2].lower())


class OAuthManager:
    """Sign-ins to all servers.

    `client_document` is the address of a page that describes this program as an OAuth client (CIMD), if there is one.
    """

    def __init__(
        self, secrets: SecretStore, private_hosts: Callable[[], frozenset[str]], client_document: str | None = None
    ) -> None:
        self._secrets = secrets
        self.private_hosts = private_hosts
        self._client_document = client_document
        self._sessions: dict[str, OAuthSession] = {}
        self._has_record: dict[str, bool] = {}
        self._renewals: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Wait for renewals that go on, and cancel those that take too long."""
        if self._renewals:
            _, late = await asyncio.wait(self._renewals, timeout=_CLOSE_TIMEOUT)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def http_target(self, url: str) -> HttpTarget:
        """Return the address of a server with the private hosts that it may have."""
        return HttpTarget(url, allowed_private_hosts(url, self.private_hosts()))

    def is_signed_in(self, server_id: str) -> bool | None:
        """Return whether the keyring has a sign-in, as far as is known; None before `check`."""
        return self._has_record.get(server_id)

    async def check(self, server: McpServer) -> None:
        """Check whether the keyring has a sign-in. One that cannot be read counts as none."""
        connection, record = server.connection, None
        with suppress(SecretsUnavailable):
            if isinstance(connection, HttpConnection):
                record = await self._record_store(server).load(connection.url)
        self._has_record[server.id] = record is not None

    async def make_auth(
        self, server: McpServer, target: HttpTarget, log: ServerLog, on_sign_in_required: OnSignInRequired
    ) -> "BearerAuth":
        """Return the authentication of requests to a server. Raises SecretsUnavailable."""
        from desktop_agent.mcp.oauth_session import BearerAuth

        session = self._session_of(server, target.url)
        await session.load()
        was_signed_in = self._has_record[server.id] = session.record is not None

        def on_challenge(challenge: "AuthChallenge") -> None:
            session.challenge = challenge
            template = "Nobody is signed in to the server “{server}”."
            if was_signed_in:
                template = "The sign-in to the server “{server}” is no longer valid."
            if challenge.is_step_up:
                template = "The server “{server}” wants you to allow more than when you signed in."
            on_sign_in_required(Sentence(template, {"server": server.title}))

        return BearerAuth(target, session, log, on_challenge)

    async def sign_in(
        self, server: McpServer, open_page: Callable[[str], None], page_texts: SignInPageTexts = ENGLISH_PAGE_TEXTS
    ) -> None:
        """Have the person sign in. Raises ToolFailed, SecretsUnavailable, WrongUse."""
        connection = server.connection
        if not isinstance(connection, HttpConnection) or not connection.sign_in:
            sentence = Sentence("The server “{server}” is not set up for signing in.", {"server": server.title})
            raise WrongUse(sentence, "Turn on signing in, in the settings of the server.")
        await load_library()
        from desktop_agent.mcp.oauth_login import ClientIdentity, OAuthLogin

        target = replace(self.http_target(connection.url), allows_other_servers=True)
        identity = ClientIdentity(self._client_document, connection.client_id or None)
        if identity.client_id:
            identity = replace(identity, client_secret=await self._secrets.get(server.secret_name(CLIENT_SECRET)))
        session = self._session_of(server, target.url)
        store = replace(self._record_store(server), set=session.replace_with)
        await OAuthLogin(target, store, session.challenge, identity, page_texts).run(open_page)
        self._drop_session(server.id)

    async def sign_out(self, server: McpServer) -> OAuthRecord | None:
        """Delete the tokens and return the record to revoke, if there was one. Raises SecretsUnavailable."""
        self._drop_session(server.id)
        connection, secret = server.connection, None
        # Without a keyring nothing can lie there.
        with suppress(KeyringMissing):
            secret = await self._secrets.get(server.sign_in_secret_name)
            await self._secrets.delete(server.sign_in_secret_name)
        self._has_record[server.id] = False
        return OAuthRecordStore.read(secret, connection.url) if isinstance(connection, HttpConnection) else None

    async def revoke(self, record: OAuthRecord) -> None:
        """Revoke the tokens of a sign-in that was deleted. Never fails."""
        await load_library()
        from desktop_agent.mcp.oauth_flow import revoke_tokens

        await revoke_tokens(record, self.http_target(record.url))

    def _session_of(self, server: McpServer, url: str) -> "OAuthSession":
        """Return the session that all folders share."""
        from desktop_agent.mcp.oauth_session import OAuthSession

        session = self._sessions.get(server.id)
        if session is None or session.url != url:
            self._drop_session(server.id)
            session = self._sessions[server.id] = OAuthSession(url, self._record_store(server), self._renewals)
        return session

    def _drop_session(self, server_id: str) -> None:
        session = self._sessions.pop(server_id, None)
        if session is not None:
            session.end()

    def _record_store(self, server: McpServer) -> OAuthRecordStore:
        name = server.sign_in_secret_name
        lock = partial(process_lock, f"mcp-{server.id}", _LOCK_TIMEOUT)
        return OAuthRecordStore(partial(self._secrets.get, name), partial(self._secrets.set, name), lock)


_INHERITED_VARIABLES = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}
    | {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "APPDATA", "LOCALAPPDATA", "HOMEDRIVE", "HOMEPATH"}
    | {"PATHEXT", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"}
)


class TransportFactory:
    """Makes the transport for each start of a server."""

    def __init__(
        self, secrets: SecretStore, oauth: OAuthManager, configured: Callable[[], tuple[McpServer, ...]]
    ) -> None:
        self._secrets = secrets
        self._configured = configured
        self.locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By id of the server. Its holder changes the connection and its secrets together."""
        self._oauth = oauth
        self.private_hosts = oauth.private_hosts

    async def transport(
        self, server: McpServer, workspace: Path | None, log: ServerLog, on_sign_in_required: OnSignInRequired
    ) -> Transport:
        """Return the transport. Raises SecretsUnavailable, and ToolFailed for a secret that is missing, where the
        folder was replaced by a link, or where the connection was changed meanwhile, so that no secret goes to another
        place than it was entered for.
        """
        async with self.locks[server.id]:
            if not any(known.has_same_connection(server) for known in self._configured()):
                sentence = Sentence(
                    "The settings of the server “{server}” were changed meanwhile.", {"server": server.title}
                )
                raise ToolFailed(sentence, "Try again: it starts as it is set up now.")
            secrets = {name: await self._secret(server, name) for name in server.secret_names}
        log.add_secrets(tuple(secrets.values()))
        connection = server.connection
        if isinstance(connection, StdioConnection):
            if workspace is not None:
                await asyncio.to_thread(require_in_place, workspace)
            return _stdio_transport(connection, workspace, secrets, log)
        from desktop_agent.mcp.http import http_streams

        target = replace(self._oauth.http_target(connection.url), headers=secrets)
        if connection.sign_in:
            auth = await self._oauth.make_auth(server, target, log, on_sign_in_required)
            return partial(http_streams, target, log, auth)
        template = "The server “{server}” wants to know who you are: turn on signing in, or correct its key."
        on_unauthorized = partial(on_sign_in_required, Sentence(template, {"server": server.title}))
        return partial(http_streams, replace(target, on_unauthorized=on_unauthorized), log)

    async def _secret(self, server: McpServer, name: str) -> str:
        value = await self._secrets.get(server.secret_name(name))
        if value is None:
            sentence = Sentence("The value of “{name}” is not in the keyring.", {"name": name})
            raise ToolFailed(sentence, "Enter it again in the settings of the server.")
        return value.get_secret_value()


def _stdio_transport(
    connection: StdioConnection, workspace: Path | None, secrets: dict[str, str], log: ServerLog
) -> Transport:
    from desktop_agent.mcp.stdio import ServerCommand, stdio_streams

    inherited = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
    command = ServerCommand(
        (connection.command, *connection.args),
        workspace or Path(tempfile.gettempdir()),
        {**inherited, **connection.env, **secrets},
    )
    return partial(stdio_streams, command, log)
