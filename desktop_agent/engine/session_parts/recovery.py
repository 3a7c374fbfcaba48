"""What a process that died left behind: its journal becomes messages again, and calls that can be gone on with."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from desktop_agent.agent.calls.left_over import LeftOver
from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.conversation.repair import missing_result, unanswered
from desktop_agent.engine.writer import Writer
from desktop_agent.vocabulary.blocks import Outcome, ToolResult, ToolUse
from desktop_agent.vocabulary.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    RunEnd,
    RunFinished,
    ToolCallPending,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.vocabulary.messages import Message, MessageState, Role, now
from desktop_agent.vocabulary.provider_events import StopReason

_STARTED = "The program ended while this call was running. Whether it took effect is not known; it is not run again."
_NOT_STARTED = "The program ended before this call was started."


@dataclass(frozen=True)
class OpenCalls:
    """The open calls of a run that can be gone on with. `last` is the last envelope of its journal.

    `results` answers all of them, for when nobody goes on. `shown` is what the transcript is to be told of them.
    """

    last: Envelope
    left: LeftOver
    results: Message
    shown: tuple[Envelope, ...] = ()


@dataclass(frozen=True)
class Recovery:
    """What is to be done about a journal.

    `messages` go behind the committed ones. `ended` has the last envelope of each run that is over.
    """

    messages: tuple[Message, ...] = ()
    ended: tuple[Envelope, ...] = ()
    open_calls: OpenCalls | None = field(default=None)


def recovered(messages: Sequence[Message], journal: Sequence[Envelope], stopped_run: str | None = None) -> Recovery:
    """Answers that broke off, with a result for each of their calls; the calls of a whole answer stay open.

    `stopped_run` is the run that the person stopped: nothing of it is gone on with.
    """
    roots = [envelope for envelope in journal if envelope.parent_run_id is None]
    answers = _broken_answers(messages, roots)
    everything = (*messages, *answers)
    open_calls = None if answers else _open_calls(everything, roots, stopped_run)
    results = () if open_calls is not None else _results(everything, roots)
    last = {envelope.run_id: envelope for envelope in journal}
    if open_calls is not None:
        del last[open_calls.last.run_id]
    return Recovery((*answers, *results), tuple(last.values()), open_calls)


def _broken_answers(messages: Sequence[Message], journal: Sequence[Envelope]) -> tuple[Message, ...]:
    known = {message.id for message in messages}
    found: list[Message] = []
    for _, turn in groupby(journal, key=lambda envelope: (envelope.run_id, envelope.turn_id)):
        message = _broken_answer(list(turn))
        if message is not None and message.id not in known:
            known.add(message.id)
            found.append(message)
    return tuple(found)


def _broken_answer(turn: list[Envelope]) -> Message | None:
    begin = next((envelope.event for envelope in turn if isinstance(envelope.event, TurnStarted)), None)
    if begin is None:
        return None
    answer = AnswerBuilder(begin.message_id, begin.model)
    for envelope in turn:
        answer.feed(envelope.event, envelope.at)
    return answer.message(MessageState.INTERRUPTED, turn[-1].at) if answer.has_content else None


def _open_calls(messages: Sequence[Message], journal: Sequence[Envelope], stopped_run: str | None) -> OpenCalls | None:
    """The calls of a whole answer that nothing was said after, if the run they belong to never ended."""
    answer = messages[-1] if messages else None
    if answer is None or not _is_acted_upon(answer):
        return None
    turn = _turn_of(answer, journal)
    if not turn or turn[0].run_id == stopped_run:
        return None
    left = _left_over(turn)
    if any(resolved.by == "stop" and id_ not in left.finished for id_, resolved in left.decided.items()):
        return None
    run = [envelope for envelope in journal if envelope.run_id == turn[0].run_id]
    shown = tuple(each for each in turn if isinstance(each.event, ToolProgress | ToolFinished))
    results = Message.tool_results([_result(call, left) for call in answer.tool_uses])
    return OpenCalls(run[-1], left, results, shown)


def _is_acted_upon(answer: Message) -> bool:
    is_whole = answer.role is Role.ASSISTANT and answer.state is MessageState.COMPLETE
    return is_whole and bool(answer.tool_uses) and answer.stop_reason is not StopReason.REFUSAL


def _turn_of(answer: Message | None, journal: Sequence[Envelope]) -> list[Envelope]:
    """Only this turn's events: a server may have used the same call ids in an earlier one."""
    turns = {
        (envelope.run_id, envelope.turn_id)
        for envelope in journal
        if answer is not None and isinstance(envelope.event, TurnStarted) and envelope.event.message_id == answer.id
    }
    return [envelope for envelope in journal if (envelope.run_id, envelope.turn_id) in turns]


def _left_over(turn: Sequence[Envelope]) -> LeftOver:
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
    return LeftOver(finished, frozenset(started), decided, waiting, frozenset(announced))


def _results(messages: Sequence[Message], journal: Sequence[Envelope]) -> tuple[Message, ...]:
    calls = unanswered(messages)
    if not calls:
        return ()
    answer = next((message for message in reversed(messages) if message.role is Role.ASSISTANT), None)
    left = _left_over(_turn_of(answer, journal))
    return (Message.tool_results([_result(call, left) for call in calls]),)


def _result(call: ToolUse, left: LeftOver) -> ToolResult:
    finished = left.finished.get(call.id)
    if finished is not None:
        return finished
    if call.id in left.started:
        return missing_result(call, Outcome.UNKNOWN, _STARTED)
    return missing_result(call, Outcome.CANCELLED, _NOT_STARTED)


def end_run(writer: Writer, last: Envelope) -> None:
    """Say in the journal that the run is over, so that nobody looks at it again."""
    writer.take(replace(last, seq=last.seq + 1, at=now(), event=RunFinished(RunEnd.ABORTED)))
    writer.ledger.forget_pieces(last.run_id)


def close_calls(writer: Writer, open_calls: OpenCalls) -> None:
    """Nobody goes on with these calls: each gets its result, and their run is over."""
    writer.add(open_calls.results)
    end_run(writer, open_calls.last)
