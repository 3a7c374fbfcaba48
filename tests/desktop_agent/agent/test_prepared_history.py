"""What a model reads, remembered from request to request: the same as worked out afresh, for any history."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from desktop_agent.agent import model_request
from desktop_agent.agent.model_request import PreparedHistory, count_pictures, without_abandoned
from desktop_agent.conversation.history import compacted_view, normalised_history
from desktop_agent.types.blocks import Image, Json, Summary, Text, ToolResult, ToolUse, UrlSource
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.provider_events import StopReason
from tests.frame.examples import examples

CALLS = st.lists(st.sampled_from("abc"), max_size=3)
PICTURE = Image(source=UrlSource(url="https://example.org/cat.png"))


def plain(history: Sequence[Message]) -> list[Message]:
    return without_abandoned(compacted_view(normalised_history(history)))


def answer(calls: Sequence[str], text: str, state: MessageState, stop: StopReason | None) -> Message:
    text_blocks = (Text(text=text),) if text else ()
    blocks = (*text_blocks, *(ToolUse(id=id_, name="f") for id_ in calls))
    return Message(role=Role.ASSISTANT, blocks=blocks, state=state, stop_reason=stop)


def results(calls: Sequence[str], picture: bool) -> Message:
    content = (Text(text="ok"), PICTURE) if picture else (Json(value=1),)
    return Message.tool_results([ToolResult(tool_use_id=id_, content=content) for id_ in calls])


PIECES = st.one_of(
    st.builds(
        answer,
        CALLS,
        st.sampled_from(["", "Yes."]),
        st.sampled_from(MessageState),
        st.sampled_from([None, StopReason.PAUSE_TURN]),
    ),
    st.builds(results, CALLS, st.booleans()),
    st.builds(Message.user, st.just("Go on.")),
    st.builds(lambda: Message.user_with_blocks((Text(text="see"), PICTURE))),
    st.builds(lambda: Message.user("Go on.").model_copy(update={"injected_by": "guard"})),
    st.builds(lambda: Message.user("Half a prompt.").model_copy(update={"state": MessageState.INTERRUPTED})),
    st.builds(Message.system, st.just("Be brief.")),
)


class OnePrepared(RuleBasedStateMachine):
    """A history that grows, is summarised, and is edited, read by one PreparedHistory all along."""

    def __init__(self) -> None:
        super().__init__()
        self.prepared_history = PreparedHistory()
        self.history: list[Message] = []
        self.serial = 0

    def add(self, message: Message) -> None:
        self.serial += 1
        self.history.append(message.model_copy(update={"id": f"m{self.serial}"}))

    @rule(pieces=st.lists(PIECES, min_size=1, max_size=6))
    def go_on(self, pieces: list[Message]) -> None:
        for piece in pieces:
            self.add(piece)

    @rule(back=st.integers(-3, 12), alone=st.booleans())
    def summarise(self, back: int, alone: bool) -> None:
        """Add a summary. Its first kept message may be deleted, or not be there yet."""
        block = Summary(text="In short.", first_kept_id=f"m{self.serial + 1 - back}")
        self.add(Message(role=Role.SYSTEM, blocks=(block,) if alone else (Text(text="Be brief."), block)))

    @rule(index=st.integers(0, 30), pieces=st.lists(PIECES, max_size=3))
    def say_something_else(self, index: int, pieces: list[Message]) -> None:
        """Go on from an earlier place."""
        del self.history[index:]
        self.go_on(pieces)

    @rule(index=st.integers(0, 30), piece=PIECES)
    def change_one(self, index: int, piece: Message) -> None:
        if index < len(self.history):
            self.history[index] = piece.model_copy(update={"id": self.history[index].id})

    @rule(index=st.integers(0, 30))
    def leave_one_out(self, index: int) -> None:
        del self.history[index : index + 1]

    @rule(index=st.integers(0, 30))
    def name_two_alike(self, index: int) -> None:
        if index < len(self.history) and self.history:
            self.history[-1] = self.history[-1].model_copy(update={"id": self.history[index].id})

    @invariant()
    def it_reads_what_would_be_read_afresh(self) -> None:
        read, places = self.prepared_history.read(tuple(self.history))
        assert read == plain(self.history)
        assert places == count_pictures(read)
        assert list(places) == sorted(places)


def test_a_reading_is_that_of_the_plain_function_whatever_happens_to_the_history() -> None:
    run_state_machine_as_test(
        OnePrepared, settings=settings(deadline=None, max_examples=examples(300), stateful_step_count=20)
    )


class MessageCounter:
    """Counts the messages that all functions over a history go through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for name in ("normalised_history", "compacted_view", "without_abandoned", "count_pictures"):
            monkeypatch.setattr(model_request, name, self._counting(getattr(model_request, name)))

    def _counting(self, real: Any) -> Any:
        def counting(messages: Sequence[Message], *more: Any) -> Any:
            self.count += len(messages)
            return real(messages, *more)

        return counting

    def taken(self) -> int:
        count, self.count = self.count, 0
        return count


