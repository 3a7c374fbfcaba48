"""Notifications of waiting calls, each with the decisions that are safe outside of the window."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QGuiApplication

from desktop_agent.types.errors import AgentError
from desktop_agent.types.tool_calls import AllowOnce, Decision, Deny
from ui.bridge.desktop.notifications import SHOW, DesktopNotifications, is_active
from ui.bridge.desktop.screen_lock import is_screen_unlocked
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.library import ConversationLibrary
from ui.bridge.settings import Settings
from ui.bridge.waiting_calls import WaitingDetails
from ui.shell.desktop.call_words import describe_call, may_allow_unseen, name_call
from ui.shell.desktop.notifications import shorten_title
from ui.style.text import one_line, title_or_new

if TYPE_CHECKING:
    from ui.bridge.conversation import OpenConversation

DENY, ALLOW = "deny", "allow"
HAND_SECONDS = 1.0
"""An allowance that comes sooner after its notification was meant for what stood there before."""
_MOST_OF_CONVERSATION = 3
"""Notifications of calls of one conversation; further calls are shown as these are decided."""
_MAX_AGENT = 60


class CallNotifier(QObject):
    """Shows a notification for each call that begins to wait while the window is not in front.

    What is decided, here or elsewhere, has none any more. An allowance is checked once more when it is chosen: content
    from outside may have come since, and the screen may be locked.
    """

    def __init__(
        self,
        library: ConversationLibrary,
        notifications: DesktopNotifications,
        settings: Settings,
        tasks: BackgroundTasks,
        show_call: Callable[[str], object],
    ) -> None:
        """`show_call` raises the window and shows the approval dialog of a call."""
        super().__init__(library)
        self._library = library
        self._notifications = notifications
        self._settings = settings
        self._tasks = tasks
        self._show_call = show_call
        self._known: set[str] = set()
        self._queued: list[str] = []
        self._shown: dict[str, tuple[str, float]] = {}
        """The conversation of each call that has a notification, and since when."""
        library.waiting.changed.connect(self._on_waiting)
        library.opened.connect(self._on_opened)
        notifications.activated.connect(self._on_activated)
        app = QGuiApplication.instance()
        if isinstance(app, QGuiApplication):
            app.applicationStateChanged.connect(self._on_application_state)

    @Slot()
    def _on_waiting(self) -> None:
        waiting = self._library.waiting.live_calls
        for approval_id in self._shown.keys() - waiting.keys():
            self._withdraw(approval_id)
        new = [approval_id for approval_id in waiting if approval_id not in self._known]
        self._known = set(waiting)
        if new and not is_active() and self._settings.preferences.chat.notifications:
            self._queued += new
        self._queued = [approval_id for approval_id in self._queued if approval_id in waiting]
        for approval_id in tuple(self._queued):
            conversations = [conversation for conversation, _ in self._shown.values()]
            if conversations.count(waiting[approval_id]) < _MOST_OF_CONVERSATION:
                self._queued.remove(approval_id)
                self._shown[approval_id] = waiting[approval_id], time.monotonic()
                self._tasks.start(self._notify(approval_id))

    async def _notify(self, approval_id: str) -> None:
        details = self._library.waiting.details(approval_id)
        if details is None:
            return
        may_allow = may_allow_unseen(details) and await is_screen_unlocked()
        if approval_id not in self._shown or self._library.waiting.details(approval_id) is None:
            # Decided, or seen, while the desktop was asked.
            return
        actions = [(SHOW, self.tr("Show")), (DENY, self.tr("Deny"))]
        if may_allow:
            actions.append((ALLOW, self.tr("Allow once")))
        self._shown[approval_id] = details.conversation_id, time.monotonic()
        self._notifications.show(approval_id, self._title(details), self._words(details, is_exact=may_allow), actions)

    def _title(self, details: WaitingDetails) -> str:
        if details.call.is_in_memory:
            return self.tr("A conversation that is not stored")
        return title_or_new(shorten_title(details.title))

    def _words(self, details: WaitingDetails, *, is_exact: bool) -> str:
        """Return what is asked; every argument as it is only where the call may be allowed from the notification."""
        call = details.call
        if call.is_in_memory:
            # The desktop keeps what it has shown.
            return self.tr("A call waits for your approval.")
        agent = one_line(" → ".join(call.agent_path), _MAX_AGENT)
        who = self.tr("The agent {0} asks for your approval:").format(agent) if agent else ""
        line = describe_call(call).line if is_exact else name_call(call)
        return f"{who or self.tr('A call waits for your approval:')}\n{line}"

    @Slot(str, str)
    def _on_activated(self, approval_id: str, action: str) -> None:
        if approval_id not in self._shown:
            return
        if action == DENY:
            self._answer(approval_id, Deny())
        elif action == ALLOW:
            self._tasks.start(self._allow(approval_id, time.monotonic()))
        else:
            del self._shown[approval_id]
            self._show_call(approval_id)

    async def _allow(self, approval_id: str, chosen_at: float) -> None:
        """Allow the call, if all that was so when it was offered is so still; else show what holds now."""
        is_unlocked = await is_screen_unlocked()
        details = self._library.waiting.details(approval_id)
        if details is None or approval_id not in self._shown:
            return
        _, shown_at = self._shown[approval_id]
        if is_unlocked and may_allow_unseen(details) and chosen_at - shown_at >= HAND_SECONDS:
            self._answer(approval_id, AllowOnce())
        else:
            await self._notify(approval_id)

    def _answer(self, approval_id: str, decision: Decision) -> None:
        try:
            self._library.waiting.answer(approval_id, decision)
        except AgentError:
            # It waits on: the window says why where it is decided there.
            del self._shown[approval_id]
            self._show_call(approval_id)

    def _withdraw(self, approval_id: str) -> None:
        del self._shown[approval_id]
        self._notifications.withdraw(approval_id)

    @Slot(object)
    def _on_opened(self, conversation: "OpenConversation") -> None:
        if is_active():
            self._withdraw_conversation(conversation.id)

    def _on_application_state(self) -> None:
        if is_active() and self._library.current is not None:
            self._withdraw_conversation(self._library.current.id)

    def _withdraw_conversation(self, conversation_id: str) -> None:
        """The person sees its approval dialog."""
        for approval_id, (conversation, _) in tuple(self._shown.items()):
            if conversation == conversation_id:
                self._withdraw(approval_id)
        waiting = self._library.waiting.live_calls
        self._queued = [approval_id for approval_id in self._queued if waiting.get(approval_id) != conversation_id]
