"""Everything the window can be told, in one list: the palette and the list of shortcuts come from here."""

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QAction, QKeySequence

from ui.bridge.disk import Disk
from ui.bridge.settings import Settings
from ui.composer.parameters_button import KEYS as PARAMETERS_KEYS
from ui.composer.questions.question_card import KEYS as QUESTION_KEYS
from ui.composer.reasoning_switch import KEYS
from ui.look.parts.mode_picker import KEYS as MODE_KEYS
from ui.shell.commands import mark_numbered
from ui.shell.help.help import Help
from ui.shell.palette.contents import Palette
from ui.shell.window import MainWindow


class Actions(QObject):
    """Adds the actions to the window; who shows actions reads them from there (`window.actions()`)."""

    def __init__(self, window: MainWindow, settings: Settings, help_: Help, palette: Palette, disk: Disk) -> None:
        super().__init__(window)
        self._window = window
        page, sidebar = window.page, window.sidebar
        # First the one that finds all others; it does not list itself.
        palette.shown_by = self._add(self.tr("Commands"), "Ctrl+K", palette.open)
        self._add(self.tr("New conversation"), "Ctrl+N", sidebar.new_requested.emit)
        open_settings = self._add(self.tr("Settings"), "Ctrl+,", window.settings_requested.emit)
        search = self._add(self.tr("Search conversations"), "Ctrl+Shift+F", self._search)
        self._add(self.tr("Show or hide the conversations"), "Ctrl+B", window.panes.toggle_list)
        trash = self._add(self.tr("Trash"), None, window.show_trash)
        self._add(self.tr("Check saved conversations"), None, disk.check)
        self._add(self.tr("Connect a model"), None, window.show_welcome)
        self._add(self.tr("Attach image"), "Ctrl+Shift+A", page.composer.choose_files)
        self._add(self.tr("Choose model"), "Ctrl+M", page.model_picker.open_list)
        self._add(self.tr("Choose reasoning"), KEYS, page.models.reasoning.open_menu)
        self._add(self.tr("Conversation settings"), PARAMETERS_KEYS, page.models.edit_parameters)
        self._add(self.tr("Choose mode"), MODE_KEYS, page.conduct.picker.open_menu)
        self._add(self.tr("Answer the question"), QUESTION_KEYS, page.conduct.questions.take_focus)
        self._add(self.tr("Waiting messages"), "Ctrl+Shift+W", page.conduct.waiting.take_focus)
        self._add(self.tr("Write a message"), "Ctrl+L", page.composer.editor.setFocus)
        self._add(self.tr("Find in conversation"), "Ctrl+F", page.ways.find)
        self._add(self.tr("Find next"), "F3", lambda: page.ways.find_bar.step(1))
        self._add(self.tr("Find previous"), "Shift+F3", lambda: page.ways.find_bar.step(-1))
        self._add(self.tr("Caret browsing"), "F7", page.ways.browse)
        self._add(self.tr("Copy conversation as Markdown"), None, page.transcript.offers.copy_all)
        self._add(self.tr("Summarise older messages"), None, page.compact)
        self._add(self.tr("Undo all changes since this message…"), "Ctrl+Alt+Z", page.undoing.undo_here)
        self._add(self.tr("Next conversation"), "Ctrl+Tab", lambda: sidebar.step(1))
        self._add(self.tr("Previous conversation"), "Ctrl+Shift+Tab", lambda: sidebar.step(-1))
        for number in range(1, 10):
            words = self.tr("Conversation {0}").format(number)
            mark_numbered(self._add(words, f"Ctrl+{number}", lambda row=number - 1: sidebar.choose_row(row)))
        self._add(self.tr("Larger text"), QKeySequence.StandardKey.ZoomIn, lambda: settings.zoom(1))
        self._add(self.tr("Smaller text"), QKeySequence.StandardKey.ZoomOut, lambda: settings.zoom(-1))
        self._add(self.tr("Normal text size"), "Ctrl+0", lambda: settings.zoom(0))
        page.transcript.zoom_requested.connect(settings.zoom)
        guide = self._add(self.tr("Guide"), "F1", help_.show_guide)
        self._add(self.tr("Keyboard shortcuts"), None, help_.show_shortcuts)
        self._add(self.tr("About Desktop Agent"), None, help_.show_about)
        sidebar.offer(open_settings, trash, search, guide)
        # Not the standard key: some platforms have none for it.
        self._add(self.tr("Quit"), "Ctrl+Q", window.close)
        wanted = [each for each in window.actions() if each.shortcut().toString() == window.wanted_keys]
        if window.wanted_keys and wanted:
            # When everything that listens to actions is there.
            QTimer.singleShot(0, wanted[0], wanted[0].trigger)

    def _search(self) -> None:
        self._window.panes.show_list()
        self._window.sidebar.focus_search()

    def _add(self, text: str, keys: str | QKeySequence.StandardKey | None, do: Callable[[], object]) -> QAction:
        action = QAction(text, self._window)
        if keys is not None:
            action.setShortcut(QKeySequence(keys))
        action.triggered.connect(lambda _checked=False: do())
        self._window.addAction(action)
        return action
