"""Keep the settings dialog in step with preferences, servers, rules and storage."""

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from desktop_agent.types.errors import AgentError
from desktop_agent.types.preferences import AppearancePreferences, Preferences
from ui.bridge.settings import SettingsSources
from ui.shell.attachments import FileSaver
from ui.shell.window import MainWindow
from ui.style.controls import show_in_front
from ui.style.theme import READING_WIDTH, ReadingStyle

if TYPE_CHECKING:
    from ui.settings.settings_dialog import SettingsDialog
    from ui.settings.usage.usage_page import UsageSettings

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

    def __init__(self, sources: SettingsSources, window: MainWindow) -> None:
        super().__init__(window)
        self._sources = sources
        self._window = window
        self._saver = FileSaver(sources.tasks, self)
        self._dialog: SettingsDialog | None = None
        sources.settings.changed.connect(self._apply_reading_style)
        self._apply_reading_style(sources.settings.preferences)

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
        self._dialog.refresh()
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

        dialog = SettingsDialog(self._window.themes, self._sources, self._window)
        dialog.providers.connect_requested.connect(dialog.hide)
        dialog.providers.connect_requested.connect(self._window.show_welcome)
        dialog.decisions.export_requested.connect(partial(self._export_decisions, dialog))
        dialog.usage.export_requested.connect(partial(self._export_usage, dialog.usage))
        dialog.about_requested.connect(self.about_requested)
        dialog.restart_requested.connect(partial(self._window.quit, starts_again=True))
        self.dialog_created.emit(dialog)
        return dialog

    def _export_decisions(self, dialog: "SettingsDialog") -> None:
        rules = self._sources.settings.rules
        self._saver.ask(dialog, "decisions.jsonl", lambda: rules.as_json_lines().encode())

    def _export_usage(self, page: "UsageSettings") -> None:
        from ui.settings.pages import page_title

        export = partial(self._sources.settings.usage.export, page.report)
        self._saver.ask_path(page, f"{page_title('usage')}.csv", export)

    def _apply_reading_style(self, preferences: Preferences) -> None:
        self._window.themes.set_reading_style(reading_style(preferences.appearance))
