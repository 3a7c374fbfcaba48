"""What a function answered, as the parts of a result."""

import math
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_jsonable_python

from desktop_agent.vocabulary.blocks import Image, Json, ResultPart, Text
from desktop_agent.vocabulary.errors import Sentence, ToolFailed


def parts_of(value: object) -> tuple[ResultPart, ...]:
    """None is no part, a text is a text, parts are themselves, anything else is JSON.

    In a list or tuple with a part in it each element is a part of its own; any other is one piece of JSON. Raises
    ToolFailed for what JSON cannot say.
    """
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        elements = tuple(cast("tuple[object, ...]", value))
        if any(isinstance(each, Text | Json | Image) for each in elements):
            return tuple(_part(each) for each in elements)
    return (_part(cast("object", value)),)


def _part(value: object) -> ResultPart:
    if isinstance(value, Text | Json | Image):
        return value
    if isinstance(value, str):
        return Text(text=_whole(value))
    try:
        return Json(value=_clean(to_jsonable_python(_clean(value))))
    except (PydanticSerializationError, ValueError, RecursionError):
        kind = type(value).__name__
        what = Sentence("The tool ran, but answered with something that JSON cannot say ({kind}).", {"kind": kind})
        raise ToolFailed(what, "Do not run it again for that; its program must be corrected.") from None


def _whole(text: str) -> str:
    """Half a character, which Python's texts may hold, can be neither kept nor sent."""
    return text.encode("utf-8", "replace").decode()


def _clean(value: Any) -> Any:
    """Without what JSON has no place for but Python's writers let through: half characters, no number, infinity."""
    match value:
        case str() if type(value) is str:
            return _whole(value)
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            pairs = cast("dict[Any, Any]", value).items()
            return {_whole(name) if type(name) is str else name: _clean(each) for name, each in pairs}
        case list() | tuple():
            return [_clean(each) for each in cast("list[Any]", value)]
        case _:
            return value
