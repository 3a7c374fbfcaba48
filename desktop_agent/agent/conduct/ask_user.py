"""The tool that asks the person something: choices, several of them, or words of their own."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from desktop_agent.agent.conduct.questions import Question, QuestionBroker
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.engine_events import EngineEvent, QuestionAnswered, QuestionAsked
from desktop_agent.vocabulary.errors import ToolFailed
from desktop_agent.vocabulary.tool_calls import ToolClass

QUESTION_LIMIT = 4_000
CHOICE_LIMIT = 500
CHOICES_LIMIT = 20
# The tool ends its own waiting; the schedule's time limit must not come first.
_TIMEOUT_SLACK = 30.0
_DESCRIPTION = (
    "Ask the person a question and wait for the answer. Use it when you cannot go on without a decision that is "
    "theirs; do not ask what you can find out yourself. Nobody may be there to answer."
)

_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Choice = Annotated[_Words, StringConstraints(max_length=CHOICE_LIMIT)]


class AskUserInput(BaseModel):
    """What to ask."""

    model_config = ConfigDict(extra="forbid")

    question: Annotated[_Words, StringConstraints(max_length=QUESTION_LIMIT)] = Field(
        description="One question, complete in itself: the person may not have read what came before."
    )
    choices: list[_Choice] = Field(
        default=[], max_length=CHOICES_LIMIT, description="Answers to choose from, each different."
    )
    several: bool = Field(default=False, description="Whether more than one choice may be taken.")
    free_text: bool = Field(default=True, description="Whether the person may answer in their own words.")

    @model_validator(mode="after")
    def _can_be_answered(self) -> Self:
        if len(set(self.choices)) < len(self.choices):
            raise ValueError("two choices are the same")
        if not self.choices and not self.free_text:
            raise ValueError("without choices, free_text must be true")
        return self


def ask_user(
    broker: QuestionBroker,
    emit: Callable[[EngineEvent], None],
    timeout: float = 600.0,
    *,
    waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Tool[AskUserInput]:
    """Make the tool. `timeout` is how long the person has, in seconds; `emit` puts events into the run.

    `waiting` is entered while a person is waited for, so that a budget can let its time stand still.
    """

    async def run(wanted: AskUserInput, call: RunningCall) -> tuple[Text, ...]:
        if call.agent_path:
            raise ToolFailed(
                "Only the root agent can ask the person.", "End with what is missing, so that your caller can ask."
            )
        question = broker.ask(wanted.question, wanted.choices, several=wanted.several, free_text=wanted.free_text)
        try:
            emit(_asked_event(question))
            with waiting():
                is_over = await _has_timed_out(question, timeout)
        finally:
            broker.withdraw(question.question_id)
            emit(QuestionAnswered(question.question_id, _joined_answer(question)))
        return (Text(text=_answer_text(question, timeout if is_over else None)),)

    return Tool(
        name="ask_user",
        description=_DESCRIPTION,
        schema=ModelSchema(AskUserInput),
        run=run,
        tool_class=ToolClass.READ_ONLY,
        timeout=timeout + _TIMEOUT_SLACK,
    )


async def _has_timed_out(question: Question, seconds: float) -> bool:
    """Wait for the end of the question; whether the time ran out first."""
    try:
        async with asyncio.timeout(seconds):
            await question.answer()
    except TimeoutError:
        return True
    return False


def _asked_event(question: Question) -> QuestionAsked:
    return QuestionAsked(
        question.question_id, question.question, question.choices, question.several, question.free_text
    )


def _joined_answer(question: Question) -> str | None:
    return None if question.given is None else "\n".join(question.given)


def _answer_text(question: Question, waited: float | None) -> str:
    # Also when the time ran out in the very moment in which the answer was taken.
    answer = _joined_answer(question)
    if answer is not None:
        return f"The person answered:\n{answer}"
    why = "The question was withdrawn." if waited is None else f"The person did not answer within {waited:g} seconds."
    return f"{why} Go on with what you know, or end your turn and say what you need to know."
