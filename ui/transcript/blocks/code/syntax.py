"""Colours of code, by what a word is or a program named. Each reaches 4.5:1 on the code background of its theme."""

from collections.abc import Callable, Iterable
from typing import cast

from pygments import lexers
from pygments.lexer import Lexer
from pygments.token import Token, _TokenType  # pyright: ignore[reportPrivateUsage]  # the only name of the type
from pygments.util import ClassNotFound

from ui.transcript.markdown.inline import units

Word = tuple[int, int, str]
"""Start, length (UTF-16 units) and colour kind."""

LONGEST = 200_000
"""Characters. Longer code stays plain."""

# A string of backslashes keeps these busy for ever, with the interpreter in its hands: nothing could be done meanwhile.
_ENDLESS = frozenset({"Scala", "Scalate Server Page"})

_KINDS = (
    (Token.Comment, "comment"),
    (Token.Keyword, "keyword"),
    (Token.Name.Function, "function"),
    (Token.Name.Class, "function"),
    (Token.Name.Decorator, "function"),
    (Token.Name.Tag, "keyword"),
    (Token.Name.Attribute, "number"),
    (Token.Name.Builtin, "builtin"),
    (Token.Name.Constant, "builtin"),
    (Token.Literal.String, "string"),
    (Token.Literal.Number, "number"),
    (Token.Operator.Word, "keyword"),
    (Token.Generic.Deleted, "keyword"),
    (Token.Generic.Inserted, "string"),
    (Token.Generic.Heading, "function"),
)
COLORS = {
    False: {
        "comment": "#6a6a63",
        "keyword": "#8a2fa8",
        "function": "#1a55b8",
        "builtin": "#0b6a73",
        "string": "#2b6e21",
        "number": "#9a4a06",
        "red": "#b3261e",
        "green": "#19692f",
        "yellow": "#7a5200",
        "blue": "#1a55b8",
        "magenta": "#8a2fa8",
        "cyan": "#0b6a73",
        "grey": "#6a6a63",
    },
    True: {
        "comment": "#8f9299",
        "keyword": "#d6a0f0",
        "function": "#8fb8ff",
        "builtin": "#7fd0d6",
        "string": "#a8d08d",
        "number": "#f0b080",
        "red": "#ff9a92",
        "green": "#8fd8a2",
        "yellow": "#f2c86a",
        "blue": "#8fb8ff",
        "magenta": "#d6a0f0",
        "cyan": "#7fd0d6",
        "grey": "#8f9299",
    },
}


def lexer_of(language: str) -> Lexer | None:
    """The reader of a language by one of its names."""
    find = cast("Callable[..., Lexer]", lexers.get_lexer_by_name)
    try:
        return find(language, stripnl=False, ensurenl=False, handlecodeblocks=False)
    except ClassNotFound:
        return None


def coloring_lexer(language: str) -> Lexer | None:
    """The same, if it comes to an end with any text."""
    lexer = lexer_of(language)
    return None if lexer is None or lexer.name in _ENDLESS else lexer


def _kind(token_type: _TokenType, known: dict[_TokenType, str]) -> str:
    found = known.get(token_type)
    if found is None:
        found = next((kind for family, kind in _KINDS if token_type in family), "")
        known[token_type] = found
    return found


def words_by_line(text: str, language: str) -> list[list[Word]]:
    """What to colour, line by line; nothing for an unknown language. Runs in a worker thread, knows no Qt."""
    lexer = coloring_lexer(language)
    return lines_of(lexer.get_tokens(text)) if lexer else []


def lines_of(tokens: Iterable[tuple[_TokenType, str]]) -> list[list[Word]]:
    """Words by line; a last line that is not ended counts."""
    known: dict[_TokenType, str] = {}
    lines: list[list[Word]] = [[]]
    at = 0
    for token_type, value in tokens:
        kind = _kind(token_type, known)
        first = True
        for piece in value.split("\n"):
            if not first:
                lines.append([])
                at = 0
            first = False
            length = units(piece)
            if kind and length:
                lines[-1].append((at, length, kind))
            at += length
    return lines
