"""Painting of the lines of a log."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from ui.look.fonts import mono_font
from ui.look.style import selected_background
from ui.look.theme import SPACE_S, SPACE_XS, ThemeSource
from ui.preferences.tool_servers.log.log_rows import LogRole

Index = QModelIndex | QPersistentModelIndex
_FONT_SCALE = 0.9
_WIDEST_TIME = "00:00:00"
_WIDEST_LEVEL = "warning"


class LogDelegate(QStyledItemDelegate):
    """One line each: its time, its level in words and colour, its text in a font in which columns stand."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._font = mono_font(themes.theme, themes.zoom, _FONT_SCALE)
        themes.changed.connect(self._on_theme)

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: ARG002  Qt's name
        """All alike."""
        return QSize(80, round(option.fontMetrics.height() * 1.1) + self._themes.space(SPACE_XS))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """One line."""
        theme, state = self._themes.theme, option.state
        painter.save()
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(option.rect, QColor(selected_background(theme)))
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(QColor(theme.accent), 1))
            painter.drawRect(option.rect.adjusted(0, 0, -1, -1))
        painter.setFont(self._font)
        # Columns stand as a program writes them, whatever the language around.
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        inks = {2: theme.warning, 3: theme.danger}
        ink = inks.get(index.data(LogRole.SEVERITY))
        area = option.rect.adjusted(SPACE_S, 0, -SPACE_S, 0)
        area = self._draw_column(painter, area, str(index.data(LogRole.TIME)), _WIDEST_TIME, theme.muted)
        level = str(index.data(LogRole.LEVEL))
        if level:
            area = self._draw_column(painter, area, level, _WIDEST_LEVEL, ink or theme.muted)
        self._draw_column(painter, area, str(index.data()), "", ink or theme.text)
        painter.restore()

    def _draw_column(self, painter: QPainter, area: QRect, text: str, widest: str, colour: str) -> QRect:
        """Answers where the next column begins."""
        metrics = painter.fontMetrics()
        width = metrics.horizontalAdvance(widest) if widest else area.width()
        painter.setPen(QColor(colour))
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, width)
        painter.drawText(QRect(area.left(), area.top(), width, area.height()), flags, shown)
        return area.adjusted(width + SPACE_S, 0, 0, 0)

    def _on_theme(self) -> None:
        self._font = mono_font(self._themes.theme, self._themes.zoom, _FONT_SCALE)
