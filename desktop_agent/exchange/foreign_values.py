"""Values out of other programs' JSON, where anything may be missing or of another type."""

import math
import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast

_MILLISECONDS = 100_000_000_000
"""Numbers above are milliseconds: in seconds this is the year 5138."""


def object_of(value: object) -> dict[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def object_in(value: object, *path: str) -> dict[str, Any]:
    """Return the object at a path of keys, or an empty one."""
    return object_of(_value_at(value, path))


def list_in(value: object, *path: str) -> list[Any]:
    """Return the list at a path of keys, or an empty one."""
    inner = _value_at(value, path)
    return cast("list[Any]", inner) if isinstance(inner, list) else []


def text_in(value: object, *path: str) -> str:
    """Return the text at a path of keys, or ""."""
    inner = _value_at(value, path)
    return inner if isinstance(inner, str) else ""


def texts_in(value: object, *path: str) -> list[str]:
    """Return the texts in the list at a path of keys."""
    return [item for item in list_in(value, *path) if isinstance(item, str)]


def parts_in(value: object, *path: str) -> list[Any]:
    """Return the list at a path of keys; of a text there, which stands for a list, the text alone."""
    inner = _value_at(value, path)
    return [inner] if isinstance(inner, str) else list_in(inner)


def flag_in(value: object, *path: str) -> bool:
    """Return whether there is a true at a path of keys."""
    return _value_at(value, path) is True


def moment_in(value: object, *path: str) -> datetime | None:
    """Return the time at a path of keys; see `parse_time`."""
    return parse_time(_value_at(value, path))


def parse_time(value: object) -> datetime | None:
    """Return a time in ISO 8601, or in seconds or milliseconds since 1970. UTC where no zone is given."""
    with suppress(ValueError, OverflowError, OSError):
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            time = time if time.tzinfo else time.replace(tzinfo=UTC)
            return time.astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0:
            return datetime.fromtimestamp(value / 1000 if value > _MILLISECONDS else value, UTC)
    return None


def fenced_code(code: str, language: str) -> str:
    """Return code as Markdown has it; the fence is longer than any run of backticks in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", code)), default=0))
    return f"{fence}{language if language.isalnum() and language != 'unknown' else ''}\n{code}\n{fence}"


def _value_at(value: object, path: tuple[str, ...]) -> object:
    for key in path:
        value = object_of(value).get(key)
    return value
