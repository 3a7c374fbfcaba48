"""Conversations that nobody looks at any more: closed when at rest, so that other processes may have them."""

import asyncio
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import TYPE_CHECKING

from desktop_agent.vocabulary.errors import StorageFailed

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session

# Seconds that a conversation stays open after it was left: people go back and forth, and what was sent a moment before
# may still be on its way to it.
LINGER_SECONDS = 3.0


class IdleSessions:
    """Sessions that were left. `busy` has those of which something is under way or unwritten."""

    def __init__(self, busy: "AbstractSet[Session]") -> None:
        self._busy = busy
        self._tasks: dict[Session, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def close_when_idle(self, session: "Session") -> None:
        """Close it when it has been at rest for a moment."""
        self.keep_open(session)
        self._tasks[session] = asyncio.create_task(self._close_idle(session))

    def keep_open(self, session: "Session | None") -> None:
        """Somebody wants it again."""
        task = None if session is None else self._tasks.pop(session, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Leave all as they are, but for those that are being closed."""
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
        # From here on nobody gets it any more: who asks for it waits until it is closed.
        task = self._tasks.pop(session)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        await session.close()
