"""Waiting messages: whatever is done to the queue, each is delivered once or handed back, in order."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from desktop_agent.agent.steering_queue import SteeringQueue
from desktop_agent.types.blocks import Text
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import QueuedMessage, When
from tests.frame.examples import examples

WHENS = st.sampled_from(("soon", "idle"))
PLACES = st.integers(0, 7)
TEXTS = st.text(min_size=1, max_size=5).filter(str.strip)


class Steered(RuleBasedStateMachine):
    """The queue, compared with a plain list. `saved` is what a listener saved at the last change."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = SteeringQueue(on_change=self.save)
        self.saved: tuple[QueuedMessage, ...] = ()
        self.model: list[tuple[str, str, When]] = []
        self.ever: list[str] = []
        self.removed: list[str] = []

    def save(self) -> None:
        self.saved = self.queue.entries

    def pick(self, place: int) -> int:
        return place % len(self.model)

    @rule(text=TEXTS, when=WHENS)
    def add(self, text: str, when: When) -> None:
        message = Message.user(text)
        self.queue.add(message, when)
        self.model.append((message.id, text, when))
        self.ever.append(message.id)

    @precondition(lambda self: self.model)
    @rule(place=PLACES, when=WHENS)
    def add_again(self, place: int, when: When) -> None:
        message_id = self.model[self.pick(place)][0]
        with pytest.raises(WrongUse):
            self.queue.add(Message.user("again").model_copy(update={"id": message_id}), when)

    @precondition(lambda self: self.model)
    @rule(place=PLACES, text=TEXTS)
    def edit(self, place: int, text: str) -> None:
        index = self.pick(place)
        message_id, _, when = self.model[index]
        self.queue.edit(message_id, [Text(text=text)])
        self.model[index] = (message_id, text, when)

    @precondition(lambda self: self.model)
    @rule(place=PLACES, when=WHENS)
    def put_off(self, place: int, when: When) -> None:
        index = self.pick(place)
        message_id, text, _ = self.model[index]
        self.queue.edit(message_id, when=when)
        self.model[index] = (message_id, text, when)

    @precondition(lambda self: self.model)
    @rule(place=PLACES, to=st.integers(-3, 10))
    def move(self, place: int, to: int) -> None:
        entry = self.model.pop(self.pick(place))
        self.queue.move(entry[0], to)
        to = min(max(to, 0), len(self.model))
        self.model[to:to] = [entry]

    @precondition(lambda self: self.model)
    @rule(place=PLACES)
    def remove(self, place: int) -> None:
        message_id, text, when = self.model.pop(self.pick(place))
        taken = self.queue.remove(message_id)
        assert (taken.id, taken.message.text, taken.when) == (message_id, text, when)
        self.removed.append(message_id)

    @precondition(lambda self: self.removed)
    @rule(place=PLACES)
    def reach_for_what_is_gone(self, place: int) -> None:
        message_id = self.removed[place % len(self.removed)]
        with pytest.raises(WrongUse):
            self.queue.edit(message_id, [Text(text="x")])
        with pytest.raises(WrongUse):
            self.queue.move(message_id, 0)
        with pytest.raises(WrongUse):
            self.queue.remove(message_id)

    @rule()
    def take_next(self) -> None:
        message = self.queue.take_next()
        if not self.model:
            assert message is None
            return
        assert message is not None
        assert (message.id, message.text) == self.model[0][:2]
        self.removed.append(self.model.pop(0)[0])

    @rule()
    def hand_back(self) -> None:
        assert [(entry.id, entry.message.text, entry.when) for entry in self.queue.take_all()] == self.model
        self.removed += [entry[0] for entry in self.model]
        self.model = []

    @invariant()
    def it_holds_what_the_model_holds(self) -> None:
        assert [(entry.id, entry.message.text, entry.when) for entry in self.queue.entries] == self.model

    @invariant()
    def each_message_is_in_one_place(self) -> None:
        waiting = [entry.id for entry in self.queue.entries]
        assert sorted(waiting + self.removed) == sorted(self.ever)

    @invariant()
    def every_change_was_told(self) -> None:
        assert self.saved == self.queue.entries


def test_each_message_is_delivered_once_or_handed_back_in_order() -> None:
    run_state_machine_as_test(Steered, settings=settings(deadline=None, max_examples=examples(100)))


def test_a_queue_that_was_kept_goes_on_where_it_was() -> None:
    first, second = Message.user("first"), Message.user("second")
    before = SteeringQueue()
    before.add(first, "idle")
    before.add(second)
    after = SteeringQueue(before.entries)
    assert (after.take_next(), after.take_next(), after.take_next()) == (first, second, None)


def test_what_changes_nothing_is_not_told() -> None:
    changes: list[int] = []
    queue = SteeringQueue(on_change=lambda: changes.append(1))
    assert (queue.take_next(), queue.take_all()) == (None, ())
    assert changes == []


def test_what_cannot_be_sent_cannot_wait() -> None:
    queue = SteeringQueue()
    for wrong in (Message.assistant("an answer"), Message.user_with_blocks(())):
        with pytest.raises(WrongUse):
            queue.add(wrong)
    message = Message.user("hello")
    queue.add(message)
    with pytest.raises(WrongUse):
        queue.edit(message.id, ())
    assert [entry.message for entry in queue.entries] == [message]


@pytest.mark.parametrize("place", ["first", 0.5])
def test_a_place_that_is_none_loses_no_message(place: Any) -> None:
    message = Message.user("waits")
    queue = SteeringQueue([QueuedMessage(message=message)])
    with pytest.raises(TypeError):
        queue.move(message.id, place)
    assert [entry.message for entry in queue.entries] == [message]


@pytest.mark.parametrize("blocks", [(), (Text(text=" \n"),), (Text(text=""), Text(text="\t"))])
def test_what_says_nothing_does_not_wait(blocks: tuple[Text, ...]) -> None:
    queue = SteeringQueue()
    with pytest.raises(WrongUse, match="is empty"):
        queue.add(Message.user_with_blocks(blocks))
    waits = Message.user("wait")
    queue.add(waits)
    with pytest.raises(WrongUse, match="is empty"):
        queue.edit(waits.id, blocks)
    assert [entry.message for entry in queue.entries] == [waits]
