"""The arguments of a tool call in words: on one line of its card, or as the text of a block."""

import json
from collections.abc import Collection
from itertools import islice
from pathlib import PurePath
from typing import cast

from desktop_agent.conversation.file_changes import FileChange, changed_file, file_changes
from desktop_agent.conversation.items import CallState, ToolCallItem
from desktop_agent.types.blocks import Outcome
from ui.style.text import one_line, replace_hidden, truncate
from ui.transcript.words import tr

MAX_SUMMARY_LENGTH = 110
"""Characters of the arguments on one line."""

_TODO_TOOL = "update_todos"

_LARGE_JSON = 20_000
"""Characters of a value that takes long to write as JSON."""


def changes_summary(call: ToolCallItem, arguments: dict[str, object]) -> str:
    """Return the files that a call changes, with the numbers of lines that are added and removed; else ""."""
    changes: tuple[FileChange | None, ...]
    if is_large(arguments):
        changes = (changed_file(call.name, arguments, call.changed_lines),)
    else:
        changes = file_changes(call.name, arguments, call.changed_lines)
    parts = [_change_summary(change, call) for change in changes if change is not None]
    if parts and call.changed_nothing:
        parts.append(tr("nothing changed"))
    return truncate(one_line(" · ".join(parts), MAX_SUMMARY_LENGTH * 3), MAX_SUMMARY_LENGTH)


def _change_summary(change: FileChange, call: ToolCallItem) -> str:
    """Return the path, and what really changed once it is known; a number that is 0 is left out."""
    # Without `real`, the counts come from the arguments alone: they are left out if the call failed.
    is_likely = call.state is not CallState.ENDED or call.outcome is Outcome.SUCCEEDED
    counts = change.counts if is_likely or change.real is not None else (0, 0)
    parts = (f"{sign}{count}" for sign, count in zip("+\N{MINUS SIGN}", counts, strict=True) if count)
    return " ".join((change.path, *parts))


def todos_summary(name: str, arguments: dict[str, object]) -> str:
    """Return how much of a to-do list is done, and what is being done; "" for other calls."""
    items = arguments.get("items") if name == _TODO_TOOL else None
    if not isinstance(items, list):
        return ""
    todos = [cast("dict[str, object]", item) for item in cast("list[object]", items) if isinstance(item, dict)]
    done = sum(todo.get("state") == "done" for todo in todos)
    started = [str(todo.get("text", "")) for todo in todos if todo.get("state") == "started"]
    words = tr("{0} of {1} done").format(done, len(todos))
    return truncate(one_line(" · ".join((words, *started[:1])), MAX_SUMMARY_LENGTH * 3), MAX_SUMMARY_LENGTH)


def arguments_summary(arguments: dict[str, object]) -> str:
    """Return the arguments on one line, cut when long."""
    max_length = MAX_SUMMARY_LENGTH * 3
    parts = [
        f"{name}: {value[:max_length] if isinstance(value, str) else write_json(value, max_length)}"
        for name, value in islice(arguments.items(), max_length)
    ]
    return truncate(one_line(" · ".join(parts), max_length), MAX_SUMMARY_LENGTH)


def arguments_json(arguments: dict[str, object]) -> str:
    """Return pretty JSON with hidden characters as escapes: a copy of it is still the arguments."""
    plain = json.dumps(arguments, ensure_ascii=False, indent=2)
    return replace_hidden(plain, lambda character: json.dumps(character)[1:-1])


def write_json(value: object, max_length: int | None = None, *, indent: int | None = None) -> str:
    """Return a value as JSON, up to about `max_length` characters."""
    encoder = json.JSONEncoder(ensure_ascii=False, indent=indent)
    if max_length is None:
        return encoder.encode(value)
    parts: list[str] = []
    for part in encoder.iterencode(value):
        parts.append(part)
        max_length -= len(part)
        if max_length <= 0:
            break
    return "".join(parts)


def is_large(value: object) -> bool:
    """Return whether writing the value as JSON would take long, looking at no more of it than necessary."""
    room, pending = _LARGE_JSON, [(value, 0)]
    while pending and room > 0:
        part, depth = pending.pop()
        room -= 2 * depth + 4
        if isinstance(part, str):
            room -= len(part)
        elif isinstance(part, dict | list | tuple):
            children = cast("Collection[object]", part)
            if len(children) > room:
                return True
            if isinstance(part, dict):
                names, children = cast("dict[str, object]", part).keys(), cast("dict[str, object]", part).values()
                room -= sum(map(len, names))
            pending += [(child, depth + 1) for child in children]
    return room <= 0


def language_of_file(arguments: dict[str, object]) -> str:
    """Return the language of the file that a call names, by its suffix or whole name; "" if it names none."""
    path = arguments.get("path")
    name = PurePath(path).name if isinstance(path, str) else ""
    return PurePath(name).suffix.removeprefix(".") or name
