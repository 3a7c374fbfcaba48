"""What MCP servers ask of the person, until it is answered or taken back."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QObject, Signal

from desktop_agent.vocabulary.mcp.asking import (
    ConsentHandlers,
    ElicitationAnswer,
    ElicitationRequest,
    SamplingAnswer,
    SamplingRequest,
)
from desktop_agent.vocabulary.messages import new_id


@dataclass(frozen=True, slots=True)
class PendingElicitation:
    """A form to fill in, or a page to open."""

    id: str
    request: ElicitationRequest


@dataclass(frozen=True, slots=True)
class PendingSampling:
    """A model is to answer; or, with `answer`, has answered, and that is to go to the server."""

    id: str
    request: SamplingRequest
    answer: SamplingAnswer | None = None


McpRequest = PendingElicitation | PendingSampling
_CANCELLED = ElicitationAnswer("cancel")


class McpRequests(QObject):
    """All questions that wait, oldest first. Those of a call that ended are taken back by themselves."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: dict[str, tuple[McpRequest, asyncio.Future[Any]]] = {}
        self._is_closed = False

    @property
    def people(self) -> ConsentHandlers:
        """Who asks them, for the engine."""
        return ConsentHandlers(self._elicit, self._approve_sampling, self._approve_answer)

    @property
    def waiting(self) -> tuple[McpRequest, ...]:
        """Oldest first."""
        return tuple(asked for asked, _ in self._waiting.values())

    def answer(self, asked_id: str, answer: ElicitationAnswer) -> None:
        """Answer a form or a page. Nothing happens where it does not wait any more."""
        self._settle(asked_id, answer)

    def approve(self, asked_id: str, *, agreed: bool) -> None:
        """Answer what is asked about a model. Nothing happens where it does not wait any more."""
        self._settle(asked_id, agreed)

    def close(self) -> None:
        """Nobody looks any more: all that waits, and all that comes, counts as not answered."""
        self._is_closed = True
        for asked in self.waiting:
            self._settle(asked.id, _CANCELLED if isinstance(asked, PendingElicitation) else False)

    async def _elicit(self, request: ElicitationRequest) -> ElicitationAnswer:
        return await self._wait_for_answer(lambda asked_id: PendingElicitation(asked_id, request), _CANCELLED)

    async def _approve_sampling(self, request: SamplingRequest) -> bool:
        return await self._wait_for_answer(lambda asked_id: PendingSampling(asked_id, request), otherwise=False)

    async def _approve_answer(self, request: SamplingRequest, answer: SamplingAnswer) -> bool:
        return await self._wait_for_answer(lambda asked_id: PendingSampling(asked_id, request, answer), otherwise=False)

    async def _wait_for_answer(self, make: Callable[[str], McpRequest], otherwise: Any) -> Any:
        if self._is_closed:
            return otherwise
        asked = make(new_id())
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[asked.id] = (asked, answered)
        self.changed.emit()
        try:
            return await answered
        finally:
            if self._waiting.pop(asked.id, None) is not None:
                self.changed.emit()

    def _settle(self, asked_id: str, answer: object) -> None:
        _, answered = self._waiting.pop(asked_id, (None, None))
        if answered is None:
            return
        if not answered.done():
            answered.set_result(answer)
        self.changed.emit()
