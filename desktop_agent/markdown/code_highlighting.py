"""Highlight code with the lexers of Pygments. Only worker processes import this: a text may occupy a lexer for long."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import cast

from pygments import lexers
from pygments.lexer import Lexer
from pygments.token import Token, _TokenType  # pyright: ignore[reportPrivateUsage]  # the only name of the type
from pygments.util import ClassNotFound

StyledPiece = tuple[str, str]
"""A piece of code, and its kind: "" for plain code."""

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


# Pygments does not declare the types of the options.
_by_name = cast("Callable[..., Lexer]", lexers.get_lexer_by_name)
_by_file = cast("Callable[..., Lexer]", lexers.get_lexer_for_filename)


def find_lexer(language: str) -> Lexer | None:
    """Return the lexer of a language by one of its names, or by a file name or its suffix, as "main.py" and "yml"."""
    for find, name in ((_by_name, language), (_by_file, language), (_by_file, f"code.{language}")):
        with suppress(ClassNotFound):
            return find(name, stripnl=False, ensurenl=False)
    return None


def word_kind(token_type: _TokenType, kinds: dict[_TokenType, str]) -> str:
    """Return the kind that a word is shown as, "" for a plain one. `kinds` caches the answers."""
    kind = kinds.get(token_type)
    if kind is None:
        kind = next((kind for family, kind in _KINDS if token_type in family), "")
        kinds[token_type] = kind
    return kind


def read_tokens(lexer: Lexer, text: str) -> Iterator[tuple[_TokenType, str]]:
    """Yield the tokens of a text, its last line complete or not."""
    # Some lexers, such as that of diffs, recognise a line by its end.
    for position, token_type, value in lexer.get_tokens_unprocessed(f"{text}\n"):
        if position < len(text):
            yield token_type, value[: len(text) - position]


def highlight_code(text: str, language: str) -> list[StyledPiece]:
    """Return the whole text in pieces; one plain piece if the language is unknown."""
    lexer = find_lexer(language)
    if lexer is None:
        return [(text, "")]
    kinds: dict[_TokenType, str] = {}
    pieces: list[StyledPiece] = []
    for token_type, value in read_tokens(lexer, text):
        kind = word_kind(token_type, kinds)
        if pieces and pieces[-1][1] == kind:
            pieces[-1] = (pieces[-1][0] + value, kind)
        else:
            pieces.append((value, kind))
    return pieces
