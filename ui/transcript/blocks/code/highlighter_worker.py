"""The worker process that highlights code with the grammars of Pygments. Nothing else may import this."""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, cast

from pygments import lexers
from pygments.lexer import ExtendedRegexLexer, Lexer, LexerContext, RegexLexer
from pygments.token import Comment, Error, String, Token, _TokenType  # pyright: ignore[reportPrivateUsage]  # the only name of the type  # pyright: ignore[reportPrivateUsage]
from pygments.util import ClassNotFound

from ui.transcript.blocks.code.highlighter_protocol import (
    HighlightAnswer,
    HighlightedLines,
    HighlightRequest,
    HighlightSlice,
    LexerState,
    StyledWord,
    decode_request,
    encode_answer,
    encode_frame,
    read_frame,
)
from ui.transcript.markdown.text_units import utf16_length

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


MEMORY_LIMIT = 500_000_000
"""Bytes of address space. Usually it takes 24 million; packaged, where Qt comes along unasked, 83 million."""

SLICE_SECONDS = 1.0
"""Of the processor's time, whatever else the machine does. 200,000 characters of any usual language take half of it."""

TEXT_SECONDS = 10.0
"""Of the processor's time for all slices of one text."""

_LINES = 100
_FIRST_LINES = 60
"""About a screen."""

_WORDS = 2000


class _CpuClock:
    """Ends the process by a signal that nothing in it can hear first. Where there is none, the other side looks."""

    def __init__(self) -> None:
        self._left = 0.0

    def begin_text(self) -> None:
        """A new text."""
        self._left = TEXT_SECONDS
        _set_cpu_limit(SLICE_SECONDS)

    def begin_slice(self) -> None:
        """A new slice of it."""
        self._left -= SLICE_SECONDS - _cpu_seconds_left()
        _set_cpu_limit(max(0.001, min(self._left, SLICE_SECONDS)))

    def finish(self) -> None:
        """Nothing is being read."""
        _set_cpu_limit(0.0)


def _set_cpu_limit(seconds: float) -> None:
    """Of the processor's time; 0: never."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _cpu_seconds_left() -> float:
    return SLICE_SECONDS if sys.platform == "win32" else signal.getitimer(signal.ITIMER_PROF)[0]


def _confine() -> None:
    """Behind everything else, and not all of the memory."""
    # Ctrl-C in a terminal is for the program above, which closes the input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "win32":
        return
    import resource

    with suppress(OSError):
        os.nice(5)
    for limit, most in ((resource.RLIMIT_AS, MEMORY_LIMIT), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(limit)[1]
        with suppress(OSError, ValueError):
            resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def highlight_slices(code: HighlightRequest) -> Iterator[HighlightSlice]:
    """Complete code, the first screen of it first."""
    line, words, count = 0, list[list[StyledWord]](), 0
    for each in iter_highlighted_lines(code.text, code.language):
        if len(words) >= (_LINES if line else _FIRST_LINES) or count >= _WORDS:
            yield HighlightSlice(line, words, is_last=False)
            line, words, count = line + len(words), [], 0
        words.append(each)
        count += len(each)
    yield HighlightSlice(line, words, is_last=True)


def answers_to(code: HighlightRequest) -> Iterator[dict[str, Any]]:
    """What is answered. Grammars are foreign code: whatever one raises, the answer is that there is none."""
    found: Iterator[HighlightAnswer]
    try:
        found = (
            iter((highlight_more_lines(code.text, code.language, code.lexer_state),))
            if code.lexer_state
            else highlight_slices(code)
        )
        for each in found:
            yield encode_answer(each)
    except Exception:  # noqa: BLE001  see above
        yield encode_answer(None)


def main() -> int:
    """Until the input is closed; that is also when whoever started this is gone."""
    _confine()
    clock = _CpuClock()
    while (message := read_frame(sys.stdin.buffer)) is not None:
        clock.begin_text()
        for each in answers_to(decode_request(message)):
            sys.stdout.buffer.write(encode_frame(each))
            sys.stdout.buffer.flush()
            clock.begin_slice()
        clock.finish()
    return 0
