"""Brings what MCP servers ask to the person, and the answers back."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.mcp.asking import ElicitationAnswer
from ui.bridge.conversation import OpenConversation
from ui.bridge.mcp.asking import McpRequests
from ui.bridge.opening import AddressOpener
from ui.look.theme import ThemeSource

if TYPE_CHECKING:
    from ui.approval.asking.asking_dialog import ServerRequestDialog


class ElicitationPresenter(QObject):
    """One dialog for all that is asked, whichever conversation is open: a server may work for several."""

    def __init__(
        self,
        themes: ThemeSource,
        asking: McpRequests,
        conversation: Callable[[], OpenConversation | None],
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._themes = themes
        self._requests = asking
        self._conversation = conversation
        self._window = window
        self._created_dialog: ServerRequestDialog | None = None
        self._opener = AddressOpener(self)
        self._opener.failed.connect(self._show_not_opened)
        asking.changed.connect(self._refresh)

    def _refresh(self) -> None:
        waiting = self._requests.waiting
        if not waiting and self._created_dialog is None:
            return
        dialog = self._dialog
        dialog.set_requests(waiting)
        dialog.set_can_stop(self._is_working)
        # What cannot be shown was declined meanwhile.
        if self._requests.waiting and not dialog.isVisible():
            dialog.open()
            if self._window.isVisible() and not self._window.isActiveWindow():
                self._window.windowHandle().alert(0)

    @property
    def _is_working(self) -> bool:
        conversation = self._conversation()
        return conversation is not None and conversation.working

    @property
    def _dialog(self) -> "ServerRequestDialog":
        """Made when a server first asks: most starts of the program never show it."""
        if self._created_dialog is None:
            from ui.approval.asking.asking_dialog import ServerRequestDialog

            self._created_dialog = ServerRequestDialog(self._themes, self._window)
            self._created_dialog.answered.connect(self._answer)
            self._created_dialog.open_page_requested.connect(self._open_page)
            self._created_dialog.stop_requested.connect(self._stop)
        return self._created_dialog

    @Slot(str, object)
    def _answer(self, asked_id: str, answer: object) -> None:
        if isinstance(answer, ElicitationAnswer):
            self._requests.answer(asked_id, answer)
        else:
            self._requests.approve(asked_id, agreed=answer is True)

    @Slot(str)
    def _open_page(self, address: str) -> None:
        # The page that was read, by the same reading that found it safe.
        self._opener.open_page(address)

    @Slot(object)
    def _show_not_opened(self, sentence: Sentence) -> None:
        if self._created_dialog is not None:
            self._created_dialog.show_open_error(sentence)

    def _stop(self) -> None:
        conversation = self._conversation()
        if conversation is not None:
            conversation.stop()
