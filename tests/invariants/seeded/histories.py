"""Faults of what was said: answers as they are kept, and histories as a model reads them."""

from typing import Any

from desktop_agent.agent import model_request
from desktop_agent.conversation import history
from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.conversation.history import normalised_history
from desktop_agent.storage import journal_queue
from desktop_agent.types.blocks import Text, Thinking, ToolResult
from desktop_agent.types.messages import MessageState, Role
from desktop_agent.types.provider_events import ContentDelta
from tests.invariants.seeded.fault import Fault, everywhere, replaced


def _with_blocks(message: Any, blocks: Any) -> Any:
    return message.model_copy(update={"blocks": tuple(blocks)})


def _keeps_no_first_text(real: Any) -> Any:
    """What is committed is not what was shown."""

    def message(self: AnswerBuilder, state: Any, moment: Any) -> Any:
        whole = real(self, state, moment)
        first, *rest = whole.blocks or (None,)
        return _with_blocks(whole, rest) if rest and isinstance(first, Text) else whole

    return message


def _keeps_no_tail(real: Any) -> Any:
    def message(self: AnswerBuilder, state: Any, moment: Any) -> Any:
        whole = real(self, state, moment)
        if state is MessageState.INTERRUPTED and whole.blocks and isinstance(whole.blocks[-1], Text):
            return whole.model_copy(update={"blocks": whole.blocks[:-1]})
        return whole

    return message


def _drops_pieces(real: Any) -> Any:
    def feed(self: AnswerBuilder, event: Any, at: Any = None) -> None:
        if not (isinstance(event, ContentDelta) and event.text.startswith("a")):
            real(self, event, at)

    return feed


def _joins_nothing(_real: Any) -> Any:
    return lambda event, more: event


def _touches_thinking(real: Any) -> Any:
    def touched(block: Any) -> Any:
        if not isinstance(block, Thinking):
            return block
        return block.model_copy(update={"metadata": {**block.metadata, "seen": True}})

    def kept(messages: Any) -> Any:
        return [_with_blocks(message, map(touched, message.blocks)) for message in real(messages)]

    return kept


def _drops_silent_thinking(real: Any) -> Any:
    """What the model did not show looks like nothing, and is the state that must go back."""

    def fixed(messages: Any) -> Any:
        return tuple(
            _with_blocks(message, (block for block in message.blocks if not isinstance(block, Thinking) or block.text))
            for message in real(messages)
        )

    return fixed


def _names_results_anew(real: Any) -> Any:
    def fixed(messages: Any) -> Any:
        return tuple(
            message.model_copy(update={"id": f"{message.id}-again"}) if message.role is Role.TOOL else message
            for message in real(messages)
        )

    return fixed


def _cuts_anywhere(_real: Any) -> Any:
    def cut(messages: Any, first_kept_id: str) -> Any:
        index = next((place for place, message in enumerate(messages) if message.id == first_kept_id), None)
        return None if index is None else min(index + 2, len(messages))

    return cut


def _drops_a_kept_result(real: Any) -> Any:
    def sent(messages: Any) -> Any:
        shown = real(messages)
        if not shown or all(message.injected_by != history.COMPACTION_AUTHOR for message in shown):
            return shown
        return tuple(
            _with_blocks(message, message.blocks[1:])
            if any(isinstance(b, ToolResult) for b in message.blocks[1:])
            else message
            for message in shown
        )

    return sent


def _leaves_summaries_in(_real: Any) -> Any:
    return list


OF_HISTORIES = (
    Fault("another message is kept than shown", (9,), replaced(AnswerBuilder, "message", _keeps_no_first_text)),
    Fault("what is interrupted loses its tail", (9,), replaced(AnswerBuilder, "message", _keeps_no_tail)),
    Fault("pieces are dropped", (9,), replaced(AnswerBuilder, "feed", _drops_pieces)),
    Fault("the journal keeps first pieces only", (9,), replaced(journal_queue, "append_text", _joins_nothing)),
    Fault("thinking is touched", (10,), replaced(model_request, "without_abandoned", _touches_thinking)),
    Fault("thinking without words is dropped", (10,), everywhere(normalised_history, _drops_silent_thinking)),
    Fault("repairing twice is not repairing once", (10,), everywhere(normalised_history, _names_results_anew)),
    Fault("compaction cuts anywhere", (11,), replaced(history, "_kept_from", _cuts_anywhere)),
    Fault("compaction drops a result that it keeps", (11,), everywhere(history.compacted_view, _drops_a_kept_result)),
    Fault(
        "summaries go to the model as they are kept",
        (11,),
        replaced(history, "_without_summaries", _leaves_summaries_in),
    ),
)
