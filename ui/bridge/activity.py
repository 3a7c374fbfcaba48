"""What conversations are doing: working, waiting for the person, or finished."""

from typing import TYPE_CHECKING, Literal

from PySide6.QtCore import QObject, Signal

from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    QuestionAnswered,
    QuestionAsked,
    RunEnd,
    RunFinished,
    RunStarted,
)
from ui.bridge.mcp.requests import McpRequests

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session

Activity = Literal["working", "waits", "asks", "done", "failed", "idle"]
"""What a conversation is doing. `waits`: for an approval, or an MCP server's request. `idle`: the person stopped it."""

_ENDS: dict[RunEnd, Activity] = {RunEnd.COMPLETED: "done", RunEnd.LIMIT: "failed", RunEnd.FAILED: "failed"}


class ConversationActivity(QObject):
    """Follows the conversations that were opened in this window, shown or not, and the requests of their servers."""

    changed = Signal(str, str, str)
    """The id of a conversation, its title, and an Activity."""
    removed = Signal(str)
    """The id of a conversation that was put into the trash, or discarded because it is not stored."""

    def __init__(self, requests: McpRequests, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._requests = requests
        self._working: dict[str, Session] = {}
        requests.began_in.connect(self._on_request)
        requests.ended_in.connect(self._on_request_ended)

    def is_working(self, conversation_id: str) -> bool:
        """Return whether a run of it is active."""
        return conversation_id in self._working

    def title(self, conversation_id: str) -> str:
        """Return the title of a conversation that works; "" for others."""
        session = self._working.get(conversation_id)
        return "" if session is None else session.record.title

    def stop(self, conversation_id: str) -> None:
        """Interrupt its run, if there is one."""
        session = self._working.get(conversation_id)
        if session is not None:
            session.interrupt()

    def on_event(self, session: "Session", envelope: Envelope) -> None:
        """Handle an event of a conversation that was opened in this window."""
        if session.working:
            self._working[session.record.id] = session
        else:
            self._working.pop(session.record.id, None)
        if (activity := self._after(session, envelope)) is not None:
            self.changed.emit(session.record.id, session.record.title, activity)

    def _after(self, session: "Session", envelope: Envelope) -> Activity | None:
        """Return what the conversation is doing after the event; None if that did not change."""
        match envelope.event:
            case ApprovalRequested():
                return "waits"
            case QuestionAsked():
                return "asks"
            case ApprovalResolved(approval_id=answered) | QuestionAnswered(question_id=answered):
                return None if self._waits(session, answered) else "working"
            case _ if envelope.parent_run_id is not None:
                return None
            case RunStarted():
                return "working"
            case RunFinished(reason=reason):
                return _ENDS.get(reason, "idle")
            case _:
                return None

    def _waits(self, session: "Session", answered: str = "") -> bool:
        """Return whether anything except the call or question just `answered` waits for the person."""
        calls = {approval.approval_id for approval in session.approvals.open_approvals}
        questions = {question.question_id for question in session.questions.open_questions}
        return bool((calls | questions) - {answered}) or self._requests.wait_in(session.record.id)

    def _on_request(self, conversation_id: str) -> None:
        session = self._working.get(conversation_id)
        if session is not None:
            self.changed.emit(conversation_id, session.record.title, "waits")

    def _on_request_ended(self, conversation_id: str) -> None:
        session = self._working.get(conversation_id)
        if session is not None and not self._waits(session):
            self.changed.emit(conversation_id, session.record.title, "working")
