"""Questions to the person that wait for an answer: opened by a tool, answered by any face, taken back by Stop."""

import asyncio
from collections.abc import Iterable
from typing import cast

from desktop_agent.vocabulary.errors import Sentence, WrongUse
from desktop_agent.vocabulary.messages import new_id

ANSWER_LIMIT = 20_000


class Question:
    """One question. `several` choices may be taken; `free_text`: words of the person's own are an answer too."""

    def __init__(self, question: str, choices: tuple[str, ...], *, several: bool, free_text: bool) -> None:
        self.question_id = new_id()
        self.question = question
        self.choices = choices
        self.several = several
        self.free_text = free_text
        self._ended: asyncio.Future[tuple[str, ...] | None] = asyncio.get_running_loop().create_future()

    @property
    def given(self) -> tuple[str, ...] | None:
        """What was answered so far."""
        return self._ended.result() if self._ended.done() else None

    async def answer(self) -> tuple[str, ...] | None:
        """Wait for the answer; None when the question was withdrawn. Cancelling the wait leaves it open."""
        return await asyncio.shield(self._ended)

    def checked(self, answer: str | Iterable[str]) -> tuple[str, ...]:
        """The answer as it counts: choices in their order, then words of the person's own. Raises WrongUse."""
        parts = dict.fromkeys(_parts_of(answer))
        chosen = tuple(choice for choice in self.choices if choice in parts)
        own = tuple(part for part in parts if part not in self.choices)
        if own and not self.free_text:
            raise WrongUse("Only the choices are an answer to this question.", "Take one of them.")
        if any(not part.strip() for part in own) or not parts:
            raise WrongUse("The answer is empty.", "Take a choice or write something.")
        if sum(map(len, own)) > ANSWER_LIMIT:
            limit = f"{ANSWER_LIMIT:,}"
            raise WrongUse(Sentence("The answer is longer than {limit} characters.", {"limit": limit}), "Shorten it.")
        if len(parts) > 1 and not self.several:
            raise WrongUse("This question takes one answer.", "Take one choice.")
        return (*chosen, *own)

    def end(self, answer: tuple[str, ...] | None) -> None:
        """Tell whoever waits. Once only."""
        self._ended.set_result(answer)


def _parts_of(answer: object) -> tuple[str, ...]:
    """Raises WrongUse for what is no words."""
    parts = (
        cast("Iterable[object]", answer) if isinstance(answer, Iterable) and not isinstance(answer, str) else (answer,)
    )
    given = tuple(parts)
    words = tuple(part for part in given if isinstance(part, str))
    if len(words) < len(given):
        raise WrongUse("This is no answer.", "Answer with words, or with several of the choices.")
    return words


class QuestionBroker:
    """Holds the questions of one conversation. Lives on the event loop; not for other threads."""

    def __init__(self) -> None:
        self._open: dict[str, Question] = {}

    @property
    def open_questions(self) -> tuple[Question, ...]:
        """Those that wait, oldest first."""
        return tuple(self._open.values())

    def ask(
        self, question: str, choices: Iterable[str] = (), *, several: bool = False, free_text: bool = True
    ) -> Question:
        """Open a question. Raises WrongUse where nothing could be an answer."""
        asked = Question(question, tuple(choices), several=several, free_text=free_text)
        if not asked.choices and not free_text:
            raise WrongUse("A question needs choices or must take free text.")
        self._open[asked.question_id] = asked
        return asked

    def answer(self, question_id: str, answer: str | Iterable[str]) -> bool:
        """Answer it. The first answer counts: False when the question has ended or is unknown.

        Raises WrongUse for what is no answer to it; the question stays open then.
        """
        question = self._open.get(question_id)
        if question is None:
            return False
        question.end(question.checked(answer))
        del self._open[question_id]
        return True

    def withdraw(self, question_id: str) -> bool:
        """Take one back; False when it does not wait."""
        question = self._open.pop(question_id, None)
        if question is not None:
            question.end(None)
        return question is not None
