"""Lists, quotes and footnotes around a block: their indent, their markers, their bars."""

from PySide6.QtCore import QPointF, QRect, Qt
from PySide6.QtGui import QFontMetricsF, QPainter

from ui.transcript.blocks.block import Block
from ui.transcript.blocks.text_block import TextBlock
from ui.transcript.look import RenderStyle
from ui.transcript.markdown.leaves import Container

_QUOTE, _ITEM = 16, 24
_BULLETS = "•◦▪"


def indent_width(containers: tuple[Container, ...], style: RenderStyle) -> int:
    """Pixels beside the block, on the side where its text begins."""
    return sum(style.px(_QUOTE if each.kind == "quote" else _ITEM) for each in containers)


def is_right_to_left_block(block: Block) -> bool:
    """Whether a block is written from right to left, so that its markers and bars stand at its right."""
    return bool(block.containers) and isinstance(block, TextBlock) and block.is_right_to_left


def paint_containers(painter: QPainter, style: RenderStyle, block: Block, previous: Block | None, box: QRect) -> None:
    """Bars and markers. The painter stands at the block's origin; `box` is where the block stands in its row."""
    turned = is_right_to_left_block(block)
    before = previous.containers if previous and is_right_to_left_block(previous) == turned else ()
    at = indent_width(block.containers, style)
    for depth, each in enumerate(block.containers):
        wide = style.px(_QUOTE if each.kind == "quote" else _ITEM)
        x = box.width() + at - wide if turned else -at
        if each.kind == "quote":
            goes_on = len(before) > depth and before[depth].kind == "quote"
            top = -block.gap if goes_on else 0
            bar = x + wide - style.px(5) if turned else x + style.px(2)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(style.color("border"))
            painter.drawRect(QRect(bar, top, style.px(3), box.height() - top))
        elif each.marker:
            line = block.first_line(style) if isinstance(block, TextBlock) else QRect(0, 0, 0, style.line)
            room = QRect(x, line.top() - 1, wide, line.height())
            baseline = block.first_baseline(style) if isinstance(block, TextBlock) else None
            _paint_marker(painter, style, each, room, baseline, turned=turned)
        at -= wide


def _paint_marker(
    painter: QPainter, style: RenderStyle, containers: Container, room: QRect, baseline: float | None, *, turned: bool
) -> None:
    marker = containers.marker
    if containers.kind == "item" and marker in "☐☑":
        _paint_check_box(painter, style, room, ticked=marker == "☑", turned=turned)
        return
    # Long numbers reach into the margin rather than into the text.
    font = style.small if containers.kind == "footnote" else style.body
    metrics = QFontMetricsF(font)
    if containers.kind == "footnote":
        marker = metrics.elidedText(marker, Qt.TextElideMode.ElideRight, room.width() + style.px(10))
    gap = style.px(8 if marker in _BULLETS else 0)
    needed = int(metrics.horizontalAdvance(marker)) + style.px(7)
    left = min(room.left() + gap, room.right() - needed + 1)
    if turned:
        marker = _mirrored(marker)
        left = max(room.right() - gap + 1, room.left() + needed) - metrics.horizontalAdvance(marker)
    if baseline is None:
        baseline = room.top() + (room.height() - metrics.height()) / 2 + metrics.ascent()
    painter.setFont(font)
    painter.setPen(style.color("muted"))
    # On the very line of the letters beside it: a box that is centred rounds differently.
    painter.drawText(QPointF(left, baseline), marker)


def _mirrored(marker: str) -> str:
    """A number with its sign on the other side: `1.` is `.1` where text runs from right to left."""
    number = marker.rstrip(".)")
    return marker[len(number) :].replace(")", "(") + number if number.isdigit() else marker


def _paint_check_box(painter: QPainter, style: RenderStyle, room: QRect, *, ticked: bool, turned: bool) -> None:
    size = style.px(14)
    left = room.right() - style.px(3) - size if turned else room.left() + style.px(3)
    frame = QRect(left, room.top() + 1 + (room.height() - size) // 2, size, size)
    painter.setPen(style.color("accent" if ticked else "muted"))
    painter.setBrush(style.color("accent") if ticked else Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(frame, 3, 3)
    if ticked:
        ratio = painter.device().devicePixelRatio()
        painter.drawPixmap(frame.adjusted(1, 1, 0, 0).topLeft(), style.icon("check", "on_accent", 13, ratio))
