"""Read and write JSON as servers really send it, and repair text that cannot be encoded.

Half of a surrogate pair may arrive alone (cut deltas, broken escapes); it is repaired before it leaves the adapters.
"""

import json
import math
import re
from datetime import datetime
from typing import Any, TypeGuard

import orjson

MAX_DEPTH = 100
"""Accepted levels of nesting. Every reader and writer down to the disk supports twice as many."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a parsed value is a JSON object."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Whether a parsed value is a JSON array."""
    return isinstance(value, list)


def object_in(data: Any, name: str) -> dict[str, Any]:
    """Return the object under this name, or an empty one."""
    value = data.get(name) if is_object(data) else None
    return value if is_object(value) else {}


def array_in(data: Any, name: str) -> list[Any]:
    """Return the array under this name, or an empty one."""
    value = data.get(name) if is_object(data) else None
    return value if is_array(value) else []


def objects_in(data: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects in the array under this name."""
    return [entry for entry in array_in(data, name) if is_object(entry)]


def text_in(data: Any, name: str) -> str:
    """Return the string under this name, or an empty one."""
    value = data.get(name) if is_object(data) else None
    return value if isinstance(value, str) else ""


def nonempty_text(value: Any) -> str | None:
    """Return the string, repaired; None for an empty one and for everything else."""
    return repair_text(value) if isinstance(value, str) and value else None


def flag_in(data: dict[str, Any], name: str) -> bool | None:
    """Return the boolean under this name; None for everything else."""
    value = data.get(name)
    return value if isinstance(value, bool) else None


def offset_in(data: dict[str, Any], name: str) -> int | None:
    """Return the number under this name; None for a negative one and for everything else."""
    value = data.get(name)
    return value if type(value) is int and value >= 0 else None


def read_count(value: Any) -> int | None:
    """Return a number of tokens; None for what is missing, negative or no number."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and value >= 0 else None


def read_time(value: Any) -> datetime | None:
    """Return a time in ISO 8601; None for everything else."""
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def loads(data: bytes) -> Any:
    """Parse one document. Raises ValueError.

    Falls back to a lenient reader for bad UTF-8, raw control characters in strings, lone surrogates and NaN (which
    becomes null). Strings of that reader may hold lone surrogates: see `repair_text`.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return loads_lenient(data.decode("utf-8", "replace"))


def loads_or_none(data: bytes) -> Any:
    """Parse one document; None for what is no JSON."""
    try:
        return loads(data)
    except ValueError:
        return None


def loads_lenient(text: str) -> Any:
    """Parse with the lenient reader alone: exact integers of any size up to Python's own limit. Raises ValueError."""
    try:
        return json.loads(text, strict=False, parse_constant=lambda _: None)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def loads_object(text: str) -> dict[str, Any] | None:
    """Parse the arguments of a call: a JSON object, or None. NaN and infinities are not JSON; integers stay exact.

    What is nested deeper than MAX_DEPTH is None too.
    """
    try:
        value = json.loads(text, strict=False, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return repair_json(value) if is_object(value) and not _is_too_deep(value) else None


def is_strict_json(text: str) -> bool:
    """Whether every reader can read it: no raw control characters, no lone surrogates, no trailing text."""
    try:
        orjson.loads(text)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return False
    return True


def dumps(value: Any) -> bytes:
    """Write compact JSON in UTF-8. Lone surrogates and NaN are repaired; integers beyond 64 bits are kept."""
    try:
        return orjson.dumps(value)
    except TypeError:
        clean = repair_json(value)
        return json.dumps(clean, ensure_ascii=False, separators=(",", ":")).encode()


def repair_text(text: str) -> str:
    """Join surrogate pairs, and replace lone surrogates by U+FFFD. Cheap if there are none."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def repair_json(value: Any, levels: int = MAX_DEPTH) -> Any:
    """Repair every string inside; NaN, infinities and what is nested too deep become null."""
    if isinstance(value, str):
        return repair_text(value)
    if is_object(value):
        return (
            None if not levels else {repair_text(key): repair_json(member, levels - 1) for key, member in value.items()}
        )
    if is_array(value):
        return None if not levels else [repair_json(entry, levels - 1) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class SurrogateJoiner:
    """Joins the halves of a surrogate pair from neighbouring pieces; a lone half becomes U+FFFD."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    @property
    def is_waiting(self) -> bool:
        return bool(self._half)

    def feed(self, piece: str) -> str:
        """Return the piece as it may be shown now; the first half of a pair at its end waits for the next piece."""
        if not self._half and (piece.isascii() or not _SURROGATE.search(piece)):
            return piece
        piece = self._half + piece
        self._half = ""
        if "\ud800" <= piece[-1:] <= "\udbff":
            self._half = piece[-1]
            piece = piece[:-1]
        return repair_text(piece)

    def flush(self) -> str:
        """Return what is still waiting."""
        rest, self._half = repair_text(self._half), ""
        return rest


def _is_too_deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        inner = [
            member for container in level for member in (container.values() if is_object(container) else container)
        ]
        level = [container for container in inner if isinstance(container, (dict, list))]
        if not level:
            return False
    return True


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
