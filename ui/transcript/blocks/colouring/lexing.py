"""What a word of code is, by the grammars of Pygments. Only the child imports this."""

from collections.abc import Callable, Iterable, Iterator
from typing import cast

from pygments import lexers
from pygments.lexer import Lexer
from pygments.token import Token, _TokenType  # pyright: ignore[reportPrivateUsage]  # the only name of the type
from pygments.util import ClassNotFound

from ui.transcript.blocks.colouring.coloured import Word
from ui.transcript.markdown.units import units

_MOST_WORDS = 4000
"""In one line. The rest of an endless one stays plain: who draws it would need seconds."""

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


def lexer_of(language: str) -> Lexer | None:
    """The reader of a language by one of its names."""
    find = cast("Callable[..., Lexer]", lexers.get_lexer_by_name)
    try:
        return find(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _kind(token_type: _TokenType, known: dict[_TokenType, str]) -> str:
    found = known.get(token_type)
    if found is None:
        found = next((kind for family, kind in _KINDS if token_type in family), "")
        known[token_type] = found
    return found


def words_of(text: str, language: str) -> Iterator[list[Word]]:
    """What to colour, each line as soon as it is read; nothing for an unknown language."""
    lexer = lexer_of(language)
    return iter_lines(lexer.get_tokens(text)) if lexer else iter(())


def lines_of(tokens: Iterable[tuple[_TokenType, str]]) -> list[list[Word]]:
    """Words by line; a last line that is not ended counts."""
    return list(iter_lines(tokens))


def iter_lines(tokens: Iterable[tuple[_TokenType, str]]) -> Iterator[list[Word]]:
    """The same, each line as soon as it is ended."""
    known: dict[_TokenType, str] = {}
    line: list[Word] = []
    at = 0
    for token_type, value in tokens:
        kind = _kind(token_type, known)
        first = True
        for piece in value.split("\n"):
            if not first:
                yield line
                line, at = [], 0
            first = False
            length = units(piece)
            if kind and length and len(line) < _MOST_WORDS:
                line.append((at, length, kind))
            at += length
    yield line
