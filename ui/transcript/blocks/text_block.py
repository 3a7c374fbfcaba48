"""Text blocks: paragraphs, headings and rules, and the indents, markers and bars of lists and quotes."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter

from ui.style.text_display import LEFT_TO_RIGHT_MARK, bidi_mark_positions, in_logical_order
from ui.transcript.blocks.block import WHOLE_TEXT, Block, PaintContext
from ui.transcript.blocks.math.formulas import MathCallbacks
from ui.transcript.blocks.math.math_block import InlineFormulas
from ui.transcript.blocks.text_layout import TextLayout
from ui.transcript.markdown.elements import Container, Leaf
from ui.transcript.markdown.inline import OBJECT, Line, SpanStyle, parse_inline
from ui.transcript.markdown.inline import Span as InlineSpan
from ui.transcript.markdown.misleading_links import link_tooltip
from ui.transcript.markdown.parser import References
from ui.transcript.markdown.serializer import RULE_TEXT, leaf_markdown, line_to_html, line_to_markdown, slice_line
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle

BODY, SMALL = "body", "small"

BACK_TARGET = "#back:"
"""The `href` of the link from a footnote back to the text begins with this; its label follows."""

_BACK_LINK = " \u21a9\ufe0e"


class TextBlock(Block):
    """The text of one paragraph in one font. `color` is a theme colour.

    Offsets are those of the plain text, in which a formula is its source.
    """

    def __init__(self, line: Line, font: str = BODY, color: str = "text", math: MathCallbacks | None = None) -> None:
        self._line: Line | None = line
        self._font = font
        self._color = color
        self._text_layout: TextLayout | None = None
        self._previous_layout: TextLayout | None = None
        self.is_right_to_left = False
        self._math = math
        self._formulas: InlineFormulas | None = None

    def line(self) -> Line:
        """Return the text and its styles."""
        return self._line or Line("")

    def plain(self) -> str:
        return self.line().plain()

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """Return the text with its styles, without formulas that are selected in part."""
        line = self.line()
        return line_to_markdown(line, line.from_plain(start), line.from_plain(end)).strip(" ")

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        line = self.line()
        return f"<p>{line_to_html(line, line.from_plain(start), line.from_plain(end))}</p>"

    def font(self, style: RenderStyle) -> QFont:
        """Return the font at the current zoom."""
        return style.small if self._font == SMALL else style.body

    def length(self) -> int:
        """Return the approximate number of characters."""
        return len(self.line().text)

    def estimate(self, width: int, style: RenderStyle) -> int:
        """Estimate the height with characters of average width."""
        per_line = max(8, int(width / style.advance))
        return (1 + self.length() // per_line) * style.line_of(self.font(style))

    def _drawn_line(self) -> Line:
        """Return the line that is laid out; it maps its offsets to those of the plain text."""
        return self.line()

    def layout(self, width: int, style: RenderStyle) -> int:
        font = self.font(style)
        line = self._drawn_line()
        objects = None
        if OBJECT in line.text:
            self._formulas = self._formulas or InlineFormulas(self._math, self.invalidate_layout)
            objects = self._formulas.objects(line, font, style, width, self._color)
        text_layout = TextLayout(line, font, style, width, style.line_of(font), objects=objects)
        self.dirty_from = text_layout.dirty_from(self._previous_layout) if self._previous_layout else 0
        self._text_layout, self._previous_layout, self.is_laid_out = text_layout, None, True
        self.is_right_to_left = text_layout.is_right_to_left
        return text_layout.height

    def first_line(self, style: RenderStyle) -> QRect:
        """Return the place for a marker beside the first line, which formulas may have moved down."""
        line = self._text_layout.first_line if self._text_layout else None
        top = line.y() + (line.height() - style.line) / 2 if line else 0
        return QRect(0, round(top), 0, style.line)

    def first_baseline(self, style: RenderStyle) -> float:
        """Return the y of the baseline of the first line, and of a marker beside it."""
        line = self._text_layout.first_line if self._text_layout else None
        return line.y() + line.ascent() if line else QFontMetricsF(self.font(style)).ascent()

    def forget(self) -> None:
        self._text_layout, self._previous_layout, self.is_laid_out = None, None, False
        if self._formulas:
            self._formulas.forget()

    def invalidate_layout(self) -> None:
        """Lay out changed text again, but remember what is on screen to repaint only the difference."""
        self._previous_layout = self._text_layout or self._previous_layout
        self._text_layout, self.is_laid_out = None, False

    def paint(self, context: PaintContext) -> None:
        if self._text_layout:
            line, clip, selection = self._text_layout.line, QRectF(context.clip), context.selection
            if selection:
                selection = line.from_plain(selection[0]), line.from_plain(selection[1])
            self._text_layout.draw(context.painter, context.style, QPointF(0, 0), self._color, selection, clip)

    def tooltip_at(self, point: QPoint) -> str:
        """Return the real target of a link, or the source of a formula and why it is not drawn."""
        link = self.link_at(point)
        if link and not link.startswith("#"):
            return link_tooltip(link)
        return self._formulas.tooltip_at(self._text_layout, point) if self._formulas and self._text_layout else ""

    def offset_at(self, point: QPoint) -> int:
        layout = self._text_layout
        return layout.line.to_plain(layout.offset_at(point.x(), point.y())) if layout else 0

    def boxes(self, start: int, end: int) -> list[QRectF]:
        if not self._text_layout:
            return []
        line, end = self._text_layout.line, min(end, self._text_end(self._text_layout))
        first, last = line.from_plain(start), line.from_plain(end)
        # A part of a formula selects all of it.
        first -= first == last and first > 0 and end > start
        return self._text_layout.boxes(first, last - first)

    def _text_end(self, text_layout: TextLayout) -> int:
        """Return the length of the plain text, computed once for each layout because it reads the whole text."""
        if text_layout.plain_length is None:
            text_layout.plain_length = utf16_length(self.plain())
        return text_layout.plain_length

    def caret_rect_at(self, offset: int) -> QRectF | None:
        return self._text_layout.caret_rect_at(self._text_layout.line.from_plain(offset)) if self._text_layout else None

    def caret_stop_at(self, offset: int) -> int:
        """Return the offset, or the end of the formula that it is in."""
        line = self.line()
        return line.to_plain(line.from_plain(offset)) if OBJECT in line.text else offset

    def link_at(self, point: QPoint) -> str:
        return self._text_layout.link_at(point.x(), point.y()) if self._text_layout else ""

    def natural_width(self) -> int:
        return int(self._text_layout.width) + 1 if self._text_layout else 0


class MarkdownTextBlock(TextBlock):
    """A paragraph or heading of Markdown. Its inline text is parsed when first needed."""

    def __init__(
        self,
        leaf: Leaf,
        references: References,
        color: str = "text",
        font: str = BODY,
        math: MathCallbacks | None = None,
    ) -> None:
        super().__init__(Line(""), font, color, math)
        self._line = None
        self.leaf = leaf
        self._references = references

    def line(self) -> Line:
        if self._line is None:
            self._line = _with_back_link(parse_inline(self.leaf.text, self._references), self.leaf.back)
        return self._line

    def plain(self) -> str:
        """Return the text without the link back from a footnote."""
        plain = super().plain()
        return plain.removesuffix(_BACK_LINK) if self.leaf.back else plain

    def _source_line(self) -> Line:
        line = self.line()
        return slice_line(line, 0, utf16_length(line.text) - len(_BACK_LINK)) if self.leaf.back else line

    def length(self) -> int:
        """Return the length of the source, known without parsing it."""
        return len(self.leaf.text)

    def font(self, style: RenderStyle) -> QFont:
        return style.heading(self.leaf.level) if self.leaf.kind == "heading" else super().font(style)

    def set_leaf(self, leaf: Leaf) -> None:
        """Replace the text by a longer version of it."""
        self.leaf, self._line = leaf, None
        self.invalidate_layout()

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """Return the source when all is selected, otherwise serialize the part."""
        if start == 0 and end >= utf16_length(self.plain()):
            return leaf_markdown(self.leaf, self._source_line())
        prefix = f"{'#' * self.leaf.level} " if self.leaf.kind == "heading" and not start else ""
        return prefix + super().markdown(start, end)

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        tag = f"h{self.leaf.level}" if self.leaf.kind == "heading" else "p"
        return f"<{tag}>{super().html(start, min(end, utf16_length(self.plain())))[3:-4]}</{tag}>"

    def refresh_references(self) -> bool:
        """Parse again after a link definition arrived, if the text could use one."""
        if "]" not in self.leaf.text:
            return False
        self._line = None
        self.forget()
        return True


def _with_back_link(line: Line, label: str) -> Line:
    if not label:
        return line
    back_link = InlineSpan(utf16_length(line.text), len(_BACK_LINK), SpanStyle.NOTE, f"{BACK_TARGET}{label}")
    return Line(f"{line.text}{_BACK_LINK}", (*line.spans, back_link))


@dataclass(frozen=True, slots=True)
class _DrawnLine(Line):
    """A line drawn with bidi marks at these offsets of the drawn text."""

    marks: tuple[int, ...] = ()

    def to_plain(self, offset: int) -> int:
        return offset - bisect_left(self.marks, offset)

    def from_plain(self, offset: int) -> int:
        # A mark precedes an offset if fewer characters precede the mark than the offset.
        return offset + bisect_right([mark - index for index, mark in enumerate(self.marks)], offset)


class CallSummaryBlock(TextBlock):
    """A small muted line. Offsets are those of the text without bidi marks."""

    def __init__(self, text: str) -> None:
        super().__init__(Line(text), SMALL, "muted")

    def _drawn_line(self) -> Line:
        text = self.line().text
        marks = bidi_mark_positions(text)
        if not marks:
            return self.line()
        return _DrawnLine(LEFT_TO_RIGHT_MARK + in_logical_order(text), marks=(0, *(mark + 1 for mark in marks)))


class RuleBlock(Block):
    """A thematic break: a thin line across the column."""

    fixed_height = 9

    def __init__(self) -> None:
        self._width = 0

    def layout(self, width: int, style: RenderStyle) -> int:
        self.is_laid_out, self._width = True, width
        return self.estimate(width, style)

    def paint(self, context: PaintContext) -> None:
        context.painter.fillRect(QRect(0, context.style.px(4), self._width, 1), context.style.color("border"))

    def plain(self) -> str:
        return "---"

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """Return a line that is a rule in every context."""
        del start, end
        return RULE_TEXT

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        del start, end
        return "<hr>"


_QUOTE, _ITEM = 16, 24
_BULLETS = "•◦▪"


def indent_width(containers: tuple[Container, ...], style: RenderStyle) -> int:
    """Return the indent of a block in pixels, on the side where its text begins."""
    return sum(style.px(_QUOTE if container.kind == "quote" else _ITEM) for container in containers)


def is_right_to_left_block(block: Block) -> bool:
    """Return whether a block is written from right to left, so that its markers and bars are on its right."""
    return bool(block.containers) and isinstance(block, TextBlock) and block.is_right_to_left


def paint_containers(painter: QPainter, style: RenderStyle, block: Block, previous: Block | None, box: QRect) -> None:
    """Paint bars and markers. The painter is at the block's origin; `box` is the block in its row."""
    mirrored = is_right_to_left_block(block)
    before = previous.containers if previous and is_right_to_left_block(previous) == mirrored else ()
    indent = indent_width(block.containers, style)
    for depth, container in enumerate(block.containers):
        width = style.px(_QUOTE if container.kind == "quote" else _ITEM)
        x = box.width() + indent - width if mirrored else -indent
        if container.kind == "quote":
            continues = len(before) > depth and before[depth].kind == "quote"
            top = -block.gap if continues else 0
            bar = x + width - style.px(5) if mirrored else x + style.px(2)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(style.color("border"))
            painter.drawRect(QRect(bar, top, style.px(3), box.height() - top))
        elif container.marker:
            line = block.first_line(style) if isinstance(block, TextBlock) else QRect(0, 0, 0, style.line)
            room = QRect(x, line.top() - 1, width, line.height())
            baseline = block.first_baseline(style) if isinstance(block, TextBlock) else None
            _paint_marker(painter, style, container, room, baseline, mirrored=mirrored)
        indent -= width


