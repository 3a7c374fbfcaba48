"""Highlight code with the lexers of Pygments, in the worker process. Nothing else may import this."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, cast

from pygments.lexer import ExtendedRegexLexer, Lexer, LexerContext, RegexLexer
from pygments.token import Comment, Error, String, _TokenType  # pyright: ignore[reportPrivateUsage]  # the only name of the type

from desktop_agent.markdown.code_highlighting import find_lexer, read_tokens, word_kind
from ui.transcript.blocks.code.highlighter_protocol import (
    HighlightAnswer,
    HighlightedLines,
    HighlightRequest,
    HighlightSlice,
    LexerState,
    StyledWord,
)
from ui.transcript.markdown.text_units import utf16_length

# Words of one line. The rest of an endless line stays plain, because drawing it would take seconds.
_MAX_WORDS = 4000


def iter_highlighted_lines(text: str, language: str) -> Iterator[list[StyledWord]]:
    """Yield the words of each line as soon as it is lexed; nothing for an unknown language."""
    lexer = find_lexer(language)
    return iter_words_by_line(read_tokens(lexer, text)) if lexer else iter(())


def words_by_line(tokens: Iterable[tuple[_TokenType, str]]) -> list[list[StyledWord]]:
    """Return words by line, including an incomplete last line."""
    return list(iter_words_by_line(tokens))


def iter_words_by_line(tokens: Iterable[tuple[_TokenType, str]]) -> Iterator[list[StyledWord]]:
    """Yield the words of each line as soon as it ends."""
    known: dict[_TokenType, str] = {}
    line: list[StyledWord] = []
    offset = 0
    for token_type, value in tokens:
        kind = word_kind(token_type, known)
        first = True
        for piece in value.split("\n"):
            if not first:
                yield line
                line, offset = [], 0
            first = False
            length = utf16_length(piece)
            if kind and length and len(line) < _MAX_WORDS:
                line.append((offset, length, kind))
            offset += length
    yield line


@lru_cache(maxsize=32)
def _resumable(kind: type[RegexLexer]) -> type[Lexer]:
    """Return a lexer class for the same language that can start in the middle of a text."""
    bases: tuple[Any, ...] = (kind, ExtendedRegexLexer)
    return cast("type[Lexer]", type(f"Resumable{kind.__name__}", bases, {}))


def highlight_more_lines(text: str, language: str, lexer_state: LexerState) -> HighlightedLines | None:
    """Highlight complete lines, the first of which is `lexer_state.line`. None for an unknown language.

    A later line may still change the meaning of the last ones.
    """
    lexer = find_lexer(language)
    if lexer is None:
        return None
    if isinstance(lexer, RegexLexer) and not isinstance(lexer, ExtendedRegexLexer):
        # Some lexers do not support this loop and may raise anything: those lex from the beginning.
        with suppress(Exception):
            return _highlight_from(lexer, text, lexer_state)
    words = words_by_line((kind, value) for _, kind, value in lexer.get_tokens_unprocessed(text))
    return HighlightedLines(lexer_state.line, words[:-1], lexer_state)


def _highlight_from(lexer: RegexLexer, text: str, lexer_state: LexerState) -> HighlightedLines:
    context = LexerContext(text, 0, [*lexer_state.states], len(text))
    reader = cast("Any", _resumable(type(lexer)))(stripnl=False, ensurenl=False)
    tokens = list(_tokens(reader.get_tokens_unprocessed, text, context))
    words = words_by_line((kind, value) for _, kind, value in tokens)[:-1]
    next_state = lexer_state if _is_open(text) else _next_state(lexer_state, tokens, len(words), tuple(context.stack))
    return HighlightedLines(lexer_state.line, words, next_state)


def _is_open(text: str) -> bool:
    """Return whether a multi-line construct has begun. Some lexers recognise it only at its end."""
    is_comment = any(text.rfind(begin) > text.rfind(end) for begin, end in (("/*", "*/"), ("<!--", "-->")))
    return is_comment or any(text.count(quote) % 2 for quote in ("`", '"""', "'''"))


def _tokens(
    read: Callable[[str, LexerContext], Iterator[tuple[int, _TokenType, str]]], text: str, context: LexerContext
) -> Iterator[tuple[int, _TokenType, str]]:
    """Yield tokens including errors for the text between two of them."""
    offset = 0
    for position, kind, value in read(text, context):
        if position > offset:
            yield offset, Error, text[offset:position]
        yield position, kind, value
        offset = position + len(value)


def _next_state(
    lexer_state: LexerState, tokens: list[tuple[int, _TokenType, str]], lines: int, states: tuple[str, ...]
) -> LexerState:
    """Advance behind these lines, unless they end inside something that a later line may end."""
    last = next((kind for _, kind, value in reversed(tokens) if value.strip()), None)
    is_open = last is None or last in Comment or last in String or any(kind is Error for _, kind, _ in tokens)
    return lexer_state if is_open else LexerState(lexer_state.line + lines, states)


# The most lines and words of a slice; the first slice is about one screen.
_LINES = 100
_FIRST_LINES = 60
_WORDS = 2000


def highlight_slices(code: HighlightRequest) -> Iterator[HighlightSlice]:
    """Yield slices of complete code, the first screen first."""
    line, words, count = 0, list[list[StyledWord]](), 0
    for line_words in iter_highlighted_lines(code.text, code.language):
        if len(words) >= (_LINES if line else _FIRST_LINES) or count >= _WORDS:
            yield HighlightSlice(line, words, is_last=False)
            line, words, count = line + len(words), [], 0
        words.append(line_words)
        count += len(line_words)
    yield HighlightSlice(line, words, is_last=True)


def highlight(text: str, language: str, lexer_state: tuple[int, list[str]] | None) -> Iterator[HighlightAnswer]:
    """Yield the answers. Lexers are third-party code: if one raises, there is no highlighting."""
    try:
        if lexer_state is None:
            yield from highlight_slices(HighlightRequest(text, language))
        else:
            line, states = lexer_state
            yield highlight_more_lines(text, language, LexerState(line, tuple(states)))
    except Exception:  # noqa: BLE001  see above
        yield None
