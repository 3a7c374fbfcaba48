"""The first line of a thing that folds, or of a call's card: an icon, words, a state, and a chevron."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QFontMetricsF

from ui.transcript.blocks.block import Block, Brush, Control
from ui.transcript.blocks.buttons import focus_ring, quiet_button, quiet_width
from ui.transcript.look import Look


@dataclass(frozen=True, slots=True)
class Head:
    """`state` stands at the right in a pill, in `state_color`, and before it `action`: what else can be done.

    A chevron is shown when it can be opened.
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


class HeadBlock(Block):
    """The whole line is the button, but for the one in it that is an action of its own."""

    def __init__(
        self, head: Head, press: Callable[[], None] | None = None, act: Callable[[], None] | None = None
    ) -> None:
        self.head = head
        self._press = press
        self._act = act
        self._action: Control | None = None
        self._width = 0
        self._height = 0
        self._look: Look | None = None

    def show(self, head: Head) -> None:
        """Say something else."""
        if head != self.head:
            self.head, self.laid = head, False

    def estimate(self, width: int, look: Look) -> int:
        """Exact."""
        del width
        return look.px(26)

    def lay(self, width: int, look: Look) -> int:
        """Exact."""
        self._width, self._height, self._look, self.laid = width, look.px(26), look, True
        self._action = self._laid_action(look)
        return self._height

    def _laid_action(self, look: Look) -> Control | None:
        head = self.head
        if not head.action or self._act is None:
            return None
        wide = quiet_width(look, head.action, icon=bool(head.action_icon))
        x = self._width - self._state_width(look) - wide
        return Control(head.action, QRect(x, look.px(1), wide, self._height - look.px(2)), self._act)

    def _state_width(self, look: Look) -> int:
        """With its icon and what stands apart before it."""
        if not self.head.state:
            return 0
        return int(QFontMetricsF(look.small).horizontalAdvance(self.head.state)) + 2 + look.px(20) + look.px(8)

    def _title_width(self, look: Look) -> int:
        font = look.strong if self.head.strong else look.small
        return int(QFontMetricsF(font).horizontalAdvance(self.head.title)) + 2

    def paint(self, brush: Brush) -> None:
        """From left to right."""
        painter, look, head = brush.painter, brush.look, self.head
        hovered = bool(head.control) and brush.hovered == head.control
        color = "text" if hovered else head.color
        x = 0
        if head.icon:
            painter.drawPixmap(x, self._middle(look.px(16)), look.icon(head.icon, color, 16, brush.ratio))
            x += look.px(24)
        self._paint_state(brush)
        right = self._width - self._state_width(look)
        if self._action is not None:
            right = self._action.box.left()
            quiet_button(brush, self._action, head.action, head.action_icon)
        room = right - x - look.px(28)
        font = look.strong if head.strong else look.small
        painter.setFont(font)
        painter.setPen(look.color(color))
        title = QFontMetricsF(font).elidedText(head.title, Qt.TextElideMode.ElideRight, room)
        painter.drawText(QRect(x, 0, room, self._height), Qt.AlignmentFlag.AlignVCenter, title)
        if head.is_open is not None:
            x += min(room, self._title_width(look)) + look.px(4)
            chevron = "chevron-down" if head.is_open else "chevron-right"
            painter.drawPixmap(x, self._middle(look.px(14)) + 1, look.icon(chevron, color, 14, brush.ratio))
        if head.control and brush.focused == head.control:
            focus_ring(painter, look, QRect(-4, 0, self._width + 8, self._height))

    def _paint_state(self, brush: Brush) -> None:
        """The pill at the right."""
        painter, look, head = brush.painter, brush.look, self.head
        if not head.state:
            return
        wide = int(QFontMetricsF(look.small).horizontalAdvance(head.state)) + 2
        x = self._width - wide
        painter.setFont(look.small)
        painter.setPen(look.color(head.state_color))
        painter.drawText(QRect(x, 0, wide, self._height), Qt.AlignmentFlag.AlignVCenter, head.state)
        x -= look.px(20)
        icon = look.icon(head.state_icon, head.state_color, 15, brush.ratio)
        painter.drawPixmap(x, self._middle(look.px(15)), icon)

    def _middle(self, size: int) -> int:
        return (self._height - size) // 2

    def spoken(self) -> str:
        """Title and state."""
        return ", ".join(part for part in (self.head.title, self.head.state) if part)

    def controls(self) -> Sequence[Control]:
        """The action, which lies in the line, and the line itself when it can be opened."""
        if not self.laid:
            return ()
        action = (self._action,) if self._action is not None else ()
        if not self._press or not self.head.control:
            return action
        return (*action, Control(self.head.control, QRect(0, 0, self._width, self._height), self._press))
