"""How the two sides of the pipe talk: four bytes of length (big-endian), then JSON."""

import json
import struct
from typing import Any, BinaryIO

from ui.transcript.blocks.colouring.coloured import KINDS, Code, Coloured, Slice, Standing, Word

HEAD = 4
"""Bytes."""

LARGEST = 16_000_000
"""Bytes of one message. The longest code, each of its characters escaped, has room."""

Answer = Slice | Coloured | None
"""None: there is nothing to colour it by."""

_LENGTH = struct.Struct(">I")
_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}


def framed(message: dict[str, Any]) -> bytes:
    """A message as it goes over the pipe. Raises what `json` raises."""
    data = json.dumps(message, separators=(",", ":")).encode("ascii")
    return _LENGTH.pack(len(data)) + data


def length_in(head: bytes) -> int:
    """Bytes of the message behind its head. Raises ValueError when nobody would send as much."""
    (length,) = _LENGTH.unpack(head)
    if length > LARGEST:
        raise ValueError("a message is too long")
    return int(length)


def received(stream: BinaryIO) -> dict[str, Any] | None:
    """The next message; None when the other side has gone. Raises ValueError."""
    head = stream.read(HEAD)
    if len(head) < HEAD:
        return None
    data = stream.read(length_in(head))
    return json.loads(data)


def asked(code: Code) -> dict[str, Any]:
    """Code as a message."""
    message: dict[str, Any] = {"text": code.text, "language": code.language}
    if code.standing:
        message["standing"] = _told(code.standing)
    return message


def code_in(message: dict[str, Any]) -> Code:
    """And back."""
    standing = message.get("standing")
    return Code(message["text"], message["language"], _standing_in(standing) if standing else None)


def answered(answer: Answer) -> dict[str, Any]:
    """What was found, as a message."""
    if answer is None:
        return {}
    words = [
        [number for start, length, kind in line for number in (start, length, _NUMBERS[kind])] for line in answer.words
    ]
    told: dict[str, Any] = {"line": answer.line, "words": words}
    more = {"last": answer.is_last} if isinstance(answer, Slice) else {"standing": _told(answer.standing)}
    return told | more


def answer_in(data: bytes) -> Answer:
    """And back. Raises ValueError, LookupError or TypeError for what is no answer."""
    message = json.loads(data)
    if not message:
        return None
    words = [_words_in(line) for line in message["words"]]
    if "standing" in message:
        return Coloured(message["line"], words, _standing_in(message["standing"]))
    return Slice(message["line"], words, message["last"])


def _words_in(numbers: list[int]) -> list[Word]:
    return list(zip(numbers[::3], numbers[1::3], map(KINDS.__getitem__, numbers[2::3]), strict=True))


def _told(standing: Standing) -> list[Any]:
    return [standing.line, *standing.states]


def _standing_in(told: list[Any]) -> Standing:
    line, *states = told
    return Standing(line, tuple(states))
