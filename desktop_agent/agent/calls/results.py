"""What a tool gives back: looked at before anybody relies on it, and cut to a length that history can bear."""

import json
from typing import Any, cast

from desktop_agent.tools.in_thread import by_size
from desktop_agent.tools.json_pieces import json_pieces
from desktop_agent.vocabulary.blocks import Image, Json, ResultPart, Text
from desktop_agent.vocabulary.errors import ToolFailed
from desktop_agent.vocabulary.images import Base64Source

MOST_PARTS = 1_000
# Pictures are not cut, so they are bounded for themselves: characters of base64 in one result.
PICTURE_CHARACTERS = 64_000_000


class NoResult(ToolFailed):
    """What the tool gave back is no result."""

    kind = "no_result"
    default_remedy = "The tool itself must be mended."


async def taken(given: object, most: int) -> tuple[ResultPart, ...]:
    """What a tool gave back, as parts of a result: at most this many characters in all, with a word about the rest.

    Raises NoResult for what is none.
    """
    return await by_size(lambda: _taken(given, most), given)


def size_of(part: ResultPart) -> int:
    """In characters, as it is kept."""
    match part:
        case Text():
            return len(part.text)
        case Json():
            return len(_written(part.value)[0])
        case Image():
            return len(part.source.data) if isinstance(part.source, Base64Source) else 0


def _taken(given: object, most: int) -> tuple[ResultPart, ...]:
    if not isinstance(given, tuple | list):
        raise NoResult(f"The tool gave back no result but {type(given).__name__}.")
    parts = cast("tuple[object, ...] | list[object]", given)
    kept: list[ResultPart] = []
    left, pictures = most, PICTURE_CHARACTERS
    for position, part in enumerate(parts):
        if left <= 0 or position >= MOST_PARTS:
            kept.append(Text(text=f"[left out: {len(parts) - position:,} more parts]"))
            break
        if isinstance(part, Image):
            size = size_of(part)
            fits, pictures = size <= pictures, pictures - min(size, pictures)
            kept.append(part if fits else Text(text="[left out: a picture that is too large]"))
            continue
        words, size = _words(part, left)
        kept.append(words)
        left -= size
    return tuple(kept)


def _words(part: object, left: int) -> tuple[ResultPart, int]:
    """A part without pictures, cut to what is left, and how much it takes."""
    if isinstance(part, Text):
        size = len(part.text)
        # Nothing but its words: opaque state would go to a provider as if its own model had said it.
        return (Text(text=part.text) if size <= left else _cut(part.text, left, f"{size:,}")), size
    if isinstance(part, Json):
        text, is_whole = _written(part.value, left)
        size = len(text)
        if size <= left:
            return Json(value=json.loads(text)), size
        return _cut(text, left, f"{size:,}" if is_whole else f"more than {left:,}"), size
    raise NoResult(f"The tool gave back {type(part).__name__} as a part of its result.")


def _written(value: Any, most: int | None = None) -> tuple[str, bool]:
    """As JSON; of what is longer than `most` characters perhaps only a beginning that is longer too, and then False."""
    pieces: list[str] = []
    size = 0
    is_whole = False
    try:
        for piece in json_pieces(value):
            if most is not None and size > most:
                break
            pieces.append(piece)
            size += len(piece)
        else:
            is_whole = True
    except (TypeError, ValueError, RuntimeError):
        raise NoResult("The tool gave back something that cannot be written as JSON.") from None
    return "".join(pieces), is_whole


def _cut(text: str, left: int, size: str) -> Text:
    return Text(text=f"{text[:left]}\n[cut: {size} characters in all]")
