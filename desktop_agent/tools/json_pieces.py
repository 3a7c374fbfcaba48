"""JSON written piece by piece: json.dumps holds up all threads until all of a value is written."""

import json
from collections.abc import Generator
from typing import Any, cast

from desktop_agent.tools.in_thread import is_large


def json_pieces(value: Any, *, sort_keys: bool = False) -> Generator[str]:
    """What json.dumps writes without spaces and escapes, in pieces. Raises TypeError, ValueError, RecursionError."""
    if not is_large(value) or isinstance(value, str):
        yield _whole(value, sort_keys=sort_keys)
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


def _whole(value: Any, *, sort_keys: bool) -> str:
    return json.dumps(value, sort_keys=sort_keys, ensure_ascii=False, separators=(",", ":"))
