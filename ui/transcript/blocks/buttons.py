"""Painted buttons, the header line of foldable blocks, and the button bar of code blocks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter

from ui.style.text import join_names
from ui.transcript.blocks.block import Block, Control, PaintContext
from ui.transcript.style import RenderStyle


@dataclass(frozen=True, slots=True)
class Button:
    """The label and the action of a button; `name` is for assistive technology where the label does not say enough.

    A primary button is what the person most likely wants. Those of low priority are left out where there is no room.
    """

    text: str
    press: Callable[[], None]
    name: str = ""
    icon: str = ""
    primary: bool = False
    priority: int = 3

    def control(self, box: QRect) -> Control:
        """Return the control for the button in this box."""
        return Control(self.name or self.text, box, self.press)


def paint_flat_button(context: PaintContext, control: Control, text: str, icon: str = "") -> None:
    """Paint a button without a frame, except under the pointer or with keyboard focus."""
    painter, style, box = context.painter, context.style, control.box
    if context.hovered == control.name:
        style.paint_box(painter, box, 5, "hover")
    color = "text" if context.hovered == control.name else "muted"
    x = box.left() + style.px(6)
    if icon:
        size = style.px(14)
        painter.drawPixmap(x, box.center().y() - size // 2 + 1, style.icon(icon, color, 14, context.ratio))
        x += size + style.px(4)
    style.draw_text(painter, QRect(x, box.top(), box.right() - x, box.height()), text, color)
    if context.focused == control.name:
        paint_focus_ring(painter, style, box)


def flat_button_width(style: RenderStyle, text: str, *, icon: bool = False) -> int:
    """Return the width of a flat button."""
    width = QFontMetricsF(style.small).horizontalAdvance(text) + style.px(13)
    return int(width) + (style.px(18) if icon else 0)


def paint_focus_ring(painter: QPainter, style: RenderStyle, box: QRect, *, is_quiet: bool = False) -> None:
    """Paint the keyboard focus, or with `is_quiet` a thin frame where it will return."""
    border, width = ("border", 1) if is_quiet else ("accent", 2)
    style.paint_box(painter, QRectF(box).adjusted(1, 1, -1, -1), 6, border=border, width=width)


def paint_framed_button(context: PaintContext, control: Control, text: str, *, primary: bool = False) -> None:
    """Paint a framed button; a primary one is filled."""
    painter, style = context.painter, context.style
    hovered = context.hovered == control.name
    fill = "accent" if primary else "hover" if hovered else "window"
    box = QRectF(control.box).adjusted(0.5, 0.5, -0.5, -0.5)
    painter.setOpacity(0.88 if primary and hovered else 1)
    style.paint_box(painter, box, 7, fill, "accent" if primary else "border")
    painter.setOpacity(1)
    color = "on_accent" if primary else "text"
    style.draw_text(painter, control.box, text, color, align=Qt.AlignmentFlag.AlignCenter)
    if context.focused == control.name:
        paint_focus_ring(painter, style, control.box.adjusted(-2, -2, 2, 2))


def framed_button_width(style: RenderStyle, text: str) -> int:
    """Return the width of a framed button."""
    return int(QFontMetricsF(style.small).horizontalAdvance(text)) + style.px(24)


class ButtonRowBlock(Block):
    """A row of framed buttons."""

    fixed_height = 30

    def __init__(self, buttons: Sequence[Button], subject: str = "") -> None:
        self._subject = subject
        self._buttons = buttons

    def layout(self, width: int, style: RenderStyle) -> int:
        """Place the buttons side by side, on several lines when the column is narrow."""
        self.is_laid_out = True
        self._controls = []
        x, y, height = 0, 0, style.px(30)
        for button in self._buttons:
            button_width = framed_button_width(style, button.text)
            if x and x + button_width > width:
                x, y = 0, y + height + style.px(6)
            self._controls.append(button.control(QRect(x, y, button_width, height)))
            x += button_width + style.px(8)
        return y + height

    def paint(self, context: PaintContext) -> None:
        for button, control in zip(self._buttons, self._controls, strict=True):
            paint_framed_button(context, control, button.text, primary=button.primary)


@dataclass(frozen=True, slots=True)
class Header:
    """The parts of a header line. `state` is at its right in `state_color`, after the `action` button.

    A chevron is shown unless `is_open` is None.
    """

    title: str
    icon: str = ""
    color: str = "muted"
    strong: bool = False
    state: str = ""
    state_icon: str = ""
    state_color: str = "muted"
    is_open: bool | None = None
    control: str = ""
    action: str = ""
    action_icon: str = ""


_LEAST_TITLE = 90
"""Pixels at 100 % zoom that a header keeps for its icons and the beginning of its title."""


class HeaderBlock(Block):
    """A header line that is itself a button, and may contain another one for an action."""

    fixed_height = 26

    def __init__(
        self, head: Header, press: Callable[[], None] | None = None, callback: Callable[[], None] | None = None
    ) -> None:
        self.header = head
        self._on_press = press
        self._act = callback
        self._action: Control | None = None
        self._shows_state_words = True
        self._width = 0
        self._height = 0
        self._style: RenderStyle | None = None

    def set_header(self, head: Header) -> None:
        """Replace the header."""
        if head != self.header:
            self.header, self.is_laid_out = head, False

    def layout(self, width: int, style: RenderStyle) -> int:
        self._width, self._height, self._style, self.is_laid_out = width, style.px(26), style, True
        self._shows_state_words = True
        self._action = self._layout_action(style)
        return self._height

    def natural_width(self) -> int:
        style, head = self._style, self.header
        if style is None or head.action:
            return super().natural_width()
        title = _text_width(style.strong if head.strong else style.small, head.title)
        return (style.px(24) if head.icon else 0) + title + style.px(28) + self._state_width(style)

    def _layout_action(self, style: RenderStyle) -> Control | None:
        head = self.header
        if not head.action or self._act is None:
            return None
        width = flat_button_width(style, head.action, icon=bool(head.action_icon))
        # The words of the state need room beside a few letters of the title; without it the state is its icon alone.
        self._shows_state_words = width + self._state_width(style) + style.px(_LEAST_TITLE) <= self._width
        x = self._width - self._state_width(style) - width
        return Control(head.action, QRect(x, style.px(1), width, self._height - style.px(2)), self._act)

    def _state_width(self, style: RenderStyle) -> int:
        return self._state_words_width(style) + style.px(20) + style.px(8) if self.header.state else 0

    def _state_words_width(self, style: RenderStyle) -> int:
        return _text_width(style.small, self.header.state) if self._shows_state_words else 0

    def paint(self, context: PaintContext) -> None:
        painter, style, head = context.painter, context.style, self.header
        hovered = bool(head.control) and context.hovered == head.control
        color = "text" if hovered else head.color
        x = 0
        if head.icon:
            painter.drawPixmap(x, self._middle(style.px(16)), style.icon(head.icon, color, 16, context.ratio))
            x += style.px(24)
        self._paint_state(context)
        right = self._width - self._state_width(style)
        if self._action is not None:
            right = self._action.box.left()
            paint_flat_button(context, self._action, head.action, head.action_icon)
        room = right - x - style.px(28)
        font = style.strong if head.strong else style.small
        box = QRect(x, 0, room, self._height)
        style.draw_text(painter, box, head.title, color, font, elide=Qt.TextElideMode.ElideRight)
        if head.is_open is not None:
            x += min(room, _text_width(font, head.title)) + style.px(4)
            chevron = "chevron-down" if head.is_open else "chevron-right"
            painter.drawPixmap(x, self._middle(style.px(14)) + 1, style.icon(chevron, color, 14, context.ratio))
        if head.control and context.focused == head.control:
            paint_focus_ring(painter, style, QRect(-4, 0, self._width + 8, self._height))

    def _paint_state(self, context: PaintContext) -> None:
        painter, style, head = context.painter, context.style, self.header
        if not head.state:
            return
        width = self._state_words_width(style)
        x = self._width - width
        if self._shows_state_words:
            style.draw_text(painter, QRect(x, 0, width, self._height), head.state, head.state_color)
        x -= style.px(20)
        icon = style.icon(head.state_icon, head.state_color, 15, context.ratio)
        painter.drawPixmap(x, self._middle(style.px(15)), icon)

    def _middle(self, size: int) -> int:
        return (self._height - size) // 2

    def subject(self) -> str:
        return self.header.title

    def spoken_text(self) -> str:
        return join_names(part for part in (self.header.title, self.header.state) if part)

    def controls(self) -> Sequence[Control]:
        """Return the action, and the line itself if it can be opened."""
        if not self.is_laid_out:
            return ()
        action = (self._action,) if self._action is not None else ()
        if not self._on_press or not self.header.control:
            return action
        return (*action, Control(self.header.control, QRect(0, 0, self._width, self._height), self._on_press))


def _text_width(font: QFont, text: str) -> int:
    return int(QFontMetricsF(font).horizontalAdvance(text)) + 2


class ButtonBar:
    """The title and the buttons above a code block, placed from the right."""

    def __init__(self) -> None:
        self.controls: list[Control] = []
        self._buttons: Sequence[Button] = ()
        self._start = self._end = 0
        """Where the buttons begin and end."""

    def place_buttons(self, buttons: Sequence[Button], width: int, style: RenderStyle) -> None:
        """Place the buttons; the first one is at the right end."""
        buttons = list(buttons)
        while len(buttons) > 1 and sum(_button_width(button, style) for button in buttons) > width - style.px(12):
            buttons.remove(min(buttons, key=lambda button: button.priority))
        self._buttons, self.controls = buttons, []
        x = self._end = width - style.px(6)
        for button in buttons:
            button_width = _button_width(button, style) - style.px(2)
            x -= button_width
            self.controls.append(button.control(QRect(x, style.px(5), button_width, style.px(24))))
            x -= style.px(2)
        self._start = x

    def clear(self) -> None:
        """Remove all buttons."""
        self.controls, self._buttons = [], ()

    def paint(self, context: PaintContext, left: int, title: str) -> None:
        """Paint the title, and the buttons where the row is pointed at."""
        style = context.style
        # Buttons that are not shown take no room from the title.
        end = self._end if context.is_quiet else self._start - style.px(4)
        box = QRect(left, style.px(5), max(0, end - left), style.px(24))
        style.draw_text(context.painter, box, title, "muted", elide=Qt.TextElideMode.ElideRight)
        for control, button in () if context.is_quiet else zip(self.controls, self._buttons, strict=True):
            paint_flat_button(context, control, button.text, button.icon)


def _button_width(button: Button, style: RenderStyle) -> int:
    return flat_button_width(style, button.text, icon=bool(button.icon)) + style.px(2)
