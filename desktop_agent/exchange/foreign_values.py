"""Values out of other programs' JSON, where anything may be missing or of another type."""

from datetime import UTC, datetime
from typing import Any, cast


def object_of(value: object) -> dict[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def object_in(value: object, name: str) -> dict[str, Any]:
    """Return the object under this name, or an empty one."""
    return object_of(_member(value, name))


def list_in(value: object, name: str) -> list[Any]:
    """Return the array under this name, or an empty one."""
    inner = _member(value, name)
    return cast("list[Any]", inner) if isinstance(inner, list) else []


def text_in(value: object, name: str) -> str:
    """Return the text under this name, or an empty one."""
    inner = _member(value, name)
    return inner if isinstance(inner, str) else ""


def flag_in(value: object, name: str) -> bool:
    """Return whether there is a true under this name."""
    return _member(value, name) is True


def moment_in(value: object, name: str) -> datetime | None:
    """Return the moment under this name, in seconds since 1970 or as ISO 8601; None for everything else."""
    inner = _member(value, name)
    try:
        if isinstance(inner, int | float) and not isinstance(inner, bool):
            return datetime.fromtimestamp(inner, UTC)
        if isinstance(inner, str):
            moment = datetime.fromisoformat(inner)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def _member(value: object, name: str) -> object:
    return object_of(value).get(name)
