"""What is asked for and what is found, on both sides of the pipe. Knows neither Qt nor grammars."""

from dataclasses import dataclass

Word = tuple[int, int, str]
"""Start, length (UTF-16 units) and colour kind."""

LONGEST = 200_000
"""Characters. Longer code stays plain."""

KINDS = ("comment", "keyword", "function", "builtin", "string", "number")
"""Of code."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A line, and the states that the lexer is in where it begins."""

    line: int = 0
    states: tuple[str, ...] = ("root",)


@dataclass(frozen=True, slots=True)
class Coloured:
    """Words of the lines from `line` on, and where to go on."""

    line: int
    words: list[list[Word]]
    standing: Standing


@dataclass(frozen=True, slots=True)
class Slice:
    """Words of the lines from `line` on, of code that is complete; after the last slice nothing follows."""

    line: int
    words: list[list[Word]]
    is_last: bool


@dataclass(frozen=True, slots=True)
class Code:
    """What is to be coloured; with `standing` it is whole lines of code that still grows."""

    text: str
    language: str
    standing: Standing | None = None
