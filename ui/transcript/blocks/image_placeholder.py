"""A picture that model output points to. It is named and never fetched: output must cause no network traffic."""

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPen

from ui.transcript.blocks.block import Block, Brush, Control
from ui.transcript.look import Look
from ui.transcript.markdown.inline import RemoteImage


class ImagePlaceholder(Block):
    """A dashed box with the picture's description and its address."""

    def __init__(self, image: RemoteImage) -> None:
        self._image = image
        self._width = 0

    def estimate(self, width: int, look: Look) -> int:
        """Exact."""
        del width
        return look.px(54)

    def lay(self, width: int, look: Look) -> int:
        """Exact."""
        self._width, self.laid = min(width, look.px(460)), True
        return self.estimate(width, look)

    def paint(self, brush: Brush) -> None:
        """Icon, description, address."""
        painter, look = brush.painter, brush.look
        height = look.px(54)
        painter.setPen(QPen(look.color("border"), 1, Qt.PenStyle.DashLine))
        painter.setBrush(look.color("surface"))
        painter.drawRoundedRect(QRectF(0.5, 0.5, self._width - 1, height - 1), 8, 8)
        painter.drawPixmap(look.px(14), (height - look.px(22)) // 2, look.icon("picture", "muted", 22, brush.ratio))
        left, room = look.px(48), self._width - look.px(60)
        label = self._image.label or QCoreApplication.translate("Transcript", "Picture")
        for y, text, color in ((7, label, "text"), (27, self._image.target, "muted")):
            painter.setFont(look.small)
            painter.setPen(look.color(color))
            shown = QFontMetricsF(look.small).elidedText(text, Qt.TextElideMode.ElideMiddle, room)
            painter.drawText(QRect(left, look.px(y), room, look.px(20)), Qt.AlignmentFlag.AlignVCenter, shown)
        if brush.selection:
            painter.fillRect(QRect(0, 0, self._width, height), veil(look))

    def plain(self) -> str:
        """Description and address."""
        return f"{self._image.label} ({self._image.target})" if self._image.label else self._image.target

    def link_at(self, point: QPoint) -> str:
        """The address, if it is one of the web."""
        inside = QRect(0, 0, self._width, 1 << 20).contains(point)
        return self._image.target if inside and self._image.target.startswith(("http://", "https://")) else ""

    def controls(self) -> Sequence[Control]:
        """None: the link is enough."""
        return ()


def veil(look: Look) -> QColor:
    """What lies over a selected picture."""
    color = QColor(look.color("selection"))
    color.setAlphaF(0.5)
    return color
