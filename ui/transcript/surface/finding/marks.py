"""What of the found is on the screen, and how it is marked."""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from PySide6.QtCore import QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from ui.transcript.blocks.block import Span
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.look import Look
from ui.transcript.rows.row import Row, Selection
from ui.transcript.surface.finding.near import Near
from ui.transcript.surface.finding.needle import Needle
from ui.transcript.surface.finding.texts import Stretch, text_of
from ui.transcript.surface.places import boxes_in

_REMEMBERED = 100
"""Texts whose matches are remembered: more than a screen shows."""

_FEW = 30
"""Matches in a stretch of text that need no look at which of them are seen."""

_FAR = 1 << 20
"""Pixels: to the left and to the right of every line, so that the nearest place is one of its ends."""

_ALL: Span = (0, 1 << 28)
"""Units: longer than any text, so that its length need not be known."""


class Marks:
    """Of one needle. What has been looked at is remembered as long as its text is the same."""

    def __init__(self, needle: Needle) -> None:
        self._needle = needle
        self._near = Near(needle)
        self._known: OrderedDict[tuple[str, int, int], tuple[str, list[Span]]] = OrderedDict()

    def forget(self, item_id: str) -> None:
        """An item changed."""
        self._near.forget(item_id)

    def in_row(self, row: Row, clip: QRect) -> Iterator[list[Selection]]:
        """The matches in a part of a row, stretch by stretch; some of them may stand a little outside."""
        if not row.blocks:
            return
        for stretch in self._near.stretches(row, clip):
            spans, found = self._spans(row, stretch), list[Span]()
            at = 0
            for first, end in _seen(row, stretch, clip, len(spans)):
                at = max(at, bisect_left(spans, (first, 0)) - 1)
                while at < len(spans) and spans[at][0] <= end:
                    found.append(spans[at])
                    at += 1
            if found:
                yield [stretch.selection(*span) for span in found]

    def _spans(self, row: Row, stretch: Stretch) -> list[Span]:
        key = (row.item.id, stretch.first, stretch.starts[0])
        text, spans = self._known.get(key, ("", []))
        if text != stretch.text:
            spans = self._needle.spans(stretch.text)
            self._known[key] = stretch.text, spans
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return spans


def _seen(row: Row, stretch: Stretch, clip: QRect, count: int) -> Sequence[Span]:
    """The parts of a stretch in a part of a row; for a few matches it does not matter."""
    block, box = row.blocks[stretch.first], row.block_box(stretch.first)
    if count < _FEW:
        return [_ALL] if count else []
    if isinstance(block, CodeBlock) and block.laid:
        start = stretch.starts[0]
        return [(start + first, start + end) for first, end in block.seen(clip.translated(-box.topLeft()))]
    last = min(row.block_at(clip.bottom()), stretch.first + len(stretch.starts) - 1)
    found: list[Span] = []
    for index in range(max(row.block_at(clip.top()), stretch.first), last + 1):
        start = stretch.starts[index - stretch.first]
        found += [(start + first, start + end) for first, end in _seen_of(row, index, clip)]
    return found


def _seen_of(row: Row, index: int, clip: QRect) -> Sequence[Span]:
    """The part of a block's text in a part of a row."""
    block, box = row.blocks[index], row.block_box(index)
    if not block.laid:
        return [_ALL]
    corners = (QPoint(x, y - box.top()) for y in (clip.top(), clip.bottom()) for x in (-_FAR, _FAR))
    ends = [block.offset_at(corner) for corner in corners]
    first, last = min(ends), max(ends)
    if isinstance(block, TableBlock) and not text_of(block).isascii():
        # The corners lie in two cells, and what is written from right to left begins at the right of its cell.
        return [(block.paragraph_at(first)[0], block.paragraph_at(last)[1])]
    return [(first, last)]


def paint_marks(
    painter: QPainter,
    look: Look,
    row: Row,
    clip: QRect,
    marks: Iterator[list[Selection]],
    current: Selection | None,
) -> None:
    """The painter stands at the row's origin. Letters keep their colours: the marker's colour goes behind them."""
    area = QRectF(clip)
    painter.save()
    for places in marks:
        others = [box for place, boxes in apart(row, places) if place != current for box in boxes]
        _paint(painter, look, [box for box in others if box.intersects(area)], is_current=False)
    if current:
        _paint(painter, look, [box for box in boxes_in(row, current) if box.intersects(area)], is_current=True)
    painter.restore()


def apart(row: Row, places: Sequence[Selection]) -> Iterator[tuple[Selection, list[QRectF]]]:
    """Those that cover something of their own, and what that is.

    What has no boxes of its own, as a formula, is covered as a whole, however often it matches: it is asked only once.
    """
    ends = [(0, len(places) - 1)] if places else []
    known: dict[int, list[QRectF]] = {}
    where: dict[int, QRectF] = {}
    while ends:
        first, last = ends.pop()
        for at in (first, last):
            if at not in known:
                known[at] = _boxes_of(row, places[at], where)
        if first == last or known[first] == known[last]:
            yield places[first], known[first]
        else:
            middle = (first + last) // 2
            ends += [(middle + 1, last), (first, middle)]


def _boxes_of(row: Row, place: Selection, where: dict[int, QRectF]) -> list[QRectF]:
    """What a match covers; `where` keeps the boxes of the blocks, of which thousands of matches stand in one."""
    (index, start), (last, end) = place
    if index != last or not row.blocks[index].laid:
        return list(boxes_in(row, place))
    if index not in where:
        where[index] = QRectF(row.block_box(index))
    box = where[index]
    found = row.blocks[index].boxes(start, end) or [QRectF(0, 0, box.width(), box.height())]
    return [each.translated(box.topLeft()) for each in found]


def _paint(painter: QPainter, look: Look, boxes: Sequence[QRectF], *, is_current: bool) -> None:
    mode = QPainter.CompositionMode
    painter.setCompositionMode(mode.CompositionMode_Lighten if look.theme.is_dark else mode.CompositionMode_Darken)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(look.color("current_match" if is_current else "match"))
    for box in boxes:
        painter.drawRoundedRect(box, 3, 3)
    _outline(painter, look, boxes, is_current=is_current)


def _outline(painter: QPainter, look: Look, boxes: Sequence[QRectF], *, is_current: bool) -> None:
    color = QColor(look.color("warning"))
    color.setAlphaF(1 if is_current else 0.35)
    painter.setPen(QPen(color, look.px(2) if is_current else 1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    out = 0 if is_current else 0.5
    for box in boxes:
        painter.drawRoundedRect(box.adjusted(-out, 0, out, 0), 3, 3)
