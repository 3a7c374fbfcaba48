"""The blocks of a run, each as soon as nothing will be added to it."""

from datetime import datetime

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.vocabulary.blocks import Block
from desktop_agent.vocabulary.engine_events import Event, RunFinished, ToolCallPending, ToolFinished, TurnStarted
from desktop_agent.vocabulary.messages import new_id, now
from desktop_agent.vocabulary.provider_events import Done, StopReason
from desktop_agent.vocabulary.usage import Usage


class _BlockBuilder(AnswerBuilder):
    """One answer whose finished blocks are taken out one after the other."""

    def __init__(self) -> None:
        super().__init__(new_id(), "")
        self._taken_count = 0

    def take(self) -> tuple[Block, ...]:
        fresh = tuple(self._blocks[self._taken_count :])
        self._taken_count += len(fresh)
        return fresh

    def finish(self) -> tuple[Block, ...]:
        """Nothing more comes: what was open is finished as it is."""
        self.close_parts(now())
        return self.take()


class BlockCollector:
    """Feed it the events of a run, or of a provider. `usage` is of all its answers, `stop_reason` of the last one."""

    def __init__(self) -> None:
        self._answer = _BlockBuilder()
        self._earlier_usage: Usage | None = None
        self._stop_reason: StopReason | None = None

    @property
    def usage(self) -> Usage | None:
        """So far."""
        return add_usage(self._earlier_usage, self._answer.total_usage)

    @property
    def stop_reason(self) -> StopReason | None:
        """So far."""
        return self._answer.stop_reason or self._stop_reason

    def feed(self, event: Event, at: datetime | None = None) -> tuple[Block, ...]:
        """Take one event; the blocks that it finished, results of calls among them."""
        if isinstance(event, ToolFinished):
            return (*self._answer.finish(), event.result)
        if isinstance(event, TurnStarted):
            rest = self._answer.finish()
            self._earlier_usage, self._stop_reason = self.usage, self.stop_reason
            self._answer = _BlockBuilder()
            return rest
        self._answer.feed(event, at or now())
        if isinstance(event, Done | ToolCallPending | RunFinished):
            return self._answer.finish()
        return self._answer.take()

    def finish(self) -> tuple[Block, ...]:
        """Nothing more comes: what is open, as it is."""
        return self._answer.finish()


def add_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """Both together; one that is not known is no part of it."""
    if first is None or second is None:
        return first or second
    return first + second
