"""Colours of code that still grows: reading goes on where it stood, so that a new line costs what it is long."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, cast

from pygments.lexer import ExtendedRegexLexer, Lexer, LexerContext, RegexLexer
from pygments.token import Comment, Error, String, _TokenType  # pyright: ignore[reportPrivateUsage]

from ui.transcript.blocks.colouring.coloured import HighlightedLines, LexerState
from ui.transcript.blocks.colouring.lexing import find_lexer, words_by_line


@lru_cache(maxsize=32)
def _resumable(kind: type[RegexLexer]) -> type[Lexer]:
    """The same language, read by the loop of the library that can begin anywhere."""
    bases: tuple[Any, ...] = (kind, ExtendedRegexLexer)
    return cast("type[Lexer]", type(f"Resumable{kind.__name__}", bases, {}))


def highlight_more_lines(text: str, language: str, lexer_state: LexerState) -> HighlightedLines | None:
    """Colours of whole lines, the first of which is `standing.line`; None for an unknown language.

    A guess: a later line may show that it was something else.
    """
    lexer = find_lexer(language)
    if lexer is None:
        return None
    if isinstance(lexer, RegexLexer) and not isinstance(lexer, ExtendedRegexLexer):
        # Grammars are foreign code, and some are not made for this loop: those are read from the beginning.
        with suppress(Exception):
            return _highlight_from(lexer, text, lexer_state)
    words = words_by_line((kind, value) for _, kind, value in lexer.get_tokens_unprocessed(text))
    return HighlightedLines(lexer_state.line, words[:-1], lexer_state)


def _highlight_from(lexer: RegexLexer, text: str, lexer_state: LexerState) -> HighlightedLines:
    context = LexerContext(text, 0, [*lexer_state.states], len(text))
    reader = cast("Any", _resumable(type(lexer)))(stripnl=False, ensurenl=False)
    tokens = list(_tokens(reader.get_tokens_unprocessed, text, context))
    words = words_by_line((kind, value) for _, kind, value in tokens)[:-1]
    next_one = lexer_state if _is_open(text) else _next_state(lexer_state, tokens, len(words), tuple(context.stack))
    return HighlightedLines(lexer_state.line, words, next_one)


def _is_open(text: str) -> bool:
    """Whether something that reaches over lines has begun. Some grammars know it only by its end."""
    pairs = any(text.rfind(begin) > text.rfind(end) for begin, end in (("/*", "*/"), ("<!--", "-->")))
    return pairs or any(text.count(quote) % 2 for quote in ("`", '"""', "'''"))


def _tokens(
    read: Callable[[str, LexerContext], Iterator[tuple[int, _TokenType, str]]], text: str, context: LexerContext
) -> Iterator[tuple[int, _TokenType, str]]:
    """What lies between two tokens counts as well."""
    at = 0
    for position, kind, value in read(text, context):
        if position > at:
            yield at, Error, text[at:position]
        yield position, kind, value
        at = position + len(value)


def _next_state(
    lexer_state: LexerState, tokens: list[tuple[int, _TokenType, str]], lines: int, states: tuple[str, ...]
) -> LexerState:
    """Go on behind these lines, unless they end within something that the next line may end."""
    last = next((kind for _, kind, value in reversed(tokens) if value.strip()), None)
    is_open = last is None or last in Comment or last in String or any(kind is Error for _, kind, _ in tokens)
    return lexer_state if is_open else LexerState(lexer_state.line + lines, states)
