"""What of the found is on the screen, and how it is marked."""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from PySide6.QtCore import QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from ui.transcript.blocks.block import Span
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.look import Look
from ui.transcript.rows.row import Row, Selection
from ui.transcript.surface.finding.needle import Needle
from ui.transcript.surface.finding.texts import Stretch, first_piece, stretches
from ui.transcript.surface.places import boxes_in

_REMEMBERED = 300
"""Stretches of text whose matches are remembered: more than a screen shows."""

_FEW = 30
"""Matches in a stretch of text that need no look at which of them are seen."""

_FAR = 1 << 20
_ALL: Span = (0, _FAR << 8)


class Marks:
    """Of one needle. What has been looked at is remembered as long as its text is the same."""

    def __init__(self, needle: Needle) -> None:
        self._needle = needle
        self._known: OrderedDict[tuple[str, int], tuple[str, list[Span]]] = OrderedDict()

    def in_row(self, row: Row, clip: QRect) -> Iterator[list[Selection]]:
        """The matches in a part of a row, stretch by stretch; some of them may stand a little outside."""
        if not row.blocks:
            return
        index = first_piece(row, row.block_at(clip.top()))
        last = row.block_at(clip.bottom())
        for stretch in stretches(row, index):
            if stretch.first > last:
                return
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
        key = (row.item.id, stretch.first)
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
    if count < _FEW or len(stretch.starts) > 1 or not block.laid:
        return [_ALL] if count else []
    if isinstance(block, CodeBlock):
        return block.seen(clip.translated(-box.topLeft()))
    corners = (QPoint(x, y - box.top()) for y in (clip.top(), clip.bottom()) for x in (-_FAR, _FAR))
    ends = [block.offset_at(corner) for corner in corners]
    return [(min(ends), max(ends))]


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
    while ends:
        first, last = ends.pop()
        for at in (first, last):
            if at not in known:
                known[at] = list(boxes_in(row, places[at]))
        if first == last or known[first] == known[last]:
            yield places[first], known[first]
        else:
            middle = (first + last) // 2
            ends += [(middle + 1, last), (first, middle)]


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
