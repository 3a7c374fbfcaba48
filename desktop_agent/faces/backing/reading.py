"""Asks, and reads the answer block by block."""

import asyncio
from collections import deque

from desktop_agent.faces.backing.conversing import ConversationRunner
from desktop_agent.faces.backing.finished_blocks import BlockCollector
from desktop_agent.faces.backing.run_events import RunEvents
from desktop_agent.vocabulary.blocks import Block
from desktop_agent.vocabulary.messages import Message


class BlockReader:
    """Reads the newest run. What broke its answer off is raised once, behind the last block."""

    def __init__(self, conversation: ConversationRunner) -> None:
        self._conversation = conversation
        self._run: RunEvents | None = None
        self._collector = BlockCollector()
        self._ready = deque[Block]()
        self._has_raised = False

    async def ask(self, prompt: Message | None) -> None:
        """Return when the model begins to answer. Raises what keeps it from that; who is cancelled stops the run."""
        run = await self._conversation.start_run(prompt)
        self._switch_run(run, goes_on=prompt is None)
        try:
            await run.wait_for_start()
        except asyncio.CancelledError:
            self._conversation.abandon(run)
            raise

    async def next(self) -> Block | None:
        """The next finished block; None at the end."""
        run = self._conversation.run
        if run is not self._run:
            self._switch_run(run)
        if run is None:
            return None
        while not self._ready:
            event = await run.next()
            if event is None:
                break
            self._ready.extend(self._collector.feed(event))
        if self._ready:
            return self._ready.popleft()
        if run.error is not None and run.has_begun and not self._has_raised:
            self._has_raised = True
            raise run.error
        return None

    def _switch_run(self, run: RunEvents | None, *, goes_on: bool = False) -> None:
        """Read this run from now on; who goes on gets what was not read of the one before first."""
        if goes_on and self._run is not None:
            self._ready.extend(block for event in self._run.take_unread() for block in self._collector.feed(event))
        else:
            self._ready.clear()
        self._run, self._has_raised = run, False
        self._collector = BlockCollector()
