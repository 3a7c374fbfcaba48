"""The search in all conversations for the screens."""

import asyncio
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from desktop_agent.types.search import SearchQuery
from ui.bridge.event_loop import BackgroundTasks, in_background

if TYPE_CHECKING:
    from desktop_agent.storage.search.conversation_search import ConversationSearch

FIRST_SECONDS = 0.025
"""Seconds after which hits in the newer messages are shown, before the older ones are searched."""
_INDEXING_MS = 700
"""Milliseconds until the query is asked again while the index is not complete."""


class SearchAsYouType(QObject):
    """Runs the newest query. `found` carries it with its SearchResults, again while the index grows."""

    found = Signal(object, object)
    choices_read = Signal(object)
    """SearchChoices."""

    def __init__(
        self,
        search: "ConversationSearch",
        tasks: BackgroundTasks,
        parent: QObject | None = None,
        *,
        retry_seconds: float = 0.0,
    ) -> None:
        """`retry_seconds`: how long it waits while another instance searches. Two must not wait equally long."""
        super().__init__(parent)
        self._retry_seconds = retry_seconds
        self._search = search
        self._tasks = tasks
        self._query: SearchQuery | None = None
        self._timer = QTimer(self, singleShot=True, interval=_INDEXING_MS)
        self._timer.timeout.connect(self._ask)

    def search(self, query: SearchQuery) -> None:
        """Run this query in place of the previous one, whose late results are dropped."""
        self._query = query
        self._ask()

    def stop(self) -> None:
        """Drop later results."""
        self._query = None
        self._timer.stop()

    @in_background
    async def read_choices(self) -> None:
        """Read what a search can be narrowed to; `choices_read` answers."""
        self.choices_read.emit(await self._search.choices())

    def _ask(self) -> None:
        if self._query is not None:
            self._timer.stop()
            self._tasks.start(self._find(self._query))

    async def _find(self, query: SearchQuery) -> None:
        results, seconds = None, FIRST_SECONDS
        # None: another instance searched meanwhile.
        while (results is None or results.is_cut) and query is self._query:
            results = await self._search.find(query, seconds=seconds)
            if results is None:
                await asyncio.sleep(self._retry_seconds)
            elif results.is_cut:
                seconds = None
                if results.conversations and query is self._query:
                    self.found.emit(query, results)
        if results is None or query is not self._query:
            return
        self.found.emit(query, results)
        # An obstacle does not go away while the person waits: the next letter asks again.
        if not results.is_complete and results.obstacle is None and query is self._query:
            self._timer.start()
