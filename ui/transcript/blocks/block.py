"""The interface of all blocks of a row (layout, painting, text, selection), and the joined text of several blocks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect, QRectF
from PySide6.QtGui import QPainter

from ui.transcript.markdown.elements import Container
from ui.transcript.markdown.inline import LINE_BREAK, Line
from ui.transcript.markdown.serializer import line_to_html, line_to_markdown
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle

TextRange = tuple[int, int]
"""Start and end in the text of a block, in UTF-16 units."""

WHOLE_TEXT: TextRange = (0, 1 << 30)


@dataclass(frozen=True, slots=True)
class Control:
    """A button or link of a block. `name` is unique in the block, `box` in the block's coordinates.

    `refusal` says why it is disabled. `accessible_name` replaces the name for assistive technology, where buttons of
    other kinds have the same name.
    """

    name: str
    box: QRect
    press: Callable[[], None]
    is_link: bool = False
    refusal: str = ""
    accessible_name: str = ""


@dataclass(frozen=True, slots=True)
class MenuAction:
    """An entry that a block adds to the context menu."""

    label: str
    callback: Callable[[], None]


@dataclass(slots=True)
class PaintContext:
    """One painting of one block. The origin of the painter is that of the block."""

    painter: QPainter
    style: RenderStyle
    clip: QRect
    selection: TextRange | None = None
    hovered: str = ""
    focused: str = ""
    is_quiet: bool = False
    """Neither the pointer nor the focus is in this row: the buttons of its parts are not painted."""

    @property
    def ratio(self) -> float:
        return self.painter.device().devicePixelRatio()


class Block:
    """A part of a row. It is laid out when it comes near the viewport and drops its layout when it leaves."""

    gap = 0
    """The space above it in pixels."""
    scalable_gap: tuple[float, bool] | None = None
    """The same at 100 %, and whether a compact view keeps it."""
    containers: tuple[Container, ...] = ()
    is_laid_out = False
    tight = False
    starts = True
    """As in the Leaf that it displays."""
    separator: str | None = None
    """The text between this block and the one before it, if both are pieces of one paragraph."""
    dirty_from = 0
    """The y from which it must be repainted after a change of its own."""
    fixed_height = 0
    """The height in pixels at 100 % of a block whose height is always the same."""
    spans_row = False
    """Whether it is as wide as the row, whatever the margins at its sides."""
    group_name = ""
    """Its name for assistive technology, where it has buttons and no text of its own."""
    _controls: Sequence[Control] = ()
    _subject = ""

    def set_gap(self, style: RenderStyle, pixels: float, *, is_fixed: bool = False) -> None:
        """Set the space above it, in pixels at 100 %. A compact view makes it smaller unless it is fixed."""
        self.scalable_gap = pixels, is_fixed
        self.rescale_gap(style)

    def rescale_gap(self, style: RenderStyle) -> None:
        """Scale the space above it to a style."""
        if self.scalable_gap:
            pixels, is_fixed = self.scalable_gap
            self.gap = style.px(pixels) if is_fixed else style.gap(pixels)

    def take_gap(self, block: "Block") -> None:
        """Move the space above another block to this one."""
        self.gap, self.scalable_gap = block.gap, block.scalable_gap
        block.gap, block.scalable_gap = 0, None

    def estimate(self, width: int, style: RenderStyle) -> int:
        """Return a quick estimate of the height."""
        del width
        return style.px(self.fixed_height)

    def layout(self, width: int, style: RenderStyle) -> int:
        """Lay out the block and return its height in pixels."""
        raise NotImplementedError

    def forget(self) -> None:
        """Drop the layout."""
        self.is_laid_out = False

    def paint(self, context: PaintContext) -> None:
        """Paint what is inside the clip. Requires a layout."""
        raise NotImplementedError

    def subject(self) -> str:
        """Return what its buttons are about, in a few words: assistive technology reads it after their names."""
        return self._subject

    def plain(self) -> str:
        """Return the text to copy, which may be empty."""
        return ""

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """Return a part of the text as Markdown, without its containers. Offsets are those of plain()."""
        return line_to_markdown(Line(self.plain().replace("\n", LINE_BREAK)), start, end)

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """Return a part of the text as an HTML element."""
        return f"<p>{line_to_html(Line(self.plain().replace(chr(10), LINE_BREAK)), start, end)}</p>"

    def markdown_prefix(self) -> str:
        """Return what must precede a part of it in Markdown for the part to keep its meaning."""
        return ""

    def spoken_text(self) -> str:
        """Return the text as assistive technology reads it."""
        return self.plain()

    def offset_at(self, point: QPoint) -> int:
        """Return the offset in the text nearest to a point. Requires a layout."""
        del point
        return 0

    def boxes(self, start: int, end: int) -> list[QRectF]:
        """Return what a part of the text covers; nothing if the whole block is selected. Requires a layout."""
        del start, end
        return []

    def caret_rect_at(self, offset: int) -> QRectF | None:
        """Return the caret before the character at an offset, None if there is none. Requires a layout."""
        del offset
        return None

    def caret_stop_at(self, offset: int) -> int:
        """Return the offset, or the next one where a caret may stop."""
        return offset

    def paragraph_at(self, offset: int) -> TextRange:
        """Return the paragraph around an offset, mostly the whole text."""
        del offset
        return 0, utf16_length(self.plain())

    def link_at(self, point: QPoint) -> str:
        """Return the target of the link at a point, or an empty string."""
        del point
        return ""

    def tooltip_at(self, point: QPoint) -> str:
        """Return the tooltip at a point if it says more than is visible."""
        del point
        return ""

    def controls(self) -> Sequence[Control]:
        """Return the buttons and links that can be pressed."""
        return self._controls

    def actions(self, point: QPoint) -> Sequence[MenuAction]:
        """Return the entries of the context menu at a point, besides those that every text has."""
        del point
        return ()

    def natural_width(self) -> int:
        """Return the width of the content if it is less than the available width. Requires a layout."""
        return 1 << 20

    def scroll_horizontally(self, pixels: int) -> bool:
        """Scroll content that is too wide; return whether anything moved."""
        del pixels
        return False


class ItemListBlock(Block):
    """A block of items. A caret stops before and after each item, never inside."""

    def item_texts(self) -> Sequence[str]:
        """Return the text of each item, without line ends."""
        raise NotImplementedError

    def item_rects(self) -> Sequence[QRect]:
        """Return the rectangle of each item in order; several may share one. Requires a layout."""
        raise NotImplementedError

    def plain(self) -> str:
        return "\n".join(self.item_texts())

    def selected_items(self, start: int, end: int) -> list[int]:
        """Return the indexes of the items that overlap a part of the text."""
        return [number for number, (first, last) in enumerate(self._spans()) if start < last and end > first]

    def is_within_item(self, start: int, end: int) -> bool:
        """Return whether a part of the text is less than one item, for example a word selected by a double click."""
        return any(first <= start and end <= last and (start, end) != (first, last) for first, last in self._spans())

    def _spans(self) -> Iterator[TextRange]:
        offset = 0
        for text in self.item_texts():
            size = utf16_length(text)
            yield offset, offset + size
            offset += size + 1

    def offset_at(self, point: QPoint) -> int:
        """Return the offset before or after the nearest item."""
        boxes = self.item_rects()
        if not boxes:
            return 0
        number = min(range(len(boxes)), key=lambda index: (_distance(boxes[index], point), index))
        is_behind = point.x() > boxes[number].center().x()
        if is_behind:
            # The last one of several that share a rectangle.
            number = max(index for index, box in enumerate(boxes) if box == boxes[number])
        return list(self._spans())[number][is_behind]

    def boxes(self, start: int, end: int) -> list[QRectF]:
        rects = self.item_rects()
        touched = [rects[index] for index in self.selected_items(start, end)]
        return [QRectF(box) for index, box in enumerate(touched) if box not in touched[:index]]

    def caret_rect_at(self, offset: int) -> QRectF | None:
        """Return the caret at the left or right edge of an item."""
        for (_, last), box in zip(self._spans(), self.item_rects(), strict=True):
            if offset <= last:
                x = box.right() + 1 if offset == last else box.left()
                return QRectF(x, box.top(), 0, box.height())
        return None

    def caret_stop_at(self, offset: int) -> int:
        edges = [edge for span in self._spans() for edge in span]
        return next((edge for edge in edges if edge >= offset), edges[-1] if edges else 0)

    def paragraph_at(self, offset: int) -> TextRange:
        return next((span for span in self._spans() if offset <= span[1]), WHOLE_TEXT)


def _distance(box: QRect, point: QPoint) -> tuple[int, int]:
    """Return how far a point is from a box, the vertical distance first."""
    above = max(box.top() - point.y(), point.y() - box.bottom(), 0)
    aside = max(box.left() - point.x(), point.x() - box.right(), 0)
    return above, aside


def separator_before(block: Block, before: Block) -> str:
    """Return the text between a block and the one before it."""
    if block.separator is not None:
        return block.separator
    return "\n" if block.containers and before.containers else "\n\n"


def marker_before(block: Block) -> str:
    """Return the list marker before the first line of a block, with a space."""
    return f"{block.containers[-1].marker} " if block.containers and block.containers[-1].marker else ""


def text_parts(blocks: Iterable[Block]) -> Iterator[tuple[int, str, str]]:
    """Yield the index and the text of each block that has text, with the text before it."""
    before: Block | None = None
    is_first = True
    for number, block in enumerate(blocks):
        if text := block.plain():
            separator = separator_before(block, before) if before and not is_first else ""
            yield number, separator + marker_before(block), text
            is_first = False
        before = block


def joined_text(blocks: Iterable[Block]) -> str:
    """Return the joined text of all blocks."""
    return "".join(between + text for _, between, text in text_parts(blocks))


def locate_offset(blocks: Iterable[Block], offset: int) -> tuple[int, int]:
    """Return the index of the block, and the offset in it, for an offset in the joined text."""
    position, end = (0, 0), 0
    for number, prefix, text in text_parts(blocks):
        end += utf16_length(prefix)
        if number and offset < end:
            return position
        size = utf16_length(text)
        position = number, min(max(0, offset - end), size)
        end += size
        if offset <= end:
            break
    return position


@dataclass(frozen=True, slots=True)
class BlockReplacement:
    """The block at index `at` was replaced by `blocks`, or removed if there are none."""

    at: int
    blocks: Sequence[Block]

    def map_position(self, block: int, offset: int = 0) -> tuple[int, int]:
        """Return the block and the offset in its text where an old position is now."""
        if block < self.at:
            return block, offset
        if block > self.at:
            return block + len(self.blocks) - 1, offset
        if not offset or not self.blocks:
            return block, 0
        number, block_offset = locate_offset(self.blocks, offset)
        return block + number, block_offset

    def map_key(self, key: str) -> str:
        """Return the current key of a control."""
        block, _, name = key.partition("/")
        return f"{self.map_position(int(block))[0]}/{name}" if name else key
