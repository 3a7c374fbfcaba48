"""The way back to the end, with how much is new there."""

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QEnterEvent, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from ui.transcript.look import RenderStyle

_GAP = 13


class JumpButton(QAbstractButton):
    """A round arrow above the lower edge of its sibling `over`; it counts what came while the person read above."""

    def __init__(self, style: RenderStyle, over: QWidget, parent: QWidget) -> None:
        super().__init__(parent)
        self._over = over
        self._style = style
        self._count = 0
        self.setAccessibleName(self.tr("Jump to latest"))
        self.setToolTip(self.tr("Jump to latest"))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.hide()
        self._fit()

    @property
    def count(self) -> int:
        """New items."""
        return self._count

    def set_count(self, count: int) -> None:
        """So many items are new."""
        if count != self._count:
            self._count = count
            self.setAccessibleDescription(self._label() if count else "")
            self._fit()

    def set_style(self, style: RenderStyle) -> None:
        """Another theme or zoom."""
        self._style = style
        self._fit()

    def _fit(self) -> None:
        self.resize(self.sizeHint())
        self.update()
        self.reposition()

    def reposition(self) -> None:
        """In the lower corner, where it covers the least of what is read."""
        room = self._over.geometry()
        self.move(room.right() - self.width() - _GAP, room.bottom() - self.height() - _GAP)

    def sizeHint(self) -> QSize:
        """A circle, or a pill when there is something to count."""
        px = self._style.px
        if not self._count:
            return QSize(px(36), px(36))
        wide = QFontMetricsF(self._style.small).horizontalAdvance(self._label())
        return QSize(px(36) + int(wide) + px(12), px(36))

    def _label(self) -> str:
        return self.tr("{0} new").format(self._count)

    def enterEvent(self, event: QEnterEvent) -> None:
        """Hovered."""
        super().enterEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Arrow and count."""
        del event
        style = self._style
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        painter.setPen(QPen(style.color("accent" if self.hasFocus() else "border"), 2 if self.hasFocus() else 1))
        painter.setBrush(style.color("hover" if self.underMouse() else "surface"))
        painter.drawRoundedRect(box, box.height() / 2, box.height() / 2)
        size = style.px(18)
        x = (self.height() - size) // 2
        painter.drawPixmap(x, x, style.icon("arrow-down", "text", 18, self.devicePixelRatio()))
        if self._count:
            painter.setFont(style.small)
            painter.setPen(style.color("text"))
            words = QRect(x + size + style.px(4), 0, self.width(), self.height())
            painter.drawText(words, Qt.AlignmentFlag.AlignVCenter, self._label())
        painter.end()
