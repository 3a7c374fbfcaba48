"""The requests to the highlighter's worker process, and its answers. Imports neither Qt nor lexers."""

from dataclasses import dataclass

StyledWord = tuple[int, int, str]
"""Start, length (UTF-16 units) and kind."""

MAX_TEXT_LENGTH = 200_000
"""The maximum number of characters; longer code stays plain."""


@dataclass(frozen=True, slots=True)
class LexerState:
    """A line, and the states of the lexer at its beginning."""

    line: int = 0
    states: tuple[str, ...] = ("root",)


@dataclass(frozen=True, slots=True)
class HighlightedLines:
    """Words of the lines from `line` on, and the state to continue from."""

    line: int
    words: list[list[StyledWord]]
    lexer_state: LexerState


@dataclass(frozen=True, slots=True)
class HighlightSlice:
    """Words of the lines from `line` on in complete code."""

    line: int
    words: list[list[StyledWord]]
    is_last: bool


@dataclass(frozen=True, slots=True)
class HighlightRequest:
    """Code to highlight; with `lexer_state` it is complete lines of growing code."""

    text: str
    language: str
    lexer_state: LexerState | None = None


HighlightAnswer = HighlightSlice | HighlightedLines | None
"""None if the code cannot be highlighted."""
