"""The single writer of one conversation: what happens is shown, kept in memory, and written, in that order."""

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar, Unpack

from desktop_agent.conversation.items import Change
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.engine.ledger import Ledger
from desktop_agent.storage.records import ConversationChanges, ConversationRecord
from desktop_agent.storage.store import Store
from desktop_agent.vocabulary.engine_events import Envelope, Event, RunFinished, TurnStarted
from desktop_agent.vocabulary.errors import RemedyAction, Sentence, StorageFailed
from desktop_agent.vocabulary.messages import Message, Role, new_id, now
from desktop_agent.vocabulary.provider_events import UsageUpdate
from desktop_agent.vocabulary.usage import Usage

_log = logging.getLogger(__name__)
_News = TypeVar("_News")

UNANSWERED = Sentence("There is no answer to this yet.")

ChangeListener = Callable[[Sequence[Change]], None]
EventListener = Callable[[Envelope], None]


class Writer:
    """Messages, transcript and ledger of one conversation, kept in step."""

    def __init__(self, store: Store, record: ConversationRecord, messages: Sequence[Message], *, is_new: bool) -> None:
        self._ledger = Ledger(store, record, is_new=is_new, on_trouble=self._note_trouble)
        self._messages = list(messages)
        self.transcript = Transcript(self._messages)
        if self._messages and self._messages[-1].role in {Role.USER, Role.TOOL}:
            # The program ended before the first word, or the answer failed: the prompt must not look forgotten.
            self.transcript.add_notice(UNANSWERED, action=RemedyAction.RETRY)
        self.usage: Usage | None = next((each.usage for each in reversed(self._messages) if each.usage), None)
        self._change_listeners: list[ChangeListener] = []
        self._event_listeners: list[EventListener] = []

    @property
    def record(self) -> ConversationRecord:
        """The conversation as it is listed."""
        return self._ledger.record

    @property
    def is_new(self) -> bool:
        """Whether nothing of it was written yet."""
        return self._ledger.is_new

    def history(self) -> tuple[Message, ...]:
        """All messages of the branch, oldest first."""
        return tuple(self._messages)

    def subscribe(self, on_changes: ChangeListener | None, on_event: EventListener | None) -> None:
        """Tell these from now on."""
        if on_changes is not None:
            self._change_listeners.append(on_changes)
        if on_event is not None:
            self._event_listeners.append(on_event)

    def unsubscribe(self, listener: ChangeListener | EventListener) -> None:
        """Stop telling this one."""
        self._change_listeners = [each for each in self._change_listeners if each != listener]
        self._event_listeners = [each for each in self._event_listeners if each != listener]

    def show(self, message: Message) -> None:
        """Show a message that is about to be committed."""
        self._tell(self.transcript.add_message(message))

    def take(self, envelope: Envelope) -> None:
        """One event: shown, told, and journalled soon."""
        self._tell(self.transcript.apply(envelope))
        if isinstance(envelope.event, UsageUpdate):
            self.usage = envelope.event.usage
        self._ledger.note(envelope)
        for listener in tuple(self._event_listeners):
            _told(listener, envelope)

    async def commit(self, *messages: Message) -> None:
        """Remember at once, write as soon as the disk lets us."""
        self._messages.extend(messages)
        await self.write(*messages)

    async def write(self, *messages: Message) -> None:
        """Write what is remembered already as soon as the disk lets us."""
        if messages:
            await self._ledger.commit(*messages)

    async def settle(self) -> None:
        """Return when everything so far is durable. Raises StorageFailed."""
        await self._ledger.settle()

    async def finish_run(self, run_id: str) -> None:
        """The run is over: its pieces of text are no longer needed on disk."""
        await self._ledger.finish_run(run_id)

    def change_record(self, **changes: Unpack[ConversationChanges]) -> None:
        """Another title, model, endpoint or workspace."""
        self._ledger.change_record(**changes)

    async def close(self) -> None:
        """Write what is left."""
        await self._ledger.close()

    def _note_trouble(self, trouble: StorageFailed | None) -> None:
        if trouble is not None:
            self._tell(self.transcript.add_notice(trouble.sentence, trouble.remedy, error=True))

    def _tell(self, changes: Sequence[Change]) -> None:
        if changes:
            for listener in tuple(self._change_listeners):
                _told(listener, changes)


def _told(listener: Callable[[_News], None], news: _News) -> None:
    try:
        listener(news)
    except Exception:  # noqa: BLE001 - who cannot listen must not end the run, nor keep the news from the others
        _log.exception("a listener failed")


class RunRecorder:
    """The recorder of one run. After RunFinished it is deaf: what a late tool says changes nothing."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.run_id = new_id()
        self._seq = 0
        self._turn_id: str | None = None
        self._finished = False

    def emit(self, event: Event) -> None:
        """Number it and hand it to the writer."""
        if self._finished:
            return
        if isinstance(event, TurnStarted):
            self._turn_id = event.turn_id
        self._finished = isinstance(event, RunFinished)
        self._seq += 1
        self._writer.take(Envelope(self._seq, self.run_id, None, self._turn_id, now(), event))

    @property
    def finished(self) -> bool:
        """Whether the run has ended for everybody who listens."""
        return self._finished

    async def settle(self) -> None:
        """Return when everything so far is durable. Raises StorageFailed."""
        await self._writer.settle()

    async def commit(self, *messages: Message) -> None:
        """Add finished messages to the history."""
        if not self._finished:
            await self._writer.commit(*messages)

    def history(self) -> tuple[Message, ...]:
        """All committed messages, oldest first."""
        return self._writer.history()
