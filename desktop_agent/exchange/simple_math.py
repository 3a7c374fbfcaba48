"""Simple formulas as HTML: letters, numbers and signs in a row, with exponents and indices. Others stay LaTeX."""

import re
from functools import cache
from html import escape

from desktop_agent.data_files import load_table

_TOKEN = re.compile(r"\\([A-Za-z]+|[%,;])|([A-Za-z])|([0-9]+(?:\.[0-9]+)?)|([-+=<>.,:;!?()/|' ])|([\^_])|([{}])")
_RELATIONS = frozenset("+=<>\u2212×·±≤≥≠≈→∈")
_MAX_LENGTH = 120


def simple_math(latex: str) -> str | None:
    """Return HTML for a simple formula; None for one that needs more than that to be read."""
    if len(latex) > _MAX_LENGTH:
        return None
    tokens: list[re.Match[str]] = []
    place = 0
    while place < len(latex):
        match = _TOKEN.match(latex, place)
        if match is None:
            return None
        tokens.append(match)
        place = match.end()
    return _row(tokens)


def _row(tokens: list[re.Match[str]]) -> str | None:
    pieces: list[str] = []
    place = 0
    while place < len(tokens):
        tag = {"^": "sup", "_": "sub"}.get(tokens[place][0])
        if tag is None:
            piece = _sign(tokens[place])
            place += 1
        else:
            inner, place = _argument(tokens, place + 1)
            piece = f"<{tag}>{inner.replace(' ', '')}</{tag}>" if inner and pieces else None
        if piece is None:
            return None
        pieces.append(piece)
    return "".join(pieces).strip() or None


def _argument(tokens: list[re.Match[str]], place: int) -> tuple[str | None, int]:
    """Return the HTML of an exponent or an index, which has none of its own, and the place after it."""
    if place >= len(tokens):
        return None, place
    if tokens[place][0] != "{":
        return _sign(tokens[place]), place + 1
    end = next((index for index in range(place + 1, len(tokens)) if tokens[index][6]), len(tokens))
    inner = [_sign(token) for token in tokens[place + 1 : end]]
    is_simple = end < len(tokens) and tokens[end][0] == "}" and None not in inner
    return ("".join(filter(None, inner)) if is_simple else None), end + 1


def _sign(token: re.Match[str]) -> str | None:
    command, letter, number, sign = token[1], token[2], token[3], token[4]
    if letter:
        return f"<i>{letter}</i>"
    if number:
        return number
    shown = _signs().get(command) if command else {"-": "\u2212", " ": ""}.get(sign or "", sign)
    if not shown:
        return shown
    if shown in _RELATIONS:
        return f" {escape(shown)} "
    return f"<i>{shown}</i>" if shown.isalpha() else escape(shown)


@cache
def _signs() -> dict[str, str]:
    return load_table(__name__, "simple_math.toml")["signs"]
