"""Which specialists of one run may work at the same time."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(eq=False)
class _Ticket:
    changes: bool
    done: asyncio.Event = field(default_factory=asyncio.Event)


class SpecialistTurns:
    """First come, first served: those that only look work together, one that may change something works alone."""

    def __init__(self) -> None:
        self._tickets: list[_Ticket] = []

    @asynccontextmanager
    async def turn(self, *, changes: bool) -> AsyncGenerator[None]:
        """Wait for those before that must not overlap with this one, then work."""
        before = [ticket for ticket in self._tickets if changes or ticket.changes]
        mine = _Ticket(changes)
        self._tickets.append(mine)
        try:
            for ticket in before:
                await ticket.done.wait()
            yield
        finally:
            self._tickets.remove(mine)
            mine.done.set()
