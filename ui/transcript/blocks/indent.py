"""Lists and quotes around a block: their indent, their markers, their bars."""

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QFontMetricsF, QPainter

from ui.transcript.blocks.block import Block
from ui.transcript.look import Look
from ui.transcript.markdown.leaves import Inside

_QUOTE, _ITEM = 16, 24


def indent_of(inside: tuple[Inside, ...], look: Look) -> int:
    """Pixels to the left of the block."""
    return sum(look.px(_QUOTE if each.kind == "quote" else _ITEM) for each in inside)


def paint_inside(painter: QPainter, look: Look, block: Block, previous: Block | None, box: QRect) -> None:
    """Bars and markers. The painter stands at the block's origin."""
    x = -indent_of(block.inside, look)
    before = previous.inside if previous else ()
    for depth, each in enumerate(block.inside):
        if each.kind == "quote":
            goes_on = len(before) > depth and before[depth].kind == "quote"
            top = -block.gap if goes_on else 0
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.color("border"))
            painter.drawRect(QRect(x + look.px(2), top, look.px(3), box.height() - top))
            x += look.px(_QUOTE)
        else:
            wide = look.px(_ITEM)
            if each.marker:
                _paint_marker(painter, look, each.marker, QRect(x, -1, wide, look.line))
            x += wide


def _paint_marker(painter: QPainter, look: Look, marker: str, box: QRect) -> None:
    if marker in "☐☑":
        _paint_box(painter, look, box, ticked=marker == "☑")
        return
    painter.setFont(look.body)
    painter.setPen(look.color("muted"))
    # Long numbers reach into the margin rather than into the text.
    needed = int(QFontMetricsF(look.body).horizontalAdvance(marker)) + look.px(7)
    left = min(box.left() + (look.px(8) if marker in "•◦▪" else 0), box.right() - needed + 1)
    painter.drawText(QRect(left, box.top(), needed, box.height()), Qt.AlignmentFlag.AlignVCenter, marker)


def _paint_box(painter: QPainter, look: Look, box: QRect, *, ticked: bool) -> None:
    size = look.px(14)
    frame = QRect(box.left() + look.px(3), box.top() + 1 + (box.height() - size) // 2, size, size)
    painter.setPen(look.color("accent" if ticked else "muted"))
    painter.setBrush(look.color("accent") if ticked else Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(frame, 3, 3)
    if ticked:
        ratio = painter.device().devicePixelRatio()
        painter.drawPixmap(frame.adjusted(1, 1, 0, 0).topLeft(), look.icon("check", "on_accent", 13, ratio))
