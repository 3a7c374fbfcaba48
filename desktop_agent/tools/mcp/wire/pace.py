"""How fast a server is listened to: who talks without end is read slowly, who hears no answers is read no more."""

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_types import JSONRPCMessage

MAX_OPEN_REQUESTS = 100
"""Questions of a server that have no answer yet."""
_ANSWER_TIMEOUT = 10.0
"""Seconds that it gets to take an answer when there are so many."""
_MESSAGES_BEFORE_PAUSE = 50
_BUSY_SECONDS = 0.005
_MIN_PAUSE = 0.01
_MAX_PAUSE = 0.05


class ReadPacer:
    """Gives the loop a breath after many messages, or after some that took long."""

    def __init__(self) -> None:
        self._count = 0
        self._busy_seconds = 0.0
        self._started_at = time.perf_counter()

    def begin(self) -> None:
        """Something came: what follows is work."""
        self._started_at = time.perf_counter()

    async def pause_if_busy(self) -> None:
        """It was taken. Rests as long as the work took, within bounds: so half of the time stays for others."""
        self._count += 1
        self._busy_seconds += time.perf_counter() - self._started_at
        if self._count < _MESSAGES_BEFORE_PAUSE and self._busy_seconds < _BUSY_SECONDS:
            return
        rest = min(max(self._busy_seconds, _MIN_PAUSE), _MAX_PAUSE)
        self._count, self._busy_seconds = 0, 0.0
        await asyncio.sleep(rest)


class OpenRequests:
    """What a server asked that has no answer yet: each keeps a task and its answer in memory."""

    def __init__(self, most: int = MAX_OPEN_REQUESTS, patience: float = _ANSWER_TIMEOUT) -> None:
        self._max_open = most
        self._timeout = patience
        self._open: set[int | str] = set()
        self._room = asyncio.Event()

    def __len__(self) -> int:
        return len(self._open)

    async def admit(self, message: "JSONRPCMessage") -> bool:
        """Whether it may be heeded; not where it asks under an id that is open. Waits while there are too many.

        Raises TimeoutError where the server takes none of the answers.
        """
        from mcp_types import JSONRPCNotification, JSONRPCRequest

        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            # It is no more waited for, and may get no answer.
            self._close((message.params or {}).get("requestId"))
        if not isinstance(message, JSONRPCRequest):
            return True
        while len(self._open) >= self._max_open:
            self._room.clear()
            async with asyncio.timeout(self._timeout):
                await self._room.wait()
        if message.id in self._open:
            return False
        self._open.add(message.id)
        return True

    def mark_answered(self, message: "JSONRPCMessage") -> None:
        """It was written."""
        from mcp_types import JSONRPCError, JSONRPCResponse

        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._close(message.id)

    def _close(self, identity: object) -> None:
        if isinstance(identity, int | str):
            self._open.discard(identity)
            self._room.set()
