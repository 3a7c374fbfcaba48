"""The welcome screen at work: servers are looked for, keys are tested, and a first conversation begins."""

from urllib.parse import urlsplit

from pydantic import SecretStr
from PySide6.QtCore import QObject, Slot

from desktop_agent.vocabulary.endpoints import CLOUD_PROVIDERS, LOCAL_SERVERS, Endpoint
from desktop_agent.vocabulary.errors import Sentence
from ui.bridge.library import ConversationLibrary
from ui.bridge.servers import ModelServers
from ui.look.parts.server_fields import dialect_names
from ui.welcome.server_rows import TypedServer
from ui.welcome.welcome import WelcomePage

PRESETS = {endpoint.id: endpoint for endpoint in (*LOCAL_SERVERS, *CLOUD_PROVIDERS)}


class WelcomePresenter(QObject):
    """Connects the welcome screen's wishes to the servers, and the servers' news to the screen."""

    def __init__(
        self, welcome: WelcomePage, servers: ModelServers, library: ConversationLibrary, parent: QObject
    ) -> None:
        super().__init__(parent)
        self.welcome = welcome
        self._servers = servers
        self._library = library
        self._pending: set[str] = set()
        """Ids of the servers whose first conversation begins as soon as they are connected."""
        welcome.refresh_requested.connect(servers.find_local)
        welcome.local_chosen.connect(self._connect_local)
        welcome.key_submitted.connect(self._connect_preset)
        welcome.session_key_submitted.connect(self._connect_for_session)
        welcome.custom_submitted.connect(self._connect_custom)
        welcome.custom_session_submitted.connect(self._connect_custom_for_session)
        welcome.demo_requested.connect(library.new_demo)
        servers.local_servers_changed.connect(welcome.set_local_servers)
        servers.state_changed.connect(self._on_state)
        servers.connected.connect(self._on_connected)

    def find_servers(self) -> None:
        """Look for servers: the screen is about to be shown."""
        self._servers.find_local()

    def cancel_pending(self) -> None:
        """Another page is shown: what gets connected from now on does not take its place."""
        self._pending.clear()

    @Slot(str)
    def _connect_local(self, endpoint_id: str) -> None:
        self._connect_preset(endpoint_id, None)

    @Slot(str, object)
    def _connect_preset(self, endpoint_id: str, key: SecretStr | None) -> None:
        self._pending.add(endpoint_id)
        self._servers.connect_endpoint(PRESETS[endpoint_id], key)

    @Slot(str, object)
    def _connect_for_session(self, endpoint_id: str, key: SecretStr) -> None:
        self._pending.add(endpoint_id)
        self._servers.connect_endpoint(PRESETS[endpoint_id], key, session_only=True)

    @Slot(object, object)
    def _connect_custom(self, server: TypedServer, key: SecretStr | None) -> None:
        self._connect_typed(server, key, session_only=False)

    @Slot(object, object)
    def _connect_custom_for_session(self, server: TypedServer, key: SecretStr | None) -> None:
        self._connect_typed(server, key, session_only=True)

    def _connect_typed(self, server: TypedServer, key: SecretStr | None, *, session_only: bool) -> None:
        id_ = self._servers.kept.id_for(server.address, server.mirrors, server.dialect)
        endpoint = Endpoint(
            id=id_,
            title=self._title_of(server, id_),
            dialect=server.dialect,
            base_url=server.address,
            mirrors=server.mirrors,
            models=server.models,
        )
        self._pending.add(id_)
        self._servers.connect_endpoint(endpoint, key, session_only=session_only)

    def _title_of(self, server: TypedServer, id_: str) -> str:
        """Its host, and what it speaks where another server in use has that title."""
        host = urlsplit(server.address).netloc
        others = {each.title for each in self._servers.endpoints if each.id != id_}
        return f"{host} ({dialect_names()[server.dialect]})" if host in others else host

    @Slot(str, str, object)
    def _on_state(self, endpoint_id: str, state: str, sentence: Sentence) -> None:
        if state in {"error", "no_keyring"}:
            self._pending.discard(endpoint_id)
        self.welcome.set_endpoint_state(endpoint_id, state, sentence)

    @Slot(str, str)
    def _on_connected(self, endpoint_id: str, model: str) -> None:
        if endpoint_id in self._pending:
            self._pending.clear()
            self._library.new(endpoint_id=endpoint_id, model=model)
