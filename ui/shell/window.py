"""The main window, and its last geometry and appearance."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QSize, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QShortcut
from PySide6.QtWidgets import QApplication, QMainWindow

from desktop_agent.types.errors import Sentence
from ui.bridge.desktop.window_state import WindowStateFile
from ui.shell.banners import BannerArea
from ui.shell.layout import WINDOW_WIDTH, PageFrame, WindowLayout
from ui.sidebar.conversation_list import ConversationList
from ui.style.controls import set_by_name
from ui.style.text import title_or_new
from ui.style.theme import ReadingStyle, ThemeChoice, ThemeSource

if TYPE_CHECKING:
    from desktop_agent.types.preferences import Preferences
    from ui.bridge.conversation import OpenConversation
    from ui.bridge.library import ConversationLibrary
    from ui.bridge.model_servers import ModelServers
    from ui.shell.conversation_page import ConversationPage
    from ui.shell.inbox import InboxPresenter
    from ui.shell.search import SearchPresenter
    from ui.shell.storage import ClosingQuestion, TrashPresenter, UnstoredPresenter
    from ui.welcome.welcome_page import WelcomePage


_THEME_CHOICES: dict[str, ThemeChoice] = {"light": "light", "dark": "dark"}


def save_appearance(file: WindowStateFile, preferences: "Preferences", reading: ReadingStyle) -> None:
    """Save for the next start what it shows before the preferences are read."""
    appearance = preferences.appearance
    file.save(
        {
            "look/theme": appearance.theme,
            "look/zoom": appearance.zoom,
            "look/font": reading.font,
            "look/size": reading.size,
            "look/line_width": reading.line_width,
            "look/compact": reading.is_compact,
            "look/language": appearance.language,
            "write/enter_sends": preferences.chat.enter_sends,
        }
    )


def load_enter_sends(file: WindowStateFile) -> bool:
    """Return whether Enter sends, as saved by the last run; True by default."""
    return file.text("write/enter_sends").lower() != "false"


def load_language(file: WindowStateFile) -> str:
    """Return the language, as saved by the last run; "system" by default."""
    return file.text("look/language") or "system"


def load_appearance(file: WindowStateFile) -> tuple[ThemeChoice, int, ReadingStyle]:
    """Return the saved theme, zoom and reading style; invalid or missing values are replaced by the defaults."""
    default = ReadingStyle()

    def text(name: str) -> str:
        return file.text(f"look/{name}")

    def number(name: str, fallback: float, minimum: float, maximum: float) -> float:
        try:
            return min(maximum, max(minimum, float(text(name))))
        except ValueError:
            return fallback

    reading = ReadingStyle(
        font=text("font"),
        size=number("size", default.size, 6, 36),
        line_width=round(number("line_width", default.line_width, 100, 1 << 16)),
        is_compact=text("compact").lower() == "true",
    )
    return _THEME_CHOICES.get(text("theme"), "system"), round(number("zoom", 100, 50, 300)), reading


_WORK_CHECK_MS = 100
"""Milliseconds between checks whether the work that the question is about has ended."""
_DEFERRED_SHORTCUTS = ("Ctrl+K", "Ctrl+,", "F1")
"""Shortcuts that are remembered when they are pressed before there are any actions."""


class MainWindow(QMainWindow):
    """Puts the panes together and connects them; the bridge does the work.

    Before `set_content` it has only what the first paint shows; its modules import nothing else.
    """

    model_file_requested = Signal()
    """The person wants to run a model file."""
    scheduled_requested = Signal()
    """The person wants to see the scheduled prompts."""
    close_requested = Signal()
    quick_ask_requested = Signal()
    left_in_tray = Signal()
    """The window was closed, and the program continues behind its icon in the tray."""

    page: "ConversationPage"
    inbox: "InboxPresenter"
    search: "SearchPresenter"
    trash: "TrashPresenter"
    unstored: "UnstoredPresenter"
    _library: "ConversationLibrary"
    _servers: "ModelServers"

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self.new_was_requested = False
        """Whether a new conversation was requested before one could be created."""
        self._has_content = False
        self._may_close = False
        self._is_quitting = False
        self.starts_again = False
        """Whether the program is to start again when it has ended."""
        self.stays_in_tray: Callable[[], bool] = lambda: False
        """Whether closing the window leaves the program in the tray."""
        self.has_other_windows: Callable[[], bool] = lambda: False
        """Whether the program continues in other windows when this one is closed."""
        self.banners = BannerArea(themes)
        self.frame = PageFrame(themes)
        self.sidebar = ConversationList(themes)
        self.themes = themes
        self._welcome: WelcomePage | None = None
        self._question: ClosingQuestion | None = None
        self._work_timer = QTimer(self, interval=_WORK_CHECK_MS)
        self._work_timer.timeout.connect(self._close_if_idle)
        self.window_layout = WindowLayout(themes, self.sidebar, self.frame, self.banners)
        self._build()
        self.sidebar.new_requested.connect(self._new)
        self._early_keys = [self._early_key("Ctrl+N", self._new), self._early_key("Ctrl+Q", self.close)]
        self.deferred_shortcut = ""
        """A shortcut that was pressed early, to be run as soon as its action exists."""
        self._early_keys += [self._early_key(keys, partial(self._defer_shortcut, keys)) for keys in _DEFERRED_SHORTCUTS]

    def set_content(self, page: "ConversationPage", library: "ConversationLibrary", servers: "ModelServers") -> None:
        """Set the bridge's objects and the page that fills the frame."""
        from ui.shell.inbox import InboxPresenter
        from ui.shell.search import SearchPresenter
        from ui.shell.storage import TrashPresenter, UnstoredPresenter

        self.page = page
        self._library = library
        self._servers = servers
        self.trash = TrashPresenter(self.themes, library, self.banners, self)
        self.inbox = InboxPresenter(self.themes, library, self.sidebar, page.approvals, self)
        self.unstored = UnstoredPresenter(self.themes, library, self.frame, self.sidebar, self.banners, self)
        self._connect(library)
        self.search = SearchPresenter(self.sidebar, library, page, self.show_conversation_page)
        for shortcut in self._early_keys:
            # At once: the same keys of `WindowActions` would be ambiguous.
            shortcut.setEnabled(False)
            shortcut.deleteLater()
        self._early_keys.clear()
        self._has_content = True

    @property
    def shows_welcome(self) -> bool:
        """Whether the welcome page is in front."""
        return self._welcome is not None and self.window_layout.pages.currentWidget() is self._welcome

    @property
    def conversation(self) -> "OpenConversation | None":
        return self._library.current

    @property
    def asks_before_closing(self) -> bool:
        """Whether work is under way."""
        return self._has_content and bool(self._library.working_sessions)

    def show_welcome(self) -> None:
        """Show the welcome page."""
        if self._welcome is None:
            # Late: with a model connected it is seldom opened.
            from ui.welcome.welcome_page import WelcomePage

            welcome = self._welcome = WelcomePage(self.themes, self._servers, self._library)
            self.window_layout.pages.addWidget(welcome)
            welcome.back_requested.connect(self.show_conversation_page)
            welcome.model_file_requested.connect(self.model_file_requested)
            # The open conversation is already there, behind the welcome page.
            self.sidebar.conversation_chosen.connect(self.show_conversation_page)
            welcome.connected.connect(self._show_connected)
        self._servers.find_local()
        if not self._welcome.isVisible():
            self._welcome.begin_anew()
        self._welcome.set_back_button(is_there=self._library.current is not None)
        # Hide the banners of conversations.
        self.banners.show_conversation("")
        self.window_layout.show_page(self._welcome)
        self._welcome.setFocus()

    def _show_connected(self, sentence: Sentence) -> None:
        shown = self._library.current
        self.banners.show_notice(sentence, "" if shown is None else shown.id)

    def show_demo(self) -> None:
        """Begin a conversation with the scripted model."""
        self._library.new_demo()

    def allow_closing(self) -> None:
        """Let the next close event through: the program ends."""
        self._may_close = True

    def quit(self, *, starts_again: bool = False) -> None:
        """Close the window to end the program, even if closing it otherwise leaves the program in the tray."""
        self.starts_again = starts_again
        if self.asks_before_closing:
            # The question is a dialog of the window.
            self.show()
        self._is_quitting = True
        self.close()
        self._is_quitting = False

    def closeEvent(self, event: QCloseEvent) -> None:
        """Stay in the tray, or ask during work, or emit `close_requested`: the program then ends in its own order."""
        if self._may_close:
            event.accept()
            return
        event.ignore()
        self.starts_again = self.starts_again and self._is_quitting
        app = QApplication.instance()
        is_logging_out = isinstance(app, QApplication) and app.isSavingSession()
        may_stay = not self._is_quitting and not is_logging_out
        if may_stay and self.stays_in_tray():
            self.hide()
            self.left_in_tray.emit()
        elif may_stay and self.has_other_windows():
            self.hide()
        elif self.asks_before_closing:
            self._ask_to_close()
        else:
            self.close_requested.emit()

    def rename(self) -> None:
        """Edit the title of the open conversation in the list, or in a dialog where it is not listed."""
        from ui.sidebar.title_dialog import ask_title, refuse_rename

        conversation = self._library.current
        if conversation is None:
            return
        if (refusal := refuse_rename(conversation)) is not None:
            self.banners.show_notice(refusal, conversation.id)
            return
        if self.sidebar.view.rows.row_of(conversation.id) >= 0:
            self.window_layout.show_list()
            self.sidebar.rename_current()
        else:
            # It is in another folder, in the archive, further down the list, or never stored.
            ask_title(self.themes, conversation, self._library, self)

    def save_window_geometry(self, file: "WindowStateFile") -> None:
        """Save size, position, the splitter, and whether the sidebar is shown, for the next start."""
        file.save(
            {
                "window/geometry": self.saveGeometry().toBase64().toStdString(),
                "window/splitter": self.window_layout.splitter.saveState().toBase64().toStdString(),
                "window/sidebar": self.window_layout.shows_list,
            }
        )

    def restore_window_geometry(self, file: "WindowStateFile") -> None:
        """Restore size, position, the splitter, and whether the sidebar is shown."""
        for key, restore in (
            ("geometry", self.restoreGeometry),
            ("splitter", self.window_layout.splitter.restoreState),
        ):
            if saved := file.text(f"window/{key}"):
                restore(QByteArray.fromBase64(saved.encode()))
        if file.text("window/sidebar").lower() == "false":
            self.window_layout.hide_list()

    def _build(self) -> None:
        self.setWindowTitle("Desktop Agent")
        # The whole window must be on the screen, with its title bar.
        self.resize(QSize(WINDOW_WIDTH, 800).boundedTo(self.screen().availableSize() * 0.9))
        self.setMinimumSize(360, 360)
        self.setCentralWidget(self.window_layout)

    def _connect(self, library: "ConversationLibrary") -> None:
        sidebar = self.sidebar
        library.listing.listed.connect(sidebar.set_conversations)
        sidebar.end_neared.connect(library.listing.read_on)
        library.waiting.interrupted_changed.connect(self._mark_waiting)
        library.opened.connect(self._show)
        sidebar.conversation_chosen.connect(library.open)
        sidebar.rename_requested.connect(library.rename)
        sidebar.delete_requested.connect(library.delete)
        sidebar.search_left.connect(self.page.composer.editor.setFocus)
        self.page.models.picker.connect_requested.connect(self.show_welcome)
        self.page.models.picker.model_file_requested.connect(self.model_file_requested)

    def show_conversation_page(self) -> None:
        """Show the conversation if another page or the sidebar hides it."""
        if self._welcome is not None:
            self._welcome.cancel_pending()
        if self._library.current is not None:
            self.banners.show_conversation(self._library.current.id)
        self.window_layout.show_page(self.frame)

    def _show(self, conversation: "OpenConversation") -> None:
        self.page.show_conversation(conversation)
        self.sidebar.set_current(conversation.id)
        self.show_conversation_page()
        conversation.record_changed.connect(self._show_title)
        self._show_title()

    def _mark_waiting(self, conversation_id: str, waits: bool) -> None:  # noqa: FBT001  # a slot
        self.sidebar.set_badge(conversation_id, "attention" if waits else "")

    def _early_key(self, keys: str, command: Callable[[], object]) -> QShortcut:
        shortcut = QShortcut(self)
        set_by_name(shortcut, key=keys)
        shortcut.activated.connect(command)
        return shortcut

    def _defer_shortcut(self, keys: str) -> None:
        self.deferred_shortcut = keys

    def _new(self) -> None:
        if self._has_content:
            self._library.new()
        else:
            self.new_was_requested = True

    def _show_title(self) -> None:
        current = self._library.current
        if current is not None:
            title = title_or_new("" if current.is_empty else current.title)
            if current.is_in_memory:
                title = self.tr("{0} (not stored)").format(title)
            self.setWindowTitle(f"{title} — Desktop Agent")

    def _loses_work(self) -> bool:
        return any(not session.can_wait_for_next_process() for session in self._library.working_sessions)

    def _ask_to_close(self) -> None:
        if self._question is not None:
            return
        # Late: seldom asked.
        from ui.shell.storage import ClosingQuestion

        box = self._question = ClosingQuestion(self.themes, self, loses_work=self._loses_work())
        box.answered.connect(self._on_answered)
        box.open()
        self._work_timer.start()

    def _close_if_idle(self) -> None:
        # Close if the reason to ask is gone, as the person wanted to; ask again if there is another reason.
        if self._question is not None and not self.asks_before_closing:
            self._question.answer_with("close")
        elif self._question is not None and self._question.loses_work != self._loses_work():
            self._question.answer_with("")
            self._ask_to_close()

    def _on_answered(self, answer: str) -> None:
        self._question = None
        self._work_timer.stop()
        if answer:
            self.close_requested.emit()
