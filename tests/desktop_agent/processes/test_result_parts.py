import dataclasses
from datetime import date
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel

from desktop_agent.processes.foreign_code import result_parts
from desktop_agent.types.blocks import Image, Json, Text, UrlSource
from desktop_agent.types.errors import ToolFailed


class Weather(BaseModel):
    day: date
    degrees: float


@dataclasses.dataclass
class Point:
    x: int


class Colour(Enum):
    RED = "red"


PICTURE = Image(source=UrlSource(url="https://example.org/a.png"))
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        (None, ()),
        ("words", (Text(text="words"),)),
        ("", (Text(text=""),)),
        ({"a": [1]}, (Json(value={"a": [1]}),)),
        ([1, "a"], (Json(value=[1, "a"]),)),
        (["a", "b"], (Json(value=["a", "b"]),)),
        ([], (Json(value=[]),)),
        ((1, 2), (Json(value=[1, 2]),)),
        (5, (Json(value=5),)),
        (True, (Json(value=True),)),
        (Text(text="a"), (Text(text="a"),)),
        (PICTURE, (PICTURE,)),
        ((Text(text="a"), PICTURE), (Text(text="a"), PICTURE)),
        (["see", PICTURE, {"n": 1}], (Text(text="see"), PICTURE, Json(value={"n": 1}))),
        (Weather(day=date(2024, 5, 6), degrees=1.5), (Json(value={"day": "2024-05-06", "degrees": 1.5}),)),
        ([Point(1), Colour.RED], (Json(value=[{"x": 1}, "red"]),)),
        (float("inf"), (Json(value="inf"),)),
        ([Point(1), {"a": float("nan")}], (Json(value=[{"x": 1}, {"a": "nan"}]),)),
        ({1: {2}}, (Json(value={"1": [2]}),)),
        ("half \ud83c", (Text(text="half ?"),)),
        ({"half \ud83c": ["\udfff"]}, (Json(value={"half ?": ["?"]}),)),
    ],
)
def test_what_an_answer_becomes(value: object, parts: tuple[object, ...]) -> None:
    made = result_parts(value)
    assert made == parts
    assert all(type(part).model_validate_json(part.model_dump_json()) == part for part in made)


@pytest.mark.parametrize("value", [object(), {"a": object()}, CIRCLE, b"\xff", lambda: 1])
def test_what_json_cannot_say_is_a_failure_in_words(value: object) -> None:
    with pytest.raises(ToolFailed, match="cannot be written as JSON"):
        result_parts(value)
