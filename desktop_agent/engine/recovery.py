"""Recovery after a crash: the journal becomes messages again, and tool calls that can be continued."""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import groupby

from desktop_agent.agent.run_context import NO_PRIOR_USE, PriorUse
from desktop_agent.agent.tool_calls.tool_execution import OUTCOME_UNKNOWN, RecoveredCalls
from desktop_agent.conversation.answer_builder import AnswerBuilder, AnswerUsage, add_usage
from desktop_agent.conversation.history import SpecialistUsage, missing_result, summary_of, unanswered_calls
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.types.blocks import Outcome, ToolResult, ToolUse
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    ContextCompacted,
    ContinuationInjected,
    CostUpdated,
    Envelope,
    Event,
    QuestionAnswered,
    QuestionAsked,
    RunEnd,
    RunFinished,
    RunStarted,
    ToolCallPending,
    ToolFinished,
    ToolProgress,
    ToolResultsReceived,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.types.messages import Message, MessageState, Role, now
from desktop_agent.types.provider_events import StopReason, Usage
from desktop_agent.types.spending import tokens_used

_NOT_STARTED = "The program ended before this call was started."


@dataclass(frozen=True)
class OpenCalls:
    """The open calls of a run that can be resumed. `last` is the last envelope of its journal.

    `results` answers all of them, for when nobody resumes. `shown_events` are for the transcript. `prior_use` is
    what the run has used so far.
    """

    last: Envelope
    recovered_calls: RecoveredCalls
    results: Message
    shown_events: tuple[Envelope, ...] = ()
    prior_use: PriorUse = NO_PRIOR_USE


@dataclass(frozen=True)
class Recovery:
    """What a journal still requires.

    `messages` follow the committed ones. `ended` has the last envelope of each run that is over. `specialist_usage`
    is what the last turns of specialists used, which nobody has counted.
    """

    messages: tuple[Message, ...] = ()
    ended: tuple[Envelope, ...] = ()
    open_calls: OpenCalls | None = field(default=None)
    specialist_usage: Usage | None = None


def recover(
    messages: Sequence[Message],
    journal: Sequence[Envelope],
    stopped_run: str | None = None,
    below: Sequence[Envelope] = (),
    earlier: Sequence[Message] = (),
) -> Recovery:
    """Recover interrupted answers, with a result for each of their calls; the calls of a whole answer stay open.

    `stopped_run` is the run that the person stopped: nothing of it is resumed. `below` is what finished runs of
    specialists used, `earlier` what these runs committed before the `messages`.
    """
    roots = [envelope for envelope in journal if envelope.parent_run_id is None]
    answers = _interrupted_answers((*earlier, *messages), roots)
    everything = (*messages, *answers)
    open_calls = None if answers else _open_calls(everything, roots, stopped_run)
    results = () if open_calls is not None else _missing_results(everything, roots)
    last = {envelope.run_id: envelope for envelope in journal}
    if open_calls is not None:
        del last[open_calls.last.run_id]
        prior_use = _prior_use(open_calls.last.run_id, (*earlier, *messages), (*journal, *below))
        open_calls = replace(open_calls, prior_use=prior_use)
    return Recovery((*answers, *results), tuple(last.values()), open_calls, _open_specialist_usage(journal))


def _open_specialist_usage(journal: Sequence[Envelope]) -> Usage | None:
    """Return the usage of the turns of specialists that had not ended."""
    specialists = SpecialistUsage()
    for envelope in journal:
        if envelope.parent_run_id is not None:
            specialists.take(envelope.event, envelope.run_id)
    return reduce(add_usage, specialists.open, None)


def _interrupted_answers(messages: Sequence[Message], journal: Sequence[Envelope]) -> tuple[Message, ...]:
    known = {message.id for message in messages}
    turns = groupby(journal, key=lambda envelope: (envelope.run_id, envelope.turn_id))
    answers = [_interrupted_answer(list(turn), known) for _, turn in turns]
    return tuple(answer for answer in answers if answer is not None)


def _interrupted_answer(turn: list[Envelope], known: Container[str]) -> Message | None:
    begin = next((envelope.event for envelope in turn if isinstance(envelope.event, TurnStarted)), None)
    if begin is None or begin.message_id in known:
        return None
    answer = AnswerBuilder(begin.message_id, begin.model)
    for envelope in turn:
        answer.feed(envelope.event, envelope.at)
    return answer.message(MessageState.INTERRUPTED, turn[-1].at) if answer.has_content else None


