import asyncio
import functools
import threading
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from desktop_agent.processes.worker_threads import Stopped
from desktop_agent.tools.decorator import tool
from desktop_agent.tools.tool import AnyTool, RunningCall
from desktop_agent.types.blocks import Image, Json, ResultPart, Text, UrlSource
from desktop_agent.types.errors import ToolFailed, ToolInputInvalid, WrongUse
from desktop_agent.types.permissions import HostSubject
from desktop_agent.types.tool_calls import Effect, TextPreview, ToolClass


class Place(BaseModel):
    city: str
    country: str = "CH"


async def run_tool(
    called_tool: AnyTool, call: RunningCall | None = None, /, **arguments: Any
) -> tuple[ResultPart, ...]:
    return await called_tool.run(called_tool.checked(arguments), call or RunningCall("1", lambda _: None))


async def test_a_bare_function_becomes_a_tool() -> None:
    @tool
    async def weather(city: str, unit: Literal["c", "f"] = "c") -> str:
        """What the weather is.

        Args:
            city: Where.
        """
        return f"{city} {unit}"

    assert (weather.name, weather.description) == ("weather", "What the weather is.")
    assert (weather.tool_class, weather.effects, weather.timeout) == (ToolClass.MUTATING, frozenset(), 120.0)
    assert weather.spec.input_schema["properties"]["city"] == {"type": "string", "description": "Where."}
    assert await run_tool(weather, city="Bern") == (Text(text="Bern c"),)
    with pytest.raises(ToolInputInvalid, match="unit"):
        weather.checked({"city": "Bern", "unit": "k"})


async def test_what_is_said_about_it_is_kept() -> None:
    async def preview(arguments: dict[str, Any]) -> TextPreview:
        return TextPreview(f"asks for {arguments['url']}")

    async def undo(arguments: dict[str, Any]) -> str:
        return f"forgot {arguments['url']}"

    async def changes(arguments: dict[str, Any]) -> tuple[str, ...]:
        return (arguments["url"],)

    async def subjects(arguments: dict[str, Any]) -> tuple[HostSubject, ...]:
        return (HostSubject(arguments["url"]),)

    @tool(
        name="fetch-page",
        description="Fetch.",
        tool_class=ToolClass.READ_ONLY,
        effects=[Effect.NETWORK],
        timeout=3.0,
        concurrency=2,
        scope="here",
        preview=preview,
        undo=undo,
        changes=changes,
        subjects=subjects,
    )
    async def fetch(url: str) -> None:
        """Not this."""

    assert (fetch.name, fetch.description, fetch.identity) == ("fetch-page", "Fetch.", "fetch-page @ here")
    assert (fetch.tool_class, fetch.effects) == (ToolClass.READ_ONLY, frozenset({Effect.NETWORK}))
    assert (fetch.timeout, fetch.concurrency) == (3.0, 2)
    page_arguments = fetch.checked({"url": "example.org"})
    assert fetch.preview
    assert await fetch.preview(page_arguments) == TextPreview("asks for example.org")
    assert fetch.undo
    assert await fetch.undo(page_arguments) == "forgot example.org"
    assert fetch.changes
    assert await fetch.changes(page_arguments) == ("example.org",)
    assert fetch.subjects
    assert await fetch.subjects(page_arguments) == (HostSubject("example.org"),)
    assert await run_tool(fetch, url="x") == ()


async def test_arguments_arrive_as_what_the_hints_say() -> None:
    @tool
    async def show(place: Place, others: list[Place] | None = None, limit: int | str = 5) -> dict[str, Any]:
        """Show."""
        assert isinstance(place, Place)
        return {"city": place.city, "others": [neighbour.country for neighbour in others or []], "limit": limit}

    assert await run_tool(show, place={"city": "Bern"}, others=[{"city": "Genoa", "country": "IT"}], limit="all") == (
        Json(value={"city": "Bern", "others": ["IT"], "limit": "all"}),
    )


async def test_every_kind_of_answer_is_converted() -> None:
    picture = Image(source=UrlSource(url="https://example.org/a.png"))

    @tool
    async def look() -> list[Any]:
        """Look."""
        return ["see", picture]

    @tool
    async def place() -> Place:
        """Where."""
        return Place(city="Bern")

    @tool
    async def nothing() -> object:
        """Nothing that JSON has."""
        return object()

    assert await run_tool(look) == (Text(text="see"), picture)
    assert await run_tool(place) == (Json(value={"city": "Bern", "country": "CH"}),)
    with pytest.raises(ToolFailed, match="cannot be written as JSON"):
        await run_tool(nothing)


