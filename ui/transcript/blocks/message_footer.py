"""The quiet line below a message: what can be done with it, and the way to its other versions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QFontMetricsF

from ui.style.text import native_shortcut
from ui.transcript.blocks.block import Block, Control, PaintContext
from ui.transcript.blocks.buttons import paint_focus_ring
from ui.transcript.style import RenderStyle

FOOTER_HEIGHT = 26
"""Pixels at 100 %."""

_ICON = 15
_REFUSED_OPACITY = 0.4


@dataclass(frozen=True, slots=True)
class MessageCommand:
    """Something that can be done with a message. `keys` work while the message has the focus.

    `refusal` says why it cannot be done now. Permanent ones are visible without pointer and focus. `accessible_name`
    is for assistive technology: it also says to what kind of message the button belongs. Destructive ones are last in
    menus.
    """

    name: str
    run: Callable[[], None]
    icon: str = ""
    keys: str = ""
    refusal: str = ""
    is_permanent: bool = False
    accessible_name: str = ""
    is_destructive: bool = False

    @property
    def tooltip(self) -> str:
        """The name, the keys, and why it cannot be done now."""
        keys = f" ({native_shortcut(self.keys)})" if self.keys else ""
        return "\n".join(filter(None, (f"{self.name}{keys}", self.refusal)))


FooterPart = MessageCommand | str
"""A button, which shows its icon or else its name; or a text that is always visible."""


class MessageFooter(Block):
    """Buttons and texts at the left and the right end of one line, which is as wide as the row.

    `is_shown`: all of them are visible, not only the permanent ones. `subject` is how the message begins.
    """

    fixed_height = FOOTER_HEIGHT
    spans_row = True

    def __init__(self, leading: Sequence[FooterPart], trailing: Sequence[FooterPart], subject: str) -> None:
        self.is_shown = False
        self._subject = subject
        self.group_name = " ".join(part for part in (*leading, *trailing) if isinstance(part, str))
        self._leading, self._trailing = leading, trailing
        self._placed: list[tuple[FooterPart, QRect]] = []

    def layout(self, width: int, style: RenderStyle) -> int:
        """Place the parts; the outermost icons are in line with the edges of the text.

        Parts without room on one line continue on the next one.
        """
        self.is_laid_out, self._placed = True, []
        height, overhang = style.px(FOOTER_HEIGHT), style.px(6)
        room = width + 2 * overhang
        leading, trailing = (_lines_of(parts, room, style) for parts in (self._leading, self._trailing))
        y = 0
        for line in leading:
            self._place(line, -overhang, y, height)
            y += height
        is_beside = len(leading) == 1 and len(trailing) == 1 and _width_of_line(leading[0] + trailing[0]) <= room
        y -= height if is_beside else 0
        for line in trailing:
            self._place(line, width + overhang - _width_of_line(line), y, height)
            y += height
        return y

    def _place(self, line: "_Line", x: int, y: int, height: int) -> None:
        for part, part_width in line:
            self._placed.append((part, QRect(x, y, part_width, height)))
            x += part_width

    def paint(self, context: PaintContext) -> None:
        for part, box in self._placed:
            if isinstance(part, str):
                context.style.draw_text(context.painter, box, part, "muted", align=Qt.AlignmentFlag.AlignCenter)
            elif self.is_shown or part.is_permanent or context.focused == part.name:
                _paint_button(context, part, box)

    def controls(self) -> Sequence[Control]:
        """Return the buttons, also those that are not visible now: keyboard and assistive technology reach them."""
        return [
            Control(part.name, box, part.run, refusal=part.refusal, accessible_name=part.accessible_name)
            for part, box in self._placed
            if isinstance(part, MessageCommand)
        ]

    def tooltip_at(self, point: QPoint) -> str:
        """Return what the button under the point does, and why it cannot be pressed."""
        buttons = (part for part, box in self._placed if isinstance(part, MessageCommand) and box.contains(point))
        return next((button.tooltip for button in buttons), "")


_Line = list[tuple[FooterPart, int]]
"""Parts side by side, with their widths."""


def _lines_of(parts: Sequence[FooterPart], room: int, style: RenderStyle) -> list[_Line]:
    lines: list[_Line] = []
    for part in parts:
        part_width = _width_of(part, style)
        if not lines or _width_of_line(lines[-1]) + part_width > room:
            lines.append([])
        lines[-1].append((part, part_width))
    return lines


def _width_of_line(line: _Line) -> int:
    return sum(part_width for _, part_width in line)


def _width_of(part: FooterPart, style: RenderStyle) -> int:
    if isinstance(part, str):
        return int(QFontMetricsF(style.small).horizontalAdvance(part)) + style.px(4)
    if part.icon:
        return style.px(_ICON + 13)
    return int(QFontMetricsF(style.small).horizontalAdvance(part.name)) + style.px(13)


def _paint_button(context: PaintContext, button: MessageCommand, box: QRect) -> None:
    painter, style = context.painter, context.style
    is_hovered = context.hovered == button.name and not button.refusal
    if is_hovered:
        style.paint_box(painter, box.adjusted(0, 1, 0, -1), 6, "hover")
    color = "text" if is_hovered else "muted"
    painter.setOpacity(_REFUSED_OPACITY if button.refusal else 1)
    if button.icon:
        size = style.px(_ICON)
        corner = box.center() - QPoint(size // 2, size // 2) + QPoint(0, 1)
        painter.drawPixmap(corner, style.icon(button.icon, color, _ICON, context.ratio))
    else:
        style.draw_text(painter, box, button.name, color, align=Qt.AlignmentFlag.AlignCenter)
    painter.setOpacity(1)
    if context.focused == button.name:
        paint_focus_ring(painter, style, box)
