"""What a specialist has called so far, in words, for whoever called it and is told that it was broken off."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from desktop_agent.vocabulary.blocks import JsonObject, Outcome, Text
from desktop_agent.vocabulary.engine_events import Event, ToolCallPending, ToolFinished, ToolStarted

_MAX_CALLS = 40
# Characters of arguments, and of what is said about a call that did not come to its end.
_MAX_ARGUMENTS = 160
_MAX_SAID = 1_500
_NO_CALLS = "It had called no tool."
_OUTCOME_TEXTS = {
    Outcome.SUCCEEDED: "done",
    Outcome.FAILED: "failed",
    Outcome.DENIED: "not run, denied",
    Outcome.CANCELLED: "broken off",
    Outcome.TIMED_OUT: "took too long and was broken off",
    Outcome.LIMIT: "not run or broken off, at a limit",
    Outcome.UNKNOWN: "nobody knows what became of it",
}


@dataclass(slots=True)
class _CallLine:
    name: str
    arguments: str
    state: str = "not started"
    said: str = ""


class CallSummary:
    """Hears the events of one run and says what became of each of its calls."""

    def __init__(self) -> None:
        self._calls: dict[str, _CallLine] = {}

    def on_event(self, event: Event) -> bool:
        """Whether there is something new to say."""
        match event:
            case ToolCallPending():
                self._calls[event.id] = _CallLine(event.name, _short_arguments(event.input))
            case ToolStarted() if event.id in self._calls:
                self._calls[event.id].state = "begun, not finished"
            case ToolFinished() if event.id in self._calls:
                call = self._calls[event.id]
                call.state = _OUTCOME_TEXTS[event.outcome]
                if event.outcome in (Outcome.CANCELLED, Outcome.TIMED_OUT):
                    call.said = " ".join(part.text for part in event.result.content if isinstance(part, Text))[
                        :_MAX_SAID
                    ]
            case _:
                return False
        return True

    def __str__(self) -> str:
        """One line for each call, the last ones where there are many."""
        if not self._calls:
            return _NO_CALLS
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        calls = tuple(self._calls.values())
        yield "Its calls until then:"
        if len(calls) > _MAX_CALLS:
            yield f"- {len(calls) - _MAX_CALLS:,} earlier ones"
        for call in calls[-_MAX_CALLS:]:
            said = "".join(f"\n  {line}" for line in call.said.splitlines())
            yield f"- {call.name} {call.arguments}: {call.state}{said}"


def _short_arguments(arguments: JsonObject) -> str:
    text = json.dumps(arguments, ensure_ascii=False)
    return text if len(text) <= _MAX_ARGUMENTS else f"{text[:_MAX_ARGUMENTS]}…"
