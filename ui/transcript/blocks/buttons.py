"""Painted buttons: their measures, their looks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from ui.transcript.blocks.block import Block, Control, PaintContext
from ui.transcript.look import RenderStyle


@dataclass(frozen=True, slots=True)
class Button:
    """What a button says and does. A primary one is what the person most likely wants."""

    text: str
    press: Callable[[], None]
    primary: bool = False
    icon: str = ""


def paint_flat_button(context: PaintContext, control: Control, text: str, icon: str = "") -> None:
    """A button without a frame until the pointer or the keyboard is on it."""
    painter, style, box = context.painter, context.style, control.box
    if context.hovered == control.name:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(style.color("hover"))
        painter.drawRoundedRect(box, 5, 5)
    color = "text" if context.hovered == control.name else "muted"
    x = box.left() + style.px(6)
    if icon:
        size = style.px(14)
        painter.drawPixmap(x, box.center().y() - size // 2 + 1, style.icon(icon, color, 14, context.ratio))
        x += size + style.px(4)
    painter.setPen(style.color(color))
    painter.setFont(style.small)
    painter.drawText(QRect(x, box.top(), box.right() - x, box.height()), Qt.AlignmentFlag.AlignVCenter, text)
    if context.focused == control.name:
        paint_focus_ring(painter, style, box)


def flat_button_width(style: RenderStyle, text: str, *, icon: bool = False) -> int:
    """How wide such a button must be."""
    width = QFontMetricsF(style.small).horizontalAdvance(text) + style.px(13)
    return int(width) + (style.px(18) if icon else 0)


def paint_focus_ring(painter: QPainter, style: RenderStyle, box: QRect) -> None:
    """Where the keyboard is."""
    painter.setPen(QPen(style.color("accent"), 2))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(QRectF(box).adjusted(1, 1, -1, -1), 6, 6)


def paint_framed_button(context: PaintContext, control: Control, text: str, *, primary: bool = False) -> None:
    """A button in a frame; a primary one is filled."""
    painter, style = context.painter, context.style
    hovered = context.hovered == control.name
    fill = "accent" if primary else "hover" if hovered else "window"
    painter.setPen(style.color("accent" if primary else "border"))
    painter.setBrush(style.color(fill))
    painter.setOpacity(0.88 if primary and hovered else 1)
    painter.drawRoundedRect(QRectF(control.box).adjusted(0.5, 0.5, -0.5, -0.5), 7, 7)
    painter.setOpacity(1)
    painter.setPen(style.color("on_accent" if primary else "text"))
    painter.setFont(style.small)
    painter.drawText(control.box, Qt.AlignmentFlag.AlignCenter, text)
    if context.focused == control.name:
        paint_focus_ring(painter, style, control.box.adjusted(-2, -2, 2, 2))


def framed_button_width(style: RenderStyle, text: str) -> int:
    """How wide such a button must be."""
    return int(QFontMetricsF(style.small).horizontalAdvance(text)) + style.px(24)


class ButtonRowBlock(Block):
    """A row of framed buttons."""

    def __init__(self, buttons: Sequence[Button]) -> None:
        self._buttons = buttons
        self._controls: list[Control] = []

    def estimate(self, width: int, style: RenderStyle) -> int:
        """One line of them."""
        del width
        return style.px(30)

    def layout(self, width: int, style: RenderStyle) -> int:
        """Side by side, on more lines when the column is narrow."""
        self._controls, self.is_laid_out = [], True
        x, y, height = 0, 0, style.px(30)
        for button in self._buttons:
            needed = framed_button_width(style, button.text)
            if x and x + needed > width:
                x, y = 0, y + height + style.px(6)
            self._controls.append(Control(button.text, QRect(x, y, needed, height), button.press))
            x += needed + style.px(8)
        return y + height

    def paint(self, context: PaintContext) -> None:
        """The primary one is filled."""
        for button, control in zip(self._buttons, self._controls, strict=True):
            paint_framed_button(context, control, button.text, primary=button.primary)

    def controls(self) -> Sequence[Control]:
        """The buttons."""
        return self._controls
