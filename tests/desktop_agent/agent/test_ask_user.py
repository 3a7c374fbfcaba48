"""The tool that asks the person."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from desktop_agent.agent.questions import (
    CHOICE_LIMIT,
    CHOICES_LIMIT,
    QUESTION_LIMIT,
    AskUserInput,
    QuestionBroker,
    ask_user,
)
from desktop_agent.tools.tool import RunningCall, Tool
from desktop_agent.types.blocks import JsonObject, ResultPart, Text
from desktop_agent.types.engine_events import EngineEvent, QuestionAnswered, QuestionAsked
from desktop_agent.types.errors import ToolFailed, ToolInputInvalid
from desktop_agent.types.tool_calls import ToolClass


@dataclass
class Desk:
    """A person who can be asked."""

    timeout: float = 600.0
    broker: QuestionBroker = field(default_factory=QuestionBroker)
    events: list[EngineEvent] = field(default_factory=list)

    @property
    def tool(self) -> Tool[AskUserInput]:
        return ask_user(self.broker, self.events.append, self.timeout)

    def call(self, arguments: JsonObject, *agent_path: str) -> "asyncio.Task[tuple[ResultPart, ...]]":
        tool = self.tool
        running = RunningCall("c1", lambda _text: None, agent_path)
        return asyncio.ensure_future(tool.run(tool.checked(arguments), running))  # type: ignore[arg-type]

    async def asked(self) -> QuestionAsked:
        while not self.events:
            await asyncio.sleep(0)
        question = self.events[0]
        assert isinstance(question, QuestionAsked)
        return question


def words(parts: tuple[ResultPart, ...]) -> str:
    (part,) = parts
    assert isinstance(part, Text)
    return part.text


async def test_an_answer_reaches_the_model_and_the_record() -> None:
    desk = Desk()
    call = desk.call({"question": " Which colour? ", "choices": ["red ", "green"], "free_text": False})
    question = await desk.asked()
    assert (question.question, question.choices, question.several, question.free_text) == (
        "Which colour?",
        ("red", "green"),
        False,
        False,
    )
    assert [entry.question_id for entry in desk.broker.open_questions] == [question.question_id]
    assert desk.broker.answer(question.question_id, "green")
    assert not desk.broker.answer(question.question_id, "red")
    assert words(await call) == "The person answered:\ngreen"
    assert desk.events[1:] == [QuestionAnswered(question.question_id, "green")]


async def test_several_choices_and_own_words() -> None:
    desk = Desk()
    call = desk.call({"question": "Which?", "choices": ["red", "green", "blue"], "several": True})
    question = await desk.asked()
    desk.broker.answer(question.question_id, ("something like teal", "blue", "red"))
    assert words(await call) == "The person answered:\nred\nblue\nsomething like teal"
    assert desk.events[1:] == [QuestionAnswered(question.question_id, "red\nblue\nsomething like teal")]


async def test_a_person_who_is_away_is_not_waited_for_for_ever() -> None:
    desk = Desk(timeout=0.01)
    text = words(await desk.call({"question": "Anyone?"}))
    assert "did not answer within 0.01 seconds" in text
    assert "Go on with what you know" in text
    question = await desk.asked()
    assert desk.events[1:] == [QuestionAnswered(question.question_id, None)]
    assert desk.broker.open_questions == ()
    assert not desk.broker.answer(question.question_id, "too late")


async def test_an_answer_in_the_moment_time_runs_out_counts() -> None:
    desk = Desk(timeout=0.0)
    call = desk.call({"question": "Anyone?"})
    question = await desk.asked()
    # The time is over, and the call has not heard of it yet.
    assert desk.broker.answer(question.question_id, "here")
    assert words(await call) == "The person answered:\nhere"
    assert desk.events[1:] == [QuestionAnswered(question.question_id, "here")]


async def test_a_cancel_withdraws_the_question() -> None:
    desk = Desk()
    call = desk.call({"question": "Anyone?"})
    question = await desk.asked()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert desk.broker.open_questions == ()
    assert desk.events[1:] == [QuestionAnswered(question.question_id, None)]


@pytest.mark.parametrize("ending", ["answer", "timeout", "cancel"])
async def test_time_at_work_stands_still_while_the_person_is_waited_for(ending: str) -> None:
    desk = Desk(timeout=0.01 if ending == "timeout" else 600.0)
    entered: list[str] = []

    @contextmanager
    def waiting() -> Generator[None]:
        entered.append("waits")
        try:
            yield
        finally:
            entered.append("works")

    tool = ask_user(desk.broker, desk.events.append, desk.timeout, waiting=waiting)
    call = asyncio.ensure_future(tool.run(AskUserInput(question="Anyone?"), RunningCall("c1", lambda _text: None)))
    question = await desk.asked()
    assert entered == ["waits"]
    if ending == "answer":
        desk.broker.answer(question.question_id, "here")
    elif ending == "cancel":
        call.cancel()
    await asyncio.wait({call})
    assert call.cancelled() == (ending == "cancel")
    assert entered == ["waits", "works"]


async def test_a_question_that_is_withdrawn_lets_the_model_go_on() -> None:
    desk = Desk()
    call = desk.call({"question": "Anyone?"})
    question = await desk.asked()
    desk.broker.withdraw(question.question_id)
    text = words(await call)
    assert text.startswith("The question was withdrawn.")
    assert "Go on with what you know" in text


async def test_two_questions_wait_side_by_side() -> None:
    desk = Desk()
    calls = [desk.call({"question": question}) for question in ("First?", "Second?")]
    await desk.asked()
    while len(desk.broker.open_questions) < 2:
        await asyncio.sleep(0)
    for question in reversed(desk.broker.open_questions):
        desk.broker.answer(question.question_id, f"to {question.question}")
    assert [words(parts) for parts in await asyncio.gather(*calls)] == [
        "The person answered:\nto First?",
        "The person answered:\nto Second?",
    ]


async def test_a_specialist_cannot_ask() -> None:
    desk = Desk()
    with pytest.raises(ToolFailed, match="root agent"):
        await desk.call({"question": "Anyone?"}, "researcher")
    assert (desk.events, desk.broker.open_questions) == ([], ())


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"question": " "},
        {"question": "x" * (QUESTION_LIMIT + 1)},
        {"question": "?", "choices": ["a"] * 2},
        {"question": "?", "choices": ["a", " "]},
        {"question": "?", "choices": ["x" * (CHOICE_LIMIT + 1)]},
        {"question": "?", "choices": [str(number) for number in range(CHOICES_LIMIT + 1)]},
        {"question": "?", "free_text": False},
        {"question": "?", "more": 1},
    ],
)
def test_what_cannot_be_shown_or_answered_is_refused(arguments: JsonObject) -> None:
    with pytest.raises(ToolInputInvalid):
        Desk().tool.checked(arguments)


def test_the_largest_question_is_taken() -> None:
    choices = [f"{number:0{CHOICE_LIMIT}}" for number in range(CHOICES_LIMIT)]
    checked = Desk().tool.checked({"question": "x" * QUESTION_LIMIT, "choices": choices})
    assert checked.choices == choices


def test_it_changes_nothing_and_has_time_to_wait() -> None:
    tool = Desk(timeout=5.0).tool
    assert (tool.tool_class, tool.effects) == (ToolClass.READ_ONLY, frozenset())
    assert tool.timeout > 5.0
