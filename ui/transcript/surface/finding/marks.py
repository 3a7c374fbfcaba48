"""What of the found is on the screen, and how it is marked."""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator

from PySide6.QtCore import QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from ui.transcript.blocks.block import Span
from ui.transcript.look import Look
from ui.transcript.rows.row import Row, Selection
from ui.transcript.surface.finding.needle import Needle
from ui.transcript.surface.finding.texts import Stretch, first_piece, stretches
from ui.transcript.surface.places import boxes_in

_REMEMBERED = 300
"""Stretches of text whose matches are remembered: more than a screen shows."""

_FAR = 1 << 20


class Marks:
    """Of one needle. What has been looked at is remembered as long as its text is the same."""

    def __init__(self, needle: Needle) -> None:
        self._needle = needle
        self._known: OrderedDict[tuple[str, int], tuple[str, list[Span]]] = OrderedDict()

    def in_row(self, row: Row, top: int, bottom: int) -> Iterator[Selection]:
        """The matches between two y of a row; some of them may stand a little outside."""
        if not row.blocks:
            return
        index = first_piece(row, row.block_at(top))
        last = row.block_at(bottom)
        for stretch in stretches(row, index):
            if stretch.first > last:
                return
            spans = self._spans(row, stretch)
            first, end = _seen(row, stretch, top, bottom)
            at = max(0, bisect_left(spans, (first, 0)) - 1)
            while at < len(spans) and spans[at][0] <= end:
                yield stretch.selection(*spans[at])
                at += 1

    def _spans(self, row: Row, stretch: Stretch) -> list[Span]:
        key = (row.item.id, stretch.first)
        text, spans = self._known.get(key, ("", []))
        if text != stretch.text:
            spans = self._needle.spans(stretch.text)
            self._known[key] = stretch.text, spans
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return spans


def _seen(row: Row, stretch: Stretch, top: int, bottom: int) -> Span:
    """The part of a stretch between two y of a row. Only code and tables are long enough for that to matter."""
    if len(stretch.starts) > 1:
        return 0, _FAR << 8
    block, box = row.blocks[stretch.first], row.block_box(stretch.first)
    if not block.laid or box.height() < 2 * (bottom - top):
        return 0, _FAR << 8
    ends = [block.offset_at(QPoint(x, y - box.top())) for y in (top, bottom) for x in (-_FAR, _FAR)]
    return min(ends), max(ends)


def paint_marks(
    painter: QPainter, look: Look, row: Row, clip: QRect, marks: Iterator[Selection], current: Selection | None
) -> None:
    """The painter stands at the row's origin. Letters keep their colours: the marker's colour goes behind them."""
    mode = QPainter.CompositionMode
    behind = mode.CompositionMode_Lighten if look.theme.is_dark else mode.CompositionMode_Darken
    area = QRectF(clip)
    painter.setPen(Qt.PenStyle.NoPen)
    before = QRectF()
    for selection in marks:
        is_current = selection == current
        for box in boxes_in(row, selection):
            # What has no boxes of its own, as a formula, is marked as a whole: once, however often it matches.
            is_new, before = is_current or box != before, box
            if is_new and box.intersects(area):
                painter.setCompositionMode(behind)
                painter.setBrush(look.color("current_match" if is_current else "match"))
                painter.drawRoundedRect(box, 3, 3)
                _outline(painter, look, box, is_current=is_current)
    painter.setCompositionMode(mode.CompositionMode_SourceOver)


def _outline(painter: QPainter, look: Look, box: QRectF, *, is_current: bool) -> None:
    color = QColor(look.color("warning"))
    color.setAlphaF(1 if is_current else 0.35)
    painter.setPen(QPen(color, look.px(2) if is_current else 1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    out = 0 if is_current else 0.5
    painter.drawRoundedRect(box.adjusted(-out, 0, out, 0), 3, 3)
    painter.setPen(Qt.PenStyle.NoPen)
