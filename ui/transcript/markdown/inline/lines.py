"""What a line of text is: its characters, and what is special about parts of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ui.transcript.markdown.units import utf16_length

LINE_BREAK = "\u2028"
"""What Qt's layouts break a line at inside one paragraph."""

OBJECT = "\ufffc"
"""Stands for a formula in the text of a line, once for each span of style MATH, and nowhere else."""


class SpanStyle:
    """How a run looks: bits of a plain number, because flags of the standard library cost ten times as much.

    MATH is a formula, and with DISPLAY one that was meant to stand alone; HIDDEN is a hidden character that is spelled
    out, NOTE words that the text itself does not have.
    """

    PLAIN = 0
    BOLD = 1
    ITALIC = 2
    STRIKE = 4
    CODE = 8
    LINK = 16
    IMAGE = 32
    MATH = 64
    FOOTNOTE = 128
    HIDDEN = 256
    NOTE = 512
    DISPLAY = 1024


FOOTNOTE_TARGET = "#fn:"
"""What the `href` of a reference to a footnote begins with; its label follows."""


@dataclass(frozen=True, slots=True)
class Span:
    """Part of a line in one style. `href` is empty unless it leads somewhere; `source` is a formula's LaTeX."""

    start: int
    length: int
    style: int
    href: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """Text without markup, and what is special about parts of it."""

    text: str
    spans: tuple[Span, ...] = ()

    def formulas(self) -> Iterator[Span]:
        """The spans of its formulas, in order."""
        if OBJECT in self.text:
            yield from (span for span in self.spans if span.style & SpanStyle.MATH)

    def plain(self) -> str:
        """The text to be copied: formulas as their source, breaks as line feeds."""
        text = self.text.replace(LINE_BREAK, "\n")
        if OBJECT not in text:
            return text
        head, *rest = text.split(OBJECT)
        parts = [head]
        for span, after in zip(self.formulas(), rest, strict=True):
            parts += [formula_source(span), after]
        return "".join(parts)

    def to_plain(self, offset: int) -> int:
        """Where a place of the line is in its plain text."""
        return offset + sum(_extra_length(span) for span in self.formulas() if span.start < offset)

    def from_plain(self, offset: int) -> int:
        """Which place of the line a place of its plain text is; the end of a formula, when it is inside one."""
        for span in self.formulas():
            if offset <= span.start:
                break
            offset = max(offset - _extra_length(span), span.start + 1)
        return offset


@dataclass(frozen=True, slots=True)
class RemoteImage:
    """A picture that a text points to. It is named, never fetched."""

    label: str
    target: str


def formula_source(formula: Span) -> str:
    """A formula as it stands in a text."""
    return f"$${formula.source}$$" if formula.style & SpanStyle.DISPLAY else f"${formula.source}$"


def _extra_length(formula: Span) -> int:
    return utf16_length(formula_source(formula)) - 1


def slice_utf16(text: str, start: int, end: int) -> str:
    """A slice by UTF-16 offsets; half of a pair is left out."""
    return make_slicer(text)(start, end)


def make_slicer(text: str) -> Callable[[int, int], str]:
    """What cuts slices of a text; it is looked at once, however many slices follow."""
    if text.isascii() or max(text) <= "\uffff":
        return lambda start, end: text[start:end]
    raw = text.encode("utf-16-le", "surrogatepass")
    return lambda start, end: raw[start * 2 : end * 2].decode("utf-16-le", "ignore")
