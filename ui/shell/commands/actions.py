"""All actions of the window with their shortcuts, synonyms and menus, in one list; and the help dialog behind some."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from desktop_agent.types.preferences import Preferences
from ui.bridge.desktop.updates import UpdateChecks
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.settings import Settings
from ui.bridge.storage import DiskMonitor, PictureStore
from ui.composer.parameter_buttons import PARAMETERS_KEYS, REASONING_KEYS
from ui.composer.question_card import QUESTION_KEYS
from ui.shell.commands.action import WindowAction, apply_shortcuts, window_actions
from ui.shell.commands.command_palette import PalettePresenter
from ui.shell.commands.menu_bar import MenuBarPresenter
from ui.shell.settings import SettingsPresenter
from ui.shell.window import MainWindow
from ui.sidebar.organising import OrganisePresenter
from ui.sidebar.row_menus import RowAction
from ui.style.controls import set_keys_tooltip, show_in_front
from ui.style.pickers import MODE_SHORTCUT as MODE_KEYS
from ui.style.theme import ThemeSource
from ui.transcript.input.last_answer import LastAnswer

if TYPE_CHECKING:
    from ui.settings.settings_dialog import SettingsDialog
    from ui.shell.commands.help_dialog import HelpDialog, HelpPage
    from ui.shell.exchange import ExchangePresenter


class HelpPresenter(QObject):
    """The help dialog of one window, whose actions it lists."""

    def __init__(
        self,
        themes: ThemeSource,
        pictures: PictureStore,
        data_folder: Path,
        tasks: BackgroundTasks,
        updates: UpdateChecks,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._themes = themes
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
                self._themes, self._pictures, self._data_folder, self._tasks, self._updates, self._window
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

    def _add_edit(self) -> None:
        add, page, banners = self._add, self._window.page, self._window.banners
        # An editor that has the focus handles these keys itself.
        keys, text = QKeySequence.StandardKey.Undo, self.tr("Undo the last change to conversations")
        add("edit/undo", "undo", text, keys, banners.undo_last, self.tr("restore"), lambda: banners.offers_undo)
        other_words = self.tr("revert restore files rewind")
        text, command = self.tr("Undo all changes since this message…"), page.undo.undo_here
        add("edit/undo", "undo-files", text, "Ctrl+Alt+Z", command, other_words, self._has_messages)
        find = page.navigation.find_bar
        other_words = self.tr("search words text")
        text, command = self.tr("Find in conversation"), page.navigation.find
        add("edit/find", "find", text, "Ctrl+F", command, other_words, self._has_messages)
        add("edit/find", "find-next", self.tr("Find next"), "F3", lambda: find.step(1), "", self._has_messages)
        text = self.tr("Find previous")
        add("edit/find", "find-previous", text, "Shift+F3", lambda: find.step(-1), "", self._has_messages)
        other_words = self.tr("find titles list filter chats")
        text = self.tr("Search conversations")
        add("edit/find", "search", text, "Ctrl+Shift+F", partial(_search, self._window), other_words)
        answer = LastAnswer(page.transcript.row_viewport, page.transcript.context_menu)
        # Not Ctrl+Shift+C, as in other programs: in the approval dialog it allows a call for the whole conversation.
        text, other_words = self.tr("Copy last answer"), self.tr("clipboard response reply message")
        add("edit/copy", "copy-answer", text, "Ctrl+Alt+C", answer.copy, other_words, lambda: answer.exists)
        text, other_words = self.tr("Copy last code block"), self.tr("clipboard source snippet program")
        add("edit/copy", "copy-code", text, "Ctrl+Alt+Shift+C", answer.copy_code, other_words, lambda: answer.has_code)
        other_words = self.tr("export save")
        text, command = self.tr("Copy conversation as Markdown"), page.transcript.context_menu.copy_all
        add("edit/copy", "copy-conversation", text, None, command, other_words, self._has_messages)

    def _add_settings(self, pages: SettingsPresenter) -> WindowAction:
        other_words = self.tr("preferences options configuration")
        open_settings = self._add("edit/settings", "settings", self.tr("Settings"), "Ctrl+,", pages.show, other_words)
        open_settings.setMenuRole(QAction.MenuRole.PreferencesRole)
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
        add, page, settings = self._add, self._window.page, self._settings
        keys, other_words = QKeySequence.StandardKey.ZoomIn, self.tr("zoom in text size bigger font")
        add("view/text", "zoom-in", self.tr("Larger text"), keys, lambda: settings.zoom(1), other_words)
        keys, other_words = QKeySequence.StandardKey.ZoomOut, self.tr("zoom out text size font")
        add("view/text", "zoom-out", self.tr("Smaller text"), keys, lambda: settings.zoom(-1), other_words)
        other_words = self.tr("reset zoom")
        add("view/text", "zoom-reset", self.tr("Normal text size"), "Ctrl+0", lambda: settings.zoom(0), other_words)
        text = self.tr("Open the menu bar")
        add("view/menus", "menu-bar", text, "F10", self._menus.open, self.tr("menus alt"))
        text, other_words = self.tr("Caret browsing"), self.tr("select cursor")
        command = page.navigation.toggle_caret
        add("view/menus", "caret-browsing", text, "F7", command, other_words, self._has_messages)

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
        command = window.page.branches.tree.open
        self._add("conversation/copy", "branches", text, "Ctrl+Shift+B", command, other_words, self._has_messages)
        other_words, text = self.tr("compact shorten context"), self.tr("Summarise older messages")
        command = window.page.compact
        self._add("conversation/copy", "summarise", text, None, command, other_words, self._has_messages)
        other_words, text = self.tr("remove chat trash bin"), self.tr("Delete this conversation")
        command, can_delete = window.sidebar.delete_current, partial(_can_delete, window)
        self._add("conversation/delete", "delete", text, None, command, other_words, can_delete)

    def _add_choices(self) -> None:
        add, page, has = self._add, self._window.page, self._has_conversation
        text, other_words = self.tr("Choose model"), self.tr("switch change another")
        add("conversation/model", "choose-model", text, "Ctrl+M", page.models.picker.open_list, other_words, has)
        text, other_words = self.tr("Choose reasoning"), self.tr("thinking effort")
        reasoning = page.models.reasoning
        command, applies = reasoning.open_menu, lambda: bool(reasoning.choices)
        add("conversation/model", "choose-reasoning", text, REASONING_KEYS, command, other_words, applies)
        text = self.tr("Conversation settings")
        other_words = self.tr("temperature system prompt instructions parameters length of the answer")
        command = page.models.edit_parameters
        add("conversation/model", "conversation-settings", text, PARAMETERS_KEYS, command, other_words, has)
        text, other_words = self.tr("Choose mode"), self.tr("permissions approval plan accept edits")
        command = page.session_controls.picker.open_menu
        add("conversation/model", "choose-mode", text, MODE_KEYS, command, other_words, has)

    def _add_message(self) -> None:
        add, page, composer = self._add, self._window.page, self._window.page.composer
        other_words = self.tr("type prompt")
        add("message/write", "write", self.tr("Write a message"), "Ctrl+L", composer.editor.setFocus, other_words)
        self._send = add("message/write", "send", self.tr("Send the message"), None, composer.send)
        text = self.tr("New line in the message")
        self._new_line = add("message/write", "new-line", text, None, lambda: composer.editor.insert_text("\n"))
        text, other_words = self.tr("Stop the answer"), self.tr("cancel interrupt abort break")
        is_working = partial(_is_working, self._window)
        add("message/write", "stop", text, None, composer.stop, other_words, is_working).show_keys("Esc")
        text, other_words = self.tr("Attach files"), self.tr("picture photo image text upload")
        add("message/write", "attach", text, "Ctrl+Shift+A", composer.choose_files, other_words)
        text, queue = self.tr("Waiting messages"), page.session_controls.queue
        applies, words = lambda: bool(queue.rows), self.tr("queue")
        add("message/queue", "queue", text, "Ctrl+Shift+W", queue.take_focus, words, applies)
        text, card = self.tr("Answer the question"), page.session_controls.questions
        add("message/queue", "answer", text, QUESTION_KEYS, card.take_focus, "", lambda: card.question is not None)

    def _add_versions(self) -> None:
        branches, editing = self._window.page.branches, self._window.page.editing
        add = partial(self._add, "message/versions", applies=self._has_messages)
        other_words = self.tr("change message correct")
        add("edit-last", self.tr("Edit last prompt"), "Ctrl+Alt+E", editing.edit_last, other_words)
        other_words = self.tr("retry again answer anew")
        add("regenerate", self.tr("Regenerate answer"), "Ctrl+Alt+R", branches.regenerate_here, other_words)
        other_words, text = self.tr("go on resume after stop limit"), self.tr("Continue answer")
        add("continue", text, None, branches.continue_at_end, other_words, applies=lambda: branches.can_continue)
        other_words, text = self.tr("branch before after"), self.tr("Previous version")
        add("previous-version", text, None, lambda: branches.step_version(-1), other_words)
        add("next-version", self.tr("Next version"), None, lambda: branches.step_version(1), other_words)
        other_words = self.tr("remove message prompt answer for good")
        text, command = self.tr("Delete message…"), branches.delete_here
        self._add("message/delete", "delete-message", text, None, command, other_words, self._has_messages)

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
        page, sidebar = self._window.page, self._window.sidebar
        sidebar.show_keys(keys["new-conversation"], keys["new-unstored-conversation"], keys["search"])
        set_keys_tooltip(page.composer.attach_button, self.tr("Attach files"), keys["attach"])
        page.models.picker.show_keys(keys["choose-model"])
        page.models.reasoning.show_keys(keys["choose-reasoning"])
        page.models.parameters.show_keys(keys["conversation-settings"])
        page.session_controls.picker.show_keys(keys["choose-mode"])
        page.session_controls.questions.show_keys(keys["answer"])


def _search(window: MainWindow) -> None:
    window.window_layout.show_list()
    window.sidebar.focus_search()


def _is_working(window: MainWindow) -> bool:
    return window.conversation is not None and window.conversation.working


def _can_delete(window: MainWindow) -> bool:
    return window.conversation is not None and window.conversation.can_be_deleted
