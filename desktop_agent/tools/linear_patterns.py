"""Regular expressions from elsewhere, matched in linear time."""

from functools import lru_cache
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import SchemaError

MAX_PATTERN_LENGTH = 2000


class PatternRejected(Exception):
    """The pattern is wrong, too large, or cannot be matched in linear time: look-around, back references."""


class LinearPattern:
    """A pattern in the engine that pydantic brings (Rust's regex), which never backtracks.

    Its time is the length of the text times the size of the pattern with its repetitions written out.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MAX_PATTERN_LENGTH:
            raise PatternRejected
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(Annotated[str, Field(pattern=text, strict=True)])
        except (SchemaError, ValueError, OverflowError):
            raise PatternRejected from None
        self.size = _size(text)

    def matches(self, text: str) -> bool:
        """Return whether it is found anywhere in the text, as JSON Schema requires."""
        try:
            self._adapter.validate_python(text)
        except ValidationError:
            return False
        return True


@lru_cache(maxsize=512)
def compile_pattern(text: str) -> LinearPattern:
    """Compile a pattern. Raises PatternRejected."""
    return LinearPattern(text)


def _size(text: str) -> int:
    """Estimate how many steps a pattern has when its counted repetitions are written out."""
    groups, last, offset = [0], 0, 0
    while offset < len(text):
        char, offset = text[offset], offset + 1
        if char == "(":
            groups.append(0)
            continue
        if char == "{":
            end = text.find("}", offset)
            times = _max_repetitions(text[offset:end])
            groups[-1] += last * (times - 1)
            last, offset = last * times, end + 1 if end > 0 else len(text)
            continue
        if char == "[":
            offset = _end_of_class(text, offset)
        offset += char == "\\"
        last = groups.pop() if char == ")" and len(groups) > 1 else 1
        groups[-1] += last
    return sum(groups) + 1


def _max_repetitions(counts: str) -> int:
    """Return the larger number of `3`, `3,` or `3,5`; 1 where it is no count, as in a class by name."""
    numbers = [int(part) for part in counts.split(",") if part.isdecimal()]
    return max([1, *numbers])


def _end_of_class(text: str, offset: int) -> int:
    """Return where the class in brackets ends that begins before `offset`."""
    depth = 1
    while offset < len(text) and depth:
        depth += {"[": 1, "]": -1}.get(text[offset], 0)
        offset += 2 if text[offset] == "\\" else 1
    return offset
