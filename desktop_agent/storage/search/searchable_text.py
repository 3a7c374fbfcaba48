"""What of a message can be found: its visible text, its calls and their results, the names of its attachments."""

import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, cast

from desktop_agent.storage.search.text_analysis import split_text
from desktop_agent.types.blocks import Image, Json, ServerStep, Text, ToolResult, ToolUse
from desktop_agent.types.messages import Message, Role

MAX_PART_CHARACTERS = 4 * 1024 * 1024
"""How much of each part of a message is indexed, from its beginning: more than any model reads at once."""


@dataclass(frozen=True, slots=True)
class SearchableText:
    """The parts of a message that can be found. Not its thinking, and no summaries for the model."""

    text: str = ""
    calls: str = ""
    attachments: str = ""
    files: str = ""

    @property
    def parts(self) -> tuple[str, str, str, str]:
        return self.text, self.calls, self.attachments, self.files

    def is_beginning_of(self, other: "SearchableText") -> bool:
        """Return whether the other has all of this, and perhaps goes on: a message that was written further."""
        return all(theirs.startswith(own) for own, theirs in zip(self.parts, other.parts, strict=True))

    def to_blobs(self) -> Iterator[bytes]:
        """Yield it compressed, in pieces of which each can be searched by itself: one, unless it is long."""
        for parts in zip_longest(*map(split_text, self.parts), fillvalue=""):
            yield zlib.compress(json.dumps(parts, ensure_ascii=False).encode())

    @classmethod
    def from_blob(cls, blob: bytes) -> "SearchableText":
        """Return a piece. Raise ValueError or zlib.error for what `to_blobs` did not make."""
        return cls(*json.loads(zlib.decompress(blob)))

    @classmethod
    def from_blobs(cls, blobs: Iterable[bytes]) -> "SearchableText":
        """Return the whole. Raise as `from_blob`."""
        pieces = [cls.from_blob(blob).parts for blob in blobs]
        return cls(*map("".join, zip(*pieces, strict=True)))


def searchable_text(message: Message) -> SearchableText:
    """Return what can be found of a message."""
    text, calls, attachments, files = _Part(), _Part(), _Part(), _Part()
    for block in message.blocks:
        match block:
            case Text():
                text.add(block.text)
            case Image(name=str(name)):
                attachments.add(name)
            case ToolUse():
                calls.add(block.name)
                arguments = files if _writes_file(block) else calls
                arguments.add_all(block.input)
                arguments.add(block.malformed or "")
            case ToolResult():
                _add_result(block, calls, attachments)
            case ServerStep():
                calls.add(block.name)
                calls.add(block.text)
            case _:
                pass
    return SearchableText(text.join(), calls.join(), attachments.join(), files.join())


def has_image(message: Message) -> bool:
    """Return whether the person attached a picture, the model made one, or a call returned one."""
    parts = [part for block in message.blocks if isinstance(block, ToolResult) for part in block.content]
    return any(isinstance(item, Image) for item in (*message.blocks, *parts))


def has_tool_call(message: Message) -> bool:
    """Return whether it has a call, or the result of one."""
    return any(isinstance(block, ToolUse | ToolResult | ServerStep) for block in message.blocks)


def has_file_written(message: Message) -> bool:
    """Return whether it has a call that writes a file, and says which or what."""
    return any(
        isinstance(block, ToolUse) and _writes_file(block) and bool(block.input or block.malformed)
        for block in message.blocks
    )


def is_note(message: Message) -> bool:
    """Return whether the program put it among the prompts."""
    return message.role is Role.USER and message.injected_by is not None


# Our own tools, whose names the readers of other programs' histories give to theirs; and what MCP servers offer, whose
# name stands before two lines.
_FILE_TOOLS = frozenset({"write_file", "edit_file", "apply_patch"})


def _writes_file(call: ToolUse) -> bool:
    return call.name.rpartition("__")[2] in _FILE_TOOLS


def plain_text(text: str) -> str:
    """Return the text, as long as it is, without what UTF-8 or SQLite's tokenizer cannot carry."""
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    return text.replace("\0", " ")


class _Part:
    """Lines of a part, up to the limit of it."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._room = MAX_PART_CHARACTERS

    def add(self, text: str) -> None:
        if text and self._room > 0:
            self._lines.append(plain_text(text[: self._room]))
            self._room -= len(self._lines[-1]) + 1

    def add_all(self, value: object) -> None:
        """Add each key and value of JSON."""
        for text in _iter_texts(value):
            if self._room <= 0:
                return
            self.add(text)

    def join(self) -> str:
        return "\n".join(self._lines)


def _add_result(result: ToolResult, calls: _Part, attachments: _Part) -> None:
    calls.add_all(result.ran_with or {})
    for part in result.content:
        match part:
            case Text():
                calls.add(part.text)
            case Json():
                calls.add_all(part.value)
            case Image():
                attachments.add(part.name or "")


def _iter_texts(value: object) -> Iterator[str]:
    waiting: list[object] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            members = cast("dict[str, Any]", item)
            for key in reversed(members):
                waiting += [members[key], key]
        elif isinstance(item, list | tuple):
            waiting.extend(reversed(cast("list[Any]", item)))
        elif isinstance(item, str):
            yield item
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield str(item)
