"""The recorders of runs: the one of a session's run, and those of the runs that its calls start."""

from desktop_agent.engine.writer import SessionWriter
from desktop_agent.vocabulary.engine_events import AnswerAwaited, Envelope, Event, RunEnd, RunFinished, TurnStarted
from desktop_agent.vocabulary.messages import Message, new_id, now


class RunRecorder:
    """The recorder of one run. After RunFinished it is deaf: what a late tool says changes nothing.

    `run_id`, `seq` and `turn_id` are given for a run of a dead process that is gone on with: they are its last ones.
    """

    def __init__(
        self,
        writer: SessionWriter,
        run_id: str | None = None,
        seq: int = 0,
        turn_id: str | None = None,
        *,
        parent_run_id: str | None = None,
    ) -> None:
        self._writer = writer
        self._run_id = run_id or new_id()
        self._seq = seq
        self._turn_id = turn_id
        self._parent_run_id = parent_run_id
        self._nested: list[NestedRecorder] = []
        self._ended_nested_ids: list[str] = []
        self._finished = False

    @property
    def run_id(self) -> str:
        """The run's."""
        return self._run_id

    @property
    def run_ids(self) -> tuple[str, ...]:
        """This run's, and those of the runs below it."""
        working = (run_id for each in self._nested for run_id in each.run_ids)
        return (self._run_id, *self._ended_nested_ids, *working)

    @property
    def finished(self) -> bool:
        """Whether the run has ended for everybody who listens."""
        return self._finished

    def emit(self, event: Event) -> None:
        """Number it and hand it to the writer. What holds only for the moment has no number of its own."""
        if self._finished:
            return None
        if isinstance(event, AnswerAwaited):
            return self._write(0, event)
        if isinstance(event, TurnStarted):
            self._turn_id = event.turn_id
        elif isinstance(event, RunFinished):
            self._finish_nested()
            self._finished = True
        self._seq += 1
        return self._write(self._seq, event)

    def _write(self, seq: int, event: Event) -> None:
        self._writer.write_event(Envelope(seq, self._run_id, self._parent_run_id, self._turn_id, now(), event))

    async def flush(self) -> None:
        """Return when everything so far is durable. Raises StorageFailed."""
        await self._writer.flush()

    async def commit(self, *messages: Message) -> None:
        """Add finished messages to the history."""
        if not self._finished:
            await self._writer.commit(*messages)

    def history(self) -> tuple[Message, ...]:
        """All committed messages, oldest first."""
        return self._writer.history()

    def nested(self) -> "NestedRecorder":
        """For a run that a call of this one starts."""
        nested = NestedRecorder(self._writer, self)
        if self._finished:
            nested.silence()
        else:
            self._nested.append(nested)
        return nested

    def on_nested_end(self, nested: "NestedRecorder") -> None:
        """This run below has ended: of it and of all below it, only the ids are still needed."""
        self._nested.remove(nested)
        self._ended_nested_ids.extend(nested.run_ids)

    def _finish_nested(self) -> None:
        """A run below that was left behind after Stop ends with this one: its last event must not come later."""
        for nested in tuple(self._nested):
            nested.emit(RunFinished(RunEnd.CANCELLED))


class NestedRecorder(RunRecorder):
    """The recorder of a specialist's run: its messages are its own, kept in memory while it works."""

    def __init__(self, writer: SessionWriter, above: RunRecorder) -> None:
        super().__init__(writer, parent_run_id=above.run_id)
        self._parent = above
        self._messages: list[Message] = []

    def emit(self, event: Event) -> None:
        """As in RunRecorder; the run above lets go of one that has ended."""
        ends = isinstance(event, RunFinished) and not self._finished
        super().emit(event)
        if ends:
            self._parent.on_nested_end(self)

    async def commit(self, *messages: Message) -> None:
        """Remember them."""
        if not self._finished:
            self._messages.extend(messages)

    def history(self) -> tuple[Message, ...]:
        """What this run said and was told."""
        return tuple(self._messages)

    def silence(self) -> None:
        """Say nothing at all: the run above has ended."""
        self._finished = True