def _paint_marker(
    painter: QPainter, style: RenderStyle, container: Container, room: QRect, baseline: float | None, *, mirrored: bool
) -> None:
    marker = container.marker
    if container.kind == "item" and marker in "☐☑":
        _paint_check_box(painter, style, room, ticked=marker == "☑", mirrored=mirrored)
        return
    # Long numbers extend into the margin rather than into the text.
    font = style.small if container.kind == "footnote" else style.body
    metrics = QFontMetricsF(font)
    if container.kind == "footnote":
        marker = metrics.elidedText(marker, Qt.TextElideMode.ElideRight, room.width() + style.px(10))
    gap = style.px(8 if marker in _BULLETS else 0)
    needed = int(metrics.horizontalAdvance(marker)) + style.px(7)
    left = min(room.left() + gap, room.right() - needed + 1)
    if mirrored:
        marker = _mirrored(marker)
        left = max(room.right() - gap + 1, room.left() + needed) - metrics.horizontalAdvance(marker)
    if baseline is None:
        baseline = room.top() + (room.height() - metrics.height()) / 2 + metrics.ascent()
    painter.setFont(font)
    painter.setPen(style.color("muted"))
    # On the exact baseline of the text beside it: centring in a box rounds differently.
    painter.drawText(QPointF(left, baseline), marker)


def _mirrored(marker: str) -> str:
    """Move the punctuation of a number to the other side: `1.` becomes `.1` in text from right to left."""
    number = marker.rstrip(".)")
    return marker[len(number) :].replace(")", "(") + number if number.isdigit() else marker


def _paint_check_box(painter: QPainter, style: RenderStyle, room: QRect, *, ticked: bool, mirrored: bool) -> None:
    size = style.px(14)
    left = room.right() - style.px(3) - size if mirrored else room.left() + style.px(3)
    frame = QRect(left, room.top() + 1 + (room.height() - size) // 2, size, size)
    style.paint_box(painter, frame, 3, *(("accent", "accent") if ticked else ("", "muted")))
    if ticked:
        ratio = painter.device().devicePixelRatio()
        painter.drawPixmap(frame.adjusted(1, 1, 0, 0).topLeft(), style.icon("check", "on_accent", 13, ratio))
