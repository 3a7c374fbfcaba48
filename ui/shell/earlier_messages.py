"""Messages that are loaded when they are needed: the earlier ones of a transcript, and those that are gone to."""

import asyncio
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from desktop_agent.types.errors import AgentError, Sentence, WrongUse
from ui.bridge.conversation import OpenConversation
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.side_conversation import ConversationSource
from ui.transcript.view import TranscriptView


class EarlierMessagesLoader(QObject):
    """Loads earlier messages: near the start of the view, for Find, and for callers that need the whole conversation.

    One task loads them, part by part, for whichever conversation is shown.
    """

    def __init__(self, transcript: TranscriptView, tasks: BackgroundTasks, parent: QObject) -> None:
        super().__init__(parent)
        self._transcript = transcript
        self._tasks = tasks
        self._conversation: OpenConversation | None = None
        self._is_loading = False
        self._when_loaded: list[Callable[[], None]] = []
        """Called once all messages are loaded."""
        transcript.scroller.start_neared.connect(self._load)
        transcript.finder.status_changed.connect(self._load)
        transcript.set_whole_loader(self._when_whole, self._is_whole)

    def show(self, conversation: OpenConversation) -> None:
        """Load messages of this conversation."""
        self._conversation = conversation
        conversation.branches.changed.connect(self._on_branch_changed)
        self._when_loaded.clear()
        if conversation.history.unloaded_count:
            self._tasks.start(conversation.count_usage())

    def _on_branch_changed(self) -> None:
        conversation = self._conversation
        if conversation is None:
            return
        conversation.history.spending.count_branch()
        conversation.usage_changed.emit()
        if conversation.history.spending.lacks_earlier:
            self._tasks.start(conversation.count_usage())

    def _is_whole(self) -> bool:
        return self._conversation is None or not self._conversation.history.unloaded_count

    def _when_whole(self, callback: Callable[[], None]) -> None:
        """Call `callback` when all messages are loaded, unless another conversation is shown before."""
        if self._is_whole():
            callback()
        else:
            self._when_loaded.append(callback)
            self._load()

    def _load(self) -> None:
        if not self._is_loading and self._needs_more():
            self._is_loading = True
            self._tasks.start(self._load_while_needed())

    def _needs_more(self) -> bool:
        if self._is_whole():
            return False
        return self._needs_whole or self._transcript.scroller.is_near_start

    @property
    def _needs_whole(self) -> bool:
        return bool(self._when_loaded) or self._transcript.finder.is_on

    async def _load_while_needed(self) -> None:
        try:
            while (conversation := self._conversation) is not None and self._needs_more():
                await conversation.history.load_more(whole=self._needs_whole)
        except AgentError:
            self._when_loaded.clear()
            raise
        finally:
            self._is_loading = False
        callbacks, self._when_loaded = self._when_loaded, []
        for callback in callbacks:
            callback()


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
