"""Questions to the person: the first answer counts, and only what is an answer."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from desktop_agent.agent.questions import ANSWER_LIMIT, Question, QuestionBroker
from desktop_agent.types.errors import WrongUse
from tests.frame.examples import examples

Done = TypeVar("Done")
CHOICES = ("red", "green", "blue")
ANSWERS = st.lists(st.sampled_from((*CHOICES, "mauve", "a shade\nof grey", " ", "")), max_size=4)


class Questions(RuleBasedStateMachine):
    """A broker, compared with the open and ended questions that it must know. Each waiter is a task."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.broker = QuestionBroker()
        self.open: dict[str, Question] = {}
        self.waiting: dict[str, asyncio.Task[tuple[str, ...] | None]] = {}
        self.ended: dict[str, tuple[str, ...] | None] = {}

    def teardown(self) -> None:
        for question_id in self.open:
            self.on_loop(partial(self.broker.withdraw, question_id))
        self.runner.run(asyncio.sleep(0))
        self.runner.close()

    def on_loop(self, work: Callable[[], Done]) -> Done:
        async def run() -> Done:
            return work()

        return self.runner.run(run())

    @rule(choices=st.booleans(), several=st.booleans(), free_text=st.booleans())
    def ask(self, choices: bool, several: bool, free_text: bool) -> None:
        def work() -> None:
            offered = CHOICES if choices else ()
            if not choices and not free_text:
                with pytest.raises(WrongUse):
                    self.broker.ask("?", offered, several=several, free_text=free_text)
                return
            question = self.broker.ask("?", offered, several=several, free_text=free_text)
            self.open[question.question_id] = question
            self.waiting[question.question_id] = asyncio.ensure_future(question.answer())

        self.on_loop(work)

    @precondition(lambda self: self.open)
    @rule(place=st.integers(0, 5), answer=ANSWERS, alone=st.booleans())
    def answer(self, place: int, answer: list[str], alone: bool) -> None:
        question_id, question = list(self.open.items())[place % len(self.open)]
        reply = answer[0] if alone and answer else answer
        parts = {reply} if isinstance(reply, str) else set(reply)
        own = parts - set(question.choices)
        is_one = (
            bool(parts)
            and (question.several or len(parts) == 1)
            and (question.free_text or not own)
            and all(part.strip() for part in own)
        )
        if not is_one:
            with pytest.raises(WrongUse):
                self.on_loop(lambda: self.broker.answer(question_id, reply))
            return
        assert self.on_loop(lambda: self.broker.answer(question_id, reply))
        del self.open[question_id]
        stored = question.current_answer
        assert stored is not None
        assert (set(stored), len(stored)) == (parts, len(parts))
        assert [part for part in stored if part in question.choices] == [c for c in question.choices if c in parts]
        self.ended[question_id] = stored

    @precondition(lambda self: self.ended)
    @rule(place=st.integers(0, 5), answer=ANSWERS)
    def answer_what_has_ended(self, place: int, answer: list[str]) -> None:
        question_id = list(self.ended)[place % len(self.ended)]
        assert not self.on_loop(lambda: self.broker.answer(question_id, answer))
        assert not self.on_loop(lambda: self.broker.withdraw(question_id))

    @precondition(lambda self: self.open)
    @rule(place=st.integers(0, 5))
    def withdraw(self, place: int) -> None:
        question_id = list(self.open)[place % len(self.open)]
        assert self.on_loop(lambda: self.broker.withdraw(question_id))
        del self.open[question_id]
        self.ended[question_id] = None

    @invariant()
    def it_holds_what_is_open(self) -> None:
        assert [question.question_id for question in self.broker.open_questions] == list(self.open)

    @invariant()
    def whoever_waits_hears_what_was_answered(self) -> None:
        self.runner.run(asyncio.sleep(0))
        self.runner.run(asyncio.sleep(0))
        assert {id_: task.result() for id_, task in self.waiting.items() if task.done()} == self.ended


def test_the_first_answer_counts_and_only_what_is_one() -> None:
    run_state_machine_as_test(Questions, settings=settings(deadline=None, max_examples=examples(100)))


async def test_words_of_the_person_have_a_bound() -> None:
    broker = QuestionBroker()
    question = broker.ask("?", several=True)
    with pytest.raises(WrongUse, match="20,000"):
        broker.answer(question.question_id, ("a" * ANSWER_LIMIT, "b"))
    assert broker.answer(question.question_id, "a" * ANSWER_LIMIT)


async def test_an_unknown_question_takes_no_answer() -> None:
    assert not QuestionBroker().answer("none", "yes")


async def test_who_stops_waiting_leaves_the_question_open() -> None:
    broker = QuestionBroker()
    question = broker.ask("?")
    waiting = asyncio.ensure_future(question.answer())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert broker.answer(question.question_id, "still")
    assert await question.answer() == ("still",)


@pytest.mark.parametrize("answer", [3, None, ["red", 3], {"red": 1}.items()])
async def test_what_is_no_answer_is_refused_and_the_question_waits(answer: Any) -> None:
    broker = QuestionBroker()
    question = broker.ask("Which?", ["red", "green"], several=True)
    with pytest.raises(WrongUse):
        broker.answer(question.question_id, answer)
    assert broker.open_questions == (question,)
