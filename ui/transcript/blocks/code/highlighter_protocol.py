"""The protocol between the window and the highlighter process: requests, answers, and frames of length and JSON.

It imports neither Qt nor lexers.
"""

import json
import struct
from dataclasses import dataclass
from typing import Any, BinaryIO

StyledWord = tuple[int, int, str]
"""Start, length (UTF-16 units) and kind."""

MAX_TEXT_LENGTH = 200_000
"""The maximum number of characters; longer code stays plain."""

WORD_KINDS = ("comment", "keyword", "function", "builtin", "string", "number")
"""The kinds of words."""


@dataclass(frozen=True, slots=True)
class LexerState:
    """A line, and the states of the lexer at its beginning."""

    line: int = 0
    states: tuple[str, ...] = ("root",)


@dataclass(frozen=True, slots=True)
class HighlightedLines:
    """Words of the lines from `line` on, and the state to continue from."""

    line: int
    words: list[list[StyledWord]]
    lexer_state: LexerState


@dataclass(frozen=True, slots=True)
class HighlightSlice:
    """Words of the lines from `line` on in complete code."""

    line: int
    words: list[list[StyledWord]]
    is_last: bool


@dataclass(frozen=True, slots=True)
class HighlightRequest:
    """Code to highlight; with `lexer_state` it is complete lines of growing code."""

    text: str
    language: str
    lexer_state: LexerState | None = None


HEADER_SIZE = 4
"""Bytes."""

MAX_FRAME_SIZE = 16_000_000
"""Bytes of one message. The longest code fits, even with every character escaped."""

HighlightAnswer = HighlightSlice | HighlightedLines | None
"""None if the code cannot be highlighted."""

_LENGTH = struct.Struct(">I")
_KIND_NUMBERS = {kind: number for number, kind in enumerate(WORD_KINDS)}


def encode_frame(message: dict[str, Any]) -> bytes:
    """Return a message with its length prefix. Raises what `json` raises."""
    data = json.dumps(message, separators=(",", ":")).encode("ascii")
    return _LENGTH.pack(len(data)) + data


def frame_length(head: bytes) -> int:
    """Return the length of a message from its header. Raises ValueError if it is too long."""
    (length,) = _LENGTH.unpack(head)
    if length > MAX_FRAME_SIZE:
        raise ValueError("a message is too long")
    return int(length)


def read_frame(stream: BinaryIO) -> dict[str, Any] | None:
    """Read the next message, None at the end of the stream. Raises ValueError."""
    head = stream.read(HEADER_SIZE)
    if len(head) < HEADER_SIZE:
        return None
    data = stream.read(frame_length(head))
    return json.loads(data)


def encode_request(code: HighlightRequest) -> dict[str, Any]:
    """Return a request as a message."""
    message: dict[str, Any] = {"text": code.text, "language": code.language}
    if code.lexer_state:
        message["standing"] = _encode_state(code.lexer_state)
    return message


def decode_request(message: dict[str, Any]) -> HighlightRequest:
    """Return the request in a message."""
    lexer_state = message.get("standing")
    return HighlightRequest(message["text"], message["language"], _decode_state(lexer_state) if lexer_state else None)


def encode_answer(answer: HighlightAnswer) -> dict[str, Any]:
    """Return an answer as a message."""
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
    """Return the answer in a message. Raises ValueError, LookupError or TypeError for anything else."""
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
