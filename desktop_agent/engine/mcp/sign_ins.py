"""Who the person is to servers of tools: what lies in the keyring, and how it comes there."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from desktop_agent.storage.secrets import SecretStore
from desktop_agent.tools.mcp.library import load_library
from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.sign_in.record import Keeping
from desktop_agent.tools.mcp.upkeep import Refuse
from desktop_agent.tools.mcp.web.hosts import own_hosts
from desktop_agent.tools.mcp.web.streams import Place
from desktop_agent.vocabulary.errors import KeyringMissing, Sentence, WrongUse
from desktop_agent.vocabulary.mcp.servers import CLIENT_SECRET, HttpConnection, McpServer

if TYPE_CHECKING:
    from desktop_agent.tools.mcp.sign_in.session import Challenge, Session


class SignIns:
    """Of all servers. `document` is the address of a page that says who this program is, where there is one (CIMD)."""

    def __init__(
        self, secrets: SecretStore, private_hosts: Callable[[], frozenset[str]], document: str | None = None
    ) -> None:
        self._secrets = secrets
        self._private_hosts = private_hosts
        self._document = document
        self._challenges: dict[str, Challenge] = {}

    def place(self, connection: HttpConnection) -> Place:
        """Where a server is, and which private hosts it may have."""
        return Place(connection.url, own_hosts(connection.url, self._private_hosts()))

    async def session(self, server: McpServer, place: Place, log: ServerLog, refuse: Refuse) -> "Session":
        """For requests to a server, which says what it wants where nobody is signed in. Raises SecretsUnavailable."""
        from desktop_agent.tools.mcp.sign_in.session import Session

        keeping = self._keeping(server)
        record = await keeping.load(place.url)
        was_known = record is not None
        return Session(place, record, keeping, log, partial(self._challenged, server, refuse, was_known))

    async def sign_in(self, server: McpServer, open_page: Callable[[str], None]) -> None:
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
        challenge = self._challenges.get(server.id)
        await SigningIn(place, self._keeping(server), challenge, identity).run(open_page)
        self._challenges.pop(server.id, None)

    async def sign_out(self, server: McpServer) -> None:
        """Forget the tokens. Raises SecretsUnavailable."""
        self._challenges.pop(server.id, None)
        # Without a keyring nothing can lie there.
        with suppress(KeyringMissing):
            await self._secrets.delete(server.sign_in_name)

    def _keeping(self, server: McpServer) -> Keeping:
        name = server.sign_in_name
        return Keeping(partial(self._secrets.get, name), partial(self._secrets.set, name))

    def _challenged(self, server: McpServer, refuse: Refuse, was_known: bool, challenge: "Challenge") -> None:  # noqa: FBT001 - bound by partial
        self._challenges[server.id] = challenge
        template = "Nobody is signed in to the server “{server}”."
        if was_known:
            template = "The sign-in to the server “{server}” holds no more."
        if challenge.is_step_up:
            template = "The server “{server}” wants you to allow more than when you signed in."
        refuse(Sentence(template, {"server": server.title}))
