"""The invariants, as far as they can be read off a history, a request, or the events of a run."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from desktop_agent.conversation.history import normalised_history
from desktop_agent.conversation.items import AnswerItem, Item, ThinkingItem, ToolCallItem, UserItem
from desktop_agent.types.blocks import Outcome, Summary, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.engine_events import Envelope, RunFinished, TurnStarted
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import ModelRequest
from desktop_agent.types.tool_calls import EDITED_BY_PERSON


class Broken(AssertionError):
    """An invariant does not hold."""

    def __init__(self, number: int, what: str) -> None:
        self.number = number
        super().__init__(f"[invariant {number}] {what}")


def require(true: object, number: int, what: str) -> None:
    """Raise Broken unless it is so."""
    if not true:
        raise Broken(number, what)


def results_follow_calls(messages: Sequence[Message], *, may_be_open: bool = False) -> None:
    """1 and 5: each call has exactly one result, in the message right behind it, in call order."""
    for position, message in enumerate(messages):
        if message.role is Role.TOOL:
            before = messages[position - 1] if position else None
            require(before is not None and before.tool_uses, 1, "results without calls")
        if not message.tool_uses:
            continue
        if position + 1 == len(messages) and may_be_open:
            continue
        answer = messages[position + 1] if position + 1 < len(messages) else None
        ids = [block.tool_use_id for block in answer.blocks if isinstance(block, ToolResult)] if answer else []
        called = [call.id for call in message.tool_uses]
        require(Counter(ids) == Counter(called), 1, f"calls {called}, results {ids}")
        require(ids == called, 5, f"calls {called} are answered in the order {ids}")


def results_are_of_their_calls(messages: Sequence[Message], acting: Iterable[str]) -> None:
    """1: ids that a server repeats pair per message. A tool of `acting` says what it was called with."""
    names = set(acting)
    for message, answer in pairwise(messages):
        calls = {call.id: call for call in message.tool_uses if call.name in names}
        for result in answer.blocks:
            if isinstance(result, ToolResult) and result.outcome is Outcome.SUCCEEDED and result.tool_use_id in calls:
                _is_of_its_call(result, calls[result.tool_use_id])


def _is_of_its_call(result: ToolResult, call: ToolUse) -> None:
    text = "".join(part.text for part in result.content if isinstance(part, Text))
    own = f"{call.name} {call.input.get('word')}"
    is_edited = text.endswith(f"{call.name} edited") and (
        text.startswith(EDITED_BY_PERSON) or text == f"{call.name} edited"
    )
    require(text == own or is_edited, 1, f"the call “{own}” has the result “{text}”")


def request_is_whole(
    request: ModelRequest, thought: Iterable[tuple[str, str]], history: Sequence[Message] = ()
) -> None:
    """1, 10 and 11, of what a model gets. `thought` is all reasoning that a model ever sent, with its state."""
    messages = [message for message in request.messages if message.role is not Role.SYSTEM]
    for message in request.messages:
        require(not any(isinstance(block, Summary) for block in message.blocks), 11, "a summary block is sent")
    if messages:
        require(messages[0].role is Role.USER, 11, f"the request begins with {messages[0].role}")
    try:
        results_follow_calls(messages)
    except Broken as broken:
        cut = messages and messages[0].injected_by == "compaction"
        raise Broken(11 if cut else broken.number, str(broken)) from None
    known = set(thought)
    for block in (block for message in messages for block in message.blocks if isinstance(block, Thinking)):
        if block.provider:
            require((block.text, repr(block.metadata)) in known, 10, f"reasoning was changed: {block!r}")
    in_history = {message.id: _thinking(message) for message in history}
    for message in messages:
        require(
            _thinking(message) == in_history.get(message.id, _thinking(message)),
            10,
            f"reasoning is left out: {message!r}",
        )


def _thinking(message: Message) -> list[Thinking]:
    return [block for block in message.blocks if isinstance(block, Thinking)]


def runs_are_whole(runs: dict[str, list[Envelope]], working: str | None) -> None:
    """6: numbers without gaps, and one end, last."""
    for run_id, envelopes in runs.items():
        numbers = [envelope.seq for envelope in envelopes]
        require(numbers == list(range(1, len(numbers) + 1)), 6, f"numbers of a run: {numbers}")
        ends = [position for position, envelope in enumerate(envelopes) if isinstance(envelope.event, RunFinished)]
        expected = [] if run_id == working and not ends else [len(envelopes) - 1]
        require(ends == expected, 6, f"a run of {len(envelopes)} events ended at {ends}")


def text_is_what_was_streamed(runs: dict[str, list[Envelope]], history: Sequence[Message]) -> None:
    """9: the pieces of an answer, joined, are its text, and none is lost."""
    streamed: dict[str, str] = {}
    for envelopes in runs.values():
        if envelopes[0].parent_run_id is not None:
            continue
        current = ""
        for envelope in envelopes:
            if isinstance(envelope.event, TurnStarted):
                current = envelope.event.message_id
                streamed.setdefault(current, "")
            elif isinstance(envelope.event, ContentDelta) and current:
                streamed[current] += envelope.event.text
    committed = {message.id: message.text for message in history}
    for id_, text in streamed.items():
        require(committed.get(id_, "") == text, 9, f"streamed {text!r}, committed {committed.get(id_)!r}")


def history_survives(history: Sequence[Message]) -> None:
    """10: repair is idempotent and changes nothing that is whole; JSON there and back is the same."""
    once = normalised_history(history)
    require(normalised_history(once) == once, 10, "repairing twice is not repairing once")
    for message in history:
        restored = Message.model_validate_json(message.model_dump_json())
        require(restored == message, 10, "JSON there and back changes a message")


def live_equals_replayed(live: Iterable[Item], replayed: Iterable[Item]) -> None:
    """6: what was shown as it happened is what is shown after reopening."""
    before, after = _shape(live), _shape(replayed)
    require(before == after, 6, f"live {before}\nreplayed {after}")


def _shape(items: Iterable[Item]) -> list[tuple[Any, ...]]:
    shapes: list[tuple[Any, ...]] = []
    for item in items:
        match item:
            case UserItem():
                shapes.append(("user", item.text))
            case AnswerItem():
                shapes.append(("answer", str(item.text)))
            case ThinkingItem():
                shapes.append(("thinking", str(item.text)))
            case ToolCallItem():
                shapes.append(("call", item.name, item.tool_use_id, repr(item.input), item.outcome))
            case _:
                pass
    return shapes
