"""Uses a model file once it is loaded."""

from PySide6.QtCore import QObject

from ui.bridge.conversation import OpenConversation
from ui.bridge.library import ConversationLibrary
from ui.bridge.model_servers import ModelServers
from ui.shell.window import MainWindow


class LocalModelPresenter(QObject):
    """Switches the conversation for which a model file was chosen to this model, as soon as it is ready."""

    def __init__(self, window: MainWindow, library: ConversationLibrary, servers: ModelServers) -> None:
        super().__init__(window)
        self._window, self._library, self._servers = window, library, servers
        self._conversation: OpenConversation | None = None
        """The conversation that was open when the file was chosen."""
        servers.local.chosen.connect(self._on_chosen)
        servers.local.ready.connect(self._use)
        library.deleted.connect(self._on_deleted)

    def _on_chosen(self) -> None:
        self._conversation = self._library.current

    def _on_deleted(self, conversation_id: str, _title: str) -> None:
        if self._conversation is not None and self._conversation.id == conversation_id:
            self._conversation = None

    def _use(self, endpoint_id: str, model: str) -> None:
        """Use the model in that conversation, also if another is shown now, or in a new one after the welcome page."""
        self._servers.refresh_models()
        current, target = self._library.current, self._conversation
        if current is None or self._window.shows_welcome:
            self._library.new(endpoint_id=endpoint_id, model=model)
            return
        self._servers.choose(endpoint_id, model)
        if target is not None and (target.id == current.id or target.is_stored):
            self._library.change(target.id, endpoint_id=endpoint_id, model=model)
