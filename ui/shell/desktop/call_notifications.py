"""Notifications of waiting calls, each with the decisions that are safe outside of the window."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from desktop_agent.types.errors import AgentError
from desktop_agent.types.tool_calls import AllowOnce, Decision, Deny
from ui.bridge.desktop.notifications import SHOW, DesktopNotifications, is_active, on_application_state
from ui.bridge.desktop.screen_lock import is_screen_unlocked
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.library import ConversationLibrary
from ui.bridge.settings import Settings
from ui.bridge.waiting_calls import WaitingDetails
from ui.shell.desktop.call_words import describe_call, may_allow_unseen, name_call
from ui.shell.desktop.notifications import shorten_title
from ui.shell.desktop.waiting_notifications import WaitingNotifications
from ui.style.text import one_line, title_or_new

if TYPE_CHECKING:
    from ui.bridge.conversation import OpenConversation

DENY, ALLOW = "deny", "allow"
HAND_SECONDS = 1.0
"""An allowance that comes sooner after its notification was meant for an earlier one at the same place."""
_MAX_AGENT = 60


class CallNotifier(QObject):
    """Shows a notification for each call that begins to wait while the window is not in front.

    An allowance is checked once more when it is chosen: content from outside may have come since, and the screen may be
    locked.
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
        self._tasks = tasks
        self._show_call = show_call
        self._notices = WaitingNotifications(notifications, settings, self._start_notifying, self)
        self._notices.activated.connect(self._on_activated)
        library.waiting.changed.connect(self._on_waiting)
        library.opened.connect(self._on_opened)
        on_application_state(self._on_application_state)

    def _on_waiting(self) -> None:
        self._notices.update(self._library.waiting.live_calls)

    def _start_notifying(self, approval_id: str) -> None:
        self._tasks.start(self._notify(approval_id))

    async def _notify(self, approval_id: str) -> None:
        details = self._library.waiting.details(approval_id)
        if details is None:
            return
        may_allow = may_allow_unseen(details) and await is_screen_unlocked()
        if self._library.waiting.details(approval_id) is None:
            # Decided while the desktop was asked.
            return
        actions = [(SHOW, self.tr("Show")), (DENY, self.tr("Deny"))]
        if may_allow:
            actions.append((ALLOW, self.tr("Allow once")))
        self._notices.show(approval_id, self._title(details), self._words(details, is_exact=may_allow), actions)

    def _title(self, details: WaitingDetails) -> str:
        if details.call.is_in_memory:
            return self.tr("A conversation that is not stored")
        return title_or_new(shorten_title(details.title))

    def _words(self, details: WaitingDetails, *, is_exact: bool) -> str:
        """Return the text. It holds the exact arguments only if the call may be allowed from the notification."""
        call = details.call
        if call.is_in_memory:
            # The desktop keeps what it has shown.
            return self.tr("A call waits for your approval.")
        agent = one_line(" → ".join(call.agent_path), _MAX_AGENT)
        who = self.tr("The agent {0} asks for your approval:").format(agent) if agent else ""
        line = (describe_call(call) if is_exact else None) or name_call(call)
        return f"{who or self.tr('A call waits for your approval:')}\n{line}"

    def _on_activated(self, approval_id: str, action: str) -> None:
        if action == DENY:
            self._answer(approval_id, Deny())
        elif action == ALLOW:
            self._tasks.start(self._allow(approval_id, time.monotonic()))
        else:
            self._show(approval_id)

    async def _allow(self, approval_id: str, chosen_at: float) -> None:
        """Allow the call if this may still be offered; else update the notification."""
        is_unlocked = await is_screen_unlocked()
        details = self._library.waiting.details(approval_id)
        shown_at = self._notices.shown_since(approval_id)
        if details is None or shown_at is None:
            return
        if is_unlocked and may_allow_unseen(details) and chosen_at - shown_at >= HAND_SECONDS:
            self._answer(approval_id, AllowOnce())
        else:
            await self._notify(approval_id)

    def _answer(self, approval_id: str, decision: Decision) -> None:
        try:
            self._library.waiting.answer(approval_id, decision)
        except AgentError:
            # The call still waits; the window says why when it is decided there.
            self._show(approval_id)

    def _show(self, approval_id: str) -> None:
        self._notices.forget(approval_id)
        self._show_call(approval_id)

    def _on_opened(self, conversation: "OpenConversation") -> None:
        if is_active():
            # The person sees its approval dialog.
            self._notices.withdraw_group(conversation.id)

    def _on_application_state(self) -> None:
        if is_active() and self._library.current is not None:
            self._notices.withdraw_group(self._library.current.id)
