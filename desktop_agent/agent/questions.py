"""Questions to the person that wait for an answer, and the tool `ask_user` that asks them."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Self, cast

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.types.blocks import Text
from desktop_agent.types.engine_events import EngineEvent, QuestionAnswered, QuestionAsked
from desktop_agent.types.errors import Sentence, ToolFailed, WrongUse
from desktop_agent.types.messages import new_id
from desktop_agent.types.tool_calls import ToolClass

ANSWER_LIMIT = 20_000


class Question:
    """One question. `several`: more than one choice may be taken; `free_text`: an answer in their own words is
    allowed. `asked` is the event that announces it.
    """

    def __init__(self, question: str, choices: tuple[str, ...], *, several: bool, free_text: bool) -> None:
        self.asked = QuestionAsked(new_id(), question, choices, several, free_text)
        self.question_id = self.asked.question_id
        self.question = question
        self.choices = choices
        self.several = several
        self.free_text = free_text
        self._ended: asyncio.Future[tuple[str, ...] | None] = asyncio.get_running_loop().create_future()

    @property
    def current_answer(self) -> tuple[str, ...] | None:
        return self._ended.result() if self._ended.done() else None

    async def answer(self) -> tuple[str, ...] | None:
        """Wait for the answer; None when the question was withdrawn. Cancelling the wait leaves the question open."""
        return await asyncio.shield(self._ended)

    def checked(self, answer: str | Iterable[str]) -> tuple[str, ...]:
        """Return the answer as it is stored: choices in their order, then the person's own words. Raises WrongUse."""
        parts = dict.fromkeys(_parts_of(answer))
        chosen = tuple(choice for choice in self.choices if choice in parts)
        own = tuple(part for part in parts if part not in self.choices)
        if own and not self.free_text:
            raise WrongUse("Only the choices are an answer to this question.", "Choose one of them.")
        if any(not part.strip() for part in own) or not parts:
            raise WrongUse("The answer is empty.", "Choose an answer or write one.")
        if sum(map(len, own)) > ANSWER_LIMIT:
            limit = f"{ANSWER_LIMIT:,}"
            raise WrongUse(Sentence("The answer is longer than {limit} characters.", {"limit": limit}), "Shorten it.")
        if len(parts) > 1 and not self.several:
            raise WrongUse("This question takes one answer.", "Choose only one.")
        return (*chosen, *own)

    def end(self, answer: tuple[str, ...] | None) -> None:
        """End the question for whoever waits. Only the first call counts."""
        self._ended.set_result(answer)


def _parts_of(answer: object) -> tuple[str, ...]:
    """Return the answer's texts. Raises WrongUse for anything but text."""
    parts = (
        cast("Iterable[object]", answer) if isinstance(answer, Iterable) and not isinstance(answer, str) else (answer,)
    )
    parts = tuple(parts)
    texts = tuple(part for part in parts if isinstance(part, str))
    if len(texts) < len(parts):
        raise WrongUse("This is not an answer.", "Answer with words, or with several of the choices.")
    return texts


class QuestionBroker:
    """The questions of one conversation. Lives on the event loop; not thread-safe."""

    def __init__(self) -> None:
        self._open: dict[str, Question] = {}

    @property
    def open_questions(self) -> tuple[Question, ...]:
        return tuple(self._open.values())

    def ask(
        self, question: str, choices: Iterable[str] = (), *, several: bool = False, free_text: bool = True
    ) -> Question:
        """Open a question. Raises WrongUse where no answer would be possible."""
        opened = Question(question, tuple(choices), several=several, free_text=free_text)
        if not opened.choices and not free_text:
            raise WrongUse("A question needs choices or must take free text.")
        self._open[opened.question_id] = opened
        return opened

    def answer(self, question_id: str, answer: str | Iterable[str]) -> bool:
        """Answer a question. Only the first answer counts: False when the question has ended or is unknown.

        Raises WrongUse for an answer that does not fit; the question stays open then.
        """
        question = self._open.get(question_id)
        if question is None:
            return False
        question.end(question.checked(answer))
        del self._open[question_id]
        return True

    def withdraw(self, question_id: str) -> bool:
        """Withdraw a question; False when it does not wait."""
        question = self._open.pop(question_id, None)
        if question is not None:
            question.end(None)
        return question is not None


QUESTION_LIMIT = 4_000
CHOICE_LIMIT = 500
CHOICES_LIMIT = 20
# The tool ends its own wait; its timeout as a tool must not come first.
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
    """Return the tool `ask_user`. `timeout` is how long the person has, in seconds.

    `waiting` is entered while the tool waits for the person, so that a budget can stop its clock.
    """

    async def run(arguments: AskUserInput, call: RunningCall) -> tuple[Text, ...]:
        if call.agent_path:
            raise ToolFailed(
                "Only the root agent can ask the person.", "End with what is missing, so that your caller can ask."
            )
        question = broker.ask(
            arguments.question, arguments.choices, several=arguments.several, free_text=arguments.free_text
        )
        try:
            emit(question.asked)
            with waiting():
                timed_out = await _has_timed_out(question, timeout)
        finally:
            broker.withdraw(question.question_id)
            emit(QuestionAnswered(question.question_id, _joined_answer(question)))
        return (Text(text=_answer_text(question, timeout if timed_out else None)),)

    return Tool(
        name="ask_user",
        description=_DESCRIPTION,
        schema=ModelSchema(AskUserInput),
        run=run,
        tool_class=ToolClass.READ_ONLY,
        timeout=timeout + _TIMEOUT_SLACK,
    )


async def _has_timed_out(question: Question, seconds: float) -> bool:
    """Wait for the end of the question; return whether the time ran out first."""
    try:
        async with asyncio.timeout(seconds):
            await question.answer()
    except TimeoutError:
        return True
    return False


def _joined_answer(question: Question) -> str | None:
    return None if question.current_answer is None else "\n".join(question.current_answer)


def _answer_text(question: Question, waited: float | None) -> str:
    # An answer counts even if the time ran out in the same moment.
    answer = _joined_answer(question)
    if answer is not None:
        return f"The person answered:\n{answer}"
    why = "The question was withdrawn." if waited is None else f"The person did not answer within {waited:g} seconds."
    return f"{why} Go on with what you know, or end your turn and say what you need to know."
