"""What is asked for and what is found, on both sides of the pipe. Knows neither Qt nor grammars."""

from dataclasses import dataclass

StyledWord = tuple[int, int, str]
"""Start, length (UTF-16 units) and colour kind."""

MAX_TEXT_LENGTH = 200_000
"""Characters. Longer code stays plain."""

WORD_KINDS = ("comment", "keyword", "function", "builtin", "string", "number")
"""Of code."""


@dataclass(frozen=True, slots=True)
class LexerState:
    """A line, and the states that the lexer is in where it begins."""

    line: int = 0
    states: tuple[str, ...] = ("root",)


@dataclass(frozen=True, slots=True)
class HighlightedLines:
    """Words of the lines from `line` on, and where to go on."""

    line: int
    words: list[list[StyledWord]]
    lexer_state: LexerState


@dataclass(frozen=True, slots=True)
class HighlightSlice:
    """Words of the lines from `line` on, of code that is complete; after the last slice nothing follows."""

    line: int
    words: list[list[StyledWord]]
    is_last: bool


@dataclass(frozen=True, slots=True)
class HighlightRequest:
    """What is to be coloured; with `lexer_state` it is whole lines of code that still grows."""

    text: str
    language: str
    lexer_state: LexerState | None = None
