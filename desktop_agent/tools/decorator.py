"""`@tool`: make a tool of a function, with its schema from the signature and docstring, from shorthand, or given."""

import asyncio
import contextlib
import copy
import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import (
    Annotated,
    Any,
    Generic,
    ParamSpec,
    TypedDict,
    Unpack,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PydanticSchemaGenerationError,
    PydanticUserError,
    TypeAdapter,
    create_model,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from desktop_agent.processes.foreign_code import result_parts
from desktop_agent.processes.worker_threads import CancelToken, Stopped, run_by_size, run_in_own_thread
from desktop_agent.tools.json_schema import JsonSchema
from desktop_agent.tools.tool import AnyTool, ArgumentSchema, ModelSchema, RunningCall, Tool
from desktop_agent.types.blocks import JsonObject, ResultPart
from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.permissions import Subject
from desktop_agent.types.tool_calls import Effect, Preview, ToolClass


class UntitledSchema(GenerateJsonSchema):
    """A schema without titles that repeat field names, and without warnings about defaults outside of JSON."""

    # Declared as pydantic declares it, which reads it from the instance.
    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - named by pydantic
        """Return False, always."""
        return False


_SECTION = re.compile(
    r"(args|arguments|parameters|params|returns?|raises|yields?|examples?|notes?|warnings?|attributes|see also|todo):$",
    re.IGNORECASE,
)
_ARGUMENTS = {"args:", "arguments:", "parameters:", "params:"}
_PARAMETER = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")


def unwrap_partial(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that a partial one hides, with its hints and its docstring."""
    while isinstance(function, partial):
        function = cast("partial[Any]", function).func
    return function


def parse_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the description, which is all before the first section, and a text for each parameter under `Args:`."""
    lines = (inspect.getdoc(unwrap_partial(function)) or "").splitlines()
    starts = [index for index, line in enumerate(lines) if _SECTION.fullmatch(line.rstrip())]
    description = "\n".join(lines[: starts[0]] if starts else lines).strip()
    parameters: dict[str, str] = {}
    for start, end in pairwise([*starts, len(lines)]):
        if lines[start].strip().lower() in _ARGUMENTS:
            parameters |= _parameters(lines[start + 1 : end])
    return description, parameters


def _parameters(lines: list[str]) -> dict[str, str]:
    """Split by the indentation of the first parameter: lines that are indented further continue its text."""
    texts: dict[str, str] = {}
    depth, name = -1, ""
    for line in lines:
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        depth = indent if depth < 0 and text else depth
        start = _PARAMETER.fullmatch(text) if indent == depth else None
        if start:
            name = start[1]
            texts[name] = start[2]
        elif name and text:
            texts[name] = f"{texts[name]} {text}".strip()
    return texts


_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class SignatureSchema:
    """Arguments by name, as the type hints of a function say."""

    def __init__(self, model: type[BaseModel], names: dict[str, str]) -> None:
        self._model = ModelSchema(model)
        self._names = names
        self._json_schema = model.model_json_schema(schema_generator=UntitledSchema)
        self._json_schema.pop("title", None)

    @property
    def json_schema(self) -> JsonObject:
        return copy.deepcopy(self._json_schema)

    def checked(self, arguments: JsonObject) -> dict[str, Any]:
        """Return what to call the function with; defaults are filled in. Raises ToolInputInvalid."""
        values = self._model.checked(arguments)
        return {name: getattr(values, field) for field, name in self._names.items()}


def schema_from_signature(function: Callable[..., Any]) -> SignatureSchema:
    """Make a schema from a function that is called by names.

    A parameter of type RunningCall is not an argument. The description of an argument comes from `Annotated[int,
    "text"]`, from `Field(description=…)`, or from the docstring's `Args:`. Raises WrongUse for a parameter without a
    type, or with one that JSON cannot say.
    """
    hints, (_, texts) = type_hints_of(function), parse_docstring(function)
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    for parameter in argument_parameters(function):
        name = parameter.name
        if parameter.kind not in _BY_NAME:
            raise _parameter_error(
                "The parameter “{name}” of the tool “{tool}” cannot be given by name.", function, name
            )
        if name not in hints:
            raise _parameter_error("The parameter “{name}” of the tool “{tool}” has no type.", function, name)
        # Own names for the fields: those of parameters may be names that a model has for itself.
        field = f"argument_{len(fields)}"
        names[field] = name
        fields[field] = (hints[name], _field(parameter, hints[name], texts.get(name)))
    try:
        model = create_model(
            _function_name(function),
            __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=False),
            **fields,
        )
        return SignatureSchema(model, names)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        why = str(error).partition("\n")[0]
        values = {"tool": _function_name(function), "why": why}
        raise WrongUse(
            Sentence("The parameters of the tool “{tool}” cannot be written as JSON: {why}", values).with_full_stop(),
            "Give them types that JSON has, or a pydantic model, or give the tool a schema.",
        ) from error


def type_hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of a function's parameters, names resolved. Raises WrongUse for a name that does not exist."""
    try:
        return get_type_hints(unwrap_partial(function), include_extras=True)
    except (NameError, TypeError, AttributeError) as error:
        why = str(error) if isinstance(error, NameError) else "it is no function"
        values = {"tool": _function_name(function), "why": why}
        raise WrongUse(
            Sentence("The type hints of the tool “{tool}” cannot be read: {why}.", values),
            "Use functions, and types that are defined where the function's module can see them.",
        ) from error


def argument_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters that are arguments: all but the one that takes the running call."""
    hints = type_hints_of(function)
    return [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if hints.get(parameter.name) is not RunningCall
    ]


def call_parameter(function: Callable[..., Any]) -> str | None:
    """Return the name of the parameter that takes the running call. Raises WrongUse for a second one."""
    hints = type_hints_of(function)
    names = [name for name in inspect.signature(function).parameters if hints.get(name) is RunningCall]
    if len(names) > 1:
        raise _parameter_error("The tool “{tool}” takes the running call twice.", function, names[1])
    return names[0] if names else None


def _field(parameter: inspect.Parameter, hint: Any, text: str | None) -> Any:
    annotations = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    has_description = any(isinstance(extra, FieldInfo) and extra.description for extra in annotations)
    annotated = next((extra for extra in annotations if isinstance(extra, str)), None)
    description = annotated or (None if has_description else text)
    options: dict[str, Any] = {"alias": parameter.name, **({"description": description} if description else {})}
    if parameter.default is inspect.Parameter.empty:
        return Field(**options)
    return Field(default=parameter.default, **options)


def _function_name(function: Callable[..., Any]) -> str:
    return str(getattr(unwrap_partial(function), "__name__", type(function).__name__))


def _parameter_error(template: str, function: Callable[..., Any], name: str) -> WrongUse:
    return WrongUse(
        Sentence(template, {"tool": _function_name(function), "name": name}), "Write it with a name and a type."
    )


TYPE_NAMES = ("string", "number", "integer", "boolean", "array", "object", "any")
_KEYWORDS = re.compile(r"\$.+|x-.+|additionalProperties|.*[pP]roperties|allOf|anyOf|oneOf|not|if|then|else|required")
_ANNOTATIONS = {
    "type",
    "title",
    "description",
    "default",
    "examples",
    "definitions",
    "propertyNames",
    "dependentRequired",
}


def schema_from_shorthand(fields: Mapping[str, object]) -> JsonSchema:
    """Make a schema from names and types; no other names are accepted.

    A type is a word of JSON Schema, a type of Python, or a JSON Schema of its own. A question mark after a word, or
    after a name, makes the argument optional. Raises WrongUse for a word that is no type.
    """
    properties: JsonObject = {}
    required: list[str] = []
    definitions: JsonObject = {}
    for key, kind in fields.items():
        name, is_optional = key.removesuffix("?"), key.endswith("?")
        if isinstance(kind, str) and kind.endswith("?"):
            kind, is_optional = kind.removesuffix("?"), True  # noqa: PLW2901 - the same type, without its mark
        if not name or name in properties:
            raise WrongUse(Sentence("“{name}” cannot be the name of an argument.", {"name": key}))
        properties[name] = _field_schema(name, kind, definitions)
        if not is_optional:
            required.append(name)
    schema: JsonObject = {"type": "object", "properties": properties, "additionalProperties": False}
    schema |= {"required": required} if required else {}
    return JsonSchema(schema | ({"$defs": definitions} if definitions else {}))


def is_json_schema(schema: Mapping[str, object]) -> bool:
    """Return whether this is a JSON Schema of type object, and not shorthand for an argument named “type”."""
    return schema.get("type") == "object" and all(name in _ANNOTATIONS or _KEYWORDS.fullmatch(name) for name in schema)


def _field_schema(name: str, kind: object, definitions: JsonObject) -> JsonObject:
    if isinstance(kind, str):
        if kind not in TYPE_NAMES:
            values = {"name": name, "word": kind, "words": ", ".join(TYPE_NAMES)}
            raise WrongUse(
                Sentence("The type of the argument “{name}” is “{word}”, which is not a type.", values),
                Sentence("Use one of these: {words}.", values),
            )
        return {} if kind == "any" else {"type": kind}
    if isinstance(kind, Mapping):
        return dict(cast("Mapping[str, Any]", kind))
    return _python_type_schema(name, kind, definitions)


def _python_type_schema(name: str, kind: Any, definitions: JsonObject) -> JsonObject:
    wrong = WrongUse(Sentence("The type of the argument “{name}” cannot be written as JSON.", {"name": name}))
    # pydantic would take a function for the type of its arguments.
    if inspect.isroutine(kind):
        raise wrong
    try:
        schema = TypeAdapter[Any](kind).json_schema(schema_generator=UntitledSchema)
    except (PydanticSchemaGenerationError, PydanticUserError):
        raise wrong from None
    for definition_name, definition in cast("JsonObject", schema.pop("$defs", {})).items():
        if definitions.setdefault(definition_name, definition) != definition:
            raise WrongUse(Sentence("Two types of the arguments are both named “{name}”.", {"name": definition_name}))
    return schema


P = ParamSpec("P")
Function = Callable[..., Any]
GivenSchema = type[BaseModel] | Mapping[str, object]
# Names that all model servers accept.
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
    """ToolFacts with a `schema`: a pydantic model, a JSON Schema, or shorthand; without one the signature."""

    schema: GivenSchema


@dataclass(frozen=True)
class FunctionTool(Tool[Any], Generic[P]):
    """A tool that is called like the function that it was made of; a RunningCall may be left out."""

    function: Callable[P, Any] = field(kw_only=True, repr=False, compare=False)

    async def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - narrower: only what the function takes
        """Return what the function answers, as text, as JSON, as an image, or several of them; None where it answers
        nothing.

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

    Its arguments come from the type hints, their descriptions from the docstring. With a `schema` of its own the
    function takes the arguments by name, or, if its only parameter has another name, all of them in that one. A
    parameter of type RunningCall gets the call. A function that is not async runs in a thread of its own; when the call
    is cancelled its next `progress` raises, and it is not waited for long. What it may answer: see result_parts. To
    tell the model what went wrong, raise ToolFailed; of any other exception the model learns only the type.
    Raises WrongUse for what cannot be made a tool.
    """
    if function is None:
        return lambda decorated: _make_tool(decorated, options)
    return _make_tool(function, options)


def _make_tool(function: Function, options: ToolOptions) -> AnyTool:
    # A class or a generator function would be a tool whose every answer is discarded.
    if inspect.isclass(function) or inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise WrongUse("A tool is a function that answers once.", "Return the answer; show progress by RunningCall.")
    options_of_tool = dict(options)
    given_schema = cast("GivenSchema | None", options_of_tool.pop("schema", None))
    name = options_of_tool.pop("name", getattr(function, "__name__", ""))
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        values = {"name": str(name)}
        raise WrongUse(
            Sentence("“{name}” cannot be the name of a tool.", values), "Use 1 to 64 letters, digits, _ and -."
        )
    schema: ArgumentSchema[Any]
    if given_schema is None:
        schema, bind = schema_from_signature(function), dict
    else:
        schema = _argument_schema(given_schema)
        bind = _binder(function, schema)
    facts: dict[str, Any] = {
        "name": name,
        "description": str(options_of_tool.pop("description", parse_docstring(function)[0])),
        "schema": schema,
        "run": _runner(function, bind),
        **options_of_tool,
    }
    # With a schema of its own a tool is called with what that describes.
    return Tool(**facts) if given_schema is not None else FunctionTool(**facts, function=function)


def _argument_schema(schema: GivenSchema) -> ArgumentSchema[Any]:
    if isinstance(schema, type):
        return ModelSchema(schema)
    return JsonSchema(schema) if is_json_schema(schema) else schema_from_shorthand(schema)


Bind = Callable[[Any], dict[str, Any]]


def _binder(function: Function, schema: ArgumentSchema[Any]) -> Bind:
    """Return how the function takes what this schema makes. Raises WrongUse where the two do not fit."""
    parameters = argument_parameters(function)
    rules = schema.json_schema
    known = [str(name) for name in rules.get("properties", ())]
    if len(parameters) == 1 and parameters[0].name not in known and parameters[0].kind in _BY_NAME:
        only = parameters[0].name
        return lambda value: {only: value}
    certain = set(known) if isinstance(schema, ModelSchema) else {str(name) for name in rules.get("required", ())}
    accepted = {parameter.name for parameter in parameters if parameter.kind in _BY_NAME}
    takes_all = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    unfilled = [
        parameter.name
        for parameter in parameters
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        and (
            parameter.kind not in _BY_NAME
            or (parameter.default is inspect.Parameter.empty and parameter.name not in certain)
        )
    ]
    wrong = unfilled or [name for name in known if name not in accepted and not takes_all]
    if wrong:
        values = {"names": ", ".join(wrong)}
        raise WrongUse(
            Sentence("The schema of a tool and the parameters of its function do not fit: {names}.", values),
            "Give the function a parameter for each argument, and a default to each that may be left out.",
        )

    def bind(value: Any) -> dict[str, Any]:
        by_name = _as_keywords(value)
        return by_name if takes_all else {name: value for name, value in by_name.items() if name in accepted}

    return bind


def _as_keywords(value: Any) -> dict[str, Any]:
    """Return the fields of a model by the names that its schema has."""
    if not isinstance(value, BaseModel):
        return dict(value)
    fields = type(value).model_fields
    return {field.alias or name: getattr(value, name) for name, field in fields.items()}


def _runner(function: Function, bind: Bind) -> Callable[[Any, RunningCall], Awaitable[tuple[ResultPart, ...]]]:
    takes_call = call_parameter(function)

    async def run(value: Any, call: RunningCall) -> tuple[ResultPart, ...]:
        arguments = bind(value)
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
    """Report progress on the loop, to which it belongs; once the call is cancelled it raises Stopped instead."""

    def on_loop(text: str) -> None:
        with contextlib.suppress(Stopped):
            token.raise_if_cancelled()
            on_progress(text)

    def progress(text: str) -> None:
        token.raise_if_cancelled()
        loop.call_soon_threadsafe(on_loop, text)

    return progress
