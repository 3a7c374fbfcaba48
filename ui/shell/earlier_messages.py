"""The earlier messages of a transcript, which are loaded when they are needed."""

from collections.abc import Callable

from PySide6.QtCore import QObject

from desktop_agent.types.errors import AgentError
from ui.bridge.conversation import OpenConversation
from ui.bridge.event_loop import BackgroundTasks
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
