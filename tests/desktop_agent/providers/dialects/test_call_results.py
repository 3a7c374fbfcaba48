from typing import Any

from desktop_agent.providers.dialects.request_building import results_after
from desktop_agent.types.blocks import Text, ToolResult, ToolUse
from desktop_agent.types.messages import Message, Role

CALLS = Message(role=Role.ASSISTANT, blocks=(ToolUse(id="a", name="f"),))


def result(text: str, call_id: str = "a") -> ToolResult:
    return ToolResult(tool_use_id=call_id, content=(Text(text=text),))


def test_ids_that_a_server_repeats_belong_to_the_answer_they_follow() -> None:
    history = (CALLS, Message.tool_results([result("1")]), CALLS, Message.tool_results([result("2")]))
    assert results_after(history, 0) == {"a": result("1")}
    assert results_after(history, 2) == {"a": result("2")}
    assert results_after((CALLS, *history[2:]), 0) == {}


def test_the_first_result_counts_wherever_it_stands_before_the_next_answer() -> None:
    late = Message.tool_results([result("second"), result("b", "b")])
    history = (CALLS, Message.tool_results([result("first")]), Message.user("hi"), late)
    assert results_after(history, 0) == {"a": result("first"), "b": result("b", "b")}
    assert results_after(history[:1], 0) == {}


class HistoryNotingReads(tuple[Message, ...]):
    """A history that records which messages are read."""

    def __init__(self, _: object) -> None:
        self.places: list[Any] = []

    def __getitem__(self, index: Any) -> Any:
        self.places.append(index)
        return super().__getitem__(index)


def test_nothing_is_read_behind_the_next_answer() -> None:
    history = HistoryNotingReads((CALLS, Message.tool_results([result("1")]), CALLS, Message.user("much more")))
    assert results_after(history, 0) == {"a": result("1")}
    assert history.places == [1, 2]
