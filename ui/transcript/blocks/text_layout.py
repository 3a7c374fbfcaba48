"""Lay out a line of styled text in a width, with inline objects such as formulas in it."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QTextCharFormat, QTextLayout, QTextLine, QTextOption

from ui.transcript.markdown.inline import OBJECT, Line, Span, SpanStyle
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle

DrawObject = Callable[[QPainter, QPointF], None]


@dataclass(frozen=True, slots=True)
class InlineObject:
    """Its measures in pixels; `draw` is given the left end of its baseline."""

    width: float
    ascent: float
    descent: float
    draw: DrawObject | None = None


InlineObjects = Mapping[int, InlineObject]
"""By the offset of their OBJECT in the text of the line."""


def formula_sources(line: Line, font: QFont, style: RenderStyle, width: float) -> InlineObjects:
    """The formulas of a line as their sources."""
    return {each.start: formula_source_object(each.source, font, style, width) for each in line.formulas()}


def formula_source_object(
    latex: str, font: QFont, style: RenderStyle, width: float, *, is_wrong: bool = False
) -> InlineObject:
    """The source in a box, shortened in its middle to what fits into a line."""
    mono = QFont(style.mono)
    mono.setPointSizeF(font.pointSizeF() * 0.92)
    metrics = QFontMetricsF(mono)
    words = metrics.elidedText(" ".join(latex.split()), Qt.TextElideMode.ElideMiddle, max(40.0, width - 8))
    wide, ascent, descent = metrics.horizontalAdvance(words) + 6, metrics.ascent(), metrics.descent()
    color = style.color("danger" if is_wrong else "text")
    box = QRectF(0, -ascent, wide, ascent + descent)
    return InlineObject(wide, ascent, descent, _DrawSource(words, mono, color, code_chip_color(style), box))


def code_chip_color(style: RenderStyle) -> QColor:
    """What stands behind code in a line."""
    color = QColor(style.color("text"))
    color.setAlphaF(0.075)
    return color


def selection_overlay_color(style: RenderStyle) -> QColor:
    """What lies over a selected picture."""
    color = QColor(style.color("selection"))
    color.setAlphaF(0.5)
    return color


@dataclass(frozen=True, slots=True)
class _DrawSource:
    words: str
    font: QFont
    color: QColor
    back: QColor
    box: QRectF

    def __call__(self, painter: QPainter, at: QPointF) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.back)
        painter.drawRoundedRect(self.box.translated(at), 3, 3)
        painter.setPen(self.color)
        painter.setFont(self.font)
        painter.drawText(at + QPointF(3, 0), self.words)


FormatRanges = list[QTextLayout.FormatRange]
_LEFT = Qt.AlignmentFlag.AlignLeft
_AUTO = Qt.LayoutDirection.LayoutDirectionAuto
_WORDS = QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere
_NO_WRAP = QTextOption.WrapMode.NoWrap
_RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u08ff\u200f\u202b\u202e\u2067\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_ON_CHARACTER = QTextLine.CursorPosition.CursorOnCharacter


# A bare layout gives an object no room. A space that takes the object's width as its letter spacing has it, is drawn as
# nothing, breaks lines like a word, and takes its direction from the text around it.
_PLACEHOLDER = "\u00a0"
_SPECIAL = SpanStyle.MATH | SpanStyle.FOOTNOTE | SpanStyle.HIDDEN | SpanStyle.NOTE


def _options() -> dict[tuple[bool, Qt.AlignmentFlag], QTextOption]:
    made: dict[tuple[bool, Qt.AlignmentFlag], QTextOption] = {}
    for wraps in (True, False):
        for align in (Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignHCenter, Qt.AlignmentFlag.AlignRight):
            option = QTextOption(align)
            option.setTextDirection(_AUTO)
            option.setWrapMode(_WORDS if wraps else _NO_WRAP)
            made[wraps, align] = option
    return made


_OPTIONS = _options()


class TextLayout:
    """Laid out once, at once. All places are UTF-16 offsets of the line. Without objects formulas are their source."""

    __slots__ = (
        "_chips",
        "_layout",
        "_turns",
        "height",
        "is_right_to_left",
        "length",
        "line",
        "objects",
        "said",
        "starts",
        "tops",
        "width",
    )

    def __init__(
        self,
        line: Line,
        font: QFont,
        style: RenderStyle,
        width: float,
        step: int,
        *,
        align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft,
        wraps: bool = True,
        objects: InlineObjects | None = None,
    ) -> None:
        self.line = line
        text = line.text
        self.length = utf16_length(text)
        self.said: int | None = None
        """The length of its plain text, once its block has looked it up."""
        self._turns: bool | None = None
        self.objects: InlineObjects = {}
        if OBJECT in text:
            self.objects = objects or formula_sources(line, font, style, width)
            text = text.replace(OBJECT, _PLACEHOLDER)
        layout = self._layout = QTextLayout(text, font)
        self.is_right_to_left = not line.text.isascii() and is_right_to_left(line.text)
        if self.is_right_to_left and align == _LEFT:
            align = Qt.AlignmentFlag.AlignRight
        layout.setTextOption(_OPTIONS[wraps, align])
        layout.setCacheEnabled(True)
        if line.spans:
            layout.setFormats(
                [_format_range(span.start, span.length, self._format(span, style, font)) for span in line.spans]
            )
        self._break(width, step)
        self._chips: list[QRectF] | None = None

    def _format(self, span: Span, style: RenderStyle, font: QFont) -> QTextCharFormat:
        if not span.style & _SPECIAL:
            return style.format(span.style, font)
        form = QTextCharFormat(style.format(span.style & ~_SPECIAL, font))
        if span.style & SpanStyle.FOOTNOTE:
            form.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignSuperScript)
            form.setForeground(style.color("link"))
        elif found := self.objects.get(span.start):
            spaced = QFont(font)
            spaced.setLetterSpacing(
                QFont.SpacingType.AbsoluteSpacing, found.width - QFontMetricsF(font).horizontalAdvance(_PLACEHOLDER)
            )
            form.setFont(spaced)
        else:
            form.setForeground(style.color("muted"))
        return form

    def _break(self, width: float, step: int) -> None:
        layout = self._layout
        self.starts: list[int] = []
        self.tops: list[int] = []
        y, widest = 0, 0.0
        layout.beginLayout()
        while (line := layout.createLine()).isValid():
            line.setLineWidth(width)
            tall = line.height()
            # A fallback font for an emoji or a Chinese character may need more than the usual distance.
            advance = step if tall <= step else int(tall) + 2
            above = (advance - tall) / 2
            if self.objects:
                above, advance = self._room(line, above, advance)
            line.setPosition(QPointF(0, y + above))
            self.starts.append(line.textStart())
            self.tops.append(y)
            widest = max(widest, line.naturalTextWidth())
            y += advance
        layout.endLayout()
        self.height = y
        self.width = widest

    def _room(self, line: QTextLine, above: float, advance: int) -> tuple[float, int]:
        """What stands above a line, and its height, when its objects are higher or deeper than its letters."""
        first, end = line.textStart(), line.textStart() + line.textLength()
        inside = [each for at, each in self.objects.items() if first <= at < end]
        if not inside:
            return above, advance
        over = max(each.ascent for each in inside) + 1 - (above + line.ascent())
        above += max(0, over)
        under = max(each.descent for each in inside) + 1 + above + line.ascent()
        return above, max(advance + ceil(max(0, over)), ceil(under))

    @property
    def first_middle(self) -> float:
        """The y of the middle of the letters of its first line."""
        line = self._layout.lineAt(0)
        return line.y() + line.height() / 2

    @property
    def first_baseline(self) -> float:
        """The y on which the letters of its first line stand."""
        line = self._layout.lineAt(0)
        return line.y() + line.ascent()

    def object_boxes(self) -> dict[int, QRectF]:
        """Where the objects stand, by their offset."""
        boxes: dict[int, QRectF] = {}
        for at, each in self.objects.items():
            line = self._layout.lineAt(max(0, bisect_right(self.starts, at) - 1))
            left = min(cursor_x(line, at), cursor_x(line, at + 1))
            boxes[at] = QRectF(left, line.y() + line.ascent() - each.ascent, each.width, each.ascent + each.descent)
        return boxes

    def draw(
        self,
        painter: QPainter,
        style: RenderStyle,
        at: QPointF,
        color: str = "text",
        selection: tuple[int, int] | None = None,
        clip: QRectF | None = None,
    ) -> None:
        """In a colour of the theme; the clip is in the painter's coordinates and spares lines outside it."""
        if self._chips is None:
            self._chips = self._make_chips()
        if self._chips:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(code_chip_color(style))
            for chip in self._chips:
                painter.drawRoundedRect(chip.translated(at), 3, 3)
        painter.setPen(style.color(color))
        self._layout.draw(painter, at, _selection_formats(selection, style) if selection else [], clip or QRectF())
        if self.objects:
            self._draw_objects(painter, style, at, selection)

    def _draw_objects(
        self, painter: QPainter, style: RenderStyle, at: QPointF, selection: tuple[int, int] | None
    ) -> None:
        for offset, box in self.object_boxes().items():
            each = self.objects[offset]
            if selection and selection[0] <= offset < selection[1]:
                painter.fillRect(box.translated(at), style.color("selection"))
            if each.draw:
                each.draw(painter, box.topLeft() + at + QPointF(0, each.ascent))

    def offset_at(self, x: float, y: float) -> int:
        """The place between characters nearest to a point."""
        if not self.tops:
            return 0
        if y < 0:
            return 0
        if y >= self.height:
            return self.length
        line = self._layout.lineAt(self._row_at(y))
        position = line.xToCursor(x)
        last = line.textStart() + line.textLength()
        # The end of a wrapped line is the start of the next one; the click meant the line it hit.
        return position - 1 if position == last and position < self.length and line.textLength() else position

    def link_at(self, x: float, y: float) -> str:
        """The target of the link under a point."""
        if not 0 <= y < self.height or not any(span.href for span in self.line.spans):
            return ""
        line = self._layout.lineAt(self._row_at(y))
        text = line.naturalTextRect()
        if not text.left() <= x <= text.right():
            return ""
        position = line.xToCursor(x, _ON_CHARACTER)
        for span in self.line.spans:
            if span.href and span.start <= position < span.start + span.length:
                return span.href
        return ""

    def boxes(self, start: int, length: int) -> list[QRectF]:
        """What a part of the text covers, one box for each line."""
        boxes: list[QRectF] = []
        for index in range(max(0, bisect_right(self.starts, start) - 1), len(self.starts)):
            line = self._layout.lineAt(index)
            first, last = line.textStart(), line.textStart() + line.textLength()
            if first >= start + length:
                break
            for left, right in self._line_intervals(line, max(first, start), min(last, start + length)):
                boxes.append(QRectF(left, line.y(), right - left, line.height()))
        return boxes

    def _line_intervals(self, line: QTextLine, start: int, end: int) -> list[tuple[float, float]]:
        """Left and right of what stands side by side: in lines of two directions a part of the text is several."""
        if end <= start:
            return []
        if not self._has_turns():
            left, right = cursor_x(line, start), cursor_x(line, end)
            return [(left, right)] if left < right else []
        # Where a run begins, the places of a line do not tell on which side of a character they are.
        found: list[tuple[float, float]] = []
        for box in sorted((run.boundingRect() for run in line.glyphRuns(start, end - start)), key=QRectF.left):
            if found and box.left() - found[-1][1] < 1:
                found[-1] = found[-1][0], max(found[-1][1], box.right())
            else:
                found.append((box.left(), box.right()))
        return found

    def _has_turns(self) -> bool:
        """Whether something in it may run from right to left."""
        if self._turns is None:
            text = self.line.text
            self._turns = not text.isascii() and _RIGHT_TO_LEFT.search(text) is not None
        return self._turns

    def caret_rect_at(self, offset: int) -> QRectF:
        """Where a caret stands before the character at a place: no width, as high as its line."""
        line = self._layout.lineAt(max(0, bisect_right(self.starts, offset) - 1))
        return QRectF(cursor_x(line, offset), line.y(), 0, line.height()) if line.isValid() else QRectF()

    def dirty_from(self, old: "TextLayout") -> int:
        """The y from which this looks different, given what was shown before and that text mostly grows at its end."""
        same = old.length if self.line.text.startswith(old.line.text) else 0
        for mine, theirs in zip(self.line.spans, old.line.spans, strict=False):
            if mine != theirs:
                same = min(same, mine.start if mine.start != theirs.start else same, theirs.start)
                break
        else:
            extra = self.line.spans[len(old.line.spans) :] or old.line.spans[len(self.line.spans) :]
            same = min([same, *[span.start for span in extra[:1]]])
        same = min([same, *(at for at, each in self.objects.items() if old.objects.get(at) != each)])
        row = max(0, bisect_right(old.starts, same) - 1)
        if self.starts[:row] != old.starts[:row] or self.tops[: row + 1] != old.tops[: row + 1]:
            return 0
        return self.tops[row] if row < len(self.tops) else 0

    def _row_at(self, y: float) -> int:
        return max(0, bisect_right(self.tops, y) - 1)

    def _make_chips(self) -> list[QRectF]:
        runs: list[tuple[int, int]] = []
        for span in self.line.spans:
            if span.style & SpanStyle.CODE and not span.style & SpanStyle.NOTE:
                # Chips let the ground shine through: two that overlapped would be darker there.
                start = runs.pop()[0] if runs and runs[-1][1] == span.start else span.start
                runs.append((start, span.start + span.length))
        return [box.adjusted(-2, 0, 2, 0) for start, end in runs for box in self.boxes(start, end - start)]


