"""Keep the settings dialog in step with preferences, servers, rules and storage."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from desktop_agent.types.errors import AgentError, SecretsUnavailable, Sentence
from desktop_agent.types.preferences import AppearancePreferences, Preferences
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.library import ConversationLibrary
from ui.bridge.mcp.servers import McpServerSettings
from ui.bridge.model_servers import ModelServers
from ui.bridge.settings import Settings
from ui.bridge.storage import DiskMonitor
from ui.shell.window import MainWindow
from ui.style.controls import show_in_front
from ui.style.server_fields import Status
from ui.style.text import translate_sentence
from ui.style.theme import READING_WIDTH, ReadingStyle, ThemeSource

if TYPE_CHECKING:
    from ui.settings.settings_dialog import SettingsDialog
    from ui.shell.settings_pages import PagePresenter

LINE_WIDTHS = {"narrow": 600, "medium": READING_WIDTH, "wide": 1040, "full": 1 << 16}
"""Pixels at 100 % zoom."""


def reading_style(appearance: AppearancePreferences) -> ReadingStyle:
    """Return the reading style of the preferences."""
    return ReadingStyle(
        font=appearance.font,
        size=appearance.text_size,
        line_width=LINE_WIDTHS[appearance.line_width],
        is_compact=appearance.density == "compact",
    )


class SettingsPresenter(QObject):
    """Creates the dialog when it is first opened, keeps it up to date, and applies its changes."""

    about_requested = Signal()
    opened = Signal(object)
    """The SettingsDialog."""
    dialog_created = Signal(object)
    """The SettingsDialog, before it is shown for the first time."""

    def __init__(
        self,
        themes: ThemeSource,
        settings: Settings,
        servers: ModelServers,
        mcp_servers: McpServerSettings,
        disk: DiskMonitor,
        library: ConversationLibrary,
        tasks: BackgroundTasks,
        window: MainWindow,
    ) -> None:
        super().__init__(window)
        self._themes = themes
        self._settings = settings
        self._servers = servers
        self._mcp_servers = mcp_servers
        self._disk = disk
        self._library = library
        self._tasks = tasks
        self._window = window
        self._presenters: Sequence[PagePresenter] = ()
        self._dialog: SettingsDialog | None = None
        settings.changed.connect(self._apply_reading_style)
        self._apply_reading_style(settings.preferences)

    def show(self, page: str = "", field: str = "") -> "SettingsDialog":
        """Open the dialog; if named, show this page and focus this field of it."""
        if self._dialog is None:
            self._dialog = self._create_dialog()
        if not self._dialog.isVisible():
            self._dialog.show_problem("")
        if field:
            self._dialog.show_field(page, field)
        elif page:
            self._dialog.show_page(page)
        # Late: nothing of it is needed before the first paint.
        from ui.bridge.desktop.autostart import is_offered, why_impossible
        from ui.bridge.desktop.updates import update_source
        from ui.bridge.single_instance import can_restart
        from ui.shell.desktop.tray import has_tray

        self._dialog.offer_tray(has_tray=has_tray())
        self._dialog.offer_autostart(is_offered=is_offered(), why_not=why_impossible())
        self._dialog.offer_restart(is_possible=can_restart())
        self._dialog.offer_updates(why_not=update_source().why_not)
        self.opened.emit(self._dialog)
        self._tasks.start(self._show_keys())
        self._show_prices()
        for presenter in self._presenters:
            presenter.refresh()
        self._library.found.find()
        show_in_front(self._dialog)
        return self._dialog

    def close(self) -> None:
        """Close the dialog, which applies what is still being edited in it: the program ends."""
        if self._dialog is not None:
            self._dialog.hide()

    def show_problem(self, error: AgentError) -> None:
        """Show an error in the dialog while it is open: it may hide the window's banners."""
        if self._dialog is not None and self._dialog.isVisible():
            self._dialog.show_problem(error.whole)

    def _create_dialog(self) -> "SettingsDialog":
        from ui.settings.settings_dialog import SettingsDialog
        from ui.shell.settings_pages import (
            AgentSettingsPresenter,
            McpServersPresenter,
            RulesPresenter,
            StoragePresenter,
            connect_local_models,
        )
        from ui.shell.usage import UsagePresenter

        dialog = SettingsDialog(self._themes, self._settings.preferences, self._window)
        dialog.preferences_changed.connect(self._settings.change)
        providers = dialog.providers
        providers.key_submitted.connect(self._servers.replace_key)
        providers.session_key_submitted.connect(partial(self._servers.replace_key, session_only=True))
        providers.key_removed.connect(self._servers.remove_key)
        providers.test_requested.connect(self._servers.test)
        providers.endpoint_removed.connect(self._servers.remove)
        providers.endpoint_edited.connect(self._servers.edit)
        dialog.prices.price_changed.connect(self._settings.change_price)
        self._settings.prices_changed.connect(self._on_prices)
        self._servers.models_changed.connect(self._show_prices)
        providers.connect_requested.connect(dialog.hide)
        providers.connect_requested.connect(self._window.show_welcome)
        dialog.about_requested.connect(self.about_requested)
        dialog.restart_requested.connect(partial(self._window.quit, starts_again=True))
        providers.local_requested.connect(lambda: dialog.show_page("local"))
        connect_local_models(dialog, self._servers.local)
        self._settings.changed.connect(dialog.set_preferences)
        self._servers.state_changed.connect(self._on_state)
        self._servers.endpoints_changed.connect(lambda: self._tasks.start(self._show_keys()))
        self._library.found.programs_found.connect(dialog.histories.show_programs)
        dialog.histories.switched.connect(self._library.found.show_program)
        self._presenters = (
            RulesPresenter(dialog, self._settings.rules, self._tasks, self._current_conversation_id),
            AgentSettingsPresenter(dialog, self._settings.tools, self._servers, self._current_conversation_id),
            McpServersPresenter(dialog.mcp_servers, self._mcp_servers),
            StoragePresenter(dialog.storage, self._disk, self._tasks),
            UsagePresenter(dialog.usage, self._settings.usage, self._tasks),
        )
        self.dialog_created.emit(dialog)
        return dialog

    def _apply_reading_style(self, preferences: Preferences) -> None:
        self._themes.set_reading_style(reading_style(preferences.appearance))

    def _current_conversation_id(self) -> str | None:
        return None if self._library.current is None else self._library.current.id

    def _on_state(self, endpoint_id: str, state: str, sentence: Sentence | str) -> None:
        if self._dialog is not None:
            self._dialog.providers.show_state(endpoint_id, Status(state), sentence)
            self._tasks.start(self._show_keys())

    def _on_prices(self) -> None:
        """Show the prices, also in the model picker."""
        self._show_prices()
        self._servers.refresh_models()

    def _show_prices(self) -> None:
        if self._dialog is not None:
            self._dialog.prices.show_models(self._settings.prices())

    async def _show_keys(self) -> None:
        if self._dialog is None:
            return
        self._dialog.providers.show_keys(await self._servers.saved.servers_with_keys())
        try:
            self._dialog.providers.show_keyring(await self._servers.saved.keyring_name())
        except SecretsUnavailable as error:
            self._dialog.providers.show_no_keyring(translate_sentence(error.sentence))
