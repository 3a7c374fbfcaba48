"""Who the person is to MCP servers: what lies in the keyring, and how it comes there."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from desktop_agent.storage.process_lock import process_lock
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.tools.mcp.library import load_library
from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.sign_in.record import OAuthRecord, OAuthRecordStore
from desktop_agent.tools.mcp.upkeep import OnSignInRequired
from desktop_agent.tools.mcp.web.hosts import allowed_private_hosts
from desktop_agent.tools.mcp.web.streams import HttpTarget
from desktop_agent.vocabulary.errors import KeyringMissing, SecretsUnavailable, Sentence, WrongUse
from desktop_agent.vocabulary.mcp.servers import CLIENT_SECRET, HttpConnection, McpServer
from desktop_agent.vocabulary.mcp.sign_in_words import ENGLISH_PAGE_TEXTS, SignInPageTexts

if TYPE_CHECKING:
    from desktop_agent.tools.mcp.sign_in.renewing import AuthChallenge, OAuthSession
    from desktop_agent.tools.mcp.sign_in.session import BearerAuth

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
        from desktop_agent.tools.mcp.sign_in.session import BearerAuth

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
        from desktop_agent.tools.mcp.sign_in.signing_in import ClientIdentity, OAuthLogin

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
        from desktop_agent.tools.mcp.sign_in.renewing import OAuthSession

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
        from desktop_agent.tools.mcp.sign_in.revoking import revoke_tokens

        await revoke_tokens(record, target)
