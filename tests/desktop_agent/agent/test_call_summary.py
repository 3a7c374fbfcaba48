"""The summary of the calls of a specialist that was interrupted."""

from desktop_agent.agent.specialists import CallSummary
from desktop_agent.types.blocks import Outcome, Text, ToolResult
from desktop_agent.types.engine_events import ToolCallPending, ToolFinished, ToolProgress, ToolStarted
from desktop_agent.types.tool_calls import ToolClass


def pending(id_: str, name: str = "write", **arguments: object) -> ToolCallPending:
    return ToolCallPending(id_, name, arguments, ToolClass.MUTATING)


def finished(id_: str, outcome: Outcome, words: str = "") -> ToolFinished:
    return ToolFinished(id_, ToolResult(tool_use_id=id_, content=(Text(text=words),), outcome=outcome))


def test_each_call_has_its_line_and_what_was_broken_off_its_words() -> None:
    calls = CallSummary()
    assert str(calls) == "It had called no tool."
    assert not calls.on_event(ToolProgress("a", "x"))
    events = [pending(id_) for id_ in "abcd"]
    events += [ToolStarted("a", {}), finished("a", Outcome.SUCCEEDED, "secret of a"), ToolStarted("b", {})]
    events += [finished("c", Outcome.CANCELLED, "It was stopped.\ncreated x")]
    assert all(calls.on_event(event) for event in events)
    assert str(calls).splitlines() == [
        "Its calls until then:",
        "- write {}: done",
        "- write {}: begun, not finished",
        "- write {}: broken off",
        "  It was stopped.",
        "  created x",
        "- write {}: not started",
    ]


def test_a_summary_of_many_calls_stays_short() -> None:
    calls = CallSummary()
    for number in range(100):
        calls.on_event(pending(str(number), text="x" * 5_000))
        calls.on_event(finished(str(number), Outcome.CANCELLED, "y" * 50))
    text = str(calls)
    assert "- 60 earlier ones" in text
    assert len(text) < 20_000


def test_an_end_of_a_call_that_was_not_told_of_is_passed_over() -> None:
    calls = CallSummary()
    assert not calls.on_event(finished("a", Outcome.SUCCEEDED))
    assert not calls.on_event(ToolStarted("a", {}))
