"""Regular expressions from elsewhere, matched in linear time."""

from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import SchemaError

MAX_PATTERN_LENGTH = 2000


class PatternRejected(Exception):
    """The pattern is wrong, too large, or says what cannot be matched in linear time: look-around, back references."""


class LinearPattern:
    """A pattern in the engine that pydantic brings (Rust's regex), which never goes back in the text.

    Its time is the length of the text times the size of the pattern, repetitions counted out.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MAX_PATTERN_LENGTH:
            raise PatternRejected
        try:
            self._fits: TypeAdapter[Any] = TypeAdapter(Annotated[str, Field(pattern=text, strict=True)])
        except (SchemaError, ValueError, OverflowError):
            raise PatternRejected from None
        self.size = _size(text)

    def matches(self, text: str) -> bool:
        """Whether it is found anywhere in the text, as JSON Schema wants it."""
        try:
            self._fits.validate_python(text)
        except ValidationError:
            return False
        return True


@lru_cache(maxsize=512)
def compile_pattern(text: str) -> LinearPattern:
    """Raises PatternRejected."""
    return LinearPattern(text)


def _size(text: str) -> int:
    """About how many steps a pattern has when its counted repetitions are written out."""
    groups, last, at = [0], 0, 0
    while at < len(text):
        sign, at = text[at], at + 1
        if sign == "(":
            groups.append(0)
            continue
        if sign == "{":
            end = text.find("}", at)
            times = _max_repetitions(text[at:end])
            groups[-1] += last * (times - 1)
            last, at = last * times, end + 1 if end > 0 else len(text)
            continue
        if sign == "[":
            at = _end_of_class(text, at)
        at += sign == "\\"
        last = groups.pop() if sign == ")" and len(groups) > 1 else 1
        groups[-1] += last
    return sum(groups) + 1


def _max_repetitions(counts: str) -> int:
    """The larger number of `3`, `3,` or `3,5`; 1 where it is no count, as in a class by name."""
    numbers = [int(each) for each in counts.split(",") if each.isdecimal()]
    return max([1, *numbers])


def _end_of_class(text: str, at: int) -> int:
    """Where a class in brackets ends that begins before `at`."""
    depth = 1
    while at < len(text) and depth:
        depth += {"[": 1, "]": -1}.get(text[at], 0)
        at += 2 if text[at] == "\\" else 1
    return at
