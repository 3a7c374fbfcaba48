"""One piece of a line of code, laid out in one row."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF
from PySide6.QtGui import QPainter, QTextCharFormat, QTextLayout, QTextLine, QTextOption

from ui.transcript.blocks.block import Span
from ui.transcript.blocks.code.lines.advances import TAB
from ui.transcript.blocks.code.lines.hidden import ShownLine
from ui.transcript.blocks.code.lines.lengths import unit_length
from ui.transcript.blocks.flow import set_colors, x_of
from ui.transcript.look import Look

Painted = tuple[int, int, QTextCharFormat]
"""Start, length in UTF-16 units, and how that is drawn."""

_ROOM = 1 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """Its places are UTF-16 units from where the piece begins; all else is pixels."""

    layout: QTextLayout
    line: QTextLine
    shown: ShownLine | None
    size: int
    width: float

    def x_of(self, offset: int) -> float:
        """Where a place is."""
        return x_of(self.line, self.shown.to_shown(offset) if self.shown else offset)

    def offset_at(self, x: float) -> int:
        """The place nearest to an x."""
        place = self.line.xToCursor(x)
        return self.shown.from_shown(place) if self.shown else place

    def draw(self, painter: QPainter, at: QPointF, part: Span | None, marked: QTextCharFormat) -> None:
        """With a part of it marked."""
        if part and self.shown:
            part = self.shown.to_shown(part[0]), self.shown.to_shown(part[1])
        self.layout.draw(painter, at, set_colors([(part[0], part[1] - part[0], marked)]) if part else [])


def laid_piece(text: str, shown: ShownLine | None, formats: Sequence[Painted], look: Look) -> Piece:
    """Lay out a piece of bounded length."""
    layout = QTextLayout(shown.text if shown else text, look.mono)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.NoWrap)
    option.setTabStopDistance(look.mono_advance * TAB)
    layout.setTextOption(option)
    if shown:
        formats = _spelled_out(shown, formats, look)
    if formats:
        layout.setFormats(set_colors(formats))
    layout.setCacheEnabled(True)
    layout.beginLayout()
    line = layout.createLine()
    if line.isValid():
        line.setLineWidth(_ROOM)
        line.setPosition(QPointF(0, (look.mono_line - line.height()) / 2))
    layout.endLayout()
    return Piece(layout, line, shown, unit_length(text), line.naturalTextWidth() if line.isValid() else 0)


def _spelled_out(shown: ShownLine, words: Sequence[Painted], look: Look) -> list[Painted]:
    """The colours of a line, moved to where its words stand, and hidden characters in the colour of a warning."""
    label = QTextCharFormat()
    label.setForeground(look.color("warning"))
    label.setBackground(look.color("warning_background"))
    moved: list[Painted] = []
    for start, length, form in words:
        first = shown.to_shown(start)
        moved.append((first, shown.to_shown(start + length) - first, form))
    return [*moved, *((each.shown_start, each.shown_length, label) for each in shown.labels)]