def _open_calls(messages: Sequence[Message], journal: Sequence[Envelope], stopped_run: str | None) -> OpenCalls | None:
    """Return the calls of a final whole answer, if the run they belong to never ended."""
    answer = messages[-1] if messages else None
    if answer is None or not _has_open_calls(answer):
        return None
    turn = _turn_of(answer, journal)
    if not turn or turn[0].run_id == stopped_run:
        return None
    run = [envelope for envelope in journal if envelope.run_id == turn[0].run_id]
    continued = [envelope.event for envelope in run if isinstance(envelope.event, ContinuationInjected)]
    recovered = replace(
        _recovered_calls(turn), guard_iterations={event.guard_name: event.iteration for event in continued}
    )
    if any(resolved.by == "stop" and id_ not in recovered.finished for id_, resolved in recovered.decided.items()):
        return None
    progress = tuple(envelope for envelope in turn if isinstance(envelope.event, ToolProgress | ToolFinished))
    results = Message.tool_results([_result_of(call, recovered) for call in answer.tool_uses])
    return OpenCalls(run[-1], recovered, results, progress)


def _has_open_calls(answer: Message) -> bool:
    is_whole = answer.role is Role.ASSISTANT and answer.state is MessageState.COMPLETE
    return is_whole and bool(answer.tool_uses) and answer.stop_reason is not StopReason.REFUSAL


def _turn_of(answer: Message, journal: Sequence[Envelope]) -> list[Envelope]:
    """Return only this turn's events: a server may have used the same call ids in an earlier one."""
    turns = {
        (envelope.run_id, envelope.turn_id)
        for envelope in journal
        if isinstance(envelope.event, TurnStarted) and envelope.event.message_id == answer.id
    }
    return [envelope for envelope in journal if (envelope.run_id, envelope.turn_id) in turns]


def _recovered_calls(turn: Sequence[Envelope]) -> RecoveredCalls:
    finished: dict[str, ToolResult] = {}
    started: set[str] = set()
    announced: set[str] = set()
    decided: dict[str, ApprovalResolved] = {}
    waiting: dict[str, ApprovalRequested] = {}
    for envelope in turn:
        match envelope.event:
            case ToolCallPending() as event:
                announced.add(event.id)
            case ApprovalRequested() as event:
                waiting[event.tool_use_id] = event
            case ApprovalResolved() as event:
                waiting.pop(event.tool_use_id, None)
                decided[event.tool_use_id] = event
            case ToolStarted() as event:
                started.add(event.id)
            case ToolFinished() as event:
                finished[event.id] = event.result
            case _:
                pass
    return RecoveredCalls(finished, frozenset(started), decided, waiting, frozenset(announced))


def _prior_use(run_id: str, messages: Sequence[Message], journal: Sequence[Envelope]) -> PriorUse:
    """Return what this run, and all runs below it, have used: by messages, and by the journal where there are none."""
    journal = [envelope for envelope in journal if envelope.run_id == run_id or envelope.parent_run_id is not None]
    own = [envelope.event for envelope in journal if envelope.run_id == run_id]
    turns = {event.message_id: event.turn_id for event in own if isinstance(event, TurnStarted)}
    summaries = {event.summary for event in own if isinstance(event, ContextCompacted)}
    committed = [
        message.usage
        for message in messages
        if message.id in turns or ((summary := summary_of(message)) is not None and summary.text in summaries)
    ]
    known = {turns.get(message.id) for message in messages}
    # A specialist's summaries are in no message.
    compacted = (row.event for row in journal if row.run_id != run_id and isinstance(row.event, ContextCompacted))
    counted = (*committed, *_turn_usages(journal, known), *(event.usage for event in compacted))
    usages = [usage for usage in counted if usage is not None]
    reported = [event.cost for event in own if isinstance(event, CostUpdated)]
    costs = [usage.cost for usage in usages if usage.cost is not None]
    # Failed attempts are only in the reported costs, and later turns only in the sum.
    cost = max((sum(costs), *reported)) if costs or reported else None
    tool_batches = sum(isinstance(event, ToolResultsReceived) for event in own)
    return PriorUse(len(turns), tool_batches, sum(map(tokens_used, usages)), cost, _seconds_at_work(run_id, journal))


def _turn_usages(journal: Sequence[Envelope], known: Container[str | None]) -> Iterable[Usage]:
    """Yield the usage of each turn but the known ones. Answers of specialists are in the journal alone."""
    turns: dict[str | None, AnswerUsage] = {}
    for envelope in journal:
        if envelope.turn_id not in known:
            turns.setdefault(envelope.turn_id, AnswerUsage()).feed(envelope.event)
    return (used for answer in turns.values() if (used := answer.total) is not None)


