"""The recorder of a specialist's run, which also remembers what whoever called it has to be told."""

from collections.abc import Callable
from dataclasses import replace

from desktop_agent.agent.recorder import Recorder
from desktop_agent.agent.specialists.calls_so_far import CallSummary
from desktop_agent.vocabulary.engine_events import ErrorOccurred, Event, LimitReached, RunStarted, ToolCallPending
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.messages import Message, Role

# Characters; the end of it tells most.
MAX_ANSWERS_TEXT = 20_000


class SpecialistRecorder:
    """Passes everything on; its RunStarted names the call whose work this is.

    `so_far` hears in words what became of each call, whenever that changes.
    """

    def __init__(self, recorder: Recorder, call_id: str, so_far: Callable[[str], None]) -> None:
        self._calls = CallSummary()
        self._report_progress = so_far
        so_far(str(self._calls))
        self._recorder = recorder
        self._call_id = call_id
        self.error: Sentence | None = None
        self.limit = ""
        self.called_tools = False

    @property
    def run_id(self) -> str:
        """The run's."""
        return self._recorder.run_id

    @property
    def said(self) -> str:
        """Everything that it said so far, answer by answer."""
        texts = (message.text.strip() for message in self.history() if message.role is Role.ASSISTANT)
        return "\n\n".join(text for text in texts if text)[-MAX_ANSWERS_TEXT:]

    def emit(self, event: Event) -> None:
        """Pass it on."""
        match event:
            case RunStarted():
                event = replace(event, call_id=self._call_id)
            case ErrorOccurred():
                self.error = event.sentence
            case LimitReached():
                self.limit = event.which
            case ToolCallPending():
                self.called_tools = True
            case _:
                pass
        self._recorder.emit(event)
        if self._calls.on_event(event):
            self._report_progress(str(self._calls))

    async def flush(self) -> None:
        """Return when everything so far is durable. Raises StorageFailed."""
        await self._recorder.flush()

    async def commit(self, *messages: Message) -> None:
        """Add finished messages to its history."""
        await self._recorder.commit(*messages)

    def history(self) -> tuple[Message, ...]:
        """Its messages, oldest first."""
        return self._recorder.history()

    def nested(self) -> Recorder:
        """For a run that one of its calls starts."""
        return self._recorder.nested()
