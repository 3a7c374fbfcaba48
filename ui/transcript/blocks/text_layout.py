"""Lay out a line of styled text in a width, with inline objects such as formulas in it."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from math import ceil

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QTextCharFormat, QTextLayout, QTextLine, QTextOption

from ui.style.text_display import make_format_range
from ui.transcript.markdown.inline import OBJECT, Line, Span, SpanStyle
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle

DrawObject = Callable[[QPainter, QPointF], None]


@dataclass(frozen=True, slots=True)
class InlineObject:
    """An object in a line, measured in pixels; `draw` gets the left end of its baseline."""

    width: float
    ascent: float
    descent: float
    draw: DrawObject | None = None


InlineObjects = Mapping[int, InlineObject]
"""Keyed by the offset of their OBJECT in the text of the line."""


def formula_source_object(
    latex: str, font: QFont, style: RenderStyle, width: float, *, is_wrong: bool = False
) -> InlineObject:
    """Return the source of a formula in a box, elided in its middle to fit into a line."""
    mono = QFont(style.mono)
    mono.setPointSizeF(font.pointSizeF() * 0.92)
    metrics = QFontMetricsF(mono)
    words = metrics.elidedText(" ".join(latex.split()), Qt.TextElideMode.ElideMiddle, max(40.0, width - 8))
    box_width, ascent, descent = metrics.horizontalAdvance(words) + 6, metrics.ascent(), metrics.descent()
    color = style.color("danger" if is_wrong else "text")
    box = QRectF(0, -ascent, box_width, ascent + descent)
    return InlineObject(box_width, ascent, descent, _DrawSource(words, mono, color, code_chip_color(style), box))


def code_chip_color(style: RenderStyle) -> QColor:
    """Return the background colour of code in a line."""
    return style.faded("text", 0.075)


def selection_overlay_color(style: RenderStyle) -> QColor:
    """Return the colour that covers a selected image."""
    return style.faded("selection", 0.5)


@dataclass(frozen=True, slots=True)
class _DrawSource:
    words: str
    font: QFont
    color: QColor
    back: QColor
    box: QRectF

    def __call__(self, painter: QPainter, origin: QPointF) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.back)
        painter.drawRoundedRect(self.box.translated(origin), 3, 3)
        painter.setPen(self.color)
        painter.setFont(self.font)
        painter.drawText(origin + QPointF(3, 0), self.words)


FormatRanges = list[QTextLayout.FormatRange]
_LEFT, _CENTER, _RIGHT = Qt.AlignmentFlag.AlignLeft, Qt.AlignmentFlag.AlignHCenter, Qt.AlignmentFlag.AlignRight
_RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u08ff\u200f\u202b\u202e\u2067\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_CHIP_PADDING = 2
"""Pixels beside code in a line."""
_ON_CHARACTER = QTextLine.CursorPosition.CursorOnCharacter


# A bare layout gives an object no room. A space with the object's width as its letter spacing does: it is drawn as
# nothing, breaks lines like a word, and takes its direction from the text around it.
_PLACEHOLDER = "\u00a0"
_SPECIAL = SpanStyle.MATH | SpanStyle.FOOTNOTE | SpanStyle.HIDDEN | SpanStyle.NOTE


def _option(align: Qt.AlignmentFlag) -> QTextOption:
    option = QTextOption(align)
    option.setTextDirection(Qt.LayoutDirection.LayoutDirectionAuto)
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    return option


_OPTIONS = {align: _option(align) for align in (_LEFT, _CENTER, _RIGHT)}


class TextLayout:
    """A laid-out line of text. Offsets are UTF-16 units of the line. Formulas are among its objects."""

    def __init__(
        self,
        line: Line,
        font: QFont,
        style: RenderStyle,
        width: float,
        step: int,
        *,
        align: Qt.AlignmentFlag = _LEFT,
        objects: InlineObjects | None = None,
    ) -> None:
        self.line = line
        text = line.text
        self.length = utf16_length(text)
        self.plain_length: int | None = None
        """The length of the plain text, once its block has computed it."""
        self._is_bidirectional: bool | None = None
        self.objects: InlineObjects = {}
        if OBJECT in text:
            self.objects = objects or {}
            text = text.replace(OBJECT, _PLACEHOLDER)
        layout = self._layout = QTextLayout(text, font)
        self.is_right_to_left = not line.text.isascii() and is_right_to_left(line.text)
        if self.is_right_to_left and align == _LEFT:
            align = _RIGHT
        layout.setTextOption(_OPTIONS[align])
        layout.setCacheEnabled(True)
        self._end_room = _CHIP_PADDING
        if line.spans:
            spans = ((span.start, span.length, self._format(span, style, font)) for span in line.spans)
            formats = [make_format_range(*span) for span in spans]
            layout.setFormats([*formats, *self._chip_rooms(text)])
        self._break(width, step)
        self._chips: list[QRectF] | None = None

    def _format(self, span: Span, style: RenderStyle, font: QFont) -> QTextCharFormat:
        if not span.style & _SPECIAL:
            return style.format(span.style, font)
        text_format = QTextCharFormat(style.format(span.style & ~_SPECIAL, font))
        if span.style & SpanStyle.FOOTNOTE:
            text_format.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignSuperScript)
            text_format.setForeground(style.color("link"))
        elif inline_object := self.objects.get(span.start):
            spaced = QFont(font)
            spacing = inline_object.width - QFontMetricsF(font).horizontalAdvance(_PLACEHOLDER)
            spaced.setLetterSpacing(QFont.SpacingType.AbsoluteSpacing, spacing)
            text_format.setFont(spaced)
        else:
            text_format.setForeground(style.color("muted"))
        return text_format

    def _break(self, width: float, step: int) -> None:
        layout = self._layout
        self.starts: list[int] = []
        self.tops: list[int] = []
        y, widest = 0, 0.0
        layout.beginLayout()
        while (line := layout.createLine()).isValid():
            line.setLineWidth(width)
            height = line.height()
            # A fallback font for an emoji or a Chinese character may need more than the usual distance.
            advance = step if height <= step else int(height) + 2
            above = (advance - height) / 2
            if self.objects:
                above, advance = self._room_for_objects(line, above, advance)
            line.setPosition(QPointF(0, y + above))
            self.starts.append(line.textStart())
            self.tops.append(y)
            widest = max(widest, line.naturalTextWidth())
            y += advance
        layout.endLayout()
        self.height = y
        self.width = widest

    def _room_for_objects(self, line: QTextLine, above: float, advance: int) -> tuple[float, int]:
        """Return the room above a line and its height, when objects are taller than its letters."""
        first, end = line.textStart(), line.textStart() + line.textLength()
        objects = [inline_object for offset, inline_object in self.objects.items() if first <= offset < end]
        if not objects:
            return above, advance
        over = max(inline_object.ascent for inline_object in objects) + 1 - (above + line.ascent())
        above += max(0, over)
        under = max(inline_object.descent for inline_object in objects) + 1 + above + line.ascent()
        return above, max(advance + ceil(max(0, over)), ceil(under))

    @property
    def first_line(self) -> QTextLine:
        return self._layout.lineAt(0)

    def object_boxes(self) -> dict[int, QRectF]:
        """Return the rectangles of the objects by offset."""
        boxes: dict[int, QRectF] = {}
        for offset, inline_object in self.objects.items():
            line = self._layout.lineAt(max(0, bisect_right(self.starts, offset) - 1))
            left = min(cursor_x(line, offset), cursor_x(line, offset + 1))
            top, height = line.y() + line.ascent() - inline_object.ascent, inline_object.ascent + inline_object.descent
            boxes[offset] = QRectF(left, top, inline_object.width, height)
        return boxes

    def draw(
        self,
        painter: QPainter,
        style: RenderStyle,
        origin: QPointF,
        color: str = "text",
        selection: tuple[int, int] | None = None,
        clip: QRectF | None = None,
    ) -> None:
        """Paint in a theme colour. Lines outside the clip, which is in painter coordinates, are skipped."""
        if self._chips is None:
            self._chips = self._make_chips()
        if self._chips:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(code_chip_color(style))
            for chip in self._chips:
                painter.drawRoundedRect(chip.translated(origin), 3, 3)
        painter.setPen(style.color(color))
        self._layout.draw(painter, origin, _selection_formats(selection, style) if selection else [], clip or QRectF())
        if self.objects:
            self._draw_objects(painter, style, origin, selection)

    def _draw_objects(
        self, painter: QPainter, style: RenderStyle, origin: QPointF, selection: tuple[int, int] | None
    ) -> None:
        for offset, box in self.object_boxes().items():
            inline_object = self.objects[offset]
            if selection and selection[0] <= offset < selection[1]:
                painter.fillRect(box.translated(origin), style.color("selection"))
            if inline_object.draw:
                inline_object.draw(painter, box.topLeft() + origin + QPointF(0, inline_object.ascent))

    def offset_at(self, x: float, y: float) -> int:
        """Return the offset nearest to a point."""
        if not self.tops or y < 0:
            return 0
        if y >= self.height:
            return self.length
        line = self._layout.lineAt(self._row_at(y))
        position = line.xToCursor(x)
        last = line.textStart() + line.textLength()
        # The end of a wrapped line is the start of the next one: stay on the line that was hit.
        return position - 1 if position == last and position < self.length and line.textLength() else position

    def link_at(self, x: float, y: float) -> str:
        """Return the target of the link at a point."""
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
        """Return what a part of the text covers, one rectangle for each line."""
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
        """Return the left and right ends of a part of a line; in bidirectional lines there are several."""
        if end <= start:
            return []
        if not self._has_right_to_left():
            left, right = cursor_x(line, start), cursor_x(line, end)
            return [(left, right)] if left < right else []
        # Where the direction turns, an offset has two edges: the boxes of the glyphs are unambiguous.
        intervals: list[tuple[float, float]] = []
        for box in sorted((run.boundingRect() for run in line.glyphRuns(start, end - start)), key=QRectF.left):
            if intervals and box.left() - intervals[-1][1] < 1:
                intervals[-1] = intervals[-1][0], max(intervals[-1][1], box.right())
            else:
                intervals.append((box.left(), box.right()))
        return intervals

    def _has_right_to_left(self) -> bool:
        if self._is_bidirectional is None:
            self._is_bidirectional = has_right_to_left(self.line.text)
        return self._is_bidirectional

    def caret_rect_at(self, offset: int) -> QRectF:
        """Return the caret before the character at an offset: no width, as high as its line."""
        line = self._layout.lineAt(max(0, bisect_right(self.starts, offset) - 1))
        return QRectF(cursor_x(line, offset), line.y(), 0, line.height()) if line.isValid() else QRectF()

    def dirty_from(self, old: "TextLayout") -> int:
        """Return the y from which this differs from the previous layout; text mostly grows at its end."""
        unchanged = old.length if self.line.text.startswith(old.line.text) else 0
        spans = zip_longest(self.line.spans, old.line.spans)
        first_changed = next((pair for pair in spans if pair[0] != pair[1]), ())
        starts = [span.start for span in first_changed if span]
        objects = self.objects.items()
        changed = (offset for offset, inline_object in objects if old.objects.get(offset) != inline_object)
        unchanged = min([unchanged, *starts, *changed])
        row = max(0, bisect_right(old.starts, unchanged) - 1)
        if self.starts[:row] != old.starts[:row] or self.tops[: row + 1] != old.tops[: row + 1]:
            return 0
        return self.tops[row] if row < len(self.tops) else 0

    def _row_at(self, y: float) -> int:
        return max(0, bisect_right(self.tops, y) - 1)

    def _chip_rooms(self, text: str) -> FormatRanges:
        """Return the formats that make room for the padding of code: behind the letter before it, and behind its last.

        None in a line with right-to-left letters, where the room would be on the other side.
        """
        runs = self._code_runs()
        if not runs or self._has_right_to_left():
            return []
        self._end_room = 0
        units = text.encode("utf-16-le", "surrogatepass")
        wider = QTextCharFormat()
        wider.setFontLetterSpacingType(QFont.SpacingType.AbsoluteSpacing)
        wider.setFontLetterSpacing(_CHIP_PADDING)
        # Other letters may belong to a cluster, which a separate format would split; objects already have a spacing.
        offsets = [offset for start, end in runs for offset in (start - 1, end - 1) if offset >= 0]
        ascii_ends = [offset for offset in offsets if units[2 * offset] < 128 and not units[2 * offset + 1]]
        return [make_format_range(offset, 1, wider) for offset in ascii_ends]

    def _make_chips(self) -> list[QRectF]:
        pad, after = _CHIP_PADDING, self._end_room
        runs = self._code_runs()
        return [box.adjusted(-pad, 0, after, 0) for start, end in runs for box in self.boxes(start, end - start)]

    def _code_runs(self) -> list[tuple[int, int]]:
        runs: list[tuple[int, int]] = []
        for span in self.line.spans:
            if span.style & SpanStyle.CODE and not span.style & SpanStyle.NOTE:
                # Chips are translucent: overlapping ones would be darker.
                start = runs.pop()[0] if runs and runs[-1][1] == span.start else span.start
                runs.append((start, span.start + span.length))
        return runs


def has_right_to_left(text: str) -> bool:
    """Return whether part of a text runs from right to left, so that it is not in visual order."""
    return not text.isascii() and _RIGHT_TO_LEFT.search(text) is not None


def is_right_to_left(text: str) -> bool:
    """Return the direction of the first strong character (Unicode annex 9, rules P2 and P3)."""
    for char in text:
        direction = unicodedata.bidirectional(char)
        if direction in {"L", "R", "AL"}:
            return direction != "L"
    return False


def _selection_formats(selection: tuple[int, int], style: RenderStyle) -> FormatRanges:
    text_format = QTextCharFormat()
    text_format.setBackground(style.color("selection"))
    text_format.setForeground(style.color("text"))
    return [make_format_range(selection[0], min(selection[1] - selection[0], 1 << 30), text_format)]


def cursor_x(line: QTextLine, offset: int) -> float:
    """Return the x of an offset in a line."""
    position = line.cursorToX(offset)
    return float(position[0] if isinstance(position, tuple) else position)  # pyright: ignore[reportArgumentType, reportUnknownArgumentType]  # typed as object
