"""One piece of a line of code, laid out in one row."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF
from PySide6.QtGui import QPainter, QTextCharFormat, QTextLayout, QTextLine, QTextOption

from ui.transcript.blocks.block import TextRange
from ui.transcript.blocks.code.lines.advances import TAB
from ui.transcript.blocks.code.lines.hidden import SpelledOutLine
from ui.transcript.blocks.code.lines.lengths import unit_length
from ui.transcript.blocks.flow import cursor_x, make_format_ranges
from ui.transcript.look import RenderStyle

FormatSpan = tuple[int, int, QTextCharFormat]
"""Start, length in UTF-16 units, and how that is drawn."""

_UNBOUNDED = 1 << 20


@dataclass(frozen=True, slots=True)
class LinePiece:
    """Its places are UTF-16 units from where the piece begins; all else is pixels."""

    layout: QTextLayout
    line: QTextLine
    shown: SpelledOutLine | None
    size: int
    width: float

    def x_of(self, offset: int) -> float:
        """Where a place is."""
        return cursor_x(self.line, self.shown.to_shown(offset) if self.shown else offset)

    def offset_at(self, x: float) -> int:
        """The place nearest to an x."""
        position = self.line.xToCursor(x)
        return self.shown.from_shown(position) if self.shown else position

    def draw(self, painter: QPainter, at: QPointF, part: TextRange | None, marked: QTextCharFormat) -> None:
        """With a part of it marked."""
        if part and self.shown:
            part = self.shown.to_shown(part[0]), self.shown.to_shown(part[1])
        self.layout.draw(painter, at, make_format_ranges([(part[0], part[1] - part[0], marked)]) if part else [])


def layout_piece(
    text: str, shown: SpelledOutLine | None, formats: Sequence[FormatSpan], style: RenderStyle
) -> LinePiece:
    """Lay out a piece of bounded length."""
    layout = QTextLayout(shown.text if shown else text, style.mono)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.NoWrap)
    option.setTabStopDistance(style.mono_advance * TAB)
    layout.setTextOption(option)
    if shown:
        formats = _display_formats(shown, formats, style)
    if formats:
        layout.setFormats(make_format_ranges(formats))
    layout.setCacheEnabled(True)
    layout.beginLayout()
    line = layout.createLine()
    if line.isValid():
        line.setLineWidth(_UNBOUNDED)
        line.setPosition(QPointF(0, (style.mono_line - line.height()) / 2))
    layout.endLayout()
    return LinePiece(layout, line, shown, unit_length(text), line.naturalTextWidth() if line.isValid() else 0)


def _display_formats(shown: SpelledOutLine, words: Sequence[FormatSpan], style: RenderStyle) -> list[FormatSpan]:
    """The colours of a line, moved to where its words stand, and hidden characters in the colour of a warning."""
    label = QTextCharFormat()
    label.setForeground(style.color("warning"))
    label.setBackground(style.color("warning_background"))
    moved: list[FormatSpan] = []
    for start, length, form in words:
        first = shown.to_shown(start)
        moved.append((first, shown.to_shown(start + length) - first, form))
    return [*moved, *((each.shown_start, each.shown_length, label) for each in shown.labels)]
