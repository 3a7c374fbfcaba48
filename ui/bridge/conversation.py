"""One open conversation for the screens: its changes once a frame, its facts as signals; and its earlier messages."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Unpack

from PySide6.QtCore import QObject, Signal

from desktop_agent.conversation.history import ConversationUsage
from desktop_agent.conversation.items import Change, Prepended, ToolCallItem, Updated
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.storage.records import ConversationChanges
from desktop_agent.types.blocks import ToolResult
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    ConversationTitled,
    Envelope,
    RunFinished,
    RunStarted,
    ToolFinished,
    UserMessageReturned,
)
from desktop_agent.types.errors import Sentence
from desktop_agent.types.folders import Folder
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.policies import When
from desktop_agent.types.provider_events import StopReason, Usage, UsageUpdate
from desktop_agent.types.providers import DEMO_ENDPOINT, ConversationParameters, Reasoning
from desktop_agent.types.tool_calls import UntrustedSource
from ui.bridge.branches import ConversationBranches
from ui.bridge.event_loop import FrameClock
from ui.bridge.found_histories import is_found_id
from ui.bridge.permissions import Approvals
from ui.bridge.session_controls import CheckpointUndo, SessionControls

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session

_PAUSED = {StopReason.PAUSE_TURN, StopReason.CONTINUATION}
_LARGE_PART = 1_000
"""Messages that are loaded at once when all are needed: each part moves everything below it."""


class OpenConversation(QObject):
    """A session for Qt. `changed` carries the grouped changes of a frame, `returned` a whole undelivered message."""

    changed = Signal(list)
    working_changed = Signal(bool)
    approvals_changed = Signal()
    usage_changed = Signal()
    record_changed = Signal()
    finished = Signal()
    returned = Signal(Message)

    def __init__(
        self,
        session: "Session",
        clock: FrameClock,
        parent: QObject | None = None,
        held_by: Sentence | None = None,
    ) -> None:
        super().__init__(parent)
        self._session = session
        self.held_by = held_by
        """Why the conversation is read-only, such as another process that works in it; None if it is not."""
        self._clock = clock
        self.approvals = Approvals(session)
        self.session_controls = SessionControls(session, self)
        self.checkpoints = CheckpointUndo(session)
        self.branches = ConversationBranches(session, self)
        self.history = ConversationHistory(session)
        self._undelivered: list[Change] = []
        self._pending_updates: set[Updated] = set()
        self._is_attached = True
        # A deletion may have deleted its title too.
        self.branches.changed.connect(self.record_changed)
        clock.tick.connect(self._deliver)
        session.subscribe(self._on_changes, self._on_event, pieces=False)

    @property
    def id(self) -> str:
        return self._session.record.id

    @property
    def title(self) -> str:
        return self._session.record.title

    @property
    def endpoint_id(self) -> str | None:
        return self._session.record.endpoint_id

    @property
    def model(self) -> str | None:
        return self._session.record.model

    @property
    def workspace(self) -> str | None:
        return self._session.record.workspace

    @property
    def reasoning(self) -> Reasoning | None:
        """The chosen reasoning; None is the model's default."""
        return self._session.record.reasoning

    @property
    def parameters(self) -> ConversationParameters:
        return self._session.record.parameters

    @property
    def transcript(self) -> Transcript:
        """The items on the screen; read only."""
        return self._session.transcript

    @property
    def working(self) -> bool:
        return self._session.working

    @property
    def is_closed(self) -> bool:
        """Whether no message can be sent in it any more: it was deleted, or another process writes in it."""
        return self._session.is_closed

    @property
    def is_empty(self) -> bool:
        return len(self._session.transcript) == 0

    @property
    def is_found(self) -> bool:
        """Whether it is another program's, and only read here."""
        return is_found_id(self.id)

    @property
    def program(self) -> str:
        """The name of the program that it was copied or imported from; "" if it began here, or is only read here."""
        origin = self._session.record.origin
        if origin is None or self.is_found:
            return ""
        # Late: most conversations began here.
        from desktop_agent.engine.exchange.found_histories import program_title

        return program_title(origin.program)

    @property
    def is_demo(self) -> bool:
        return self.endpoint_id == DEMO_ENDPOINT

    @property
    def is_stored(self) -> bool:
        """Whether it has a draft of its own; unless it is only in memory, it then has a place on the disk too.

        True from the first prompt on, even before that is written.
        """
        return not self.is_found and (self.is_in_memory or not self.is_empty or not self._session.is_new)

    @property
    def can_be_deleted(self) -> bool:
        """Whether it can be deleted, or, as another program's, a deletion is refused with a reason."""
        return self.is_stored or self.is_found

    @property
    def is_in_memory(self) -> bool:
        """Whether it is the person's own, and never stored."""
        return self._session.is_in_memory and not self.is_found

    @property
    def usage(self) -> Usage | None:
        """The usage of the last answer."""
        return self._session.usage

    def begin_in(self, folder: str) -> None:
        """Set the folder for its first storing. Not for a conversation that is already stored."""
        self._session.folders.begin_in(folder)

    async def folders_with_instructions(self) -> Sequence[Folder]:
        """Return the folders that it is in and that have instructions, from the top down. Raises StorageFailed."""
        return await self._session.folders.with_instructions()

    def context_tokens(self, texts: Sequence[str]) -> int:
        """Estimate how many tokens the model reads if these texts are sent now."""
        return self._session.context_size.tokens(texts)

    @property
    def can_resume(self) -> bool:
        """Whether it is the model's turn. After an answer that ended, even a cut one, the person must write first:
        asked again, the model would only repeat it.
        """
        last = self._session.history[-1:]
        return not last or last[0].role is not Role.ASSISTANT or last[0].stop_reason in _PAUSED

    async def show_branch_of(self, message_id: str) -> None:
        """Show the newest branch that has this message. Raises WrongUse as SessionBranches.show, and StorageFailed."""
        await self.branches.show(message_id)
        self._deliver()

    def index_of_message(self, message_id: str) -> int | None:
        """Return the index in the transcript of the first item of a message, or of the last one before it.

        The result of a tool is at its call. None for a message that is not in view.
        """
        history = self._session.history
        end = next((index for index, message in enumerate(history, 1) if message.id == message_id), 0)
        firsts: dict[str, int] = {}
        for index, item in enumerate(self.transcript):
            firsts.setdefault(item.message_id, index)
            if isinstance(item, ToolCallItem):
                firsts.setdefault(item.tool_use_id, index)
        for message in reversed(history[:end]):
            calls = (block.tool_use_id for block in message.blocks if isinstance(block, ToolResult))
            for key in (message.id, *calls):
                if key in firsts:
                    return firsts[key]
        return None

    def send(self, message: Message, when: When = "soon", untrusted_sources: Iterable[UntrustedSource] = ()) -> None:
        """Start a run; during a run, queue the message for its next turn boundary or its end.

        The conversation is first marked as having content of the `untrusted_sources`.
        Raises WrongUse when closed, and for a message that is no prompt or was sent before. Works when detached too: an
        attachment may be ready only after another conversation was opened.
        """
        for source in untrusted_sources:
            self._session.permission_policy.mark_untrusted(source)
        self._session.steer(message, when)
        if self._is_attached:
            self.record_changed.emit()
            self.working_changed.emit(True)

    def continue_run(self, *, over_budget: bool = False) -> None:
        """Ask again, or send what is queued; `over_budget`: this once. Raises WrongUse."""
        self._session.continue_run(over_budget=over_budget)
        self.working_changed.emit(True)

    def compact(self) -> None:
        """Have older messages summarised for the model. Raises WrongUse."""
        self._session.compact()
        self.working_changed.emit(True)

    def stop(self) -> None:
        """Interrupt the run at once."""
        self._session.interrupt()

    def change(self, **changes: Unpack[ConversationChanges]) -> None:
        """Change the title, endpoint, model, workspace, reasoning or parameters."""
        self._session.change_record(**changes)
        self.record_changed.emit()

    async def count_usage(self) -> None:
        """Count what was used by messages that are not loaded. Raises StorageFailed."""
        await self.history.count_usage()
        # Another conversation may be shown by now.
        if self._is_attached:
            self.usage_changed.emit()

    async def ensure_stored(self) -> bool:
        """Return whether it is on the disk, after waiting for its first prompt. Raises StorageFailed."""
        if self.is_stored and self._session.is_new:
            await self._session.flush()
        return not self._session.is_new

    def detach(self) -> None:
        """Disconnect from the session, which continues without this window."""
        self._is_attached = self.branches.is_attached = False
        self._session.unsubscribe(self._on_changes)
        self._session.unsubscribe(self._on_event)
        self._clock.tick.disconnect(self._deliver)

    def _on_changes(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if not isinstance(change, Updated):
                # Indices before and after a structural change are not the same thing.
                self._pending_updates.clear()
            elif change in self._pending_updates:
                continue
            else:
                self._pending_updates.add(change)
            self._undelivered.append(change)
        if Prepended in map(type, changes):
            # Until the view has applied it, rows and items have different indices.
            self._deliver()
        else:
            self._clock.request()

    def _deliver(self) -> None:
        if self._undelivered and self._is_attached:
            changes, self._undelivered = self._undelivered, []
            self._pending_updates.clear()
            self.changed.emit(changes)

    def _on_event(self, envelope: Envelope) -> None:
        is_specialist_run = envelope.parent_run_id is not None
        self.session_controls.on_event(envelope.event)
        self.history.spending.take(envelope.event, envelope.run_id if is_specialist_run else None)
        match envelope.event:
            case ApprovalRequested() | ApprovalResolved() | ToolFinished():
                self.approvals_changed.emit()
            case _ if is_specialist_run:
                # A specialist's run does not change the state of this one.
                pass
            case RunStarted():
                self.working_changed.emit(True)
            case RunFinished():
                # The session's task ends a moment later; what the person sees is decided by this event.
                self._deliver()
                self.working_changed.emit(False)
                self.finished.emit()
            case UserMessageReturned(message_id=message_id):
                message = self._session.returned(message_id)
                if message is not None:
                    self.returned.emit(message)
            case UsageUpdate():
                self.usage_changed.emit()
            case ConversationTitled():
                self.usage_changed.emit()
                self.record_changed.emit()
            case _:
                pass


class ConversationHistory:
    """Loads earlier messages of one conversation, whose items then come as a change.

    All methods that load raise StorageFailed. `spending` sums up the usage of all messages.
    """

    def __init__(self, session: "Session") -> None:
        self._session = session
        state = session.record.state
        other = [used for used in (state.title_usage, state.specialist_usage) if used is not None]
        self.spending = ConversationUsage(
            lambda: session.history,
            lambda: session.history_loader.unloaded_count,
            sum(other[1:], other[0]) if other else None,
        )

    @property
    def unloaded_count(self) -> int:
        """The number of messages that are not loaded."""
        return self._session.history_loader.unloaded_count

    def has_turn(self, message_id: str) -> bool:
        """Return whether the prompt before this message is loaded, if there is one."""
        return self._session.history_loader.has_turn(message_id)

    async def load_more(self, *, whole: bool = False) -> None:
        """Load some more messages; if the `whole` is needed, more at once."""
        await (self._session.history_loader.load(_LARGE_PART) if whole else self._session.history_loader.load())
        if not whole or not self.unloaded_count:
            await self._mark_calls()

    async def load_until(self, message_id: str) -> bool:
        """Load until this message is in memory; return whether it is in the branch that is shown."""
        previous_count = self.unloaded_count
        is_in_view = await self._session.history_loader.load_until(message_id)
        if self.unloaded_count != previous_count:
            await self._mark_calls()
        return is_in_view

    async def load_turn(self, message_id: str) -> None:
        """Load until the prompt before this message is in memory."""
        await self._session.history_loader.load_turn(message_id)
        await self._mark_calls()

    async def count_usage(self) -> None:
        """Add the usage of messages that are not loaded to `spending`."""
        if self.spending.lacks_earlier:
            used, is_complete = await self._session.history_loader.usage()
            self.spending.add_earlier(used, is_complete=is_complete)

    async def _mark_calls(self) -> None:
        """Mark which of the loaded calls can be undone."""
        if self._session.checkpoints is not None:
            await self._session.checkpoints.publish_saved_calls()
