"""What a function answered, as the parts of a result."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_jsonable_python

from desktop_agent.vocabulary.blocks import Image, Json, ResultPart, Text
from desktop_agent.vocabulary.errors import Sentence, ToolFailed

# Of one result; the last of more says how many were left out.
MAX_PARTS = 1_000
# ECMA-48, as programs send it: colours, moves of the cursor, titles, links. Of a title without end only its beginning.
_TERMINAL_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,4}[@-~]"
    r"|\x1b[PX^_\]][^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]{0,4}[0-~]"
)


def result_parts(value: object) -> tuple[ResultPart, ...]:
    """None is no part, a text is a text, parts are themselves, anything else is JSON.

    In a list or tuple with a part in it each element is a part of its own, up to MOST_PARTS; any other is one piece of
    JSON. Raises ToolFailed for what JSON cannot say.
    """
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        elements = tuple(cast("tuple[object, ...]", value))
        if any(isinstance(each, Text | Json | Image) for each in elements):
            first, rest = limit_parts(elements)
            return (*(_result_part(each) for each in first), *((omitted_parts_note(rest),) if rest else ()))
    return (_result_part(cast("object", value)),)


def limit_parts(parts: Sequence[object]) -> tuple[tuple[object, ...], int]:
    """Those of a list or tuple that are taken, and how many are left out.

    Past whatever a class of somebody's own makes of its length and its elements.
    """
    kind: Any = list if issubclass(type(parts), list) else tuple
    count = kind.__len__(parts)
    taken = count if count <= MAX_PARTS else MAX_PARTS - 1
    return tuple(kind.__getitem__(parts, slice(taken))), count - taken


def omitted_parts_note(count: int) -> Text:
    """The word about parts that are not there."""
    return Text(text=f"[left out: {count:,} more parts]")


def plain_text(text: object) -> str:
    """The characters alone, past whatever a class of somebody's own makes of them. Raises TypeError for no text."""
    return str.__str__(text)  # pyright: ignore[reportArgumentType]  it raises for what is none


def replace_surrogates(text: str) -> str:
    """Half a character, which Python's texts may hold, can be neither kept nor sent."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def strip_terminal_sequences(output: str) -> str:
    """What is written, without what only a terminal understands."""
    return _TERMINAL_SEQUENCE.sub("", output) if "\x1b" in output or "\x9b" in output else output


def normalize_newlines(text: str) -> str:
    """Every line end as \\n; what a terminal would write over stands in a line of its own."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def unique_keys(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """All of these: of two names that became one, the second is marked."""
    made: dict[Any, Any] = {}
    for given, each in pairs:
        name = given
        while name in made:
            name = f"{name}⟨{len(made)}⟩"
        made[name] = each
    return made


def _result_part(value: object) -> ResultPart:
    if isinstance(value, Text | Json | Image):
        return value
    if isinstance(value, str):
        return Text(text=replace_surrogates(value))
    try:
        return Json(value=clean_json(to_jsonable_python(clean_json(value))))
    except (PydanticSerializationError, ValueError, RecursionError):
        kind = type(value).__name__
        what = Sentence("The tool ran, but answered with something that JSON cannot say ({kind}).", {"kind": kind})
        raise ToolFailed(what, "Do not run it again for that; its program must be corrected.") from None


def clean_json(value: Any) -> Any:
    """Without what JSON has no place for but Python's writers let through: half characters, no number, infinity."""
    match value:
        case str() if type(value) is str:
            return replace_surrogates(value)
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            pairs = cast("dict[Any, Any]", value).items()
            return unique_keys(
                (replace_surrogates(name) if type(name) is str else name, clean_json(each)) for name, each in pairs
            )
        case list() | tuple():
            return [clean_json(each) for each in cast("list[Any]", value)]
        case _:
            return value
