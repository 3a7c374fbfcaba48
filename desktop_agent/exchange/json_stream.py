"""Read the entries of a long JSON array one by one, whatever is wrong with some of them.

The standard library's decoder reads entry by entry from a window of the text, so that a file of any length takes the
memory of its largest entry. Why no streaming parser: docs/adr/0023-reading-long-json.md.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

from desktop_agent.types.errors import Sentence

ReadBytes = Callable[[int], bytes]
"""Returns at most so many bytes, and none at the end, as `read` of a binary file does."""

MAX_ENTRY_LENGTH = 100_000_000
"""Characters of one entry, and of the space between two."""

MAX_DEPTH = 200
"""Levels of nesting of an entry: what stores and shows it goes down level by level."""

_CHUNK = 1 << 16
_MAX_HEAD_MEMBERS = 100
# An error further from the end of the window is not caused by its cut: \uXXXX and -Infinity are shorter.
_LONGEST_MARK = 20
_SPACE = re.compile(r"[ \t\r\n]*")
_BETWEEN = re.compile(r"[ \t\r\n,]*")
# What decides where a broken entry ends: strings, and rows of brackets outside of them.
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+("?)|[\[{]+|[\]}]+', re.DOTALL)

_TOO_LARGE: Final = Sentence("It is too large to be read.")
_NOT_JSON: Final = Sentence("It is damaged: this is not JSON.")
_TOO_DEEP: Final = Sentence("It is nested too deeply.")
_TRUNCATED: Final = Sentence("The file ends in the middle of it.")


@dataclass(frozen=True, slots=True)
class UnreadableEntry:
    """An entry that is left out, and why. `is_last`: nothing behind it can be read."""

    reason: Sentence
    is_last: bool = False


class JsonArrayReader:
    """Reads one document: an array, an object with an array called `name`, or an object that is the only entry.

    Lone surrogates, integers of any size and raw control characters are read as they are; NaN becomes null.
    """

    def __init__(self, read: ReadBytes) -> None:
        self.had_bad_bytes = False
        """Whether bytes that are not UTF-8 were replaced by U+FFFD."""
        self._read = read
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._json = json.JSONDecoder(strict=False, parse_constant=lambda _: None)
        self._text = ""
        self._place = self._kept_from = 0
        self._keeps = self._is_at_end = self._is_single = False

    def read_head(self) -> dict[str, Any]:
        """Read up to the first entry, and return the members that stand before the array, if it is in an object.

        Raises ValueError where the document holds no entries.
        """
        sign = self._next_sign(_SPACE)
        if sign == "{":
            return self._read_members()
        if sign != "[":
            raise ValueError("neither an array nor an object")
        self._place += 1
        return {}

    def __iter__(self) -> Iterator[Any]:
        """Yield the entries, and an UnreadableEntry for each that cannot be read."""
        if self._is_single:
            yield self._read_entry()
            return
        while (sign := self._next_sign(_BETWEEN)) != "]":
            entry = self._read_entry() if sign else UnreadableEntry(_TRUNCATED, is_last=True)
            yield entry
            if isinstance(entry, UnreadableEntry) and entry.is_last:
                return

    def _read_members(self) -> dict[str, Any]:
        """Read members up to the array. Where another container comes first, the whole object is the one entry."""
        self._kept_from, self._keeps = self._place, True
        members: dict[str, Any] = {}
        self._place += 1
        while self._next_sign(_BETWEEN) == '"' and len(members) < _MAX_HEAD_MEMBERS:
            key = cast("str", self._decode())
            if self._next_sign(_SPACE) != ":":
                raise ValueError("no colon behind a key")
            self._place += 1
            sign = self._next_sign(_SPACE)
            if sign == "[" and key == "conversations":
                self._place, self._keeps = self._place + 1, False
                return members
            if sign in "[{":
                break
            members[key] = self._decode()
        self._place, self._keeps, self._is_single = self._kept_from, False, True
        return {}

    def _next_sign(self, skipped: re.Pattern[str]) -> str:
        """Go past what may stand between values, and return the next character; nothing at the end."""
        for _ in range(MAX_ENTRY_LENGTH // _CHUNK):
            match = skipped.match(self._text, self._place)
            self._place = match.end() if match else self._place
            if self._place < len(self._text) or not self._fill(_CHUNK):
                break
        return self._text[self._place : self._place + 1]

    def _decode(self) -> Any:
        """Read one value. Raises ValueError, RecursionError, and EOFError for one that the end cuts off."""
        size = _CHUNK
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._place)
            except json.JSONDecodeError as error:
                is_cut = error.pos > len(self._text) - _LONGEST_MARK or error.msg.startswith("Unterminated string")
                if not is_cut or len(self._text) - self._place > MAX_ENTRY_LENGTH:
                    raise
                if not self._fill(size):
                    raise EOFError from None
            else:
                # A number at the end of the window may go on.
                length = end - self._place
                if end + _LONGEST_MARK < len(self._text) or not self._fill(size):
                    self._place += length
                    return value
            size *= 2

    def _read_entry(self) -> Any:
        try:
            value = self._decode()
        except EOFError:
            broken = self._skip(_NOT_JSON)
            return UnreadableEntry(_TRUNCATED, is_last=True) if broken.is_last else broken
        except RecursionError:
            return self._skip(_TOO_DEEP)
        except ValueError:
            is_too_large = len(self._text) - self._place > MAX_ENTRY_LENGTH
            return self._skip(_TOO_LARGE if is_too_large else _NOT_JSON)
        return UnreadableEntry(_TOO_DEEP) if _is_too_deep(value) else value

    def _skip(self, reason: Sentence) -> UnreadableEntry:
        """Go past a broken entry by its brackets, without keeping it."""
        depth = 0
        while True:
            end = len(self._text)
            for match in _STRUCTURE.finditer(self._text, self._place):
                if match[0][0] == '"':
                    if not match[1]:
                        end = match.start()
                        break
                    continue
                brackets = match[0]
                if brackets[0] in "[{":
                    depth += len(brackets)
                elif len(brackets) >= depth:
                    # What closes nothing is passed over, but for what closes the array.
                    stray = 0 if depth else len(brackets) - len(brackets.lstrip("}"))
                    self._place = match.start() + depth + stray
                    return UnreadableEntry(reason)
                else:
                    depth -= len(brackets)
            self._place = end
            waiting = len(self._text) - end
            if waiting > MAX_ENTRY_LENGTH or not self._fill(max(_CHUNK, waiting)):
                return UnreadableEntry(reason, is_last=True)

    def _fill(self, size: int) -> bool:
        """Read more text behind what is left of the window, and drop what was read; False at the end."""
        if self._is_at_end:
            return False
        data = self._read(size)
        self._is_at_end = not data
        try:
            more = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError:
            self.had_bad_bytes = True
            waiting = self._decoder.getstate()[0]
            self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
            more = self._decoder.decode(waiting + data, final=not data)
        cut = self._kept_from if self._keeps else self._place
        self._text = self._text[cut:] + more
        self._place -= cut
        self._kept_from = 0
        return not self._is_at_end or bool(more)


def _is_too_deep(value: Any) -> bool:
    level: list[Any] = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _values(outer) if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _values(container: Any) -> Iterable[Any]:
    return cast("Iterable[Any]", container.values() if isinstance(container, dict) else container)
