"""Tool results: validated before anybody relies on them, hidden characters marked, cut to a length that a history can
bear.

Characters that nobody can see are marked: a file, a command or a server could tell the model with them what the
person does not read. The person is shown the same text.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from desktop_agent.processes.foreign_code import (
    clean_json,
    first_problem,
    limit_parts,
    normalize_newlines,
    omitted_parts_note,
    plain_text,
    replace_surrogates,
    type_name,
    unique_keys,
)
from desktop_agent.processes.worker_threads import is_nested_deeper, iter_json, run_by_size
from desktop_agent.types.blocks import Base64Source, Image, Json, JsonObject, ResultPart, Text, ToolResult, UrlSource
from desktop_agent.types.errors import AgentError, ToolFailed
from desktop_agent.types.hidden_characters import mark_hidden
from desktop_agent.types.tool_calls import is_same_json

# Pictures are not cut, so they are bounded for themselves: characters of base64 in one result.
MAX_PICTURE_CHARACTERS = 64_000_000
# Levels of nesting that are taken in: half of what every reader and writer down to the disk can carry.
MAX_RESULT_DEPTH = 100

EDITED_NOTE = "The person changed the arguments of this call before it ran."
_MAX_VALUE_IN_NOTE = 1_000
_PICTURE_FIELDS = {"source", "detail", "name"}
_CUT_MARK = re.compile(r"⟨(U(\+[0-9A-F]*)?)?\Z")
_TOO_DEEP = "The tool gave back something that is nested too deep."


class InvalidToolResult(ToolFailed):
    """What the tool gave back is no result."""

    kind = "no_result"
    default_remedy = "The tool itself must be mended."


async def validated_content(given: object, most: int) -> tuple[ResultPart, ...]:
    """What a tool gave back, as parts of a result: at most this many characters in all, with a word about the rest.

    Every part is made anew, such that it can be kept and sent. Raises InvalidToolResult for what is none.
    """
    if not issubclass(type(given), tuple | list):
        raise InvalidToolResult(f"The tool gave back no result but {type_name(given)}.")
    parts, rest = limit_parts(cast("Sequence[object]", given))
    return await run_by_size(lambda: _validated_parts(parts, rest, most), parts)


def visible_text(text: str, most: int) -> str:
    """The text as a person sees it: with marks for what cannot be seen, and nothing written over.

    At most so many characters of it; no mark is cut, and no byte order mark stands at its beginning.
    """
    return _truncate(mark_hidden(_normalised_text(text)[:most]), most)


def _normalised_text(text: str) -> str:
    return normalize_newlines(replace_surrogates(text)).removeprefix("\ufeff")


def _truncate(text: str, most: int) -> str:
    return text if len(text) <= most else _CUT_MARK.sub("", text[:most])


def with_edit_note(result: ToolResult, asked: JsonObject, ran: JsonObject) -> ToolResult:
    """Tell the model, before the result itself, which arguments a person had changed before the call ran.

    The result keeps all of them, so that a stored conversation shows what ran.
    """
    changed = {name: value for name, value in ran.items() if name not in asked or not is_same_json(asked[name], value)}
    shown = {name: _shortened_value(value) for name, value in changed.items()}
    without = ", ".join(json.dumps(name, ensure_ascii=False) for name in asked if name not in ran)
    note = f"{EDITED_NOTE} It ran with {json.dumps(shown, ensure_ascii=False)}" if changed else EDITED_NOTE
    note = replace_surrogates(f"{note} It ran without {without}." if without else note)
    first, *rest = result.content or (Text(text=""),)
    if isinstance(first, Text):
        content = (Text(text=f"{note}\n\n{first.text}"), *rest)
    else:
        content = (Text(text=note), first, *rest)
    return result.model_copy(update={"content": content, "ran_with": ran})


def _shortened_value(value: Any) -> Any:
    """A value that the note has room for."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return (
        value if len(text) <= _MAX_VALUE_IN_NOTE else f"{text[:_MAX_VALUE_IN_NOTE]}… ({len(text):,} characters in all)"
    )


def content_size(part: ResultPart) -> int:
    """In characters, as it is kept."""
    match part:
        case Text():
            return len(part.text)
        case Json():
            return len(_to_json(part.value)[0])
        case Image(source=Base64Source() as source):
            return len(source.data)
        case Image(source=UrlSource() as source):
            return len(source.url)
        case Image():
            return 0