def a_round(number: int) -> list[Message]:
    calls = answer((f"c{number}",), "Let me see.", MessageState.COMPLETE, None)
    return [Message.user("And?"), calls, results((f"c{number}",), picture=False), Message.assistant("So.")]


def test_what_was_read_before_is_not_gone_through_again(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared, counter = PreparedHistory(), MessageCounter(monkeypatch)
    history = [message for number in range(500) for message in a_round(number)]
    prepared.read(tuple(history))
    assert counter.taken() >= 2 * len(history)
    for number in range(500, 520):
        for message in a_round(number):
            history.append(message)
            read, _ = prepared.read(tuple(history))
            assert len(read) >= len(history)
            assert counter.taken() <= 20
    cut = Summary(text="In short.", first_kept_id=history[-8].id)
    history.append(Message(role=Role.SYSTEM, blocks=(cut,)))
    for message in a_round(520):
        history.append(message)
        read, _ = prepared.read(tuple(history))
        assert read == plain(history)
    counter.taken()
    history.append(Message.user("More?"))
    assert len(prepared.read(tuple(history))[0]) < 20
    assert counter.taken() <= 20


def test_a_late_result_belongs_to_what_was_read_already() -> None:
    """As after an edit that removed only the prompt between them."""
    prepared = PreparedHistory()
    calls = answer("ab", "", MessageState.COMPLETE, None)
    history = (calls, results("a", picture=False))
    prepared.read((*history, Message.user("And?")))
    late = (*history, results("b", picture=True))
    assert prepared.read(late)[0] == plain(late)
    assert plain(late)[-1].blocks[1] == late[-1].blocks[0]


def test_a_half_answer_before_an_answer_without_anything_in_it_is_given_up_only_until_the_next_prompt() -> None:
    prepared = PreparedHistory()
    half = answer((), "Ye", MessageState.INTERRUPTED, None)
    empty = answer((), "", MessageState.COMPLETE, None)
    history = (Message.user("And?"), half, empty, Message.user("Go on."))
    for end in range(1, len(history) + 1):
        prepared.read(history[:end])
    assert prepared.read(history)[0] == plain(history) == [history[0], half, history[3]]
    assert PreparedHistory().read(history)[0] == plain(history)


def test_the_messages_themselves_are_those_that_were_sent_before() -> None:
    """So that what is computed for a message can be kept with it."""
    prepared = PreparedHistory()
    history = tuple(message for number in range(5) for message in a_round(number))
    before, _ = prepared.read(history)
    after, _ = prepared.read((*history, Message.user("More?")))
    assert all(one is other for one, other in zip(before[:-1], after, strict=False))
    before.clear()
    assert prepared.read(history)[0] == plain(history)