async def test_the_running_call_arrives_under_any_name() -> None:
    @tool
    async def chat(text: str, *, about: RunningCall) -> str:
        """Chat."""
        about.progress(text)
        return about.tool_use_id

    progress: list[str] = []
    assert list(chat.spec.input_schema["properties"]) == ["text"]
    assert await run_tool(chat, RunningCall("7", progress.append), text="hello") == (Text(text="7"),)
    assert progress == ["hello"]


async def test_a_function_that_is_not_async_runs_in_a_thread_and_is_heard_on_the_loop() -> None:
    progress: list[tuple[str, threading.Thread]] = []

    @tool
    def work(count: int, call: RunningCall) -> dict[str, Any]:
        """Work."""
        for number in range(count):
            call.progress(str(number))
        return {"thread": threading.current_thread() is not threading.main_thread()}

    def note_progress(text: str) -> None:
        progress.append((text, threading.current_thread()))

    assert await run_tool(work, RunningCall("1", note_progress), count=3) == (Json(value={"thread": True}),)
    assert progress == [(str(number), threading.main_thread()) for number in range(3)]


async def test_a_function_that_answers_with_a_coroutine_is_awaited() -> None:
    async def later(word: str) -> str:
        return word

    @tool
    def soon(word: str) -> Any:
        """Soon."""
        return later(word)

    assert await run_tool(soon, word="a") == (Text(text="a"),)


async def test_a_partial_function_has_the_text_of_the_whole_and_the_parameters_that_are_left() -> None:
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    add_one = tool(name="add_one")(functools.partial(add, 1))
    assert (add_one.description, list(add_one.spec.input_schema["properties"])) == ("Add.", ["b"])
    assert await run_tool(add_one, b=2) == (Json(value=3),)


async def test_once_cancelled_a_thread_is_told_and_not_heard_any_more() -> None:
    started, go_on = threading.Event(), threading.Event()
    raised: list[str] = []
    progress: list[str] = []

    @tool
    def work(call: RunningCall) -> None:
        """Work."""
        started.set()
        go_on.wait(60)
        try:
            call.progress("too late")
        except Stopped as error:
            raised.append(error.kind)
            raise

    task = asyncio.ensure_future(run_tool(work, RunningCall("1", progress.append)))
    await asyncio.to_thread(started.wait, 10)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert raised == ["stopped"]
    assert progress == []


