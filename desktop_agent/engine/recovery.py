"""What a process that died left behind: its journal becomes messages again."""

from collections.abc import Iterable
from itertools import groupby

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.conversation.repair import missing_result, unanswered
from desktop_agent.vocabulary.blocks import Outcome, ToolResult, ToolUse
from desktop_agent.vocabulary.engine_events import Envelope, ToolFinished, ToolStarted, TurnStarted
from desktop_agent.vocabulary.messages import Message, MessageState, Role

_STARTED = "The program ended while this call was running. Whether it took effect is not known; it is not run again."
_NOT_STARTED = "The program ended before this call was started."


def recovered_messages(messages: tuple[Message, ...], journal: Iterable[Envelope]) -> tuple[Message, ...]:
    """Messages to add behind the committed ones: answers that broke off, and a result for every open call."""
    known = {message.id for message in messages}
    added: list[Message] = []
    envelopes = list(journal)
    for _, turn in groupby(envelopes, key=lambda envelope: envelope.turn_id):
        message = _broken_answer(list(turn))
        if message is not None and message.id not in known:
            known.add(message.id)
            added.append(message)
    everything = (*messages, *added)
    results = _results_for(unanswered(everything), _turn_of_last_answer(everything, envelopes))
    if results:
        added.append(Message.tool_results(results))
    return tuple(added)


def _turn_of_last_answer(messages: tuple[Message, ...], envelopes: list[Envelope]) -> list[Envelope]:
    """Only this turn's events: a server may have used the same call ids in an earlier one."""
    last = next((message.id for message in reversed(messages) if message.role is Role.ASSISTANT), None)
    turns = {
        envelope.turn_id
        for envelope in envelopes
        if isinstance(envelope.event, TurnStarted) and envelope.event.message_id == last
    }
    return [envelope for envelope in envelopes if envelope.turn_id in turns]


def _broken_answer(turn: list[Envelope]) -> Message | None:
    begin = next((envelope.event for envelope in turn if isinstance(envelope.event, TurnStarted)), None)
    if begin is None:
        return None
    answer = AnswerBuilder(begin.message_id, begin.model)
    for envelope in turn:
        answer.feed(envelope.event, envelope.at)
    return answer.message(MessageState.INTERRUPTED, turn[-1].at) if answer.has_content else None


def _results_for(calls: tuple[ToolUse, ...], envelopes: list[Envelope]) -> list[ToolResult]:
    finished: dict[str, ToolResult] = {}
    started: set[str] = set()
    for envelope in envelopes:
        if isinstance(envelope.event, ToolFinished):
            finished[envelope.event.id] = envelope.event.result
        elif isinstance(envelope.event, ToolStarted):
            started.add(envelope.event.id)
    return [finished.get(call.id) or _lost(call, was_started=call.id in started) for call in calls]


def _lost(call: ToolUse, *, was_started: bool) -> ToolResult:
    if was_started:
        return missing_result(call, Outcome.UNKNOWN, _STARTED)
    return missing_result(call, Outcome.CANCELLED, _NOT_STARTED)