def is_right_to_left(text: str) -> bool:
    """By the first strong character (Unicode annex 9, rules P2 and P3)."""
    for char in text:
        direction = unicodedata.bidirectional(char)
        if direction in {"L", "R", "AL"}:
            return direction != "L"
    return False


def make_format_ranges(flow_ranges: Sequence[tuple[int, int, QTextCharFormat]]) -> FormatRanges:
    """Format ranges from plain numbers."""
    return [_format_range(start, length, form) for start, length, form in flow_ranges]


def _format_range(start: int, length: int, form: QTextCharFormat) -> QTextLayout.FormatRange:
    made = QTextLayout.FormatRange()
    made.start = start  # pyright: ignore[reportAttributeAccessIssue]  # the stub lists the fields as methods
    made.length = length  # pyright: ignore[reportAttributeAccessIssue]
    made.format = form  # pyright: ignore[reportAttributeAccessIssue]
    return made


def _selection_formats(selection: tuple[int, int], style: RenderStyle) -> FormatRanges:
    form = QTextCharFormat()
    form.setBackground(style.color("selection"))
    form.setForeground(style.color("text"))
    return [_format_range(selection[0], min(selection[1] - selection[0], 1 << 30), form)]


def cursor_x(line: QTextLine, offset: int) -> float:
    """Where a place of a line is."""
    found = line.cursorToX(offset)
    return float(found[0] if isinstance(found, tuple) else found)  # pyright: ignore[reportArgumentType, reportUnknownArgumentType]  # typed as object
