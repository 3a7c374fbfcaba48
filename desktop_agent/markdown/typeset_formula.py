"""A typeset formula, or why there is none: the worker's answers."""

from dataclasses import dataclass
from typing import Literal

from desktop_agent.markdown.latex import FormulaError

COLOR = "#010203"
"""The placeholder for the text colour in the SVG."""

MARGIN = 1 / 16
"""Em around every formula, for glyphs that extend beyond their boxes."""


@dataclass(frozen=True, slots=True)
class TypesetFormula:
    """A formula as SVG, with its measures in em from the left end of its baseline, margins included."""

    svg: str
    width: float
    ascent: float
    descent: float


@dataclass(frozen=True, slots=True)
class LetterOutline:
    """A letter in em, its y axis pointing up: drawing commands; left, right, lower and upper edge; the advance."""

    commands: list[tuple[Literal["M", "L", "C"], list[tuple[float, float]]]]
    box: tuple[float, float, float, float]
    advance: float


@dataclass(frozen=True, slots=True)
class MissingLetters:
    """The letters that the font of formulas lacks; with their outlines the formula can be typeset."""

    letters: str


TypesetAnswer = TypesetFormula | FormulaError | MissingLetters
