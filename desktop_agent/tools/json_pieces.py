"""JSON written piece by piece: json.dumps holds up all threads until all of a value is written."""

import json
from collections.abc import Generator
from typing import Any, cast

from desktop_agent.tools.in_thread import inner_values, is_large

# Characters of a long text that are written at once.
_CHUNK = 65_536


def iter_json(value: Any, *, sort_keys: bool = False) -> Generator[str]:
    """What json.dumps writes without spaces and escapes, in pieces. Raises TypeError, ValueError, RecursionError."""
    if not is_large(value):
        yield _dump(value, sort_keys=sort_keys)
    elif isinstance(value, str):
        yield '"'
        for start in range(0, str.__len__(value), _CHUNK):
            yield _dump(str.__getitem__(value, slice(start, start + _CHUNK)), sort_keys=sort_keys)[1:-1]
        yield '"'
    elif isinstance(value, list | tuple):
        yield "["
        for position, each in enumerate(cast("list[Any]", value)):
            yield "," if position else ""
            yield from iter_json(each, sort_keys=sort_keys)
        yield "]"
    elif isinstance(value, dict) and all(isinstance(key, str) for key in cast("dict[Any, Any]", value)):
        named = cast("dict[str, Any]", value)
        yield "{"
        for position, key in enumerate(sorted(named) if sort_keys else named):
            yield f"{',' if position else ''}{_dump(key, sort_keys=sort_keys)}:"
            yield from iter_json(named[key], sort_keys=sort_keys)
        yield "}"
    else:
        yield _dump(value, sort_keys=sort_keys)


def is_nested_deeper(value: object, levels: int) -> bool:
    """Level by level, so that no depth is too deep to be looked at; how deep Python recurses differs by version."""
    level = [value]
    for _ in range(levels):
        level = [inner for each in level for inner in inner_values(each)]
        if not level:
            return False
    return True


def _dump(value: Any, *, sort_keys: bool) -> str:
    return json.dumps(value, sort_keys=sort_keys, ensure_ascii=False, separators=(",", ":"))
