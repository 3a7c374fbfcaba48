"""`@tool`: a tool from a function."""

import asyncio
import contextlib
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, ParamSpec, TypedDict, Unpack, cast, overload

from pydantic import BaseModel

from desktop_agent.tools.answers import result_parts
from desktop_agent.tools.in_thread import CancelToken, Stopped, run_by_size, run_in_own_thread
from desktop_agent.tools.schemas import JsonSchema, schema_from_shorthand, schema_from_signature
from desktop_agent.tools.schemas.docstrings import parse_docstring
from desktop_agent.tools.schemas.shorthand import is_json_schema
from desktop_agent.tools.schemas.signature import argument_parameters, call_parameter
from desktop_agent.tools.tool import AnyTool, ArgumentSchema, ModelSchema, RunningCall, Tool
from desktop_agent.vocabulary.blocks import ResultPart
from desktop_agent.vocabulary.conduct.rules import Subject
from desktop_agent.vocabulary.errors import Sentence, WrongUse
from desktop_agent.vocabulary.tool_calls import Effect, Preview, ToolClass

P = ParamSpec("P")
Function = Callable[..., Any]
GivenSchema = type[BaseModel] | Mapping[str, object]
# What all model servers take as a name.
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class ToolFacts(TypedDict, total=False):
    """What may be said about a tool besides its function; see Tool.

    `preview`, `undo`, `changes` and `subjects` get what the schema makes of the arguments: a model, or a dictionary by
    name.
    """

    name: str
    description: str
    tool_class: ToolClass
    effects: Iterable[Effect]
    timeout: float
    concurrency: int | None
    scope: str
    preview: Callable[[Any], Awaitable[Preview | None]]
    undo: Callable[[Any], Awaitable[str]]
    changes: Callable[[Any], Awaitable[tuple[str, ...]]]
    subjects: Callable[[Any], Awaitable[tuple[Subject, ...]]]


class ToolOptions(ToolFacts, total=False):
    """The same, with a `schema`: a pydantic model, a JSON Schema, or shorthand. Without one the signature is the
    schema."""

    schema: GivenSchema


@dataclass(frozen=True)
class FunctionTool(Tool[Any], Generic[P]):
    """A tool that is called like the function that it was made of; a RunningCall may be left out."""

    function: Callable[P, Any] = field(kw_only=True, repr=False, compare=False)

    async def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - narrower: only what the function takes
        """What the function answers, as text, as JSON, as an image, or several of them; None where it answers nothing.

        Raises ToolInputInvalid, ToolFailed, and what the function raises.
        """
        arguments: dict[str, Any] = dict(inspect.signature(self.function).bind_partial(*args).arguments)
        if twice := arguments.keys() & kwargs.keys():
            raise TypeError(f"{self.name}() got several values for “{min(twice)}”.")
        arguments |= kwargs
        call = arguments.pop(call_parameter(self.function) or "", None)
        return await self.answer(arguments, call if isinstance(call, RunningCall) else RunningCall("", lambda _: None))


@overload
def tool(function: Callable[P, Any], /) -> FunctionTool[P]: ...
@overload
def tool(**options: Unpack[ToolFacts]) -> Callable[[Callable[P, Any]], FunctionTool[P]]: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Function], AnyTool]: ...
def tool(
    function: Function | None = None, /, **options: Unpack[ToolOptions]
) -> AnyTool | Callable[[Function], AnyTool]:
    """Make a tool of a function, `@tool` or `@tool(name=…, …)`; it is mutating unless `tool_class` says otherwise.

    Its arguments come from the type hints, their texts from the docstring. With a `schema` of its own the function
    takes the arguments by name, or, if its only parameter has another name, all of them in that one. A parameter of
    type RunningCall gets the call. A function that is not async runs in a thread of its own; when the call is
    cancelled it is told at its next `progress`, and not waited for long. What it answers: see parts_of. To say to
    the model what went wrong, raise ToolFailed; of any other exception the model learns only the type.
    Raises WrongUse for what cannot be made a tool.
    """
    if function is None:
        return lambda decorated: _make_tool(decorated, options)
    return _make_tool(function, options)


