"""Compare and read the arguments of a tool call: text, pieces of text, or an object."""

import json
from itertools import pairwise
from typing import Any

from desktop_agent.providers.transport.json_codec import dumps, loads_object
from desktop_agent.types.blocks import JsonObject

# Servers that distinguish calls only by whole arguments send short ones; parsing long ones again and again would cost
# the square of their length.
MAX_REPARSED_SIZE = 64 * 1024
# Arguments repeated more often than that are malformed.
_MAX_DOCUMENTS = 1_000


def is_piece(arguments: Any) -> bool:
    """Whether these are some of a call's arguments, but not all."""
    is_text = isinstance(arguments, str) and bool(arguments)
    return is_text and ("}" not in arguments or loads_object(arguments) is None)


def is_blank(arguments: Any) -> bool:
    """Whether this is nothing, or only blanks."""
    return arguments is None or (isinstance(arguments, str) and not arguments.strip())


def is_empty(arguments: Any) -> bool:
    """Whether there are no arguments: nothing, blanks or `{}`."""
    return is_blank(arguments) or arguments == {} or (isinstance(arguments, str) and arguments.strip() == "{}")


def as_object(arguments: Any) -> JsonObject | None:
    """Return the arguments as an object; None for a piece, for others, and for text too long to be parsed often."""
    if isinstance(arguments, str):
        return loads_object(arguments or "{}") if len(arguments) <= MAX_REPARSED_SIZE else None
    return {} if arguments is None else loads_object(dumps(arguments).decode())


def is_repeat(before: JsonObject | None, arguments: Any) -> bool:
    """Whether these arguments contain those that came before; `{}` may become anything."""
    new = None if before is None else as_object(arguments)
    return before is not None and new is not None and _contains(new, before)


def _contains(new: JsonObject, old: JsonObject) -> bool:
    return all(name in new and new[name] == value for name, value in old.items())


def only_reading(pieces: list[str], *, may_be_two: bool = False) -> str | None:
    """Return the arguments in pieces that are not one object, if they can be read in only one way; else None.

    Each piece is the whole text so far; or documents follow each other, each containing the one before. Empty ones do
    not count, unless they may belong to another call.
    """
    return _grown_text(pieces) or _last_document("".join(pieces), may_be_two=may_be_two)


def _grown_text(pieces: list[str]) -> str | None:
    growing = [piece for piece in pieces if piece.strip() not in ("", "{}")]
    if growing and growing[0].strip() == "{":
        growing = [piece for piece in pieces if piece.strip()]
    is_growing = len(growing) > 1 and all(later.startswith(earlier) for earlier, later in pairwise(growing))
    return growing[-1] if is_growing and loads_object(growing[-1]) is not None else None


def _last_document(text: str, *, may_be_two: bool) -> str | None:
    objects = split_objects(text)
    full = [(document, value) for document, value in objects if value]
    if not objects or (may_be_two and 0 < len(full) < len(objects)):
        return None
    if not all(_contains(later, earlier) for (_, earlier), (_, later) in pairwise(full)):
        return None
    return full[-1][0] if full else "{}"


def split_objects(text: str) -> list[tuple[str, JsonObject]]:
    """Return the JSON objects that follow each other, each with its text; none if anything else is between them."""
    objects: list[tuple[str, JsonObject]] = []
    reader = json.JSONDecoder(strict=False)
    position = 0
    while position < len(text) and len(objects) <= _MAX_DOCUMENTS:
        if text[position].isspace():
            position += 1
            continue
        try:
            _, end = reader.raw_decode(text, position)
        except (ValueError, RecursionError):
            return []
        value = loads_object(text[position:end])
        if value is None:
            return []
        objects.append((text[position:end], value))
        position = end
    return objects if position >= len(text) else []