def _seconds_at_work(run_id: str, journal: Sequence[Envelope]) -> float:
    """Return the time between the run's events, without waits for a person and gaps between two processes."""
    seconds, before, clock = 0.0, None, _WorkTime(run_id)
    for envelope in sorted(journal, key=lambda row: row.at):
        if isinstance(envelope.event, RunStarted) and envelope.event.resumed:
            before = None
        if before is not None and clock.is_running:
            seconds += (envelope.at - before).total_seconds()
        before = envelope.at
        clock.add(envelope)
    return seconds


class _WorkTime:
    """Whether the clock of a run was running at an event, as its budget counted then. Nested runs belong to it."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._parents: dict[str, str | None] = {}
        self._running: set[tuple[str, str]] = set()
        self._open_approvals: set[tuple[str, str]] = set()
        self._questions: set[str] = set()

    @property
    def is_running(self) -> bool:
        """Return whether the clock runs: while a person is asked, only if a call runs that does not wait itself."""
        if not self._open_approvals and not self._questions:
            return True
        waiting = Counter(self._parents.get(run_id) for run_id in self._waiting_runs())
        running = Counter(run_id for run_id, _ in self._running)
        if self._questions:
            del running[self._run_id]
        return any(count > waiting[run_id] for run_id, count in running.items())

    def add(self, envelope: Envelope) -> None:
        event, run_id = envelope.event, envelope.run_id
        self._parents[run_id] = envelope.parent_run_id
        match event:
            case RunStarted(resumed=True):
                # Approvals and questions of its specialists and tools are void; approvals of its own calls are not.
                self._open_approvals = {approval for approval in self._open_approvals if approval[0] == self._run_id}
                self._questions, self._running = set(), set()
            case QuestionAsked():
                self._questions.add(event.question_id)
            case QuestionAnswered():
                self._questions.discard(event.question_id)
            case ToolResultsReceived():
                self._open_approvals = {approval for approval in self._open_approvals if approval[0] != run_id}
            case _:
                self._on_call_event(event, run_id)

    def _on_call_event(self, event: Event, run_id: str) -> None:
        match event:
            case ApprovalRequested():
                self._open_approvals.add((run_id, event.tool_use_id))
            case ApprovalResolved():
                self._open_approvals.discard((run_id, event.tool_use_id))
            case ToolStarted():
                self._running.add((run_id, event.id))
            case ToolFinished():
                # An approval card that no longer fits its call ends silently.
                self._open_approvals.discard((run_id, event.id))
                self._running.discard((run_id, event.id))
            case _:
                pass

    def _waiting_runs(self) -> set[str]:
        """Return the runs with an open approval, and those above them."""
        run_ids: set[str] = set()
        for run_id, _ in self._open_approvals:
            ancestor: str | None = run_id
            while ancestor is not None and ancestor not in run_ids:
                run_ids.add(ancestor)
                ancestor = self._parents.get(ancestor)
        return run_ids


def _missing_results(messages: Sequence[Message], journal: Sequence[Envelope]) -> tuple[Message, ...]:
    calls = unanswered_calls(messages)
    if not calls:
        return ()
    answer = next(message for message in reversed(messages) if message.role is Role.ASSISTANT)
    recovered = _recovered_calls(_turn_of(answer, journal))
    return (Message.tool_results([_result_of(call, recovered) for call in calls]),)


def _result_of(call: ToolUse, recovered: RecoveredCalls) -> ToolResult:
    finished = recovered.finished.get(call.id)
    if finished is not None:
        return finished
    if call.id in recovered.started:
        return missing_result(call, Outcome.UNKNOWN, OUTCOME_UNKNOWN)
    return missing_result(call, Outcome.CANCELLED, _NOT_STARTED)


def mark_run_ended(writer: SessionWriter, last: Envelope) -> None:
    """Journal that the run is over, so that it is not recovered again."""
    writer.write_event(replace(last, seq=last.seq + 1, at=now(), event=RunFinished(RunEnd.ABORTED)))
    writer.journal_queue.finish_run_soon(last.run_id)


def close_calls(writer: SessionWriter, open_calls: OpenCalls) -> None:
    """Give each of these calls its result and end their run: nobody resumes them."""
    writer.add(open_calls.results)
    mark_run_ended(writer, open_calls.last)