def _make_tool(function: Function, options: ToolOptions) -> AnyTool:
    # A class of no tool yet, for example, would be one whose every answer is discarded.
    if inspect.isclass(function) or inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise WrongUse("A tool is a function that answers once.", "Return the answer; show progress by RunningCall.")
    said = dict(options)
    given = cast("GivenSchema | None", said.pop("schema", None))
    name = said.pop("name", getattr(function, "__name__", ""))
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        values = {"name": str(name)}
        raise WrongUse(
            Sentence("“{name}” cannot be the name of a tool.", values), "Use 1 to 64 letters, digits, _ and -."
        )
    schema, bind = _by_signature(function) if given is None else _by_schema(function, _argument_schema(given))
    facts: dict[str, Any] = {
        "name": name,
        "description": str(said.pop("description", parse_docstring(function)[0])),
        "schema": schema,
        "run": _runner(function, bind),
        "effects": frozenset(cast("Iterable[Effect]", said.pop("effects", ()))),
        **said,
    }
    # With a schema of its own a tool is called with what that describes.
    return Tool(**facts) if given is not None else FunctionTool(**facts, function=function)


def _argument_schema(given: GivenSchema) -> ArgumentSchema[Any]:
    if isinstance(given, type):
        return ModelSchema(given)
    return JsonSchema(given) if is_json_schema(given) else schema_from_shorthand(given)


Bind = Callable[[Any], dict[str, Any]]


def _by_signature(function: Function) -> tuple[ArgumentSchema[Any], Bind]:
    return schema_from_signature(function), dict


def _by_schema(function: Function, schema: ArgumentSchema[Any]) -> tuple[ArgumentSchema[Any], Bind]:
    """How the function takes what this schema makes. Raises WrongUse where the two do not fit."""
    parameters = argument_parameters(function)
    rules = schema.json_schema
    known = [str(name) for name in rules.get("properties", ())]
    if len(parameters) == 1 and parameters[0].name not in known and parameters[0].kind in _KEYWORD_KINDS:
        only = parameters[0].name
        return schema, lambda made: {only: made}
    certain = set(known) if isinstance(schema, ModelSchema) else {str(name) for name in rules.get("required", ())}
    taken = {each.name for each in parameters if each.kind in _KEYWORD_KINDS}
    takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    wanting = [
        each.name
        for each in parameters
        if each.kind is not inspect.Parameter.VAR_KEYWORD
        and (each.kind not in _KEYWORD_KINDS or (each.default is inspect.Parameter.empty and each.name not in certain))
    ]
    wrong = wanting or [name for name in known if name not in taken and not takes_all]
    if wrong:
        values = {"names": ", ".join(wrong)}
        raise WrongUse(
            Sentence("The schema of a tool and the parameters of its function do not fit: {names}.", values),
            "Give the function a parameter for each argument, and a default to each that may be left out.",
        )

    def bind(made: Any) -> dict[str, Any]:
        by_name = _as_keywords(made)
        return by_name if takes_all else {name: value for name, value in by_name.items() if name in taken}

    return schema, bind


_KEYWORD_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _as_keywords(made: Any) -> dict[str, Any]:
    """A model's by the names that its schema has."""
    if not isinstance(made, BaseModel):
        return dict(made)
    fields = type(made).model_fields
    return {field.alias or name: getattr(made, name) for name, field in fields.items()}


def _runner(function: Function, bind: Bind) -> Callable[[Any, RunningCall], Awaitable[tuple[ResultPart, ...]]]:
    takes_call = call_parameter(function)

    async def run(made: Any, call: RunningCall) -> tuple[ResultPart, ...]:
        arguments = bind(made)
        if inspect.iscoroutinefunction(function):
            answer = await function(**arguments, **({takes_call: call} if takes_call else {}))
        else:
            loop = asyncio.get_running_loop()

            def work(token: CancelToken) -> Any:
                thread_call = replace(call, progress=_thread_safe_progress(call.progress, token, loop))
                return function(**arguments, **({takes_call: thread_call} if takes_call else {}))

            answer = await run_in_own_thread(work)
            if inspect.isawaitable(answer):
                answer = await answer
        return await run_by_size(lambda: result_parts(answer), answer)

    return run


def _thread_safe_progress(
    on_progress: Callable[[str], None], token: CancelToken, loop: asyncio.AbstractEventLoop
) -> Callable[[str], None]:
    """Progress told on the loop, to which it belongs; once the call is cancelled it raises Stopped instead."""

    def on_loop(text: str) -> None:
        with contextlib.suppress(Stopped):
            token.raise_if_cancelled()
            on_progress(text)

    def progress(text: str) -> None:
        token.raise_if_cancelled()
        loop.call_soon_threadsafe(on_loop, text)

    return progress
