"""All actions of the window with their shortcuts and synonyms, in one list; and the help dialog behind some of them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Slot
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from desktop_agent.types.preferences import Preferences
from ui.bridge.settings import Settings
from ui.bridge.storage import DiskMonitor, PictureStore
from ui.composer.parameter_buttons import PARAMETERS_KEYS, REASONING_KEYS
from ui.composer.question_card import QUESTION_KEYS
from ui.shell.command_palette import PalettePresenter, mark_numbered, set_shown_shortcut, set_synonyms
from ui.shell.settings import SettingsPresenter
from ui.shell.window import MainWindow
from ui.sidebar.organising import OrganisePresenter
from ui.sidebar.row_menus import RowAction
from ui.style.pickers import MODE_SHORTCUT as MODE_KEYS
from ui.style.theme import ThemeSource

if TYPE_CHECKING:
    from ui.shell.exchange import ExchangePresenter
    from ui.shell.help_dialog import HelpDialog


class HelpPresenter(QObject):
    """The help dialog of one window, whose actions it lists."""

    def __init__(self, themes: ThemeSource, pictures: PictureStore, data_folder: Path, window: QWidget) -> None:
        super().__init__(window)
        self._themes = themes
        self._pictures = pictures
        self._data_folder = data_folder
        self._window = window
        self._dialog: HelpDialog | None = None

    def show_guide(self) -> None:
        """Show the guide."""
        self._open_dialog().turn_to("guide")

    def show_shortcuts(self) -> None:
        """Show all actions that have shortcuts."""
        self._open_dialog().turn_to("shortcuts")

    def show_about(self) -> None:
        """Show the version, the licence and the data folder."""
        self._open_dialog().turn_to("about")

    def close(self) -> None:
        """Stop the workers that render the guide: the program ends."""
        if self._dialog is not None:
            self._dialog.guide.close_workers()
            self._dialog.close()

    def _open_dialog(self) -> "HelpDialog":
        if self._dialog is None:
            from ui.shell.help_dialog import HelpDialog

            self._dialog = HelpDialog(self._themes, self._pictures, self._data_folder, self._window)
        self._dialog.show()
        self._dialog.raise_()
        self._dialog.activateWindow()
        return self._dialog


class WindowActions(QObject):
    """Adds the actions to the window; everything that lists actions reads `window.actions()`."""

    def __init__(
        self,
        window: MainWindow,
        settings: Settings,
        pages: SettingsPresenter,
        help_: HelpPresenter,
        palette: PalettePresenter,
        disk: DiskMonitor,
        exchange: "Callable[[], ExchangePresenter]",
        organising: OrganisePresenter,
    ) -> None:
        super().__init__(window)
        self._window = window
        # First the palette, which finds all others and does not list itself.
        palette.opening_action = commands = self._add(self.tr("Commands"), "Ctrl+K", palette.open)
        other_words = self.tr("chat start create")
        self._add(self.tr("New conversation"), "Ctrl+N", window.sidebar.new_requested.emit, other_words)
        other_words = self.tr("private temporary incognito secret never saved off the record")
        new_unstored = window.sidebar.new_unstored_requested.emit
        self._add(self.tr("New conversation that is not stored"), "Ctrl+Shift+N", new_unstored, other_words)
        other_words = self.tr("preferences options configuration")
        open_settings = self._add(self.tr("Settings"), "Ctrl+,", window.settings_requested.emit, other_words)
        self._add_conversations()
        self._add_conversation()
        self._add_message(settings)
        self._add_organising(organising)
        self._add_exchange(exchange)
        trash = self._add_settings(settings, pages, disk)
        open_help, shortcuts = self._add_help(help_)
        palette.fallback_actions = (open_settings, shortcuts, open_help)
        other_words = self.tr("inbox pending permission allow deny decide calls")
        waiting = self._add(self.tr("Waiting approvals"), "Ctrl+Shift+Y", window.inbox.show, other_words)
        footer = window.sidebar.add_footer(open_settings, waiting, trash, commands, open_help)
        window.inbox.count_changed.connect(footer.show_waiting)
        # Not the standard key: some platforms have none.
        self._add(self.tr("Quit"), "Ctrl+Q", window.quit, self.tr("exit close end"))
        deferred = [action for action in window.actions() if action.shortcut().toString() == window.deferred_shortcut]
        if window.deferred_shortcut and deferred:
            # After everything is connected to the actions.
            QTimer.singleShot(0, deferred[0], deferred[0].trigger)

    def _add_conversations(self) -> None:
        window, sidebar = self._window, self._window.sidebar
        other_words = self.tr("find titles list filter chats")
        self._add(self.tr("Search conversations"), "Ctrl+Shift+F", self._search, other_words)
        other_words = self.tr("sidebar list panel fold")
        self._add(self.tr("Show or hide the conversations"), "Ctrl+B", window.panes.toggle_list, other_words)
        self._add(self.tr("Rename this conversation"), None, self._rename, self.tr("title name chat"))
        window.frame.title.double_clicked.connect(self._rename)
        other_words = self.tr("remove chat trash bin")
        self._add(self.tr("Delete this conversation"), None, sidebar.delete_current, other_words)
        self._add(self.tr("Next conversation"), "Ctrl+Tab", lambda: sidebar.step(1))
        self._add(self.tr("Previous conversation"), "Ctrl+Shift+Tab", lambda: sidebar.step(-1))
        for number in range(1, 10):
            other_words = self.tr("Conversation {0}").format(number)
            mark_numbered(self._add(other_words, f"Ctrl+{number}", lambda row=number - 1: sidebar.choose_row(row)))

    def _add_conversation(self) -> None:
        page = self._window.page
        self._add(self.tr("Choose model"), "Ctrl+M", page.model_picker.open_list, self.tr("switch change another"))
        other_words = self.tr("thinking effort")
        self._add(self.tr("Choose reasoning"), REASONING_KEYS, page.models.reasoning.open_menu, other_words)
        other_words = self.tr("temperature system prompt instructions parameters length of the answer")
        self._add(self.tr("Conversation settings"), PARAMETERS_KEYS, page.models.edit_parameters, other_words)
        other_words = self.tr("permissions approval plan accept edits")
        self._add(self.tr("Choose mode"), MODE_KEYS, page.session_controls.picker.open_menu, other_words)
        self._add(self.tr("Answer the question"), QUESTION_KEYS, page.session_controls.questions.take_focus)
        other_words = self.tr("search words text")
        self._add(self.tr("Find in conversation"), "Ctrl+F", page.navigation.find, other_words)
        self._add(self.tr("Find next"), "F3", lambda: page.navigation.find_bar.step(1))
        self._add(self.tr("Find previous"), "Shift+F3", lambda: page.navigation.find_bar.step(-1))
        self._add(self.tr("Caret browsing"), "F7", page.navigation.toggle_caret, self.tr("select cursor"))
        other_words = self.tr("export save")
        self._add(self.tr("Copy conversation as Markdown"), None, page.transcript.context_menu.copy_all, other_words)
        other_words = self.tr("compact shorten context")
        self._add(self.tr("Summarise older messages"), None, page.compact, other_words)
        other_words = self.tr("revert restore files rewind")
        self._add(self.tr("Undo all changes since this message…"), "Ctrl+Alt+Z", page.undo.undo_here, other_words)
        self._add_versions()

    def _add_versions(self) -> None:
        branches, editing = self._window.page.branches, self._window.page.editing
        self._add(self.tr("Edit last prompt"), "Ctrl+Alt+E", editing.edit_last, self.tr("change message correct"))
        other_words = self.tr("retry again answer anew")
        self._add(self.tr("Regenerate answer"), "Ctrl+Alt+R", branches.regenerate_here, other_words)
        other_words = self.tr("tree versions history all")
        self._add(self.tr("Branches of this conversation"), "Ctrl+Shift+B", branches.tree.open, other_words)
        other_words = self.tr("remove message prompt answer for good")
        self._add(self.tr("Delete message…"), None, branches.delete_here, other_words)
        other_words = self.tr("branch before after")
        self._add(self.tr("Previous version"), None, lambda: branches.step_version(-1), other_words)
        self._add(self.tr("Next version"), None, lambda: branches.step_version(1), other_words)

    def _add_message(self, settings: Settings) -> None:
        page = self._window.page
        composer = page.composer
        self._add(self.tr("Write a message"), "Ctrl+L", composer.editor.setFocus, self.tr("type prompt"))
        self._send = self._add(self.tr("Send the message"), None, composer.send)
        self._new_line = self._add(self.tr("New line in the message"), None, lambda: composer.editor.insert_text("\n"))
        stop = self._add(self.tr("Stop the answer"), None, composer.stop, self.tr("cancel interrupt abort break"))
        set_shown_shortcut(stop, "Esc")
        other_words = self.tr("picture photo file upload")
        self._add(self.tr("Attach image"), "Ctrl+Shift+A", composer.choose_files, other_words)
        self._add(
            self.tr("Waiting messages"), "Ctrl+Shift+W", page.session_controls.waiting.take_focus, self.tr("queue")
        )
        settings.changed.connect(self._show_keys_of_message)
        self._show_keys_of_message(settings.preferences)

    def _add_organising(self, organising: OrganisePresenter) -> None:
        actions: tuple[tuple[str, RowAction, str], ...] = (
            (self.tr("Pin this conversation"), "pin", self.tr("keep on top favourite star")),
            (self.tr("Unpin this conversation"), "unpin", ""),
            (self.tr("Archive this conversation"), "archive", self.tr("hide put away")),
            (self.tr("Bring this conversation back from the archive"), "unarchive", self.tr("unarchive restore")),
            (self.tr("Move this conversation to a folder…"), "move", self.tr("organise sort")),
            (self.tr("Tags of this conversation…"), "tag", self.tr("label keyword")),
            (self.tr("Duplicate this conversation"), "duplicate", self.tr("copy clone")),
            (self.tr("Merge the selected conversations"), "merge", self.tr("join combine")),
        )
        for text, action, other_words in actions:
            self._add(text, None, partial(organising.act, action), other_words)
        self._add(self.tr("New folder…"), None, organising.create_folder, self.tr("create directory project"))
        # Texts that are edited keep these keys for themselves.
        undo = self._window.banners.undo_last
        self._add(
            self.tr("Undo the last change to conversations"), QKeySequence.StandardKey.Undo, undo, self.tr("restore")
        )
        self._add(self.tr("Show the archive"), None, organising.show_archive, self.tr("archived conversations"))

    def _add_exchange(self, exchange: "Callable[[], ExchangePresenter]") -> None:
        other_words = self.tr("save share file markdown html json zip")
        self._add(self.tr("Export this conversation…"), None, lambda: exchange().export_current(), other_words)
        self._add(self.tr("Export all conversations…"), None, lambda: exchange().export_all(), other_words)
        other_words = self.tr("chatgpt claude history archive load")
        self._add(self.tr("Import conversations…"), None, lambda: exchange().import_file(), other_words)
        other_words = self.tr("claude code codex opencode gemini goose jan lm studio history found")
        self._add(self.tr("Import from other assistants…"), None, lambda: exchange().find_histories(), other_words)

    def _add_settings(self, settings: Settings, pages: SettingsPresenter, disk: DiskMonitor) -> QAction:
        for page, text, other_words in (
            ("appearance", self.tr("Theme and appearance"), self.tr("dark light colours look font density zoom")),
            ("providers", self.tr("Providers and keys"), self.tr("api key server account")),
            ("rules", self.tr("Rules"), self.tr("permissions allowed tools always allow")),
            ("mcp", self.tr("MCP servers"), self.tr("tools plugins extensions")),
            ("storage", self.tr("Storage"), self.tr("data folder disk")),
        ):
            self._add(text, None, partial(pages.show, page), other_words)
        other_words = self.tr("provider server key add login")
        self._add(self.tr("Connect a model"), None, self._window.show_welcome, other_words)
        self._add(self.tr("Try the demo"), None, self._window.show_demo, self.tr("example offline scripted"))
        other_words = self.tr("deleted removed bin restore bring back")
        trash = self._add(self.tr("Trash"), None, self._window.trash.show, other_words)
        self._add(self.tr("Check saved conversations"), None, disk.check, self.tr("repair damaged disk"))
        other_words = self.tr("zoom in text size bigger font")
        self._add(self.tr("Larger text"), QKeySequence.StandardKey.ZoomIn, lambda: settings.zoom(1), other_words)
        other_words = self.tr("zoom out text size font")
        self._add(self.tr("Smaller text"), QKeySequence.StandardKey.ZoomOut, lambda: settings.zoom(-1), other_words)
        self._add(self.tr("Normal text size"), "Ctrl+0", lambda: settings.zoom(0), self.tr("reset zoom"))
        self._window.page.transcript.zoom_requested.connect(settings.zoom)
        return trash

    def _add_help(self, help_: HelpPresenter) -> tuple[QAction, QAction]:
        open_help = self._add(self.tr("Help"), "F1", help_.show_guide, self.tr("guide manual introduction how to"))
        other_words = self.tr("keys hotkeys bindings")
        shortcuts = self._add(self.tr("Keyboard shortcuts"), None, help_.show_shortcuts, other_words)
        self._add(
            self.tr("About Desktop Agent"), None, help_.show_about, self.tr("version licence program data folder")
        )
        return open_help, shortcuts

    def _search(self) -> None:
        self._window.panes.show_list()
        self._window.sidebar.focus_search()

    def _rename(self) -> None:
        self._window.panes.show_list()
        self._window.sidebar.rename_current()

    @Slot(Preferences)
    def _show_keys_of_message(self, preferences: Preferences) -> None:
        sends = preferences.chat.enter_sends
        set_shown_shortcut(self._send, "Enter" if sends else "Ctrl+Enter")
        set_shown_shortcut(self._new_line, "Shift+Enter" if sends else "Enter")

    def _add(
        self,
        text: str,
        keys: str | QKeySequence.StandardKey | None,
        command: Callable[[], object],
        other_words: str = "",
    ) -> QAction:
        action = QAction(text, self._window)
        if keys is not None:
            action.setShortcut(QKeySequence(keys))
        set_synonyms(action, other_words)
        action.triggered.connect(lambda _checked=False: command())
        self._window.addAction(action)
        return action
