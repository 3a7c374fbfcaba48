"""The head of a code block: what it is, and its buttons at the right."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QFontMetricsF

from ui.transcript.blocks.block import Control, PaintContext
from ui.transcript.blocks.buttons import flat_button_width, paint_flat_button
from ui.transcript.look import RenderStyle


@dataclass(frozen=True, slots=True)
class HeaderButton:
    """`name` is for assistive technology, `words` are what is seen. Where there is no room, the least needed go."""

    name: str
    words: str
    press: Callable[[], None]
    icon: str = ""
    priority: int = 3


class CodeHeader:
    """Buttons are placed from the right."""

    def __init__(self) -> None:
        self.controls: list[Control] = []
        self._buttons: Sequence[HeaderButton] = ()
        self._room = 0

    def place_buttons(self, buttons: Sequence[HeaderButton], width: int, style: RenderStyle) -> None:
        """The first one stands at the right end."""
        buttons = list(buttons)
        while len(buttons) > 1 and sum(_button_width(each, style) for each in buttons) > width - style.px(12):
            buttons.remove(min(buttons, key=lambda each: each.priority))
        self._buttons, self.controls = buttons, []
        x = width - style.px(6)
        for button in buttons:
            wide = _button_width(button, style) - style.px(2)
            x -= wide
            self.controls.append(Control(button.name, QRect(x, style.px(5), wide, style.px(24)), button.press))
            x -= style.px(2)
        self._room = x

    def clear(self) -> None:
        """No buttons."""
        self.controls, self._buttons = [], ()

    def paint(self, context: PaintContext, left: int, title: str) -> None:
        """Title and buttons."""
        painter, style = context.painter, context.style
        painter.setPen(style.color("muted"))
        painter.setFont(style.small)
        room = max(0, self._room - left - style.px(4))
        words = QFontMetricsF(style.small).elidedText(title, Qt.TextElideMode.ElideRight, room)
        painter.drawText(QRect(left, style.px(5), room, style.px(24)), Qt.AlignmentFlag.AlignVCenter, words)
        for control, button in zip(self.controls, self._buttons, strict=True):
            paint_flat_button(context, control, button.words, button.icon)


def _button_width(button: HeaderButton, style: RenderStyle) -> int:
    return flat_button_width(style, button.words, icon=bool(button.icon)) + style.px(2)
