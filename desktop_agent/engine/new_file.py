"""What is done when another file has taken the place of the open database: the program goes on with that one."""

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from desktop_agent.engine.rule_book import RuleBook
from desktop_agent.storage.ending import wait_for_all
from desktop_agent.storage.store import Store
from desktop_agent.vocabulary.errors import StorageFailed

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session


class DatabaseReplacement:
    """Closes the conversations that go on from the old file, and loads the rules of the new one.

    `get_sessions` returns those that are open. What they had not written is refused by the store, and stays with them.
    """

    def __init__(self, store: Store, rule_book: RuleBook, get_sessions: "Callable[[], Iterable[Session]]") -> None:
        self._store = store
        self._rule_book = rule_book
        self._get_sessions = get_sessions
        self._tasks: set[asyncio.Task[None]] = set()
        store.on_replaced(lambda _: self._start())

    async def close(self) -> None:
        """Return when what was begun is done."""
        await wait_for_all(*self._tasks)

    def _start(self) -> None:
        # Those of now: what is opened later is read from the new file. A new one has written nothing yet.
        sessions = [session for session in self._get_sessions() if not session.is_new]
        task = asyncio.create_task(self._switch(sessions))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _switch(self, sessions: "list[Session]") -> None:
        closing = asyncio.ensure_future(wait_for_all(*(session.close() for session in sessions)))
        try:
            self._rule_book.replace_all((await self._store.rules.load()).rules)
        except StorageFailed:
            # The old ones go on holding; the disk is told of by whoever watches it.
            pass
        finally:
            await closing
