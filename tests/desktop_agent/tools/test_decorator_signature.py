from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from desktop_agent.tools.decorator import call_parameter, schema_from_signature
from desktop_agent.tools.tool import RunningCall
from desktop_agent.types.errors import ToolInputInvalid, WrongUse


class Unit(StrEnum):
    C = "celsius"
    F = "fahrenheit"


class Place(BaseModel):
    city: str
    country: str = "CH"


class Route(BaseModel):
    stops: list[Place]


@dataclass
class Point:
    x: int


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    return schema_from_signature(function).json_schema["properties"]


def test_hints_defaults_and_texts_become_a_schema() -> None:
    def weather(city: str, days: int = 3, *, unit: Literal["c", "f"] = "c", call: RunningCall) -> None:
        """The weather.

        Args:
            city: Where.
            unit: In what.
            nobody: Not there.
        """

    assert schema_from_signature(weather).json_schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "days": {"type": "integer", "default": 3},
            "unit": {"type": "string", "enum": ["c", "f"], "default": "c", "description": "In what."},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert schema_from_signature(weather).checked({"city": "Bern"}) == {"city": "Bern", "days": 3, "unit": "c"}
    assert call_parameter(weather) == "call"


def test_what_arguments_become() -> None:
    def everything(
        route: Route,
        unit: Unit,
        either: int | str | None,
        day: date,
        point: Point,
        options: dict[str, bool],
        pairs: dict[str, tuple[int, int]],
        anything: Any,
        many: list[Place] = [Place(city="Bern")],  # noqa: B006, B008 - the point
    ) -> None:
        pass

    arguments = schema_from_signature(everything).checked(
        {
            "route": {"stops": [{"city": "Bern"}, {"city": "Genoa", "country": "IT"}]},
            "unit": "celsius",
            "either": None,
            "day": "2024-05-06",
            "point": {"x": 1},
            "options": {"fast": True},
            "pairs": {"a": [1, 2]},
            "anything": {"x": [1]},
        }
    )
    assert arguments["route"] == Route(stops=[Place(city="Bern"), Place(city="Genoa", country="IT")])
    assert (arguments["unit"], arguments["either"], arguments["day"]) == (Unit.C, None, date(2024, 5, 6))
    assert (arguments["point"], arguments["options"], arguments["pairs"]) == (Point(1), {"fast": True}, {"a": (1, 2)})
    assert arguments["many"] == [Place(city="Bern")]
    assert properties(everything)["unit"] == {"$ref": "#/$defs/Unit"}


def test_defaults_are_not_shared_between_calls() -> None:
    def gather(words: list[str] = []) -> None:  # noqa: B006 - the point
        pass

    schema = schema_from_signature(gather)
    schema.checked({})["words"].append("left behind")
    assert schema.checked({}) == {"words": []}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"city": 5}, "city: Input should be a valid string"),
        ({"days": "many"}, "days: Input should be a valid integer"),
        ({"other": 1}, "other: Extra inputs are not permitted"),
        ({"places": [{"town": "Bern"}]}, r"places.0.city: Field required"),
        ({"unit": "k"}, "unit: Input should be 'c' or 'f'"),
    ],
)
def test_what_does_not_fit_is_said_by_the_names_of_parameters(change: dict[str, Any], why: str) -> None:
    def weather(city: str, days: int = 3, places: list[Place] = [], unit: Literal["c", "f"] = "c") -> None:  # noqa: B006
        pass

    schema = schema_from_signature(weather)
    with pytest.raises(ToolInputInvalid, match=why):
        schema.checked({"city": "Bern"} | change)
    with pytest.raises(ToolInputInvalid, match="city: Field required"):
        schema.checked({})


def test_names_that_a_model_has_for_itself_are_names_of_parameters_all_the_same() -> None:
    def odd(schema: int, json: int, model_config: int, copy: int, _own: int, self: int, cls: int, __x: int) -> None:
        pass

    arguments = {name: number for number, name in enumerate(properties(odd))}
    assert len(arguments) == 8
    assert schema_from_signature(odd).checked(arguments) == arguments


def test_texts_come_from_annotated_first() -> None:
    def described(
        a: Annotated[int, "from the hint"],
        b: Annotated[int, Field(description="from the field", ge=3)],
        c: Annotated[int, Field(ge=3)],
        d: Annotated[int, Field(default=5)],
    ) -> None:
        """Say.

        Args:
            a: from the docstring
            b: from the docstring
            c: from the docstring
        """

    texts = {name: schema.get("description") for name, schema in properties(described).items()}
    assert texts == {"a": "from the hint", "b": "from the field", "c": "from the docstring", "d": None}
    assert properties(described)["b"]["minimum"] == properties(described)["c"]["minimum"] == 3
    assert schema_from_signature(described).checked({"a": 1, "b": 3, "c": 3})["d"] == 5


def test_a_default_that_json_cannot_say_stays_a_default() -> None:
    nothing = object()

    def odd(a: Any = nothing) -> None:
        pass

    assert "default" not in properties(odd)["a"]
    assert schema_from_signature(odd).checked({})["a"] is nothing


def untyped(a, b: int) -> None: ...


def positional(a: int, /) -> None: ...


def many(*a: int) -> None: ...


def any_name(**a: int) -> None: ...


def opaque(a: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821 - the point


class Opaque:
    def method(self, a: int) -> None: ...


def of_opaque(a: Opaque) -> None: ...


def of_function(a: Callable[[], int]) -> None: ...


def twice(a: RunningCall, b: RunningCall) -> None: ...


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (untyped, "parameter “a” of the tool “untyped” has no type"),
        (positional, "cannot be given by name"),
        (many, "cannot be given by name"),
        (any_name, "cannot be given by name"),
        (opaque, "type hints of the tool “opaque” cannot be read: name 'Nowhere' is not defined"),
        (Opaque.method, "parameter “self” of the tool “method” has no type"),
        (of_opaque, "cannot be written as JSON"),
        (of_function, "cannot be written as JSON"),
        (Opaque(), "cannot be read"),
    ],
)
def test_what_has_no_schema_is_wrong_use(function: Callable[..., Any], why: str) -> None:
    with pytest.raises(WrongUse, match=why):
        schema_from_signature(function)


def test_a_method_of_an_object_needs_no_self() -> None:
    assert list(properties(Opaque().method)) == ["a"]


def test_the_running_call_is_taken_once() -> None:
    with pytest.raises(WrongUse, match="twice"):
        call_parameter(twice)
