"""What all dialects have in common: who said what, which calls were answered, and what that makes of the question."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from desktop_agent.providers.demo.question import MODEL, AnsweredCall, Json, Question, ReceivedPicture
from desktop_agent.providers.demo.reading.values import refused
from desktop_agent.providers.demo.refusals import Refusal


@dataclass(frozen=True, slots=True)
class Called:
    """A call as it stands in the history."""

    id: str
    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Returned:
    """What a call gave."""

    call_id: str
    text: str


@dataclass(slots=True)
class Turn:
    """What one side said."""

    role: Literal["user", "assistant", "results", "system"]
    text: str = ""
    pictures: list[ReceivedPicture] = field(default_factory=list[ReceivedPicture])
    calls: list[Called] = field(default_factory=list[Called])
    results: list[Returned] = field(default_factory=list[Returned])


def checked_model(name: object) -> None:
    """Raises Refusal for another model's name."""
    if name != MODEL:
        raise Refusal(404, f"There is no such model; this is “{MODEL}”.", "model_not_found")


def asked(turns: list[Turn], *, stream: bool, tools: list[str], more: dict[str, Any]) -> Question:
    """The question that a history ends with. `more`: what else the dialect knows of it. Raises Refusal."""
    if not turns:
        raise refused("There are no messages.", "missing_required_parameter")
    prompts = [place for place, turn in enumerate(turns) if turn.role == "user"]
    last = prompts[-1] if prompts else 0
    length = sum(len(turn.text) + sum(len(each.text) for each in turn.results) for turn in turns)
    return Question(
        stream=stream,
        text=turns[last].text,
        prompts=len(prompts),
        pictures=tuple(turns[last].pictures),
        tools=tuple(tools) or None,
        answered=tuple(_answered(turns[last + 1 :])),
        length=length,
        **more,
    )


def _answered(turns: list[Turn]) -> Iterator[AnsweredCall]:
    """Calls matched with their results by id, in the order of the results."""
    calls: dict[str, Called] = {}
    for turn in turns:
        calls |= {call.id: call for call in turn.calls}
        for result in turn.results:
            call = calls.get(result.call_id)
            yield AnsweredCall(call.name if call else "", call.arguments if call else {}, result.text)
