"""A paragraph, a heading, or plain text as the person typed it."""

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF
from PySide6.QtGui import QFont, QFontMetricsF

from ui.transcript.blocks.block import WHOLE_TEXT, PaintContext, TextRange
from ui.transcript.blocks.flow import TextLayout
from ui.transcript.blocks.flow_block import LaidOutTextBlock
from ui.transcript.blocks.math.formulas import MathCallbacks
from ui.transcript.blocks.math.inline_formulas import InlineFormulas
from ui.transcript.copying.leaf_forms import leaf_markdown
from ui.transcript.look import RenderStyle
from ui.transcript.markdown.inline import OBJECT, Line, SpanStyle, link_tooltip, parse_inline, utf16_length
from ui.transcript.markdown.inline import Span as InlineSpan
from ui.transcript.markdown.leaves import Leaf
from ui.transcript.markdown.parser import References
from ui.transcript.markdown.written import slice_line

BODY, SMALL, STRONG = "body", "small", "strong"

BACK_TARGET = "#back:"
"""What the `href` of the sign behind a footnote begins with that leads back to the text; its label follows."""

_BACK_LINK = " \u21a9\ufe0e"


class TextBlock(LaidOutTextBlock):
    """Text of one paragraph in one font. `color` is a name of the theme.

    Places are those of the plain text, in which a formula is its source.
    """

    def __init__(self, line: Line, font: str = BODY, color: str = "text", math: MathCallbacks | None = None) -> None:
        self._line: Line | None = line
        self._font = font
        self._color = color
        self._shown: TextLayout | None = None
        self.is_right_to_left = False
        self._math = math
        self._formulas: InlineFormulas | None = None

    def line(self) -> Line:
        """The text and its styles."""
        return self._line or Line("")

    def font(self, style: RenderStyle) -> QFont:
        """The font at this zoom."""
        fonts = {BODY: style.body, SMALL: style.small, STRONG: style.strong}
        return fonts[self._font]

    def length(self) -> int:
        """About how many characters it has."""
        return len(self.line().text)

    def estimate(self, width: int, style: RenderStyle) -> int:
        """As if all characters were of average width."""
        per_line = max(8, int(width / style.advance))
        return (1 + self.length() // per_line) * style.line_of(self.font(style))

    def layout(self, width: int, style: RenderStyle) -> int:
        """Break into lines."""
        font = self.font(style)
        line = self.line()
        objects = None
        if OBJECT in line.text:
            self._formulas = self._formulas or InlineFormulas(self._math, self.invalidate_layout)
            objects = self._formulas.objects(line, font, style, width, self._color)
        text_layout = TextLayout(line, font, style, width, style.line_of(font), objects=objects)
        self.dirty_from = text_layout.dirty_from(self._shown) if self._shown else 0
        self._text_layout, self._shown, self.is_laid_out = text_layout, None, True
        self.is_right_to_left = text_layout.is_right_to_left
        return text_layout.height

    def first_line(self, style: RenderStyle) -> QRect:
        """Where a marker beside the first line stands: formulas may have moved that line down."""
        middle = self._text_layout.first_middle if self._text_layout else style.line / 2
        return QRect(0, round(middle - style.line / 2), 0, style.line)

    def first_baseline(self, style: RenderStyle) -> float:
        """The y on which the letters of its first line, and of a marker beside it, stand."""
        return self._text_layout.first_baseline if self._text_layout else QFontMetricsF(self.font(style)).ascent()

    def forget(self) -> None:
        """Keep the text alone."""
        self._text_layout, self._shown, self.is_laid_out = None, None, False
        if self._formulas:
            self._formulas.forget()

    def invalidate_layout(self) -> None:
        """The text changed: lay out again, but remember what stands on the screen."""
        self._shown, self._text_layout, self.is_laid_out = self._text_layout or self._shown, None, False
        self.layout_count = 0

    def paint(self, context: PaintContext) -> None:
        """The lines inside the clip."""
        if self._text_layout:
            line, clip, selection = self._text_layout.line, QRectF(context.clip), context.selection
            if selection and OBJECT in line.text:
                selection = line.from_plain(selection[0]), line.from_plain(selection[1])
            self._text_layout.draw(context.painter, context.style, QPointF(0, 0), self._color, selection, clip)

    def paragraph_at(self, offset: int) -> TextRange:
        """The line of the person's own breaks around a place."""
        del offset
        return (0, utf16_length(self.plain()))

    def tooltip_at(self, point: QPoint) -> str:
        """Where a link really leads, or the source of a formula and why it is not drawn."""
        link = self.link_at(point)
        if link and not link.startswith("#"):
            return link_tooltip(link)
        return self._formulas.tooltip_at(self._text_layout, point) if self._formulas and self._text_layout else ""


class MarkdownTextBlock(TextBlock):
    """A paragraph or heading of Markdown; its inline text is read when it is first needed."""

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
        """Read once."""
        if self._line is None:
            self._line = _with_back_link(parse_inline(self.leaf.text, self._references), self._note)
        return self._line

    @property
    def _note(self) -> str:
        """The label of the footnote that ends with this text."""
        return self.leaf.back

    def plain(self) -> str:
        """Without the way back."""
        plain = super().plain()
        return plain.removesuffix(_BACK_LINK) if self._note else plain

    def _source_line(self) -> Line:
        """What was written."""
        return (
            slice_line(self.line(), 0, utf16_length(self.line().text) - len(_BACK_LINK)) if self._note else self.line()
        )

    def length(self) -> int:
        """Of the source, which is known without reading it."""
        return len(self.leaf.text)

    def font(self, style: RenderStyle) -> QFont:
        """Headings have their own."""
        return style.heading(self.leaf.level) if self.leaf.kind == "heading" else super().font(style)

    def set_leaf(self, leaf: Leaf) -> None:
        """The same paragraph, longer."""
        self.leaf, self._line = leaf, None
        self.invalidate_layout()

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """As it was written, when it is selected as a whole."""
        if start == 0 and end >= utf16_length(self.plain()):
            return leaf_markdown(self.leaf, self._source_line())
        sign = f"{'#' * self.leaf.level} " if self.leaf.kind == "heading" and not start else ""
        return sign + super().markdown(start, end)

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """A paragraph, or a heading."""
        tag = f"h{self.leaf.level}" if self.leaf.kind == "heading" else "p"
        return f"<{tag}>{super().html(start, min(end, utf16_length(self.plain())))[3:-4]}</{tag}>"

    def refresh_references(self) -> bool:
        """A link definition arrived: read again, if this text could use one."""
        if "]" not in self.leaf.text:
            return False
        self._line = None
        self.forget()
        return True


def _with_back_link(line: Line, label: str) -> Line:
    """A footnote with the sign behind it that leads back."""
    if not label:
        return line
    way = InlineSpan(utf16_length(line.text), len(_BACK_LINK), SpanStyle.NOTE, f"{BACK_TARGET}{label}")
    return Line(f"{line.text}{_BACK_LINK}", (*line.spans, way))
