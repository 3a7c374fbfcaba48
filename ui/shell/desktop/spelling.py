"""Check the spelling in the composers of all windows, and show the available languages in the settings."""

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QLocale, QObject

from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.settings import Settings
from ui.bridge.spelling.dictionaries import FOLDER, is_library_installed
from ui.bridge.spelling.spell_checker import SpellChecker
from ui.composer.spelling import SpellingMarks
from ui.shell.conversation_page import ConversationPage
from ui.style.text import show_hidden
from ui.style.theme import ThemeSource

if TYPE_CHECKING:
    from ui.settings.settings_dialog import SettingsDialog


class SpellingPresenter(QObject):
    """Looks for dictionaries when it is created, and whenever the settings are opened."""

    def __init__(
        self, themes: ThemeSource, folder: Path, settings: Settings, tasks: BackgroundTasks, parent: QObject
    ) -> None:
        """`folder` is the data folder."""
        super().__init__(parent)
        self._themes = themes
        self._folder = folder
        self._dialog: SettingsDialog | None = None
        languages = QLocale.system().uiLanguages()
        self.checker = SpellChecker(folder, settings, tasks, languages, self)
        self.checker.found.connect(self._show_languages)
        self.checker.refresh()

    def watch(self, page: ConversationPage) -> None:
        """Check the spelling in the composer of this page, as long as the page exists."""
        SpellingMarks(self._themes, page.composer.editor, self.checker)

    def on_settings_opened(self, dialog: "SettingsDialog") -> None:
        """Show the available languages, now and after each search for dictionaries."""
        self._dialog = dialog
        self._show_languages()
        self.checker.refresh()

    def _show_languages(self) -> None:
        if self._dialog is None:
            return
        checker = self.checker
        default = checker.system_dictionary
        self._dialog.spelling.show_languages(
            [dictionary.language for dictionary in checker.dictionaries],
            "" if default is None else default.language,
            show_hidden(str(self._folder / FOLDER)) if is_library_installed() else "",
        )
