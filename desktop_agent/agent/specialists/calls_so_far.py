"""What a specialist has called so far, in words, for whoever called it and is told that it was broken off."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from desktop_agent.vocabulary.blocks import JsonObject, Outcome, Text
from desktop_agent.vocabulary.engine_events import Event, ToolCallPending, ToolFinished, ToolStarted

_MOST = 40
# Characters of arguments, and of what is said about a call that did not come to its end.
_ARGUMENTS = 160
_SAID = 1_500
_NOTHING = "It had called no tool."
_WORDS = {
    Outcome.SUCCEEDED: "done",
    Outcome.FAILED: "failed",
    Outcome.DENIED: "not run, denied",
    Outcome.CANCELLED: "broken off",
    Outcome.TIMED_OUT: "took too long and was broken off",
    Outcome.LIMIT: "not run or broken off, at a limit",
    Outcome.UNKNOWN: "nobody knows what became of it",
}


@dataclass(slots=True)
class _Call:
    name: str
    arguments: str
    state: str = "not started"
    said: str = ""


class CallsSoFar:
    """Hears the events of one run and says what became of each of its calls."""

    def __init__(self) -> None:
        self._calls: dict[str, _Call] = {}

    def note(self, event: Event) -> bool:
        """Whether there is something new to say."""
        match event:
            case ToolCallPending():
                self._calls[event.id] = _Call(event.name, _short(event.input))
            case ToolStarted() if event.id in self._calls:
                self._calls[event.id].state = "begun, not finished"
            case ToolFinished() if event.id in self._calls:
                call = self._calls[event.id]
                call.state = _WORDS[event.outcome]
                if event.outcome in (Outcome.CANCELLED, Outcome.TIMED_OUT):
                    call.said = " ".join(part.text for part in event.result.content if isinstance(part, Text))[:_SAID]
            case _:
                return False
        return True

    def __str__(self) -> str:
        """One line for each call, the last ones where there are many."""
        if not self._calls:
            return _NOTHING
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        calls = tuple(self._calls.values())
        yield "Its calls until then:"
        if len(calls) > _MOST:
            yield f"- {len(calls) - _MOST:,} earlier ones"
        for call in calls[-_MOST:]:
            said = "".join(f"\n  {line}" for line in call.said.splitlines())
            yield f"- {call.name} {call.arguments}: {call.state}{said}"


def _short(arguments: JsonObject) -> str:
    text = json.dumps(arguments, ensure_ascii=False)
    return text if len(text) <= _ARGUMENTS else f"{text[:_ARGUMENTS]}…"
