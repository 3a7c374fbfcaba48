"""What lies over the rows: the button that jumps to the end, the note of a long copy, and the hint of an empty
conversation.
"""

from PySide6.QtCore import QRect, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QEnterEvent, QFont, QFontMetrics, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QWidget

from ui.transcript.blocks.buttons import paint_focus_ring
from ui.transcript.style import RenderStyle
from ui.transcript.words import tr

_CENTERED = Qt.AlignmentFlag.AlignHCenter | Qt.TextFlag.TextWordWrap


def paint_empty_hint(viewport: QWidget, style: RenderStyle, *, by_tab: bool) -> None:
    """Paint a greeting and what to do, in the middle of the viewport: as much of it as there is room for.

    `by_tab`: the focus came by keyboard, and there is no message to show it.
    """
    painter = QPainter(viewport)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    view = viewport.parentWidget()
    if by_tab and view is not None and view.hasFocus():
        paint_focus_ring(painter, style, viewport.rect().adjusted(2, 2, -2, -2))
    room = viewport.rect().adjusted(style.px(24), 0, -style.px(24), 0)
    for text, box, font, color in lay_out_empty_hint(room, style):
        painter.setFont(font)
        painter.setPen(style.color(color))
        painter.drawText(box, _CENTERED, text)
    painter.end()


def lay_out_empty_hint(room: QRect, style: RenderStyle) -> list[tuple[str, QRect, QFont, str]]:
    """Return the lines of the hint that fit into `room`: text, place, font and the name of a colour."""
    greeting = tr("What can I do for you?")
    hint = tr("Write a message below. You can paste or drop pictures and files.")
    gap, used = style.px(12), 0
    fitting: list[tuple[str, QRect, QFont, str]] = []
    for text, font, color in ((greeting, style.heading(2), "text"), (hint, style.body, "muted")):
        height = QFontMetrics(font).boundingRect(room, _CENTERED, text).height()
        above = used + gap if fitting else 0
        if above + height > room.height():
            break
        fitting.append((text, QRect(room.left(), above, room.width(), height), font, color))
        used = above + height
    top = room.top() + (room.height() - used) // 2
    return [(text, box.translated(0, top), font, color) for text, box, font, color in fitting]


_GAP = 13


class JumpButton(QAbstractButton):
    """A round arrow above the lower edge of its sibling `over`, with the number of items that arrived out of sight."""

    def __init__(self, style: RenderStyle, over: QWidget, parent: QWidget) -> None:
        super().__init__(parent)
        self._over = over
        self._style = style
        self.count = 0
        self.setAccessibleName(self.tr("Jump to latest"))
        self.setToolTip(self.tr("Jump to latest"))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.hide()
        self._fit()

    def set_count(self, count: int) -> None:
        """Show the number of new items."""
        if count != self.count:
            self.count = count
            self.setAccessibleDescription(self._label() if count else "")
            self._fit()

    def set_style(self, style: RenderStyle) -> None:
        """Use another theme or zoom."""
        self._style = style
        self._fit()

    def _fit(self) -> None:
        self.resize(self.sizeHint())
        self.update()
        self.reposition()

    def reposition(self) -> None:
        """Move to the lower corner, where the button covers the least text."""
        room = self._over.geometry()
        self.move(room.right() - self.width() - _GAP, room.bottom() - self.height() - _GAP)

    def sizeHint(self) -> QSize:
        px = self._style.px
        if not self.count:
            return QSize(px(36), px(36))
        text_width = QFontMetricsF(self._style.small).horizontalAdvance(self._label())
        return QSize(px(36) + int(text_width) + px(12), px(36))

    def _label(self) -> str:
        return self.tr("{0} new").format(self.count)

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        del event
        style = self._style
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        border, width = ("accent", 2) if self.hasFocus() else ("border", 1)
        style.paint_box(painter, box, box.height() / 2, "hover" if self.underMouse() else "surface", border, width)
        size = style.px(18)
        x = (self.height() - size) // 2
        painter.drawPixmap(x, x, style.icon("arrow-down", "text", 18, self.devicePixelRatio()))
        if self.count:
            style.draw_text(painter, QRect(x + size + style.px(4), 0, self.width(), self.height()), self._label())
        painter.end()


_DELAY_MS = 200
"""Milliseconds: a copy that is done sooner needs no note."""


class CopyProgressNote(QWidget):
    """A line of text at the upper edge of its sibling `over`."""

    def __init__(self, style: RenderStyle, over: QWidget, parent: QWidget) -> None:
        super().__init__(parent)
        self._style = style
        self._over = over
        self._message = ""
        self._wait = QTimer(self, singleShot=True, interval=_DELAY_MS)
        self._wait.timeout.connect(self._appear)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    def set_style(self, style: RenderStyle) -> None:
        """Use another theme or zoom."""
        self._style = style
        self.update()

    def show_message(self, words: str) -> None:
        """Show the message after a short delay; an empty one hides the note."""
        self._message = words
        self.setAccessibleName(words)
        if not words:
            self._wait.stop()
            self.hide()
        elif self.isVisible():
            self._reposition()
        elif not self._wait.isActive():
            self._wait.start()

    def _appear(self) -> None:
        self._reposition()
        self.show()

    def _reposition(self) -> None:
        room = self._over.geometry()
        self.resize(self.sizeHint())
        self.move(room.left() + (room.width() - self.width()) // 2, room.top() + self._style.px(10))
        self.update()

    def sizeHint(self) -> QSize:
        text_width = QFontMetricsF(self._style.small).horizontalAdvance(self._message)
        return QSize(int(text_width) + self._style.px(28), self._style.px(32))

    def paintEvent(self, event: QPaintEvent) -> None:
        del event
        style, painter = self._style, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        style.paint_box(painter, box, box.height() / 2, "surface", "border")
        style.draw_text(painter, self.rect(), self._message, align=Qt.AlignmentFlag.AlignCenter)
        painter.end()
