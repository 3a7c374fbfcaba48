"""Reads what a shell writes about each command before it runs it (`set -x`)."""

import re
from dataclasses import dataclass

MARK = "+=7f3a91b= "
"""What stands before each command; the first character is repeated in substitutions and the like."""

_BEGINS = re.compile(rb"(?:^|\n)\+*" + re.escape(MARK.encode()))
_PIECE = re.compile(r"'(?P<raw>[^']*)'|\$'(?P<ansi>(?:[^'\\]|\\.)*)'|\\(?P<one>.)|(?P<bare>[^\s'\\])", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|(.))", re.DOTALL)
_NAMED = {"a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "E": "\x1b", "e": "\x1b"}


@dataclass(frozen=True, slots=True)
class Traced:
    """One command. `words` is None where the text cannot be taken apart into words."""

    text: str
    words: tuple[str, ...] | None


def read_bash(trace: bytes) -> tuple[Traced, ...]:
    """The commands that bash told of."""
    texts = [each.decode("utf-8", "surrogateescape").removesuffix("\n") for each in _BEGINS.split(trace)[1:]]
    return tuple(Traced(each, _words(each)) for each in texts if not each.startswith("/.box/handle"))


def read_dash(errors: bytes) -> tuple[Traced, ...]:
    """The commands that the plain shell told of; what it complains about may follow one on further lines."""
    texts = [each.decode("utf-8", "surrogateescape") + "\n" for each in _BEGINS.split(errors)[1:]]
    return tuple(Traced(each, None) for each in texts)


def _words(text: str) -> tuple[str, ...] | None:
    found: list[str] = []
    at = 0
    while at < len(text):
        literal = ""
        start = at
        while (piece := _PIECE.match(text, at)) is not None:
            at = piece.end()
            literal += _ESCAPE.sub(_unescaped, piece["ansi"]) if piece["ansi"] is not None else _literal(piece)
        if at == start or text[at : at + 1] not in {"", " "}:
            return None
        found.append(literal.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape"))
        at += 1
    return tuple(found)


def _literal(piece: re.Match[str]) -> str:
    return piece["raw"] or piece["one"] or piece["bare"] or ""


def _unescaped(found: re.Match[str]) -> str:
    if found[1]:
        return bytes([int(found[1], 8) & 255]).decode("utf-8", "surrogateescape")
    return _NAMED.get(found[2], found[2])
