"""The search of the sidebar: what is typed goes to the library, and what is chosen to the page."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal

from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.search import SearchHit
from ui.bridge.conversation import OpenConversation
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.library import ConversationLibrary
from ui.bridge.side_conversation import ConversationSource
from ui.shell.banners import Banner
from ui.shell.find_and_caret import EXPLANATION_MS
from ui.sidebar.conversation_list import ConversationList

if TYPE_CHECKING:
    from ui.shell.conversation_page import ConversationPage


class MessageOpener(QObject):
    """Opens conversations at one of their messages, in whatever branch that is.

    `arrived` carries the conversation, which is shown by then, and the index of an item in its transcript; `refused`
    carries a conversation and a Sentence that says why the message cannot be shown in it.
    """

    arrived = Signal(OpenConversation, int)
    refused = Signal(OpenConversation, object)

    def __init__(self, library: ConversationSource, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._library = library
        self._tasks = tasks
        self._pending = ("", "")
        """The conversation and the message to go to once that is open."""
        self._chosen = ""
        """The message that was chosen last."""
        self.words = ""
        """The words to find in it."""
        self._lock = asyncio.Lock()
        library.opened.connect(self._on_opened)

    def open(self, conversation_id: str, message_id: str, words: str = "") -> None:
        """Go to this message, unless another conversation is chosen while this one loads."""
        self._pending, self._chosen, self.words = (conversation_id, message_id), message_id, words
        self._library.open(conversation_id)
        current = self._library.current
        if current is not None and current.id == conversation_id:
            self._go_to_pending(current, is_just_read=False)

    def _on_opened(self, conversation: OpenConversation) -> None:
        self._go_to_pending(conversation, is_just_read=True)

    def _go_to_pending(self, conversation: OpenConversation, *, is_just_read: bool) -> None:
        (conversation_id, message_id), self._pending = self._pending, ("", "")
        if conversation_id == conversation.id:
            self._tasks.start(self._go_to_chosen(conversation, message_id, is_just_read=is_just_read))

    async def _go_to_chosen(self, conversation: OpenConversation, message_id: str, *, is_just_read: bool) -> None:
        # One after the other: the previous call may bring another branch into view.
        async with self._lock:
            if message_id == self._chosen:
                await self._go_to(conversation, message_id, is_just_read=is_just_read)

    async def _go_to(self, conversation: OpenConversation, message_id: str, *, is_just_read: bool) -> None:
        if not await conversation.history.load_until(message_id):
            if conversation.is_found:
                await self._go_to_found(conversation, message_id, is_just_read=is_just_read)
                return
            words = ""
            if conversation.held_by is not None:
                words = (
                    "The message is in another version of this conversation. It can be shown when the other "
                    "program has ended."
                )
            elif conversation.working:
                words = (
                    "The message is in another version of this conversation. It can be shown when the answer has ended."
                )
            if words:
                self.refused.emit(conversation, Sentence(words))
                return
            await conversation.show_branch_of(message_id)
        self._arrive(conversation, message_id)

    async def _go_to_found(self, conversation: OpenConversation, message_id: str, *, is_just_read: bool) -> None:
        try:
            await conversation.show_branch_of(message_id)
        except WrongUse:
            if not is_just_read and self._library.current is conversation:
                # Its program has written more since it was opened.
                self._pending = (conversation.id, message_id)
                self._library.open(conversation.id, anew=True)
            else:
                words = Sentence("The message is not in this conversation any more. Search again later.")
                self.refused.emit(conversation, words)
            return
        self._arrive(conversation, message_id)

    def _arrive(self, conversation: OpenConversation, message_id: str) -> None:
        is_still_chosen = self._library.current is conversation and message_id == self._chosen
        if is_still_chosen and (index := conversation.index_of_message(message_id)) is not None:
            self.arrived.emit(conversation, index)


class SearchPresenter(QObject):
    """Connects the sidebar with the search; `show_page` shows the conversation if something else hides it."""

    def __init__(
        self,
        sidebar: ConversationList,
        library: ConversationLibrary,
        page: "ConversationPage",
        show_page: Callable[[], object],
    ) -> None:
        super().__init__(sidebar)
        self._library = library
        self._page = page
        self._show_page = show_page
        sidebar.search_requested.connect(library.search.search)
        sidebar.search_ended.connect(library.search.stop)
        sidebar.conversation_chosen.connect(self._on_conversation_chosen)
        sidebar.hit_chosen.connect(self.open)
        sidebar.filter_choices_wanted.connect(library.search.read_choices)
        library.search.choices_read.connect(sidebar.set_filter_choices)
        library.search.found.connect(library.found.note_results)
        library.found.shown_changed.connect(sidebar.repeat_search)
        library.search.found.connect(sidebar.show_results)
        page.messages.arrived.connect(self._on_arrived)
        page.messages.refused.connect(self._on_refused)
        sidebar.repeat_search()

    def open(self, conversation_id: str, hit: SearchHit, words: str) -> None:
        """Open a conversation at a hit, with these words marked."""
        self._page.messages.open(conversation_id, hit.message_id, words)

    def _on_conversation_chosen(self, conversation_id: str) -> None:
        """Show the open conversation if another page or the sidebar hides it, and give it the focus."""
        if self._library.current is not None and self._library.current.id == conversation_id:
            self._show_page()
            if self._page.composer.isHidden():
                self._page.transcript.setFocus(Qt.FocusReason.OtherFocusReason)
            else:
                self._page.composer.editor.setFocus(Qt.FocusReason.OtherFocusReason)

    def _on_arrived(self, _conversation: OpenConversation, row: int) -> None:
        self._show_page()
        self._page.navigation.show_message(row, self._page.messages.words)

    def _on_refused(self, conversation: OpenConversation, sentence: Sentence) -> None:
        self._show_page()
        banner = Banner("search", sentence, level="notice", duration_ms=EXPLANATION_MS, conversation_id=conversation.id)
        self._page.banners.show_banner(banner)
