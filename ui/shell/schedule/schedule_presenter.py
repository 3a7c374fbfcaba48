"""Shows the scheduled prompts, and applies what the person changes."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from desktop_agent.types.errors import AgentError, Sentence
from ui.bridge.desktop.notifications import DesktopNotifications, is_active
from ui.bridge.model_servers import ModelServers
from ui.bridge.schedule.schedules import ScheduledPrompts
from ui.bridge.settings import Settings
from ui.shell.window import MainWindow
from ui.style.controls import show_in_front
from ui.style.text import translate_sentence

if TYPE_CHECKING:
    from ui.shell.schedule.schedule_dialog import ScheduleDialog

_BUDGET = "schedule budget"
"""The key of the notification that prompts wait for a budget."""


class SchedulePresenter(QObject):
    """Creates the dialog when it is first opened, and keeps it up to date."""

    def __init__(
        self, schedules: ScheduledPrompts, settings: Settings, servers: ModelServers, window: MainWindow
    ) -> None:
        super().__init__(window)
        self.schedules = schedules
        self._settings = settings
        self._servers = servers
        self._window = window
        self._dialog: ScheduleDialog | None = None
        settings.changed.connect(self._show_preferences)
        window.scheduled_requested.connect(self.show)

    def show(self) -> None:
        """Show the prompts."""
        if self._dialog is None:
            self._dialog = self._create_dialog()
        if not self._dialog.isVisible():
            self._dialog.show_problem("")
        # The dialog may be opened before the program itself starts the schedules.
        self.schedules.start()
        self.schedules.refresh()
        self._show_preferences()
        self._servers.refresh_models()
        show_in_front(self._dialog)

    def show_problem(self, error: AgentError) -> None:
        """Show an error in the dialog while it is open: it may hide the window's banners."""
        if self._dialog is not None and self._dialog.isVisible():
            self._dialog.show_problem(error.whole)

    def _create_dialog(self) -> "ScheduleDialog":
        from ui.shell.schedule.schedule_dialog import ScheduleDialog

        dialog = ScheduleDialog(self._window.themes, self.schedules, self._window)
        dialog.form.open_requested.connect(self._open)
        dialog.form.budgets_requested.connect(self._window.page.usage_meter.usage_requested)
        dialog.tray_switched.connect(self._switch_tray)
        self._servers.models_changed.connect(dialog.form.show_models)
        return dialog

    def _show_preferences(self, _preferences: object = None) -> None:
        if self._dialog is None:
            return
        from ui.shell.desktop.tray import has_tray

        preferences = self._settings.preferences
        self._dialog.form.show_choices(preferences.modes.all)
        self._dialog.show_tray(has_tray=has_tray(), is_on=preferences.chat.close_to_tray)

    def _switch_tray(self, is_on: bool) -> None:  # noqa: FBT001  a slot
        self._settings.change(self._settings.preferences.with_changes("chat", close_to_tray=is_on))

    def _open(self, conversation_id: str) -> None:
        if self._dialog is not None:
            self._dialog.hide()
        self._window.sidebar.conversation_chosen.emit(conversation_id)


class ScheduleNotifier(QObject):
    """Says on the desktop that scheduled prompts wait for a budget, while the window is not in front."""

    def __init__(
        self,
        presenter: SchedulePresenter,
        notifications: DesktopNotifications,
        settings: Settings,
        raise_window: Callable[[], object],
    ) -> None:
        super().__init__(presenter)
        self._presenter = presenter
        self._notifications = notifications
        self._settings = settings
        self._raise_window = raise_window
        presenter.schedules.budget_waited_for.connect(self._on_wait)
        notifications.activated.connect(self._on_activated)

    def _on_wait(self, used_up: Sentence) -> None:
        # In front, the window shows a banner.
        if not is_active() and self._settings.preferences.chat.notifications:
            text = self.tr("{0} They continue when there is budget again.").format(translate_sentence(used_up))
            self._notifications.show(_BUDGET, self.tr("Scheduled prompts wait"), text)

    def _on_activated(self, key: str, _action: str) -> None:
        if key == _BUDGET:
            self._raise_window()
            self._presenter.show()
