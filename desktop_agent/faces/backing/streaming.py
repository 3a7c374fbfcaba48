"""The events of a run as an iterator whose reader may leave at any moment."""

from collections.abc import AsyncIterator
from typing import Self

from desktop_agent.faces.backing.conversing import ConversationRunner
from desktop_agent.faces.backing.leaving import abandon_soon
from desktop_agent.faces.backing.run_events import RunEvents
from desktop_agent.vocabulary.engine_events import Event
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.usage import Usage


class EventStream(AsyncIterator[Event]):
    """Begins at the first step. Whoever leaves the loop stops the run; `aclose` does so too, and waits for its end.

    `keep` is the face that the stream belongs to: it must not be forgotten while somebody reads.
    """

    def __init__(
        self,
        conversation: ConversationRunner,
        prompt: Message | None,
        run: RunEvents | None = None,
        keep: object = None,
    ) -> None:
        self._conversation = conversation
        self._prompt = prompt
        self._run = run
        self._owner = keep
        self._is_over = False

    @property
    def usage_below(self) -> Usage | None:
        """What specialists used, whose events are not among these; None when there was none."""
        return None if self._run is None else self._run.usage_below

    async def __anext__(self) -> Event:
        if self._is_over:
            raise StopAsyncIteration
        if self._run is None:
            self._run = await self._conversation.start_run(self._prompt)
        event = await self._run.next()
        if event is None:
            self._is_over = True
            raise StopAsyncIteration
        return event

    async def aclose(self) -> None:
        """Stop the run if it goes on, and wait until it has ended. Idempotent."""
        self._is_over = True
        if self._run is not None:
            self._conversation.abandon(self._run)
            await self._run.wait_for_end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if self._run is not None and self._run.end is None:
            abandon_soon(self._conversation, self._run)