async def test_a_cancel_reaches_an_async_function() -> None:
    events: list[str] = []
    waits = asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait."""
        try:
            waits.set()
            await asyncio.Event().wait()
        finally:
            events.append("ended")

    task = asyncio.ensure_future(run_tool(wait))
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events == ["ended"]


@pytest.mark.parametrize("error", [ToolFailed("no such city"), LookupError("x")])
async def test_exceptions_come_through(error: Exception) -> None:
    @tool
    async def fail() -> None:
        """Fail."""
        raise error

    @tool
    def fail_in_thread() -> None:
        """Fail."""
        raise error

    for failing_tool in (fail, fail_in_thread):
        with pytest.raises(type(error), match=str(error)):
            await run_tool(failing_tool)


async def test_a_model_as_schema_is_given_by_names_or_as_a_whole() -> None:
    class Arguments(BaseModel):
        city: str
        shown_as: str = Field(default="c", alias="unit")

    @tool(schema=Arguments)
    async def by_names(city: str, unit: str) -> str:
        """By names."""
        return f"{city} {unit}"

    @tool(schema=Arguments)
    async def whole(arguments: Arguments, call: RunningCall) -> str:
        """Whole."""
        return f"{arguments.city} {arguments.shown_as} {call.tool_use_id}"

    assert await run_tool(by_names, city="Bern", unit="f") == (Text(text="Bern f"),)
    assert await run_tool(whole, city="Bern") == (Text(text="Bern c 1"),)
    with pytest.raises(ToolInputInvalid):
        whole.checked({})


async def test_a_json_schema_and_shorthand_are_given_by_names_or_as_a_whole() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}

    @tool(schema=schema)
    async def by_names(a: int, b: str = "default") -> str:
        """By names."""
        return f"{a} {b}"

    @tool(schema=schema)
    def whole(arguments: dict[str, Any]) -> dict[str, Any]:
        """Whole."""
        return arguments

    @tool(schema=schema)
    async def everything(**values: Any) -> dict[str, Any]:
        """Everything."""
        return values

    @tool(schema={"a": "integer", "b": "string?"})
    async def short(a: int, b: str | None = None) -> list[Any]:
        """Short."""
        return [a, b]

    assert await run_tool(by_names, a=1) == (Text(text="1 default"),)
    # The schema permits other arguments; the function has no parameter for them.
    assert await run_tool(by_names, a=1, b="x", other=2) == (Text(text="1 x"),)
    assert await run_tool(whole, a=1, other=2) == (Json(value={"a": 1, "other": 2}),)
    assert await run_tool(everything, a=1, other=2) == (Json(value={"a": 1, "other": 2}),)
    assert await run_tool(short, a=1) == (Json(value=[1, None]),)
    with pytest.raises(ToolInputInvalid):
        short.checked({"a": 1, "other": 2})
    assert by_names.spec.input_schema == schema


async def test_a_parameter_that_has_no_type_needs_a_schema() -> None:
    def untyped(a, b=2):
        return [a, b]

    with pytest.raises(WrongUse, match="parameter “a” of the tool “untyped” has no type"):
        tool(untyped)
    assert await run_tool(tool(schema={"a": "any"})(lambda_named(untyped)), a=1) == (Json(value=[1]),)


def lambda_named(function: Any) -> Any:
    """Return the function without its second parameter."""

    def untyped(a):
        return function(a)[:1]

    return untyped


def generator() -> Iterator[int]:
    yield 1


async def answers(a: int, b: int) -> None: ...


async def no_place(a: int, *, b: int = 1) -> None: ...


def spread(*a: int, b: int) -> None: ...


OPTIONAL = {"a": "integer?", "b": "integer"}


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: tool(generator), "answers once"),
        (lambda: tool(Place), "answers once"),
        (lambda: tool(name="two words")(answers), "“two words” cannot be the name"),
        (lambda: tool(name="x" * 65)(answers), "cannot be the name"),
        (lambda: tool(tool_class="readonly")(answers), "cannot be or do “readonly”"),
        (lambda: tool(effects="network,read")(answers), "cannot be or do “network,read”"),
        (lambda: tool(lambda: 1), "“<lambda>” cannot be the name"),
        (lambda: tool(functools.partial(answers)), "“” cannot be the name"),
        (lambda: tool(schema={"a": "integer", "b": "text"})(answers), "“text”, which is not a type"),
        (lambda: tool(schema={"a": "integer"})(answers), "do not fit: b"),
        (lambda: tool(schema=OPTIONAL)(answers), "do not fit: a"),
        (lambda: tool(schema={"a": "integer", "c": "integer"})(no_place), "do not fit: c"),
        (lambda: tool(schema={"a": "integer", "b": "integer"})(spread), "do not fit: a"),
        (lambda: tool(schema={"type": "object", "required": 5})(answers), "schema of a tool's arguments"),
    ],
)
def test_what_makes_no_tool_is_wrong_use(make: Any, why: str) -> None:
    with pytest.raises(WrongUse, match=why):
        make()


async def test_a_decorated_function_is_called_like_the_function() -> None:
    progress: list[str] = []

    @tool
    async def weather(city: str, call: RunningCall, unit: Literal["c", "f"] = "c") -> str:
        """What the weather is."""
        call.progress(city)
        return f"{city} {unit}"

    running_call = RunningCall("1", progress.append)
    assert await weather("Rome", running_call, "f") == "Rome f"
    assert await weather("Rome", call=running_call) == "Rome c"
    assert progress == ["Rome", "Rome"]
    # As a model calls it, which passes no running call.
    untyped: AnyTool = weather
    assert await untyped(city="Rome", unit="f") == "Rome f"
    with pytest.raises(TypeError):
        await untyped("Rome", running_call, "f", "more")
    with pytest.raises(TypeError, match="several values for “city”"):
        await untyped("Rome", city="Bern")
    with pytest.raises(ToolInputInvalid):
        await untyped("Rome", unit="x")


async def test_a_tool_with_a_schema_is_called_with_what_that_describes() -> None:
    @tool(schema=Place)
    async def show(place: Place) -> str:
        """Look."""
        return f"{place.city} {place.country}"

    assert await show(city="Bern") == "Bern CH"
