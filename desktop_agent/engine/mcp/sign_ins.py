"""Who the person is to MCP servers: what lies in the keyring, and how it comes there."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from desktop_agent.storage.process_lock import alone
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.tools.mcp.library import load_library
from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.sign_in.record import Keeping, Record
from desktop_agent.tools.mcp.upkeep import Refuse
from desktop_agent.tools.mcp.web.hosts import own_hosts
from desktop_agent.tools.mcp.web.streams import Place
from desktop_agent.vocabulary.errors import KeyringMissing, SecretsUnavailable, Sentence, WrongUse
from desktop_agent.vocabulary.mcp.servers import CLIENT_SECRET, HttpConnection, McpServer
from desktop_agent.vocabulary.mcp.sign_in_words import ENGLISH, PageWords

if TYPE_CHECKING:
    from desktop_agent.tools.mcp.sign_in.renewing import Challenge, SharedSignIn
    from desktop_agent.tools.mcp.sign_in.session import Session

# Seconds that renewals have to come to their end when the program is left.
_LAST_WAIT = 5.0
# And for a renewal of another process; longer than one takes: a question, and the keyring.
_OTHERS_WAIT = 60.0


class SignIns:
    """Of all servers. `document` is the address of a page that says who this program is, where there is one (CIMD)."""

    def __init__(
        self, secrets: SecretStore, private_hosts: Callable[[], frozenset[str]], document: str | None = None
    ) -> None:
        self._secrets = secrets
        self.private_hosts = private_hosts
        self._document = document
        self._shared: dict[str, SharedSignIn] = {}
        self._kept: dict[str, bool] = {}
        self._renewals: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Let renewals that are under way come to their end, but not for ever."""
        if self._renewals:
            _, late = await asyncio.wait(self._renewals, timeout=_LAST_WAIT)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def place(self, connection: HttpConnection) -> Place:
        """Where a server is, and which private hosts it may have."""
        return Place(connection.url, own_hosts(connection.url, self.private_hosts()))

    def is_kept(self, server_id: str) -> bool | None:
        """Whether a sign-in lies in the keyring, as far as is known; None: nobody looked."""
        return self._kept.get(server_id)

    async def look(self, server: McpServer) -> None:
        """Whether one lies there; what cannot be read is of no use to anybody."""
        connection, record = server.connection, None
        with suppress(SecretsUnavailable):
            if isinstance(connection, HttpConnection):
                record = await self._keeping(server).load(connection.url)
        self._kept[server.id] = record is not None

    async def session(self, server: McpServer, place: Place, log: ServerLog, refuse: Refuse) -> "Session":
        """For requests to a server, which says what it wants where nobody is signed in. Raises SecretsUnavailable."""
        from desktop_agent.tools.mcp.sign_in.session import Session

        shared = self._shared_by(server, place.url)
        await shared.load()
        self._kept[server.id] = shared.record is not None
        return Session(place, shared, log, partial(_challenged, server, refuse, shared, shared.record is not None))

    async def sign_in(self, server: McpServer, open_page: Callable[[str], None], words: PageWords = ENGLISH) -> None:
        """Have the person sign in. Raises ToolFailed, SecretsUnavailable, WrongUse."""
        connection = server.connection
        if not isinstance(connection, HttpConnection) or not connection.sign_in:
            what = Sentence("The server “{server}” is not set up for signing in.", {"server": server.title})
            raise WrongUse(what, "Turn on signing in, in the settings of the server.")
        await load_library()
        from desktop_agent.tools.mcp.sign_in.signing_in import Identity, SigningIn

        place = replace(self.place(connection), roams=True)
        identity = Identity(self._document, connection.client_id or None)
        if identity.client_id:
            identity = replace(identity, client_secret=await self._secrets.get(server.keyring_name(CLIENT_SECRET)))
        shared = self._shared_by(server, place.url)
        keeping = replace(self._keeping(server), set=shared.give_way)
        await SigningIn(place, keeping, shared.challenge, identity, words).run(open_page)
        self._leave(server.id)

    async def sign_out(self, server: McpServer) -> Callable[[], Awaitable[object]]:
        """Forget the tokens; what comes back tells the server so, and never fails. Raises SecretsUnavailable."""
        self._leave(server.id)
        connection, found = server.connection, None
        # Without a keyring nothing can lie there.
        with suppress(KeyringMissing):
            found = await self._secrets.get(server.sign_in_name)
            await self._secrets.delete(server.sign_in_name)
        self._kept[server.id] = False
        if found is None or not isinstance(connection, HttpConnection):
            return _nothing
        return partial(_revoked, Keeping.read(found, connection.url), self.place(connection))

    def _shared_by(self, server: McpServer, url: str) -> "SharedSignIn":
        """The one of all folders."""
        from desktop_agent.tools.mcp.sign_in.renewing import SharedSignIn

        shared = self._shared.get(server.id)
        if shared is None or shared.url != url:
            self._leave(server.id)
            shared = self._shared[server.id] = SharedSignIn(url, self._keeping(server), self._renewals)
        return shared

    def _leave(self, server_id: str) -> None:
        shared = self._shared.pop(server_id, None)
        if shared is not None:
            shared.end()

    def _keeping(self, server: McpServer) -> Keeping:
        name = server.sign_in_name
        turn = partial(alone, f"mcp-{server.id}", _OTHERS_WAIT)
        return Keeping(partial(self._secrets.get, name), partial(self._secrets.set, name), turn)


def _challenged(
    server: McpServer,
    refuse: Refuse,
    shared: "SharedSignIn",
    was_known: bool,  # noqa: FBT001 - bound by partial
    challenge: "Challenge",
) -> None:
    shared.challenge = challenge
    template = "Nobody is signed in to the server “{server}”."
    if was_known:
        template = "The sign-in to the server “{server}” holds no more."
    if challenge.is_step_up:
        template = "The server “{server}” wants you to allow more than when you signed in."
    refuse(Sentence(template, {"server": server.title}))


async def _nothing() -> None:
    """There is nothing to tell."""


async def _revoked(record: Record | None, place: Place) -> None:
    if record is not None:
        await load_library()
        from desktop_agent.tools.mcp.sign_in.revoking import revoke

        await revoke(record, place)
