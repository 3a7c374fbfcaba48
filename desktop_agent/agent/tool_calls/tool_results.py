"""Tool results: validated before anybody relies on them, hidden characters marked, cut to a length fit for a history.

Hidden characters are marked because a file, a command or a server could send the model text with them that the person
does not see. The person is shown the same text.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from desktop_agent.processes.foreign_code import limit_parts, omitted_parts_note, replace_surrogates, unique_keys
from desktop_agent.processes.worker_threads import is_nested_deeper, iter_json, run_by_size
from desktop_agent.tools.files.text_files import normalize_newlines
from desktop_agent.types.blocks import Base64Source, Image, Json, JsonObject, ResultPart, Text, ToolResult, UrlSource
from desktop_agent.types.errors import ToolFailed
from desktop_agent.types.hidden_characters import mark_hidden
from desktop_agent.types.tool_calls import EDITED_BY_PERSON, is_same_json

# Pictures are not cut, so they have a limit of their own: characters of base64 in one result.
MAX_PICTURE_CHARACTERS = 64_000_000
# Levels of nesting: half of what every reader and writer down to the disk can handle.
MAX_RESULT_DEPTH = 100

_MAX_VALUE_IN_NOTE = 1_000
_CUT_MARK = re.compile(r"⟨(U(\+[0-9A-F]*)?)?\Z")
_TOO_DEEP = "The tool gave back something that is nested too deep."


class InvalidToolResult(ToolFailed):
    """What the tool returned is no result."""

    kind = "no_result"
    default_remedy = "The tool itself must be corrected."


async def validated_content(value: object, limit: int) -> tuple[ResultPart, ...]:
    """Return a tool's value as parts of a result, at most `limit` characters in all, with a note about the rest.

    What is left can be stored and sent. Raises InvalidToolResult.
    """
    if not isinstance(value, tuple | list):
        raise InvalidToolResult(f"The tool gave back no result but {type(value).__name__}.")
    parts, omitted = limit_parts(cast("Sequence[object]", value))
    return await run_by_size(lambda: _validated_parts(parts, omitted, limit), parts)


def visible_text(text: str, limit: int) -> str:
    """Return the text as a person sees it, hidden characters marked, at most `limit` characters.

    No mark is cut, and a byte order mark at the beginning is removed.
    """
    return _truncate(mark_hidden(_normalised_text(text)[:limit]), limit)


def _normalised_text(text: str) -> str:
    return normalize_newlines(replace_surrogates(text)).removeprefix("\ufeff")


def _truncate(text: str, limit: int) -> str:
    return text if len(text) <= limit else _CUT_MARK.sub("", text[:limit])


def with_edit_note(result: ToolResult, requested: JsonObject, ran: JsonObject) -> ToolResult:
    """Put before the result which arguments a person had changed before the call ran.

    The result keeps all arguments, so that a stored conversation shows what ran.
    """
    changed = {
        name: value for name, value in ran.items() if name not in requested or not is_same_json(requested[name], value)
    }
    shortened = {name: _shortened_value(value) for name, value in changed.items()}
    removed = ", ".join(json.dumps(name, ensure_ascii=False) for name in requested if name not in ran)
    note = (
        f"{EDITED_BY_PERSON} It ran with {json.dumps(shortened, ensure_ascii=False)}" if changed else EDITED_BY_PERSON
    )
    note = replace_surrogates(f"{note} It ran without {removed}." if removed else note)
    first, *others = result.content or (Text(text=""),)
    if isinstance(first, Text):
        content = (Text(text=f"{note}\n\n{first.text}"), *others)
    else:
        content = (Text(text=note), first, *others)
    return result.model_copy(update={"content": content, "ran_with": ran})


def _shortened_value(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return (
        value if len(text) <= _MAX_VALUE_IN_NOTE else f"{text[:_MAX_VALUE_IN_NOTE]}… ({len(text):,} characters in all)"
    )


def content_size(part: ResultPart) -> int:
    """Return the size in characters, as stored."""
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


def _validated_parts(parts: Sequence[object], omitted: int, limit: int) -> tuple[ResultPart, ...]:
    """Validate the parts; `omitted` counts parts that were left out before."""
    validated: list[ResultPart] = []
    remaining, pictures = limit, MAX_PICTURE_CHARACTERS
    for position, part in enumerate(parts):
        if remaining <= 0:
            omitted += len(parts) - position
            break
        if isinstance(part, Image):
            picture = _validated_picture(part, pictures)
            pictures -= content_size(picture) if isinstance(picture, Image) else 0
            validated.append(picture)
            continue
        rebuilt, size = _validated_part(part, remaining)
        validated.append(rebuilt)
        remaining -= size
    return (*validated, omitted_parts_note(omitted)) if omitted else tuple(validated)


def _validated_picture(part: Image, remaining: int) -> Image | Text:
    """Return the picture, or a text where it is larger than `remaining`."""
    if content_size(part) > remaining:
        return Text(text="[left out: a picture that is too large]")
    return part.model_copy(update={"name": replace_surrogates(part.name)}) if part.name else part


def _validated_part(part: object, remaining: int) -> tuple[ResultPart, int]:
    """Return a part cut to `remaining` characters, and its size."""
    if isinstance(part, Text):
        # Only its text: opaque state would go to a provider as if its own model had produced it.
        text = _normalised_text(part.text)
        marked = mark_hidden(text[:remaining])
        size = max(len(text), len(marked))
        return (Text(text=marked) if size <= remaining else _truncated_text(marked, remaining, f"{size:,}")), size
    if isinstance(part, Json):
        text, is_whole = _to_json(part.value, remaining)
        if len(text) <= remaining:
            value = _mark_hidden(_parse_json(text))
            text, _ = _to_json(value)
            if len(text) <= remaining:
                return Json(value=value), len(text)
        marked = mark_hidden(text[: remaining + 1])
        size = max(len(text), len(marked))
        return _truncated_text(marked, remaining, f"{size:,}" if is_whole else f"more than {remaining:,}"), size
    raise InvalidToolResult(f"The tool gave back {type(part).__name__} as a part of its result.")


def _parse_json(text: str) -> Any:
    """Parse as it will be read from the disk. NaN and infinity, which JSON lacks, become texts."""
    value = json.loads(replace_surrogates(text), parse_constant=str, object_pairs_hook=_object_with_marked_names)
    if is_nested_deeper(value, MAX_RESULT_DEPTH):
        raise InvalidToolResult(_TOO_DEEP)
    return value


def _object_with_marked_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return unique_keys((_mark_hidden(name), value) for name, value in pairs)


def _mark_hidden(value: Any) -> Any:
    """Mark hidden characters within JSON; other control characters are escaped when it is sent."""
    match value:
        case str():
            return value if value.isascii() and "\x7f" not in value else mark_hidden(value)
        case dict():
            return {name: _mark_hidden(item) for name, item in cast("dict[str, Any]", value).items()}
        case list():
            return [_mark_hidden(item) for item in cast("list[Any]", value)]
        case _:
            return value


def _to_json(value: Any, limit: int | None = None) -> tuple[str, bool]:
    """Return the value as JSON and True; or, beyond `limit` characters, perhaps only a beginning and False."""
    pieces: list[str] = []
    size = 0
    is_whole = False
    try:
        for piece in iter_json(value):
            if limit is not None and size > limit:
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


def _truncated_text(text: str, limit: int, size: str) -> Text:
    return Text(text=f"{replace_surrogates(_truncate(text, limit))}\n[cut: {size} characters in all]")
