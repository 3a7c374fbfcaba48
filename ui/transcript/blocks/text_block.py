"""A paragraph, a heading, or plain text as the person typed it."""

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF
from PySide6.QtGui import QFont

from ui.transcript.blocks.block import Block, Brush, Span
from ui.transcript.blocks.flow import Flow
from ui.transcript.blocks.math.formulas import MathHost
from ui.transcript.blocks.math.inline_formulas import InlineFormulas
from ui.transcript.look import Look
from ui.transcript.markdown.inline import OBJECT, Line, inline, tip_of, units
from ui.transcript.markdown.leaves import Leaf
from ui.transcript.markdown.parser import References

BODY, SMALL, STRONG = "body", "small", "strong"


class TextBlock(Block):
    """Text of one paragraph in one font. `color` is a name of the theme.

    Places are those of the plain text, in which a formula is its source.
    """

    def __init__(self, line: Line, font: str = BODY, color: str = "text", math: MathHost | None = None) -> None:
        self._line: Line | None = line
        self._font = font
        self._color = color
        self._flow: Flow | None = None
        self._shown: Flow | None = None
        self.is_right_to_left = False
        self._math = math
        self._formulas: InlineFormulas | None = None

    def line(self) -> Line:
        """The text and its styles."""
        return self._line or Line("")

    def font(self, look: Look) -> QFont:
        """The font at this zoom."""
        fonts = {BODY: look.body, SMALL: look.small, STRONG: look.strong}
        return fonts[self._font]

    def length(self) -> int:
        """About how many characters it has."""
        return len(self.line().text)

    def estimate(self, width: int, look: Look) -> int:
        """As if all characters were of average width."""
        per_line = max(8, int(width / look.advance))
        return (1 + self.length() // per_line) * look.line_of(self.font(look))

    def lay(self, width: int, look: Look) -> int:
        """Break into lines."""
        font = self.font(look)
        line = self.line()
        objects = None
        if OBJECT in line.text:
            self._formulas = self._formulas or InlineFormulas(self._math, self.outgrown)
            objects = self._formulas.objects(line, font, look, width, self._color)
        flow = Flow(line, font, look, width, look.line_of(font), objects=objects)
        self.dirty_from = flow.dirty_from(self._shown) if self._shown else 0
        self._flow, self._shown, self.laid = flow, None, True
        self.is_right_to_left = flow.is_right_to_left
        return flow.height

    def first_line(self, look: Look) -> QRect:
        """Where a marker beside the first line stands: formulas may have moved that line down."""
        middle = self._flow.first_middle if self._flow else look.line / 2
        return QRect(0, round(middle - look.line / 2), 0, look.line)

    def forget(self) -> None:
        """Keep the text alone."""
        self._flow, self._shown, self.laid = None, None, False

    def outgrown(self) -> None:
        """The text changed: lay out again, but remember what stands on the screen."""
        self._shown, self._flow, self.laid = self._flow or self._shown, None, False

    def paint(self, brush: Brush) -> None:
        """The lines inside the clip."""
        if self._flow:
            line, clip, selection = self._flow.line, QRectF(brush.clip), brush.selection
            if selection and OBJECT in line.text:
                selection = line.from_plain(selection[0]), line.from_plain(selection[1])
            self._flow.draw(brush.painter, brush.look, QPointF(0, 0), self._color, selection, clip)

    def plain(self) -> str:
        """Without markup."""
        return self.line().plain()

    def offset_at(self, point: QPoint) -> int:
        """The nearest place."""
        return self._flow.line.to_plain(self._flow.offset_at(point.x(), point.y())) if self._flow else 0

    def paragraph_at(self, offset: int) -> Span:
        """The line of the person's own breaks around a place."""
        del offset
        return (0, units(self.plain()))

    def link_at(self, point: QPoint) -> str:
        """The target under a point."""
        return self._flow.link_at(point.x(), point.y()) if self._flow else ""

    def tip_at(self, point: QPoint) -> str:
        """Where a link really leads, or the source of a formula and why it is not drawn."""
        if link := self.link_at(point):
            return tip_of(link)
        return self._formulas.tip_at(self._flow, point) if self._formulas and self._flow else ""

    def natural_width(self) -> int:
        """The longest line."""
        return int(self._flow.width) + 1 if self._flow else 0


class LeafText(TextBlock):
    """A paragraph or heading of Markdown; its inline text is read when it is first needed."""

    def __init__(
        self,
        leaf: Leaf,
        references: References,
        color: str = "text",
        font: str = BODY,
        math: MathHost | None = None,
    ) -> None:
        super().__init__(Line(""), font, color, math)
        self._line = None
        self.leaf = leaf
        self._references = references

    def line(self) -> Line:
        """Read once."""
        if self._line is None:
            self._line = inline(self.leaf.text, self._references)
        return self._line

    def length(self) -> int:
        """Of the source, which is known without reading it."""
        return len(self.leaf.text)

    def font(self, look: Look) -> QFont:
        """Headings have their own."""
        return look.heading(self.leaf.level) if self.leaf.kind == "heading" else super().font(look)

    def become(self, leaf: Leaf) -> None:
        """The same paragraph, longer."""
        self.leaf, self._line = leaf, None
        self.outgrown()

    def redefine(self) -> bool:
        """A link definition arrived: read again, if this text could use one."""
        if "]" not in self.leaf.text:
            return False
        self._line = None
        self.forget()
        return True
