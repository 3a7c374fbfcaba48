"""What a conversation has used so far: tokens and money, summed over its answers."""

from collections.abc import Callable, Sequence

from desktop_agent.vocabulary.engine_events import Event, RunFinished, TurnStarted
from desktop_agent.vocabulary.messages import Message, Role
from desktop_agent.vocabulary.provider_events import UsageUpdate
from desktop_agent.vocabulary.usage import Usage


class Spending:
    """Reads the committed messages, each once, and adds the answer that is on its way.

    `history` answers all committed messages, oldest first.
    """

    def __init__(self, history: Callable[[], Sequence[Message]]) -> None:
        self._history = history
        self._counted = 0
        self._committed: Usage | None = None
        self._open: Usage | None = None
        self._has_gaps = False
        self._count()

    @property
    def total(self) -> Usage | None:
        """Of all answers; None while nothing is known."""
        if self._committed is None or self._open is None:
            return self._committed or self._open
        return self._committed + self._open

    @property
    def is_whole(self) -> bool:
        """Whether the cost of every answer is known; where not, the total's cost is the least that it was."""
        return not self._has_gaps and (self._open is None or self._open.cost is not None)

    def take(self, event: Event) -> None:
        """One event of the conversation."""
        match event:
            case UsageUpdate():
                self._open = event.usage if self._open is None else self._open.merge_max(event.usage)
            case TurnStarted() | RunFinished():
                # The answer before was committed by now, with its usage.
                self._open = None
                self._count()
            case _:
                pass

    def _count(self) -> None:
        messages = self._history()
        if len(messages) < self._counted:  # another branch
            self._counted, self._committed, self._has_gaps = 0, None, False
        for message in messages[self._counted :]:
            self._add(message)
        self._counted = len(messages)

    def _add(self, message: Message) -> None:
        if message.role is not Role.ASSISTANT:
            return
        usage = message.usage
        self._has_gaps = self._has_gaps or usage is None or usage.cost is None
        if usage is not None:
            self._committed = usage if self._committed is None else self._committed + usage
