"""The welcome screen at work: servers are looked for, keys are tested, and a first conversation begins."""

from urllib.parse import urlsplit

from pydantic import SecretStr
from PySide6.QtCore import QObject, Slot

from desktop_agent.vocabulary.endpoints import CLOUD_PROVIDERS, LOCAL_SERVERS, Endpoint
from desktop_agent.vocabulary.errors import Sentence
from ui.bridge.library import Library
from ui.bridge.servers import Servers
from ui.welcome.welcome import Welcome

PRESETS = {endpoint.id: endpoint for endpoint in (*LOCAL_SERVERS, *CLOUD_PROVIDERS)}


class Connecting(QObject):
    """Connects the welcome screen's wishes to the servers, and the servers' news to the screen."""

    def __init__(self, welcome: Welcome, servers: Servers, library: Library, parent: QObject) -> None:
        super().__init__(parent)
        self.welcome = welcome
        self._servers = servers
        self._library = library
        self._waiting = False
        welcome.refresh_requested.connect(servers.find_local)
        welcome.local_chosen.connect(self._connect_local)
        welcome.key_submitted.connect(self._connect_preset)
        welcome.session_key_submitted.connect(self._connect_for_session)
        welcome.custom_submitted.connect(self._connect_custom)
        welcome.demo_requested.connect(library.new_demo)
        servers.local_servers_changed.connect(welcome.set_local_servers)
        servers.state_changed.connect(welcome.set_endpoint_state)
        servers.connected.connect(self._on_connected)

    def begin(self) -> None:
        """Look for servers: the screen is about to be shown."""
        self._servers.find_local()

    @Slot(str)
    def _connect_local(self, endpoint_id: str) -> None:
        self._connect_preset(endpoint_id, None)

    @Slot(str, object)
    def _connect_preset(self, endpoint_id: str, key: SecretStr | None) -> None:
        self._waiting = True
        self._servers.connect_endpoint(PRESETS[endpoint_id], key)

    @Slot(str, object)
    def _connect_for_session(self, endpoint_id: str, key: SecretStr) -> None:
        self._waiting = True
        self._servers.connect_endpoint(PRESETS[endpoint_id], key, session_only=True)

    @Slot(str, object)
    def _connect_custom(self, base_url: str, key: SecretStr | None) -> None:
        base_url = base_url.strip()
        if "://" not in base_url:
            base_url = f"http://{base_url}"
        parts = urlsplit(base_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.password:
            wrong = Sentence("“{url}” is not a web address such as http://127.0.0.1:8080/v1.", {"url": base_url[:200]})
            self.welcome.set_endpoint_state("custom", "error", wrong)
            return
        self._waiting = True
        # The address is the identity: a key that was given for one server never goes to another.
        endpoint = Endpoint(id=f"custom:{base_url.rstrip('/')}", title=parts.netloc, base_url=base_url)
        self._servers.connect_endpoint(endpoint, key)

    @Slot(str, str)
    def _on_connected(self, endpoint_id: str, model: str) -> None:
        if self._waiting:
            self._waiting = False
            self._library.new(endpoint_id=endpoint_id, model=model)
