"""Closing of open sessions: nobody uses one any more, or another database file replaced theirs."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import TYPE_CHECKING

from desktop_agent.engine.permission_records import RuleBook
from desktop_agent.processes.worker_threads import wait_for_all
from desktop_agent.storage.store import Store
from desktop_agent.storage.write_behind import OVERTAKEN
from desktop_agent.types.errors import StorageFailed

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session


# Seconds that a conversation stays open after it was left: people go back and forth, and what was sent a moment before
# may still be on its way to it.
LINGER_SECONDS = 3.0


async def close_and_flush(session: "Session") -> None:
    """Close the session, and return when what it had not written is on the disk, unless somebody else writes there.

    Raises StorageFailed.
    """
    await session.close()
    with suppress(*OVERTAKEN):
        await session.flush()


async def close_unless_refused(session: "Session", delete: Callable[[], Awaitable[None]]) -> bool:
    """Stop what works, and close the session when all is written and `delete` is done; return whether it was called.

    Where the disk refuses either, the session stays open. `delete` is not called where nothing is stored, or somebody
    else writes there. Raises StorageFailed.
    """
    is_deleted = False

    async def write_and_delete() -> None:
        nonlocal is_deleted
        if not session.is_new:
            with suppress(*OVERTAKEN):
                await session.flush()
                await delete()
                is_deleted = True

    await session.close(None if session.is_closed else write_and_delete)
    return is_deleted


class IdleSessions:
    """Sessions that were released. `busy` has those with something active or unwritten."""

    def __init__(self, busy: "AbstractSet[Session]") -> None:
        self._busy = busy
        self._tasks: dict[Session, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def close_when_idle(self, session: "Session") -> None:
        """Close the session when it has been idle for a moment; not after `close`, when the engine closes it."""
        self.keep_open(session)
        if not self._is_closed:
            self._tasks[session] = asyncio.create_task(self._close_idle(session))

    def keep_open(self, session: "Session | None") -> None:
        """Cancel the closing: somebody opened the session again."""
        task = None if session is None else self._tasks.pop(session, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Stop waiting, and finish the closings that have begun."""
        self._is_closed = True
        tasks = tuple(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *self._closing, return_exceptions=True)

    async def _close_idle(self, session: "Session") -> None:
        await asyncio.sleep(LINGER_SECONDS)
        while session in self._busy:
            await session.wait_idle()
            # What the disk refuses is tried again.
            with suppress(StorageFailed):
                await session.flush()
            await asyncio.sleep(LINGER_SECONDS)
        # From here on nobody gets the session any more: a new opening waits until it is closed.
        task = self._tasks.pop(session)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        await session.close()


class DatabaseReplacement:
    """Closes the conversations of a replaced database file, and loads the rules of the new one.

    `get_sessions` returns those that are open. What they had not written is refused by the store, and stays in
    memory.
    """

    def __init__(self, store: Store, rule_book: RuleBook, get_sessions: "Callable[[], Iterable[Session]]") -> None:
        self._store = store
        self._rule_book = rule_book
        self._get_sessions = get_sessions
        self._tasks: set[asyncio.Task[None]] = set()
        store.on_replaced(lambda _: self._start())

    async def close(self) -> None:
        """Return when the closing that has begun is done."""
        await wait_for_all(*self._tasks)

    def _start(self) -> None:
        # Those of now: what is opened later is read from the new file. A new one has written nothing yet.
        sessions = [session for session in self._get_sessions() if not (session.is_new or session.is_in_memory)]
        task = asyncio.create_task(self._switch(sessions))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _switch(self, sessions: "list[Session]") -> None:
        closing = asyncio.ensure_future(wait_for_all(*(session.close() for session in sessions)))
        try:
            self._rule_book.replace_all((await self._store.rules.load()).rules)
        except StorageFailed:
            # The old rules stay in force; the disk watch reports the trouble.
            pass
        finally:
            await closing