def _validated_parts(parts: Sequence[object], rest: int, most: int) -> tuple[ResultPart, ...]:
    """`rest` are so many behind these parts that are left out in any case."""
    kept: list[ResultPart] = []
    left, pictures = most, MAX_PICTURE_CHARACTERS
    for position, part in enumerate(parts):
        if left <= 0:
            rest += len(parts) - position
            break
        if isinstance(part, Image):
            picture = _validated_picture(part, pictures)
            pictures -= content_size(picture) if isinstance(picture, Image) else 0
            kept.append(picture)
            continue
        words, size = _validated_part(part, left)
        kept.append(words)
        left -= size
    return (*kept, omitted_parts_note(rest)) if rest else tuple(kept)


def _validated_picture(part: Image, left: int) -> Image | Text:
    """Made anew and checked like any other, unless it is larger than what is left."""
    try:
        source = part.source
        size = len(source.data if isinstance(source, Base64Source) else getattr(source, "url", ""))
        if size > left:
            return Text(text="[left out: a picture that is too large]")
        return Image.model_validate(clean_json(BaseModel.model_dump(part, include=_PICTURE_FIELDS, warnings=False)))
    except ValidationError as error:
        raise InvalidToolResult(f"The tool gave back a picture that cannot be used: {first_problem(error)}.") from None
    except AgentError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is made of
        raise InvalidToolResult(f"The tool gave back a picture that cannot be used ({type_name(error)}).") from None


def _validated_part(part: object, left: int) -> tuple[ResultPart, int]:
    """A part without pictures, cut to what is left, and how much it takes."""
    if isinstance(part, Text):
        # Nothing but its words: opaque state would go to a provider as if its own model had said it.
        text = _normalised_text(_plain_text(part.text))
        shown = mark_hidden(text[:left])
        size = max(len(text), len(shown))
        return (Text(text=shown) if size <= left else _truncated_text(shown, left, f"{size:,}")), size
    if isinstance(part, Json):
        text, is_whole = _to_json(part.value, left)
        if len(text) <= left:
            value = _mark_hidden(_parse_json(text))
            text, _ = _to_json(value)
            if len(text) <= left:
                return Json(value=value), len(text)
        shown = mark_hidden(text[: left + 1])
        size = max(len(text), len(shown))
        return _truncated_text(shown, left, f"{size:,}" if is_whole else f"more than {left:,}"), size
    raise InvalidToolResult(f"The tool gave back {type_name(part)} as a part of its result.")


def _plain_text(given: object) -> str:
    try:
        return plain_text(given)
    except TypeError:
        raise InvalidToolResult(
            f"The tool gave back {type_name(given)} where the text of its result should be."
        ) from None


def _parse_json(text: str) -> Any:
    """As it will be read from the disk. What JSON has no word for becomes a text: NaN, infinity."""
    value = json.loads(replace_surrogates(text), parse_constant=str, object_pairs_hook=_object_with_marked_names)
    if is_nested_deeper(value, MAX_RESULT_DEPTH):
        raise InvalidToolResult(_TOO_DEEP)
    return value


def _object_with_marked_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return unique_keys((_mark_hidden(name), each) for name, each in pairs)


def _mark_hidden(value: Any) -> Any:
    """Also within JSON; control characters but the last are written as escapes there when it is sent."""
    match value:
        case str():
            return value if value.isascii() and "\x7f" not in value else mark_hidden(value)
        case dict():
            return {name: _mark_hidden(each) for name, each in cast("dict[str, Any]", value).items()}
        case list():
            return [_mark_hidden(each) for each in cast("list[Any]", value)]
        case _:
            return value


def _to_json(value: Any, most: int | None = None) -> tuple[str, bool]:
    """As JSON; of what is longer than `most` characters perhaps only a beginning that is longer too, and then False."""
    pieces: list[str] = []
    size = 0
    is_whole = False
    try:
        for piece in iter_json(value):
            if most is not None and size > most:
                break
            pieces.append(piece)
            size += len(piece)
        else:
            is_whole = True
    except RecursionError:
        raise InvalidToolResult(_TOO_DEEP) from None
    except (TypeError, ValueError, RuntimeError):
        raise InvalidToolResult("The tool gave back something that cannot be written as JSON.") from None
    return "".join(pieces), is_whole


def _truncated_text(text: str, left: int, size: str) -> Text:
    return Text(text=f"{replace_surrogates(_truncate(text, left))}\n[cut: {size} characters in all]")
