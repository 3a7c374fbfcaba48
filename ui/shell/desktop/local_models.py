"""Uses a model file that was loaded."""

from PySide6.QtCore import QObject, Slot

from ui.bridge.library import ConversationLibrary
from ui.bridge.model_servers import ModelServers
from ui.shell.window import MainWindow


class LocalModelPresenter(QObject):
    """Lets the open conversation use a model file as soon as it is ready."""

    def __init__(self, window: MainWindow, library: ConversationLibrary, servers: ModelServers) -> None:
        super().__init__(window)
        self._window, self._library, self._servers = window, library, servers
        servers.local.ready.connect(self._use)

    @Slot(str, str)
    def _use(self, endpoint_id: str, model: str) -> None:
        """Use it in the open conversation, or in a new one after the first screen."""
        self._servers.refresh_models()
        if self._library.current is None or self._window.shows_welcome:
            self._library.new(endpoint_id=endpoint_id, model=model)
        else:
            self._window.page.models.choose_model(endpoint_id, model)
