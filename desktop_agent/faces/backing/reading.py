"""Asks, and reads the answer block by block."""

import asyncio
from collections import deque

from desktop_agent.faces.backing.conversing import Conversing
from desktop_agent.faces.backing.finished_blocks import FinishedBlocks
from desktop_agent.faces.backing.run_events import RunEvents
from desktop_agent.vocabulary.blocks import Block
from desktop_agent.vocabulary.messages import Message


class BlockReader:
    """Reads the newest run. What broke its answer off is raised once, behind the last block."""

    def __init__(self, conversing: Conversing) -> None:
        self._conversing = conversing
        self._run: RunEvents | None = None
        self._finished = FinishedBlocks()
        self._ready = deque[Block]()
        self._has_raised = False

    async def ask(self, prompt: Message | None) -> None:
        """Return when the model begins to answer. Raises what keeps it from that; who is cancelled stops the run."""
        run = await self._conversing.begin(prompt)
        self._turn_to(run, goes_on=prompt is None)
        try:
            await run.started()
        except asyncio.CancelledError:
            self._conversing.abandon(run)
            raise

    async def next(self) -> Block | None:
        """The next finished block; None at the end."""
        run = self._conversing.run
        if run is not self._run:
            self._turn_to(run)
        if run is None:
            return None
        while not self._ready:
            event = await run.next()
            if event is None:
                break
            self._ready.extend(self._finished.feed(event))
        if self._ready:
            return self._ready.popleft()
        if run.error is not None and run.begun and not self._has_raised:
            self._has_raised = True
            raise run.error
        return None

    def _turn_to(self, run: RunEvents | None, *, goes_on: bool = False) -> None:
        """Read this run from now on; who goes on gets what was not read of the one before first."""
        if goes_on and self._run is not None:
            self._ready.extend(block for event in self._run.take_unread() for block in self._finished.feed(event))
        else:
            self._ready.clear()
        self._run, self._has_raised = run, False
        self._finished = FinishedBlocks()
