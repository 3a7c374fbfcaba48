"""Arguments as the signature of a function says: its type hints, its defaults, its docstring."""

import copy
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticSchemaGenerationError, PydanticUserError, create_model
from pydantic.fields import FieldInfo

from desktop_agent.tools.schemas.docstrings import parse_docstring, unwrap_partial
from desktop_agent.tools.schemas.wording import UntitledSchema
from desktop_agent.tools.tool import ModelSchema, RunningCall
from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.errors import Sentence, WrongUse

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class SignatureSchema:
    """Arguments by name, made into what the type hints of a function say."""

    def __init__(self, model: type[BaseModel], names: dict[str, str]) -> None:
        self._model = ModelSchema(model)
        self._names = names
        self._json_schema = model.model_json_schema(schema_generator=UntitledSchema)
        self._json_schema.pop("title", None)

    @property
    def json_schema(self) -> JsonObject:
        """As pydantic derives it."""
        return copy.deepcopy(self._json_schema)

    def checked(self, arguments: JsonObject) -> dict[str, Any]:
        """What to call the function with; defaults are filled in. Raises ToolInputInvalid."""
        made = self._model.checked(arguments)
        return {name: getattr(made, field) for field, name in self._names.items()}


def schema_from_signature(function: Callable[..., Any]) -> SignatureSchema:
    """A schema from a function that is called by names.

    A parameter of type RunningCall is not an argument. What is said about an argument comes from `Annotated[int,
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
            Sentence("The parameters of the tool “{tool}” cannot be said as JSON: {why}", values),
            "Give them types that JSON has, or a pydantic model, or give the tool a schema.",
        ) from error


def type_hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of a function's parameters, names resolved. Raises WrongUse for a name that is not there."""
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
    """Those that are arguments: all but the one that takes the running call."""
    hints = type_hints_of(function)
    return [each for each in inspect.signature(function).parameters.values() if hints.get(each.name) is not RunningCall]


def call_parameter(function: Callable[..., Any]) -> str | None:
    """The name of the one that takes the running call. Raises WrongUse for a second one."""
    hints = type_hints_of(function)
    found = [name for name in inspect.signature(function).parameters if hints.get(name) is RunningCall]
    if len(found) > 1:
        raise _parameter_error("The tool “{tool}” takes the running call twice.", function, found[1])
    return found[0] if found else None


def _field(parameter: inspect.Parameter, hint: Any, text: str | None) -> Any:
    extras: dict[str, Any] = {"alias": parameter.name}
    said = _annotated_description(hint) or (text if not _has_description(hint) else None)
    if said:
        extras["description"] = said
    if parameter.default is inspect.Parameter.empty:
        return Field(**extras)
    return Field(default=parameter.default, **extras)


def _annotated_description(hint: Any) -> str | None:
    """The text of Annotated[int, "text"]."""
    extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((each for each in extras if isinstance(each, str)), None)


def _has_description(hint: Any) -> bool:
    extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return any(isinstance(each, FieldInfo) and each.description for each in extras)


def _function_name(function: Callable[..., Any]) -> str:
    return str(getattr(unwrap_partial(function), "__name__", type(function).__name__))


def _parameter_error(template: str, function: Callable[..., Any], name: str) -> WrongUse:
    return WrongUse(
        Sentence(template, {"tool": _function_name(function), "name": name}), "Write it with a name and a type."
    )
