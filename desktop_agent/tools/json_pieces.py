"""JSON written piece by piece: json.dumps holds up all threads until all of a value is written."""

import json
from collections.abc import Generator
from typing import Any, cast

from desktop_agent.tools.in_thread import inner_values, is_large

# Characters of a long text that are written at once.
_PIECE = 65_536


def json_pieces(value: Any, *, sort_keys: bool = False) -> Generator[str]:
    """What json.dumps writes without spaces and escapes, in pieces. Raises TypeError, ValueError, RecursionError."""
    if not is_large(value):
        yield _whole(value, sort_keys=sort_keys)
    elif isinstance(value, str):
        yield '"'
        for start in range(0, str.__len__(value), _PIECE):
            yield _whole(str.__getitem__(value, slice(start, start + _PIECE)), sort_keys=sort_keys)[1:-1]
        yield '"'
    elif isinstance(value, list | tuple):
        yield "["
        for position, each in enumerate(cast("list[Any]", value)):
            yield "," if position else ""
            yield from json_pieces(each, sort_keys=sort_keys)
        yield "]"
    elif isinstance(value, dict) and all(isinstance(key, str) for key in cast("dict[Any, Any]", value)):
        named = cast("dict[str, Any]", value)
        yield "{"
        for position, key in enumerate(sorted(named) if sort_keys else named):
            yield f"{',' if position else ''}{_whole(key, sort_keys=sort_keys)}:"
            yield from json_pieces(named[key], sort_keys=sort_keys)
        yield "}"
    else:
        yield _whole(value, sort_keys=sort_keys)


def is_nested_deeper(value: object, levels: int) -> bool:
    """Level by level, so that no depth is too deep to be looked at; how deep Python recurses differs by version."""
    level = [value]
    for _ in range(levels):
        level = [inner for each in level for inner in inner_values(each)]
        if not level:
            return False
    return True


def _whole(value: Any, *, sort_keys: bool) -> str:
    return json.dumps(value, sort_keys=sort_keys, ensure_ascii=False, separators=(",", ":"))
