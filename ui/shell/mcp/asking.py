"""Brings what MCP servers ask to the person, and the answers back."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QWidget

from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.mcp.asking import ElicitationAnswer
from ui.bridge.conversation import OpenConversation
from ui.bridge.mcp.asking import Asking
from ui.bridge.opening import AddressOpener
from ui.look.theme import ThemeSource

if TYPE_CHECKING:
    from ui.approval.asking.asking_dialog import AskingDialog


class AskingPresenter(QObject):
    """One dialog for all that is asked, whichever conversation is open: a server may work for several."""

    def __init__(
        self,
        themes: ThemeSource,
        asking: Asking,
        conversation: Callable[[], OpenConversation | None],
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._themes = themes
        self._asking = asking
        self._conversation = conversation
        self._window = window
        self._made: AskingDialog | None = None
        self._opener = AddressOpener(self)
        self._opener.failed.connect(self._show_unopened)
        asking.changed.connect(self._refresh)

    def _refresh(self) -> None:
        waiting = self._asking.waiting
        if not waiting and self._made is None:
            return
        dialog = self._dialog
        dialog.set_asked(waiting)
        dialog.set_can_stop(self._is_working)
        # What cannot be shown was declined meanwhile.
        if self._asking.waiting and not dialog.isVisible():
            dialog.open()
            if self._window.isVisible() and not self._window.isActiveWindow():
                self._window.windowHandle().alert(0)

    @property
    def _is_working(self) -> bool:
        conversation = self._conversation()
        return conversation is not None and conversation.working

    @property
    def _dialog(self) -> "AskingDialog":
        """Made when a server first asks: most starts of the program never show it."""
        if self._made is None:
            from ui.approval.asking.asking_dialog import AskingDialog

            self._made = AskingDialog(self._themes, self._window)
            self._made.answered.connect(self._answer)
            self._made.page_wanted.connect(self._open_page)
            self._made.stop_requested.connect(self._stop)
        return self._made

    @Slot(str, object)
    def _answer(self, asked_id: str, answer: object) -> None:
        if isinstance(answer, ElicitationAnswer):
            self._asking.answer(asked_id, answer)
        else:
            self._asking.approve(asked_id, agreed=answer is True)

    @Slot(str)
    def _open_page(self, address: str) -> None:
        # The page that was read, by the same reading that found it safe.
        self._opener.open_page(address)

    @Slot(object)
    def _show_unopened(self, sentence: Sentence) -> None:
        if self._made is not None:
            self._made.show_unopened(sentence)

    def _stop(self) -> None:
        conversation = self._conversation()
        if conversation is not None:
            conversation.stop()
