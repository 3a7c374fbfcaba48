"""Foreign code: whatever it raises is a fault, and what it does to what it was given stays with it."""

import asyncio
import copy
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from desktop_agent.processes.foreign_code import Fault, call_foreign, deep_copy, notify, type_name
from desktop_agent.types.blocks import Json, Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import ToolCallPending, ToolFinished
from desktop_agent.types.errors import OutsideWorkspace, ToolFailed
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.tool_calls import ToolClass

NASTY = [SystemExit, GeneratorExit, KeyboardInterrupt, asyncio.CancelledError, StopAsyncIteration, MemoryError]


def raising(error: BaseException, *, later: bool) -> Callable[[], Awaitable[Any]]:
    async def work() -> Any:
        if later:
            await asyncio.sleep(0)
        raise error

    return work


@pytest.mark.parametrize("later", [True, False])
@pytest.mark.parametrize("kind", NASTY)
async def test_whatever_it_raises_is_a_fault_and_the_loop_goes_on(kind: type[BaseException], later: bool) -> None:
    made = await asyncio.create_task(call_foreign(raising(kind("a secret"), later=later)))
    assert isinstance(made, Fault)
    assert (type(made.error), made.kind) == (kind, kind.__name__)
    assert "secret" not in f"{made.description} {made.trace}"
    assert isinstance(await call_foreign(raising(kind(), later=later)), Fault)


async def test_what_is_raised_before_there_is_anything_to_wait_for_is_a_fault_too() -> None:
    def work() -> Any:
        raise SystemExit

    assert isinstance(await call_foreign(work), Fault)
    assert isinstance(await call_foreign(lambda: 5), Fault)  # type: ignore[arg-type, return-value]


async def test_a_cancel_of_who_waits_is_passed_on() -> None:
    task = asyncio.create_task(call_foreign(asyncio.Event().wait))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


def test_what_is_closed_with_its_loop_does_not_go_on() -> None:
    went_on: list[Any] = []

    async def ours() -> None:
        went_on.append(await call_foreign(asyncio.Event().wait))

    async def main() -> Any:
        work = ours()
        work.send(None)
        return work

    work = asyncio.run(main())
    work.close()
    assert went_on == []


@pytest.mark.parametrize("kind", [*NASTY, LookupError])
def test_a_listener_that_raises_ends_nothing(kind: type[BaseException], caplog: pytest.LogCaptureFixture) -> None:
    def listener(_news: str) -> None:
        raise kind("a secret")

    notify(listener, "news")
    assert "a listener failed" in caplog.text
    assert kind.__name__ in caplog.text
    assert "secret" not in caplog.text


class Mute(ToolFailed):
    def __str__(self) -> str:
        raise SystemExit


def test_only_an_error_of_ours_has_words() -> None:
    assert Fault(OutsideWorkspace("That is outside.")).message.startswith("That is outside. Use a path")
    assert Fault(ValueError("sk-1")).message == ""
    # Its sentence is ours, whatever its text would do.
    assert Fault(Mute("x")).message.startswith("x. Look at")


def test_a_long_name_is_cut() -> None:
    assert len(type_name(type("n" * 1_000, (), {})())) == 80


USE = ToolUse(id="1", name="look", input={"a": [1, {"b": (2,)}]}, metadata={"m": {}})
RESULT = ToolResult(tool_use_id="1", content=(Text(text="t"), Json(value={"c": [3]})), outcome=Outcome.FAILED)


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, {"b": None}], "c": "text", "d": 1.5, "e": True},
        Message(role=Role.ASSISTANT, blocks=(Text(text="x"), USE)),
        Message.tool_results([RESULT]),
        ToolCallPending("1", "look", {"a": [1]}, ToolClass.MUTATING),
        ToolFinished("1", RESULT, 0.5),
        (datetime(2024, 5, 6, tzinfo=UTC), Outcome.FAILED, {1, 2}, b"bytes"),
    ],
)
def test_a_copy_is_equal_and_shares_nothing_that_can_be_changed(value: Any) -> None:
    made = deep_copy(value)
    assert made == value == copy.deepcopy(value)
    assert type(made) is type(value)
    assert not _changeable(made) & _changeable(value)
    assert _changeable(value)


def _changeable(value: Any) -> set[int]:
    """Ids of the dictionaries, lists and sets in it."""
    if isinstance(value, dict):
        return {id(value)}.union(*map(_changeable, value.values()))
    if isinstance(value, list | set):
        return {id(value)}.union(*map(_changeable, value))
    if isinstance(value, tuple):
        return set().union(*map(_changeable, value))
    if isinstance(value, ToolCallPending | ToolFinished):
        return set().union(*(_changeable(getattr(value, name)) for name in value.__slots__))
    return set().union(*map(_changeable, vars(value).values())) if hasattr(value, "model_fields_set") else set()


def test_what_was_set_of_a_model_is_known_of_its_copy() -> None:
    assert deep_copy(USE).model_fields_set == USE.model_fields_set
    assert deep_copy(USE).model_dump_json() == USE.model_dump_json()
