"""Turns parts of other programs' files into our blocks: texts, pictures, calls, times."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, cast

from desktop_agent.data_files import load_table
from desktop_agent.exchange.import_report import ImportReport, Omission
from desktop_agent.types.blocks import Block, JsonObject, Text, ToolUse, Unknown
from desktop_agent.types.provider_events import Usage

_MAX_TITLE_LENGTH = 80
_MAX_NAME_LENGTH = 200
_SPACES = re.compile(r"\s+")


def short_title(text: str) -> str:
    """Return the beginning of a text on one line, as the title of a conversation."""
    line = _SPACES.sub(" ", text[: 20 * _MAX_TITLE_LENGTH]).strip()
    return line if len(line) <= _MAX_TITLE_LENGTH else line[: _MAX_TITLE_LENGTH - 1].rstrip() + "…"


@cache
def _program_words() -> Mapping[str, Any]:
    return load_table(__name__, "program_words.toml")


def omission_of(program: str, kind: str) -> Omission:
    """Return how unread entries of this kind are counted: as what the program keeps for itself, or as unknown."""
    return Omission.HIDDEN if kind in _program_words()["hidden"].get(program, ()) else Omission.UNKNOWN


def unread_part(program: str, kind: str, part: object, report: ImportReport) -> Iterator[Unknown]:
    """Count a part of a message that has no block of its own, and yield it as it is if its kind is not known."""
    omission = omission_of(program, kind)
    report.omit(omission, kind)
    if omission is Omission.UNKNOWN:
        yield Unknown(raw=part)


def first_text(blocks: Iterable[Block]) -> str:
    """Return the first text among the blocks, or ""."""
    return next((block.text for block in blocks if isinstance(block, Text)), "")


def tool_call(program: str, call_id: str, name: str, arguments: object) -> ToolUse:
    """Return a call under our tool's name and arguments where that is a mere renaming, else as it is.

    Arguments that are no object are kept as text, and the call is malformed.
    """
    if not isinstance(arguments, dict):
        text = arguments if isinstance(arguments, str) else ""
        return ToolUse(id=call_id, name=name[:_MAX_NAME_LENGTH], malformed=text)
    known = _program_words()["tools"].get(program, {}).get(name)
    if known is None:
        return ToolUse(id=call_id, name=name[:_MAX_NAME_LENGTH], input=cast("JsonObject", arguments))
    ours = {theirs: argument for argument, theirs in known.items() if argument != "name"}
    renamed = {ours.get(key, key): value for key, value in cast("JsonObject", arguments).items()}
    return ToolUse(id=call_id, name=known["name"], input=renamed)


def usage_of(**values: object) -> Usage | None:
    """Return the usage with these fields where they are whole numbers; None without any."""
    numbers = {
        key: value
        for key, value in values.items()
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
    }
    return Usage.model_validate(numbers) if numbers else None


def sum_of(values: Iterable[object]) -> int | None:
    """Return the sum of the whole numbers among the values; None without any."""
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    return sum(numbers) if numbers else None
