"""The protocol between the window and the highlighter process: requests, answers, and frames of length and JSON.

Knows neither Qt nor grammars.
"""

import json
import struct
from dataclasses import dataclass
from typing import Any, BinaryIO

StyledWord = tuple[int, int, str]
"""Start, length (UTF-16 units) and colour kind."""

MAX_TEXT_LENGTH = 200_000
"""Characters. Longer code stays plain."""

WORD_KINDS = ("comment", "keyword", "function", "builtin", "string", "number")
"""Of code."""


@dataclass(frozen=True, slots=True)
class LexerState:
    """A line, and the states that the lexer is in where it begins."""

    line: int = 0
    states: tuple[str, ...] = ("root",)


@dataclass(frozen=True, slots=True)
class HighlightedLines:
    """Words of the lines from `line` on, and where to go on."""

    line: int
    words: list[list[StyledWord]]
    lexer_state: LexerState


@dataclass(frozen=True, slots=True)
class HighlightSlice:
    """Words of the lines from `line` on, of code that is complete; after the last slice nothing follows."""

    line: int
    words: list[list[StyledWord]]
    is_last: bool


@dataclass(frozen=True, slots=True)
class HighlightRequest:
    """What is to be coloured; with `lexer_state` it is whole lines of code that still grows."""

    text: str
    language: str
    lexer_state: LexerState | None = None


HEADER_SIZE = 4
"""Bytes."""

MAX_FRAME_SIZE = 16_000_000
"""Bytes of one message. The longest code, each of its characters escaped, has room."""

HighlightAnswer = HighlightSlice | HighlightedLines | None
"""None: there is nothing to colour it by."""

_LENGTH = struct.Struct(">I")
_KIND_NUMBERS = {kind: number for number, kind in enumerate(WORD_KINDS)}


def encode_frame(message: dict[str, Any]) -> bytes:
    """A message as it goes over the pipe. Raises what `json` raises."""
    data = json.dumps(message, separators=(",", ":")).encode("ascii")
    return _LENGTH.pack(len(data)) + data


def frame_length(head: bytes) -> int:
    """Bytes of the message behind its head. Raises ValueError when nobody would send as much."""
    (length,) = _LENGTH.unpack(head)
    if length > MAX_FRAME_SIZE:
        raise ValueError("a message is too long")
    return int(length)


def read_frame(stream: BinaryIO) -> dict[str, Any] | None:
    """The next message; None when the other side has gone. Raises ValueError."""
    head = stream.read(HEADER_SIZE)
    if len(head) < HEADER_SIZE:
        return None
    data = stream.read(frame_length(head))
    return json.loads(data)


def encode_request(code: HighlightRequest) -> dict[str, Any]:
    """Code as a message."""
    message: dict[str, Any] = {"text": code.text, "language": code.language}
    if code.lexer_state:
        message["standing"] = _encode_state(code.lexer_state)
    return message


def decode_request(message: dict[str, Any]) -> HighlightRequest:
    """And back."""
    lexer_state = message.get("standing")
    return HighlightRequest(message["text"], message["language"], _decode_state(lexer_state) if lexer_state else None)


def encode_answer(answer: HighlightAnswer) -> dict[str, Any]:
    """What was found, as a message."""
    if answer is None:
        return {}
    words = [
        [number for start, length, kind in line for number in (start, length, _KIND_NUMBERS[kind])]
        for line in answer.words
    ]
    encoded: dict[str, Any] = {"line": answer.line, "words": words}
    more = (
        {"last": answer.is_last}
        if isinstance(answer, HighlightSlice)
        else {"standing": _encode_state(answer.lexer_state)}
    )
    return encoded | more


def decode_answer(data: bytes) -> HighlightAnswer:
    """And back. Raises ValueError, LookupError or TypeError for what is no answer."""
    message = json.loads(data)
    if not message:
        return None
    words = [_decode_words(line) for line in message["words"]]
    if "standing" in message:
        return HighlightedLines(message["line"], words, _decode_state(message["standing"]))
    return HighlightSlice(message["line"], words, message["last"])


def _decode_words(numbers: list[int]) -> list[StyledWord]:
    return list(zip(numbers[::3], numbers[1::3], map(WORD_KINDS.__getitem__, numbers[2::3]), strict=True))


def _encode_state(lexer_state: LexerState) -> list[Any]:
    return [lexer_state.line, *lexer_state.states]


def _decode_state(encoded: list[Any]) -> LexerState:
    line, *states = encoded
    return LexerState(line, tuple(states))
