"""All actions of the window with their shortcuts, synonyms and menus, in one list; and the help dialog behind some."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QAction, QKeySequence

from desktop_agent.types.preferences import Preferences
from ui.bridge.desktop.updates import UpdateChecks
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.settings import Settings
from ui.bridge.storage import DiskMonitor, PictureStore
from ui.composer.parameter_buttons import PARAMETERS_KEYS, REASONING_KEYS
from ui.composer.question_card import QUESTION_KEYS
from ui.shell.commands.action import WindowAction, always, apply_shortcuts, window_actions
from ui.shell.commands.command_palette import PalettePresenter
from ui.shell.commands.menu_bar import MenuBarPresenter
from ui.shell.commands.page_shortcuts import page_commands, show_page_keys
from ui.shell.settings import SettingsPresenter
from ui.shell.window import MainWindow
from ui.sidebar.organising import OrganisePresenter
from ui.sidebar.row_menus import RowAction
from ui.style.controls import show_in_front
from ui.style.pickers import MODE_SHORTCUT as MODE_KEYS
from ui.transcript.input.last_answer import LastAnswer

if TYPE_CHECKING:
    from ui.settings.settings_dialog import SettingsDialog
    from ui.shell.commands.help_dialog import HelpDialog, HelpPage
    from ui.shell.exchange import ExchangePresenter


class HelpPresenter(QObject):
    """The help dialog of one window, whose actions it lists."""

    def __init__(
        self,
        pictures: PictureStore,
        data_folder: Path,
        tasks: BackgroundTasks,
        updates: UpdateChecks,
        window: MainWindow,
    ) -> None:
        super().__init__(window)
        self._updates = updates
        self._tasks = tasks
        self._pictures = pictures
        self._data_folder = data_folder
        self._window = window
        self._dialog: HelpDialog | None = None

    def show(self, page: "HelpPage") -> None:
        """Show a page of the help."""
        if self._dialog is None:
            from ui.shell.commands.help_dialog import HelpDialog

            self._dialog = HelpDialog(
                self._window.themes, self._pictures, self._data_folder, self._tasks, self._updates, self._window
            )
        show_in_front(self._dialog)
        self._dialog.turn_to(page)

    def close(self) -> None:
        """Stop the workers that render the guide, and the checks for updates: the program ends."""
        self._updates.close()
        if self._dialog is not None:
            self._dialog.guide.close_workers()
            self._dialog.close()


class WindowActions(QObject):
    """Adds the actions to the window; everything that lists actions reads `window_actions`."""

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
        self._organising = organising
        self._settings = settings
        self._add = partial(WindowAction, window)
        self._commands = page_commands(window.page)
        self._menus = MenuBarPresenter(window, settings)
        self._shown_keys: dict[str, str] = {}
        # The palette comes first: it lists all other actions, but not itself.
        palette.opening_action = commands = self._add(
            "view/find", "commands", self.tr("Commands"), "Ctrl+K", palette.open
        )
        self._add_file(exchange, disk)
        self._add_edit()
        open_settings = self._add_settings(pages)
        trash = self._add_view()
        self._add_zoom()
        self._add_choices()
        self._add_conversation()
        self._add_message()
        self._add_versions()
        open_help, shortcuts = self._add_help(help_)
        palette.fallback_actions = (open_settings, shortcuts, open_help)
        text, other_words = self.tr("Waiting approvals"), self.tr("inbox pending permission allow deny decide calls")
        waiting = self._add("view/list", "waiting-approvals", text, "Ctrl+Shift+Y", window.inbox.show, other_words)
        text, command = self.tr("Scheduled prompts"), window.scheduled_requested.emit
        other_words = self.tr("cron automatic recurring repeat daily weekly timer run by itself")
        scheduled = self._add("view/list", "scheduled-prompts", text, None, command, other_words)
        footer = window.sidebar.add_footer(open_settings, waiting, scheduled, trash, commands, open_help)
        window.inbox.count_changed.connect(footer.waiting.show_count)
        settings.changed.connect(self._apply_shortcuts)
        pages.dialog_created.connect(self._show_shortcuts)
        self._apply_shortcuts(settings.preferences)
        deferred = [action for action in window_actions(window) if action.default_keys == window.deferred_shortcut]
        if window.deferred_shortcut and deferred:
            # After everything is connected to the actions.
            QTimer.singleShot(0, deferred[0], deferred[0].trigger)

    def _add_file(self, exchange: "Callable[[], ExchangePresenter]", disk: DiskMonitor) -> None:
        add, window = self._add, self._window
        new, other_words = window.sidebar.new_requested.emit, self.tr("chat start create")
        add("file/new", "new-conversation", self.tr("New conversation"), "Ctrl+N", new, other_words)
        other_words = self.tr("private temporary incognito secret never saved off the record")
        new_unstored = window.sidebar.new_unstored_requested.emit
        text = self.tr("New conversation that is not stored")
        add("file/new", "new-unstored-conversation", text, "Ctrl+Shift+N", new_unstored, other_words)
        text, other_words = self.tr("Quick question"), self.tr("ask small popup clipboard")
        add("file/new", "quick-question", text, None, window.quick_ask_requested.emit, other_words)
        other_words = self.tr("create directory project")
        create_folder = self._organising.create_folder
        add("file/new", "new-folder", self.tr("New folder…"), None, create_folder, other_words)
        text, other_words = self.tr("Export this conversation…"), self.tr("save share markdown html json pdf print")
        add("file/exchange", "export", text, None, lambda: exchange().export_current(), other_words, self._has_messages)
        text = self.tr("Export all conversations…")
        add("file/exchange", "export-all", text, None, lambda: exchange().export_all(), other_words)
        text, other_words = self.tr("Import conversations…"), self.tr("chatgpt claude history archive load")
        add("file/exchange", "import", text, None, lambda: exchange().import_file(), other_words)
        other_words = self.tr("claude code codex opencode gemini goose jan lm studio history found")
        text = self.tr("Import from other assistants…")
        add("file/exchange", "import-found", text, None, lambda: exchange().find_histories(), other_words)
        other_words = self.tr("provider server key add login")
        add("file/connect", "connect-model", self.tr("Connect a model"), None, window.show_welcome, other_words)
        other_words = self.tr("example offline scripted")
        add("file/connect", "demo", self.tr("Try the demo"), None, window.show_demo, other_words)
        other_words = self.tr("repair damaged disk")
        add("file/disk", "check-disk", self.tr("Check saved conversations"), None, disk.check, other_words)
        # Not the standard key: some platforms have none.
        leave = add("file/quit", "quit", self.tr("Quit"), "Ctrl+Q", window.quit, self.tr("exit close end"))
        leave.setMenuRole(QAction.MenuRole.QuitRole)

    def _add_in_page(
        self,
        place: str,
        name: str,
        text: str,
        keys: str | QKeySequence.StandardKey | None = None,
        synonyms: str = "",
        applies: Callable[[], bool] | None = None,
    ) -> WindowAction:
        """Add an action of the page; without `applies` it needs messages."""
        return self._add(place, name, text, keys, self._commands[name], synonyms, applies or self._has_messages)

    def _add_edit(self) -> None:
        add, page, banners = self._add_in_page, self._window.page, self._window.banners
        # An editor that has the focus handles these keys itself.
        keys, text = QKeySequence.StandardKey.Undo, self.tr("Undo the last change to conversations")
        add("edit/undo", "undo", text, keys, self.tr("restore"), lambda: banners.offers_undo)
        text, other_words = self.tr("Undo all changes since this message…"), self.tr("revert restore files rewind")
        add("edit/undo", "undo-files", text, "Ctrl+Alt+Z", other_words)
        add("edit/find", "find", self.tr("Find in conversation"), "Ctrl+F", self.tr("search words text"))
        add("edit/find", "find-next", self.tr("Find next"), "F3")
        add("edit/find", "find-previous", self.tr("Find previous"), "Shift+F3")
        text, other_words = self.tr("Search conversations"), self.tr("find titles list filter chats")
        self._add("edit/find", "search", text, "Ctrl+Shift+F", partial(_search, self._window), other_words)
        answer = LastAnswer(page.transcript.row_viewport, page.transcript.context_menu)
        # Not Ctrl+Shift+C, as in other programs: in the approval dialog it allows a call for the whole conversation.
        text, other_words = self.tr("Copy last answer"), self.tr("clipboard response reply message")
        add("edit/copy", "copy-answer", text, "Ctrl+Alt+C", other_words, lambda: answer.exists)
        text, other_words = self.tr("Copy last code block"), self.tr("clipboard source snippet program")
        add("edit/copy", "copy-code", text, "Ctrl+Alt+Shift+C", other_words, lambda: answer.has_code)
        text, other_words = self.tr("Copy conversation as Markdown"), self.tr("export save")
        add("edit/copy", "copy-conversation", text, None, other_words)

    def _add_settings(self, pages: SettingsPresenter) -> WindowAction:
        other_words = self.tr("preferences options configuration")
        open_settings = self._add("edit/settings", "settings", self.tr("Settings"), "Ctrl+,", pages.show, other_words)
        open_settings.setMenuRole(QAction.MenuRole.PreferencesRole)
        self._window.page.approvals.settings_action = open_settings
        for page, text, other_words in (
            ("appearance", self.tr("Theme and appearance"), self.tr("dark light colours look font density zoom")),
            ("providers", self.tr("Providers and keys"), self.tr("api key server account")),
            ("rules", self.tr("Rules"), self.tr("permissions allowed tools always allow")),
            ("mcp", self.tr("MCP servers"), self.tr("tools plugins extensions")),
            ("storage", self.tr("Storage"), self.tr("data folder disk")),
            ("usage", self.tr("Usage"), self.tr("tokens cost money price spent budget limit statistics chart")),
        ):
            self._add("edit/settings", f"settings-{page}", text, None, partial(pages.show, page), other_words)
        return open_settings

    def _add_view(self) -> WindowAction:
        add, window, sidebar = self._add, self._window, self._window.sidebar
        text, other_words = self.tr("Show or hide the conversations"), self.tr("sidebar list panel fold")
        add("view/list", "toggle-list", text, "Ctrl+B", window.window_layout.toggle_list, other_words)
        other_words = self.tr("archived conversations")
        text = self.tr("Show the archive")
        add("view/list", "archive-list", text, None, self._organising.show_archive, other_words)
        other_words = self.tr("deleted removed bin restore bring back")
        trash = add("view/list", "trash", self.tr("Trash"), None, window.trash.show, other_words)
        add("view/go", "next-conversation", self.tr("Next conversation"), "Ctrl+Tab", lambda: sidebar.step(1))
        text = self.tr("Previous conversation")
        add("view/go", "previous-conversation", text, "Ctrl+Shift+Tab", lambda: sidebar.step(-1))
        for number in range(1, 10):
            text, command = self.tr("Conversation {0}").format(number), partial(sidebar.choose_row, number - 1)
            action = add("view/go", f"conversation-{number}", text, f"Ctrl+{number}", command)
            action.is_numbered = True
        return trash

    def _add_zoom(self) -> None:
        add, settings = self._add, self._settings
        keys, other_words = QKeySequence.StandardKey.ZoomIn, self.tr("zoom in text size bigger font")
        add("view/text", "zoom-in", self.tr("Larger text"), keys, lambda: settings.zoom(1), other_words)
        keys, other_words = QKeySequence.StandardKey.ZoomOut, self.tr("zoom out text size font")
        add("view/text", "zoom-out", self.tr("Smaller text"), keys, lambda: settings.zoom(-1), other_words)
        other_words = self.tr("reset zoom")
        add("view/text", "zoom-reset", self.tr("Normal text size"), "Ctrl+0", lambda: settings.zoom(0), other_words)
        text = self.tr("Open the menu bar")
        add("view/menus", "menu-bar", text, "F10", self._menus.open, self.tr("menus alt"))
        text, other_words = self.tr("Caret browsing"), self.tr("select cursor")
        self._add_in_page("view/menus", "caret-browsing", text, "F7", other_words)

    def _add_conversation(self) -> None:
        window, act, applies = self._window, self._organising.act, self._organising.applies
        actions: tuple[tuple[str, str, RowAction, str], ...] = (
            ("conversation/place", self.tr("Pin this conversation"), "pin", self.tr("keep on top favourite star")),
            ("conversation/place", self.tr("Unpin this conversation"), "unpin", ""),
            ("conversation/place", self.tr("Archive this conversation"), "archive", self.tr("hide put away")),
            (
                "conversation/place",
                self.tr("Bring this conversation back from the archive"),
                "unarchive",
                self.tr("unarchive restore"),
            ),
            ("conversation/place", self.tr("Move this conversation to a folder…"), "move", self.tr("organise sort")),
            ("conversation/place", self.tr("Tags of this conversation…"), "tag", self.tr("label keyword")),
            ("conversation/copy", self.tr("Duplicate this conversation"), "duplicate", self.tr("copy clone")),
            ("conversation/place", self.tr("Open this conversation in a new window"), "window", self.tr("detach")),
            ("conversation/copy", self.tr("Copy the link to this conversation"), "link", self.tr("url address share")),
            ("conversation/copy", self.tr("Merge the selected conversations"), "merge", self.tr("join combine")),
        )
        other_words, text = self.tr("title name chat"), self.tr("Rename this conversation")
        self._add("conversation/place", "rename", text, None, window.rename, other_words, self._has_conversation)
        window.frame.title.double_clicked.connect(window.rename)
        added = {
            action: self._add(place, action, text, None, partial(act, action), other_words, partial(applies, action))
            for place, text, action, other_words in actions
        }
        for action, undo in ((added["pin"], added["unpin"]), (added["archive"], added["unarchive"])):
            action.undo, undo.undone = undo, action
        other_words, text = self.tr("tree versions history all"), self.tr("Branches of this conversation")
        self._add_in_page("conversation/copy", "branches", text, "Ctrl+Shift+B", other_words)
        other_words, text = self.tr("compact shorten context"), self.tr("Summarise older messages")
        self._add_in_page("conversation/copy", "summarise", text, None, other_words)
        other_words, text = self.tr("remove chat trash bin"), self.tr("Delete this conversation")
        command, can_delete = window.sidebar.delete_current, partial(_can_delete, window)
        self._add("conversation/delete", "delete", text, None, command, other_words, can_delete)

    def _add_choices(self) -> None:
        add, has = partial(self._add_in_page, "conversation/model"), self._has_conversation
        text, other_words = self.tr("Choose model"), self.tr("switch change another")
        add("choose-model", text, "Ctrl+M", other_words, has)
        text, other_words = self.tr("Choose reasoning"), self.tr("thinking effort")
        reasoning = self._window.page.models.reasoning
        add("choose-reasoning", text, REASONING_KEYS, other_words, lambda: bool(reasoning.choices))
        text = self.tr("Conversation settings")
        other_words = self.tr("temperature system prompt instructions parameters length of the answer")
        add("conversation-settings", text, PARAMETERS_KEYS, other_words, has)
        text, other_words = self.tr("Choose mode"), self.tr("permissions approval plan accept edits")
        add("choose-mode", text, MODE_KEYS, other_words, has)

    def _add_message(self) -> None:
        add, in_page = self._add, self._add_in_page
        page, composer = self._window.page, self._window.page.composer
        text, other_words = self.tr("Write a message"), self.tr("type prompt")
        in_page("message/write", "write", text, "Ctrl+L", other_words, always)
        self._send = add("message/write", "send", self.tr("Send the message"), None, composer.send)
        text = self.tr("New line in the message")
        self._new_line = add("message/write", "new-line", text, None, lambda: composer.editor.insert_text("\n"))
        text, other_words = self.tr("Stop the answer"), self.tr("cancel interrupt abort break")
        is_working = partial(_is_working, self._window)
        add("message/write", "stop", text, None, composer.stop, other_words, is_working).show_keys("Esc")
        text, other_words = self.tr("Attach files"), self.tr("picture photo image text upload")
        in_page("message/write", "attach", text, "Ctrl+Shift+A", other_words, always)
        text, queue = self.tr("Waiting messages"), page.session_controls.queue
        in_page("message/queue", "queue", text, "Ctrl+Shift+W", self.tr("queue"), lambda: bool(queue.rows))
        text, card = self.tr("Answer the question"), page.session_controls.questions
        in_page("message/queue", "answer", text, QUESTION_KEYS, "", lambda: card.question is not None)

    def _add_versions(self) -> None:
        add, branches = partial(self._add_in_page, "message/versions"), self._window.page.branches
        add("edit-last", self.tr("Edit last prompt"), "Ctrl+Alt+E", self.tr("change message correct"))
        add("regenerate", self.tr("Regenerate answer"), "Ctrl+Alt+R", self.tr("retry again answer anew"))
        other_words, text = self.tr("go on resume after stop limit"), self.tr("Continue answer")
        add("continue", text, None, other_words, lambda: branches.can_continue)
        add("previous-version", self.tr("Previous version"), None, self.tr("branch before after"))
        add("next-version", self.tr("Next version"), None, self.tr("branch before after"))
        text, other_words = self.tr("Delete message…"), self.tr("remove message prompt answer for good")
        self._add_in_page("message/delete", "delete-message", text, None, other_words)

    def _add_help(self, help_: HelpPresenter) -> tuple[WindowAction, WindowAction]:
        add, other_words = self._add, self.tr("guide manual introduction how to")
        open_help = add("help/guide", "help", self.tr("Help"), "F1", partial(help_.show, "guide"), other_words)
        other_words, text = self.tr("keys hotkeys bindings"), self.tr("Keyboard shortcuts")
        shortcuts = add("help/guide", "shortcuts", text, None, partial(help_.show, "shortcuts"), other_words)
        other_words, text = self.tr("version licence program data folder"), self.tr("About Desktop Agent")
        about = add("help/about", "about", text, None, partial(help_.show, "about"), other_words)
        about.setMenuRole(QAction.MenuRole.AboutRole)
        other_words = self.tr("license components libraries open source sbom")
        add("help/about", "licences", self.tr("Licences"), None, partial(help_.show, "licences"), other_words)
        return open_help, shortcuts

    def _has_conversation(self) -> bool:
        return self._window.conversation is not None

    def _has_messages(self) -> bool:
        conversation = self._window.conversation
        return conversation is not None and not conversation.is_empty

    def _show_shortcuts(self, dialog: "SettingsDialog") -> None:
        # Late, like the dialog itself.
        from ui.shell.commands.shortcuts import ShortcutsPresenter

        ShortcutsPresenter(dialog.shortcuts, self._window, self._settings)

    def _apply_shortcuts(self, preferences: Preferences) -> None:
        actions = window_actions(self._window)
        apply_shortcuts(actions, preferences.shortcuts.keys)
        shown = {action.name: action.keys for action in actions}
        if shown != self._shown_keys:
            self._shown_keys = shown
            self._show_keys(shown)
        sends = preferences.chat.enter_sends
        self._send.show_keys("Enter" if sends else "Ctrl+Enter")
        self._new_line.show_keys("Shift+Enter" if sends else "Enter")

    def _show_keys(self, keys: Mapping[str, str]) -> None:
        sidebar = self._window.sidebar
        sidebar.show_keys(keys["new-conversation"], keys["new-unstored-conversation"], keys["search"])
        show_page_keys(self._window.page, keys)


def _search(window: MainWindow) -> None:
    window.window_layout.show_list()
    window.sidebar.focus_search()


def _is_working(window: MainWindow) -> bool:
    return window.conversation is not None and window.conversation.working


def _can_delete(window: MainWindow) -> bool:
    return window.conversation is not None and window.conversation.can_be_deleted
