"""The events of one answer: one by one, as the interface of providers requires, or in batches as they arrive."""

from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from desktop_agent.types.provider_events import ProviderEvent


class EventBatches(AsyncGenerator[ProviderEvent, None]):
    """Yields single events out of batches; `take_ready` returns the rest of a batch.

    `gives_way`: other tasks of the loop run before each batch, even if no batch has to be waited for.
    """

    def __init__(self, batches: AsyncGenerator[Sequence[ProviderEvent], None], *, gives_way: bool = False) -> None:
        self.gives_way = gives_way
        self._batches = batches
        self._ready = deque[ProviderEvent]()

    async def __anext__(self) -> ProviderEvent:
        while not self._ready:
            self._ready.extend(await anext(self._batches))
        return self._ready.popleft()

    async def asend(self, value: None) -> ProviderEvent:  # noqa: ARG002
        """Return the next event; nothing can be sent."""
        return await anext(self)

    async def athrow(self, typ: Any, val: Any = None, tb: Any = None) -> ProviderEvent:
        """Raise an error where the stream waits; unread events are dropped."""
        self._ready.clear()
        self._ready.extend(await self._batches.athrow(typ, val, tb))
        return await anext(self)

    async def aclose(self) -> None:
        """Close the connection; unread events are dropped."""
        self._ready.clear()
        await self._batches.aclose()

    def take_ready(self) -> list[ProviderEvent]:
        """Return the unread events that arrived together with the last one."""
        ready = list(self._ready)
        self._ready.clear()
        return ready


def ready_events(events: object) -> Callable[[], list[ProviderEvent]]:
    """Return a function for the events that a stream has received already; other makers' streams have none."""
    return events.take_ready if isinstance(events, EventBatches) else list
