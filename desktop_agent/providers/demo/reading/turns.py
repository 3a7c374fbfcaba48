"""What all dialects have in common: who said what, which calls were answered, and what that makes of the question."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from desktop_agent.providers.demo.question import MODEL, AnsweredCall, Json, ReceivedPicture, ReceivedRequest
from desktop_agent.providers.demo.reading.values import bad_request
from desktop_agent.providers.demo.refusals import RequestError


@dataclass(frozen=True, slots=True)
class CallInHistory:
    """A call as it stands in the history."""

    id: str
    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class ResultInHistory:
    """What a call gave."""

    call_id: str
    text: str


@dataclass(slots=True)
class HistoryTurn:
    """What one side said."""

    role: Literal["user", "assistant", "results", "system"]
    text: str = ""
    pictures: list[ReceivedPicture] = field(default_factory=list[ReceivedPicture])
    calls: list[CallInHistory] = field(default_factory=list[CallInHistory])
    results: list[ResultInHistory] = field(default_factory=list[ResultInHistory])


def require_model(name: object) -> None:
    """Raises Refusal for another model's name."""
    if name != MODEL:
        raise RequestError(404, f"There is no such model; this is “{MODEL}”.", "model_not_found")


def build_request(turns: list[HistoryTurn], *, stream: bool, tools: list[str], more: dict[str, Any]) -> ReceivedRequest:
    """The question that a history ends with. `more`: what else the dialect knows of it. Raises Refusal."""
    if not turns:
        raise bad_request("There are no messages.", "missing_required_parameter")
    prompts = [place for place, turn in enumerate(turns) if turn.role == "user"]
    last = prompts[-1] if prompts else 0
    length = sum(len(turn.text) + sum(len(each.text) for each in turn.results) for turn in turns)
    return ReceivedRequest(
        stream=stream,
        text=turns[last].text,
        prompts=len(prompts),
        pictures=tuple(turns[last].pictures),
        tools=tuple(tools) or None,
        answered=tuple(_match_results(turns[last + 1 :])),
        length=length,
        **more,
    )


def _match_results(turns: list[HistoryTurn]) -> Iterator[AnsweredCall]:
    """Calls matched with their results by id, in the order of the results."""
    calls: dict[str, CallInHistory] = {}
    for turn in turns:
        calls |= {call.id: call for call in turn.calls}
        for result in turn.results:
            call = calls.get(result.call_id)
            yield AnsweredCall(call.name if call else "", call.arguments if call else {}, result.text)
