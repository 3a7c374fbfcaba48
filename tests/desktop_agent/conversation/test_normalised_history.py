"""Every call has exactly one result before the next user text."""

from collections.abc import Sequence
from operator import is_
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.conversation.history import normalised_history, unanswered_calls
from desktop_agent.types.blocks import Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.messages import Message, Role

CALL_IDS = st.sampled_from(["a", "b", "c"])
MESSAGES = st.one_of(
    st.builds(Message.user, st.just("hi")),
    st.builds(
        lambda ids: Message(role=Role.ASSISTANT, blocks=tuple(ToolUse(id=id_, name="t") for id_ in ids)),
        st.lists(CALL_IDS, unique=True),
    ),
    st.builds(
        lambda ids: Message.tool_results([ToolResult(tool_use_id=id_) for id_ in ids]), st.lists(CALL_IDS, max_size=4)
    ),
)


@given(st.lists(MESSAGES, max_size=12))
def test_repair_pairs_everything_and_is_idempotent(messages: list[Message]) -> None:
    fixed = normalised_history(messages)
    twice = normalised_history(fixed)
    assert (len(twice), all(map(is_, twice, fixed))) == (len(fixed), True)
    for position, message in enumerate(fixed):
        if message.tool_uses:
            results = [block for block in fixed[position + 1].blocks if isinstance(block, ToolResult)]
            assert [result.tool_use_id for result in results] == [call.id for call in message.tool_uses]
        if message.role is Role.TOOL:
            assert fixed[position - 1].tool_uses


def test_a_given_result_is_kept_and_a_missing_one_is_cancelled() -> None:
    question = Message(role=Role.ASSISTANT, blocks=(ToolUse(id="a", name="t"), ToolUse(id="b", name="t")))
    given_result = ToolResult(tool_use_id="b", content=(Text(text="done"),))
    fixed = normalised_history([question, Message.tool_results([given_result])])
    first, second = fixed[1].blocks
    assert isinstance(first, ToolResult)
    assert first.outcome is Outcome.CANCELLED
    assert second == given_result


def test_unanswered_names_the_open_calls_of_the_last_answer() -> None:
    a, b = ToolUse(id="a", name="t"), ToolUse(id="b", name="t")
    question = Message(role=Role.ASSISTANT, blocks=(a, b))
    assert unanswered_calls([question]) == (a, b)
    assert unanswered_calls([question, Message.tool_results([ToolResult(tool_use_id="a")])]) == (b,)


class _Counted(Sequence[Message]):
    """Counts how many messages are read."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.read = 0
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    def __getitem__(self, index: Any) -> Any:
        self.read += 1
        return self._messages[index]


def test_unanswered_reads_the_end_only() -> None:
    a = ToolUse(id="a", name="t")
    history = [Message.user("hi"), Message.assistant("hello")] * 500
    messages = _Counted([*history, Message(role=Role.ASSISTANT, blocks=(a,)), Message.tool_results([])])
    assert unanswered_calls(messages) == (a,)
    assert messages.read == 2
