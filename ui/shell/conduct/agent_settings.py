"""The pages of modes and specialists at work: what there is to choose from."""

from collections.abc import Callable

from PySide6.QtCore import QObject

from ui.bridge.conduct.known_tools import AvailableTools
from ui.bridge.servers import ModelServers
from ui.preferences.settings_dialog import SettingsDialog


class AgentSettingsPresenter(QObject):
    """Shows tools and models. `open_conversation` says whose tools; without one the built-in ones are known."""

    def __init__(
        self,
        dialog: SettingsDialog,
        tools: AvailableTools,
        servers: ModelServers,
        open_conversation: Callable[[], str | None],
    ) -> None:
        super().__init__(dialog)
        self._tools = tools
        self._servers = servers
        self._open_conversation = open_conversation
        tools.found.connect(dialog.modes.show_tools)
        tools.found.connect(dialog.specialists.show_tools)
        servers.models_changed.connect(dialog.specialists.show_models)

    def refresh(self) -> None:
        """Look again."""
        self._tools.find(self._open_conversation())
        self._servers.refresh_models()
