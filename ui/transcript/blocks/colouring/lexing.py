"""What a word of code is, by the grammars of Pygments. Only the child imports this."""

from collections.abc import Callable, Iterable, Iterator
from typing import cast

from pygments import lexers
from pygments.lexer import Lexer
from pygments.token import Token, _TokenType  # pyright: ignore[reportPrivateUsage]  # the only name of the type
from pygments.util import ClassNotFound

from ui.transcript.blocks.colouring.coloured import StyledWord
from ui.transcript.markdown.units import utf16_length

_MAX_WORDS = 4000
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


def find_lexer(language: str) -> Lexer | None:
    """The reader of a language by one of its names."""
    find = cast("Callable[..., Lexer]", lexers.get_lexer_by_name)
    try:
        return find(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _word_kind(token_type: _TokenType, known: dict[_TokenType, str]) -> str:
    found = known.get(token_type)
    if found is None:
        found = next((kind for family, kind in _KINDS if token_type in family), "")
        known[token_type] = found
    return found


def iter_highlighted_lines(text: str, language: str) -> Iterator[list[StyledWord]]:
    """What to colour, each line as soon as it is read; nothing for an unknown language."""
    lexer = find_lexer(language)
    return iter_words_by_line(lexer.get_tokens(text)) if lexer else iter(())


def words_by_line(tokens: Iterable[tuple[_TokenType, str]]) -> list[list[StyledWord]]:
    """Words by line; a last line that is not ended counts."""
    return list(iter_words_by_line(tokens))


def iter_words_by_line(tokens: Iterable[tuple[_TokenType, str]]) -> Iterator[list[StyledWord]]:
    """The same, each line as soon as it is ended."""
    known: dict[_TokenType, str] = {}
    line: list[StyledWord] = []
    at = 0
    for token_type, value in tokens:
        kind = _word_kind(token_type, known)
        first = True
        for piece in value.split("\n"):
            if not first:
                yield line
                line, at = [], 0
            first = False
            length = utf16_length(piece)
            if kind and length and len(line) < _MAX_WORDS:
                line.append((at, length, kind))
            at += length
    yield line
