"""What a tool gives back: looked at before anybody relies on it, and cut to a length that history can bear.

Characters that nobody can see are marked in it: a file, a command or a server could tell the model with them what the
person does not read. The person is shown the same text.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from desktop_agent.tools.answers import clean, first_of, left_out, named_apart, plain, whole, with_plain_newlines
from desktop_agent.tools.foreign_code import first_problem, kind_of
from desktop_agent.tools.in_thread import by_size
from desktop_agent.tools.json_pieces import is_nested_deeper, json_pieces
from desktop_agent.vocabulary.blocks import Image, Json, JsonObject, ResultPart, Text, ToolResult
from desktop_agent.vocabulary.errors import AgentError, ToolFailed
from desktop_agent.vocabulary.images import Base64Source, UrlSource
from desktop_agent.vocabulary.text.hidden_characters import with_hidden_marked
from desktop_agent.vocabulary.tool_calls import is_same_json

# Pictures are not cut, so they are bounded for themselves: characters of base64 in one result.
PICTURE_CHARACTERS = 64_000_000
# Levels of nesting that are taken in: half of what every reader and writer down to the disk can carry.
DEEPEST = 100

EDITED = "The person changed the arguments of this call before it ran."
_LONGEST_IN_NOTE = 1_000
_OF_A_PICTURE = {"source", "detail", "name"}
_PART_OF_MARK = re.compile(r"⟨(U(\+[0-9A-F]*)?)?\Z")
_TOO_DEEP = "The tool gave back something that is nested too deep."


class NoResult(ToolFailed):
    """What the tool gave back is no result."""

    kind = "no_result"
    default_remedy = "The tool itself must be mended."


async def taken(given: object, most: int) -> tuple[ResultPart, ...]:
    """What a tool gave back, as parts of a result: at most this many characters in all, with a word about the rest.

    Every part is made anew, such that it can be kept and sent. Raises NoResult for what is none.
    """
    if not issubclass(type(given), tuple | list):
        raise NoResult(f"The tool gave back no result but {kind_of(given)}.")
    parts, rest = first_of(cast("Sequence[object]", given))
    return await by_size(lambda: _taken(parts, rest, most), parts)


def as_seen(text: str, most: int) -> str:
    """The text as a person sees it: with marks for what cannot be seen, and nothing written over.

    At most so many characters of it; no mark is cut, and no byte order mark stands at its beginning.
    """
    return _beginning(with_hidden_marked(_plain(text)[:most]), most)


def _plain(text: str) -> str:
    return with_plain_newlines(whole(text)).removeprefix("\ufeff")


def _beginning(text: str, most: int) -> str:
    return text if len(text) <= most else _PART_OF_MARK.sub("", text[:most])


def with_edit_note(result: ToolResult, asked: JsonObject, ran: JsonObject) -> ToolResult:
    """Tell the model, before the result itself, which arguments a person had changed before the call ran.

    The result keeps all of them, so that a stored conversation shows what ran.
    """
    changed = {name: value for name, value in ran.items() if name not in asked or not is_same_json(asked[name], value)}
    shown = {name: _short(value) for name, value in changed.items()}
    without = ", ".join(json.dumps(name, ensure_ascii=False) for name in asked if name not in ran)
    note = f"{EDITED} It ran with {json.dumps(shown, ensure_ascii=False)}" if changed else EDITED
    note = whole(f"{note} It ran without {without}." if without else note)
    first, *rest = result.content or (Text(text=""),)
    if isinstance(first, Text):
        content = (Text(text=f"{note}\n\n{first.text}"), *rest)
    else:
        content = (Text(text=note), first, *rest)
    return result.model_copy(update={"content": content, "ran_with": ran})


def _short(value: Any) -> Any:
    """A value that the note has room for."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(text) <= _LONGEST_IN_NOTE else f"{text[:_LONGEST_IN_NOTE]}… ({len(text):,} characters in all)"


