"""Show waiting tool calls to the person for approval, and pass the decisions on."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QDialog, QWidget

from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.errors import AgentError
from desktop_agent.types.tool_calls import Decision
from ui.bridge.conversation import OpenConversation
from ui.bridge.desktop.notifications import is_active, on_application_state
from ui.bridge.event_loop import BackgroundTasks
from ui.style.pickers import ModePicker
from ui.style.text import translate_sentence
from ui.style.theme import ThemeSource

if TYPE_CHECKING:
    from PySide6.QtGui import QAction

    from ui.approval.approval_dialog import ApprovalDialog


class DialogOpening(QObject):
    """Opens a dialog by itself for new items, calls or requests of MCP servers, as soon as the program is in front.

    Before that, a modal window would take the focus from another program. An item that the person chose is shown at
    once.
    """

    def __init__(self, refresh: Callable[[], object], parent: QObject) -> None:
        """`refresh` is called when the program may have come to the front."""
        super().__init__(parent)
        self._seen: set[str] = set()
        self.wanted = ""
        """The id of the item that the person chose; it is shown as soon as it waits."""
        on_application_state(refresh)

    def update(self, dialog: QDialog, waiting: AbstractSet[str], show: Callable[[str], object]) -> None:
        """Open the dialog if it may open now; `show` turns it to the item that the person chose."""
        is_chosen = self.wanted in waiting
        if is_chosen:
            show(self.wanted)
            self.wanted = ""
        elif not is_active():
            return
        if (is_chosen or waiting - self._seen) and not dialog.isVisible():
            dialog.open()
        self._seen |= waiting


class ApprovalPresenter(QObject):
    """One dialog for the waiting calls of the conversation of a page, over its window.

    Closing it means "later": the cards in the transcript open it again, and the calls keep waiting.
    """

    def __init__(self, themes: ThemeSource, modes: ModePicker, tasks: BackgroundTasks, page: QWidget) -> None:
        super().__init__(page)
        self._tasks = tasks
        self._conversation: OpenConversation | None = None
        self._themes = themes
        self._modes = modes
        self._page = page
        self._created_dialog: ApprovalDialog | None = None
        self._opening = DialogOpening(self.refresh, self)
        self.settings_action: QAction | None = None
        """Opens the settings from the dialog, too, where the keys of its window do nothing."""

    def watch(self, conversation: OpenConversation) -> None:
        """Present the calls of this conversation from now on."""
        self._conversation = conversation
        conversation.approvals_changed.connect(self.refresh)
        conversation.session_controls.modes_changed.connect(self._show_modes)
        self.refresh()

    def refresh(self) -> None:
        """Show what waits now."""
        if self._conversation is None:
            return
        waiting = self._conversation.approvals.waiting()
        if not waiting and self._created_dialog is None:
            return
        self._dialog.set_approvals(waiting)
        self._show_modes()
        self._opening.update(self._dialog, {call.approval_id for call in waiting}, self._dialog.show_call)

    def show(self, approval_id: str) -> None:
        """Show the dialog for a call that the person chose at its card, or for another one if it no longer waits."""
        self._opening.wanted = ""
        self.refresh()
        self._dialog.show_call(approval_id)
        if self._dialog.current is not None:
            self._dialog.open()

    def show_call(self, approval_id: str) -> None:
        """Show the dialog for this call, now or as soon as its conversation is open and asks again."""
        self._opening.wanted = approval_id
        self.refresh()

    @property
    def _dialog(self) -> "ApprovalDialog":
        if self._created_dialog is None:
            from ui.approval.approval_dialog import ApprovalDialog

            self._created_dialog = ApprovalDialog(self._themes, self._page.window())
            self._created_dialog.decided.connect(self._decide)
            self._created_dialog.preview_requested.connect(self._preview)
            self._created_dialog.trusted.connect(self._trust)
            self._created_dialog.mode.mode_chosen.connect(self._modes.mode_chosen)
            self._created_dialog.mode.request_refused.connect(self._modes.request_refused)
            if self.settings_action is not None:
                self._created_dialog.addAction(self.settings_action)
        return self._created_dialog

    def _show_modes(self) -> None:
        if self._created_dialog is not None and self._conversation is not None:
            session_controls = self._conversation.session_controls
            self._created_dialog.mode.show_modes(
                session_controls.modes, session_controls.mode, session_controls.requested_mode
            )

    def _decide(self, approval_id: str, decision: Decision) -> None:
        if self._conversation is not None:
            try:
                self._conversation.approvals.answer(approval_id, decision)
            except AgentError as error:
                self._dialog.show_rejection(approval_id, translate_sentence(error.sentence))
            self.refresh()

    def _trust(self) -> None:
        if self._conversation is not None:
            self._conversation.approvals.trust()
            self.refresh()

    def _preview(self, approval_id: str, arguments: JsonObject) -> None:
        if self._conversation is not None:
            self._tasks.start(self._fetch_preview(self._conversation, approval_id, arguments))

    async def _fetch_preview(self, conversation: OpenConversation, approval_id: str, arguments: JsonObject) -> None:
        preview = await conversation.approvals.preview(approval_id, arguments)
        self._dialog.set_preview(approval_id, arguments, preview)
