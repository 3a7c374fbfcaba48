"""The tool calls that wait for the person, of all conversations: running here, or left by a process that died."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.storage.conversation_lists import InterruptedRuns
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    ConversationTitled,
    Envelope,
    RunFinished,
    ToolFinished,
)
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.messages import now
from desktop_agent.types.tool_calls import Decision
from ui.bridge.event_loop import BackgroundTasks, in_background
from ui.bridge.permissions import Approvals, PendingApproval

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """A call that waits. `agent_path` names the specialists that lead to it; empty is the main agent.

    `tool` is "" if the journal of a dead process lacks it. `subject` distinguishes the call from others of its tool.
    """

    approval_id: str
    conversation_id: str
    title: str
    tool: str
    subject: str
    agent_path: tuple[str, ...]
    since: datetime


@dataclass(frozen=True, slots=True)
class WaitingDetails:
    """The details of a call that waits in a conversation running here.

    `has_outside_content`: the conversation has content from outside, whether the person trusts it or not.
    """

    title: str
    call: PendingApproval
    has_outside_content: bool


class WaitingCalls(QObject):
    """The calls that can be decided in this window: none of a conversation that another process has open."""

    changed = Signal()
    interrupted_changed = Signal(str, bool)
    """The id of a conversation that is not open, and whether a call of its dead process waits for approval."""

    def __init__(self, engine: Engine, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._sessions: dict[str, Session] = {}
        self._interrupted: dict[str, InterruptedRuns] = {}
        self._since: dict[str, datetime] = {}
        self._takeovers = 0
        """How often the runs of a dead process were resumed or deleted."""

    @property
    def rows(self) -> tuple[WaitingCall, ...]:
        """The calls, those that wait longest first."""
        return tuple(sorted((*self._open_rows(), *self._interrupted_rows()), key=lambda call: call.since))

    @property
    def count(self) -> int:
        """The number of waiting calls."""
        live = sum(len(session.approvals.open_approvals) for session in self._sessions.values())
        return live + sum(len(runs.waiting_calls) for runs in self._interrupted.values())

    @in_background
    async def find_interrupted(self) -> None:
        """Find the calls of dead processes again: more processes may have ended, or calls been taken over elsewhere."""
        takeovers, interrupted = -1, dict[str, InterruptedRuns]()
        while takeovers != self._takeovers:
            # Read again after a takeover: its calls would be listed twice.
            takeovers = self._takeovers
            interrupted = {runs.conversation_id: runs for runs in await self._engine.interrupted_conversations()}
        previous = self._interrupted
        self._interrupted = {id_: runs for id_, runs in interrupted.items() if runs.waits_for_approval}
        if previous == self._interrupted:
            return
        for conversation_id in previous.keys() - self._interrupted.keys():
            self.interrupted_changed.emit(conversation_id, False)
        for conversation_id in self._interrupted.keys() - previous.keys():
            self.interrupted_changed.emit(conversation_id, True)
        self.changed.emit()

    @property
    def live_calls(self) -> dict[str, str]:
        """Maps the approval ids of waiting calls, in order, to the ids of their conversations, which run here."""
        return {
            approval.approval_id: conversation_id
            for conversation_id, session in self._sessions.items()
            for approval in session.approvals.open_approvals
        }

    def details(self, approval_id: str) -> WaitingDetails | None:
        """Return the details of a call; None if it no longer waits in a conversation running here."""
        session = self._session_of(approval_id)
        if session is None:
            return None
        call = next(call for call in Approvals(session).waiting() if call.approval_id == approval_id)
        return WaitingDetails(session.record.title, call, session.permission_policy.untrusted_content.has_arrived)

    def answer(self, approval_id: str, decision: Decision) -> None:
        """Decide a call; nothing happens if it does not wait any more. Raises as Approvals.answer."""
        session = self._session_of(approval_id)
        if session is not None:
            Approvals(session).answer(approval_id, decision)

    async def read_times(self, session: "Session") -> None:
        """Read since when the calls of a dead process wait; after `resume` they have the same ids.

        Where that cannot be read they wait since now.
        """
        if not session.can_resume:
            return
        with suppress(StorageFailed):
            for runs in await self._engine.store.find_interrupted_runs():
                self._since.update((call.approval_id, call.since) for call in runs.waiting_calls)

    def resume(self, session: "Session") -> None:
        """Continue the run that a dead process left in a conversation that is shown now; its calls wait again."""
        self.forget_interrupted(session.record.id)
        session.resume()

    def forget_interrupted(self, conversation_id: str) -> None:
        """Forget the calls of a dead process in a conversation that is opened or deleted."""
        self._takeovers += 1
        if self._interrupted.pop(conversation_id, None) is not None:
            self.interrupted_changed.emit(conversation_id, False)
            self.changed.emit()

    def on_event(self, session: "Session", envelope: Envelope) -> None:
        """Handle an event of a conversation that was opened in this window."""
        match envelope.event:
            case ApprovalRequested(approval_id=approval_id):
                self._since.setdefault(approval_id, envelope.at)
                self._sessions[session.record.id] = session
            case ApprovalResolved() | ToolFinished() | RunFinished() | ConversationTitled():
                # By the session, not by the run: a specialist's calls wait in the same session.
                if session.record.id not in self._sessions:
                    return
                if not session.approvals.open_approvals:
                    del self._sessions[session.record.id]
            case _:
                return
        if isinstance(envelope.event, ApprovalResolved):
            self._since.pop(envelope.event.approval_id, None)
        self.changed.emit()

    def _session_of(self, approval_id: str) -> "Session | None":
        for session in self._sessions.values():
            if any(approval.approval_id == approval_id for approval in session.approvals.open_approvals):
                return session
        return None

    def _open_rows(self) -> Iterator[WaitingCall]:
        for session in self._sessions.values():
            id_, title = session.record.id, session.record.title
            for call in Approvals(session).waiting():
                since = self._since.setdefault(call.approval_id, now())
                yield WaitingCall(call.approval_id, id_, title, call.tool, call.subject, call.agent_path, since)

    def _interrupted_rows(self) -> Iterator[WaitingCall]:
        for runs in self._interrupted.values():
            for call in runs.waiting_calls:
                yield WaitingCall(
                    call.approval_id, runs.conversation_id, runs.title, call.tool, call.subject, (), call.since
                )