def size_of(part: ResultPart) -> int:
    """In characters, as it is kept."""
    match part:
        case Text():
            return len(part.text)
        case Json():
            return len(_written(part.value)[0])
        case Image(source=Base64Source() as source):
            return len(source.data)
        case Image(source=UrlSource() as source):
            return len(source.url)
        case Image():
            return 0


def _taken(parts: Sequence[object], rest: int, most: int) -> tuple[ResultPart, ...]:
    """`rest` are so many behind these parts that are left out in any case."""
    kept: list[ResultPart] = []
    left, pictures = most, PICTURE_CHARACTERS
    for position, part in enumerate(parts):
        if left <= 0:
            rest += len(parts) - position
            break
        if isinstance(part, Image):
            picture = _picture(part, pictures)
            pictures -= size_of(picture) if isinstance(picture, Image) else 0
            kept.append(picture)
            continue
        words, size = _words(part, left)
        kept.append(words)
        left -= size
    return (*kept, left_out(rest)) if rest else tuple(kept)


def _picture(part: Image, left: int) -> Image | Text:
    """Made anew and checked like any other, unless it is larger than what is left."""
    try:
        source = part.source
        size = len(source.data if isinstance(source, Base64Source) else getattr(source, "url", ""))
        if size > left:
            return Text(text="[left out: a picture that is too large]")
        return Image.model_validate(clean(BaseModel.model_dump(part, include=_OF_A_PICTURE, warnings=False)))
    except ValidationError as error:
        raise NoResult(f"The tool gave back a picture that cannot be used: {first_problem(error)}.") from None
    except AgentError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is made of
        raise NoResult(f"The tool gave back a picture that cannot be used ({kind_of(error)}).") from None


def _words(part: object, left: int) -> tuple[ResultPart, int]:
    """A part without pictures, cut to what is left, and how much it takes."""
    if isinstance(part, Text):
        # Nothing but its words: opaque state would go to a provider as if its own model had said it.
        text = _plain(_text(part.text))
        shown = with_hidden_marked(text[:left])
        size = max(len(text), len(shown))
        return (Text(text=shown) if size <= left else _cut(shown, left, f"{size:,}")), size
    if isinstance(part, Json):
        text, is_whole = _written(part.value, left)
        if len(text) <= left:
            value = _marked(_read(text))
            text, _ = _written(value)
            if len(text) <= left:
                return Json(value=value), len(text)
        shown = with_hidden_marked(text[: left + 1])
        size = max(len(text), len(shown))
        return _cut(shown, left, f"{size:,}" if is_whole else f"more than {left:,}"), size
    raise NoResult(f"The tool gave back {kind_of(part)} as a part of its result.")


def _text(given: object) -> str:
    try:
        return plain(given)
    except TypeError:
        raise NoResult(f"The tool gave back {kind_of(given)} where the text of its result should be.") from None


def _read(text: str) -> Any:
    """As it will be read from the disk. What JSON has no word for becomes a text: NaN, infinity."""
    value = json.loads(whole(text), parse_constant=str, object_pairs_hook=_with_names_marked)
    if is_nested_deeper(value, DEEPEST):
        raise NoResult(_TOO_DEEP)
    return value


def _with_names_marked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return named_apart((_marked(name), each) for name, each in pairs)


def _marked(value: Any) -> Any:
    """Also within JSON; control characters but the last are written as escapes there when it is sent."""
    match value:
        case str():
            return value if value.isascii() and "\x7f" not in value else with_hidden_marked(value)
        case dict():
            return {name: _marked(each) for name, each in cast("dict[str, Any]", value).items()}
        case list():
            return [_marked(each) for each in cast("list[Any]", value)]
        case _:
            return value


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
    except RecursionError:
        raise NoResult(_TOO_DEEP) from None
    except (TypeError, ValueError, RuntimeError):
        raise NoResult("The tool gave back something that cannot be written as JSON.") from None
    return "".join(pieces), is_whole


def _cut(text: str, left: int, size: str) -> Text:
    return Text(text=f"{whole(_beginning(text, left))}\n[cut: {size} characters in all]")
