"""Badges in the list and desktop notifications about conversations that are not in view.

Calls that wait and requests of MCP servers have notifications of their own: see `call_notifications` and
`request_notifications`.
"""

from collections.abc import Callable

from PySide6.QtCore import QObject

from ui.bridge.activity import Activity
from ui.bridge.conversation import OpenConversation
from ui.bridge.desktop.notifications import DesktopNotifications, is_active, on_application_state
from ui.bridge.desktop.window_state import WindowStateFile
from ui.bridge.library import ConversationLibrary
from ui.bridge.settings import Settings
from ui.shell.window import MainWindow
from ui.sidebar.conversation_model import Badge
from ui.style.text import one_line, title_or_new, truncate

MAX_TITLE_LENGTH = 80

_UNREAD = "window/unread"
_MAX_UNREAD = 200

_BADGES: dict[Activity, Badge] = {
    "working": "working",
    "waits": "attention",
    "asks": "attention",
    "done": "unread",
    "failed": "unread",
}


class ActivityNotifier(QObject):
    """Marks conversations that work, wait or are unread; sends notifications while the window is not active."""

    def __init__(
        self,
        window: MainWindow,
        library: ConversationLibrary,
        notifications: DesktopNotifications,
        settings: Settings,
        state_file: WindowStateFile,
        show: Callable[[str], object],
    ) -> None:
        """`show` raises a window with a conversation."""
        super().__init__(window)
        self._window = window
        self._library = library
        self._notifications = notifications
        self._settings = settings
        self._state_file = state_file
        self._show = show
        self._shown: set[str] = set()
        """The conversations that had a notification of their own."""
        # In the order in which they became unread.
        self._unread = dict.fromkeys(state_file.text(_UNREAD).split())
        for conversation_id in self._unread:
            window.sidebar.set_badge(conversation_id, "unread")
        library.activity.changed.connect(self._on_activity)
        library.opened.connect(self._on_opened)
        library.activity.removed.connect(self._mark_read)
        notifications.activated.connect(self._on_activated)
        on_application_state(self._on_application_state)

    def _on_activity(self, conversation_id: str, title: str, activity: Activity) -> None:
        is_shown = self._library.current is not None and self._library.current.id == conversation_id
        badge = _BADGES.get(activity, "")
        is_unread = badge == "unread" and not (is_shown and is_active())
        is_unstored = conversation_id in self._library.unstored
        if is_unstored:
            # The desktop keeps what it has shown.
            title = self.tr("A conversation that is not stored")
        else:
            self._window.sidebar.set_badge(conversation_id, "" if badge == "unread" and not is_unread else badge)
            self._save_unread(conversation_id, is_unread)
        text = self._words(activity)
        if is_active() or not (text or activity == "waits"):
            return
        self._window.windowHandle().alert(0)
        if text and self._settings.preferences.chat.notifications:
            self._shown.add(conversation_id)
            self._notifications.show(conversation_id, title_or_new(shorten_title(title)), text)

    def _words(self, activity: Activity) -> str:
        match activity:
            case "done":
                return self.tr("The answer is done.")
            case "failed":
                return self.tr("The answer could not be finished.")
            case "asks":
                return self.tr("A question waits for your answer.")
            case _:
                return ""

    def _on_opened(self, conversation: OpenConversation) -> None:
        self._mark_read(conversation.id)

    def _on_application_state(self) -> None:
        if is_active() and self._library.current is not None:
            self._mark_read(self._library.current.id)

    def _mark_read(self, conversation_id: str) -> None:
        self._window.sidebar.mark_read(conversation_id)
        self._notifications.withdraw(conversation_id)
        self._save_unread(conversation_id, False)

    def _save_unread(self, conversation_id: str, is_unread: bool) -> None:  # noqa: FBT001  private
        if is_unread == (conversation_id in self._unread):
            return
        if is_unread:
            self._unread[conversation_id] = None
        else:
            del self._unread[conversation_id]
        self._state_file.save({_UNREAD: " ".join(list(self._unread)[-_MAX_UNREAD:])})

    def _on_activated(self, conversation_id: str, _action: str) -> None:
        if conversation_id in self._shown:
            self._shown.discard(conversation_id)
            self._show(conversation_id)


def shorten_title(title: str) -> str:
    """Return the title of a conversation, which a model may have written, on one line."""
    return truncate(one_line(title, MAX_TITLE_LENGTH + 1), MAX_TITLE_LENGTH)
