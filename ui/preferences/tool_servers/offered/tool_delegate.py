"""Painting of the rows of tools."""

from typing import cast

from PySide6.QtCore import QAbstractItemModel, QEvent, QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from ui.look.fonts import body_font
from ui.look.icons import pixmap
from ui.look.style import selected_background
from ui.look.theme import RADIUS_M, RADIUS_S, SPACE_M, SPACE_S, ThemeSource
from ui.preferences.tool_servers.offered.tool_rows import ToolRole
from ui.preferences.tool_servers.words import Tag

Index = QModelIndex | QPersistentModelIndex
_BOX_SIZE = 16
_TOGGLE_KEYS = {Qt.Key.Key_Space, Qt.Key.Key_Select}


class ToolDelegate(QStyledItemDelegate):
    """A box to tick, the name over the description, and at the right what counts, in words and colour."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: ARG002  Qt's name
        """Two lines, all alike."""
        return QSize(80, round(option.fontMetrics.height() * 1.9) + 2 * self._themes.space(SPACE_S))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """One row."""
        painter.save()
        painter.setLayoutDirection(option.direction)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        is_on = index.data(Qt.ItemDataRole.CheckStateRole) == Qt.CheckState.Checked
        self._paint_background(painter, option)
        self._paint_box(painter, option, is_on=is_on)
        right = self._paint_tag(painter, option, index)
        self._paint_text(painter, option, index, right, is_on=is_on)
        painter.restore()

    def editorEvent(
        self,
        event: QEvent,
        model: QAbstractItemModel,
        option: QStyleOptionViewItem,
        index: Index,
    ) -> bool:
        """A click on the box, or the space bar, switches the tool."""
        kind = event.type()
        if kind == QEvent.Type.MouseButtonRelease:
            hit = self._box_rect(option).adjusted(-SPACE_S, -SPACE_S, SPACE_S, SPACE_S)
            is_meant = hit.contains(cast("QMouseEvent", event).position().toPoint())
        else:
            is_meant = kind == QEvent.Type.KeyPress and cast("QKeyEvent", event).key() in _TOGGLE_KEYS
        if not is_meant:
            return False
        now = index.data(Qt.ItemDataRole.CheckStateRole) == Qt.CheckState.Checked
        wanted = Qt.CheckState.Unchecked if now else Qt.CheckState.Checked
        return model.setData(index, wanted, Qt.ItemDataRole.CheckStateRole)

    def _box_rect(self, option: QStyleOptionViewItem) -> QRect:
        side = round(_BOX_SIZE * self._themes.zoom / 100)
        area = option.rect
        box = QRect(area.left() + SPACE_M, area.center().y() - side // 2, side, side)
        return QStyle.visualRect(option.direction, area, box)

    def _paint_background(self, painter: QPainter, option: QStyleOptionViewItem) -> None:
        theme, state = self._themes.theme, option.state
        area = option.rect.adjusted(0, 1, 0, -1)
        is_chosen = bool(state & QStyle.StateFlag.State_Selected)
        if is_chosen or state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(selected_background(theme) if is_chosen else theme.hover))
            painter.drawRoundedRect(area, RADIUS_M, RADIUS_M)
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(QColor(theme.accent), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(area.adjusted(1, 1, -1, -1), RADIUS_M, RADIUS_M)

    def _paint_box(self, painter: QPainter, option: QStyleOptionViewItem, *, is_on: bool) -> None:
        """Like the check boxes of the style sheet, which does not reach into rows."""
        theme, box = self._themes.theme, self._box_rect(option)
        painter.setPen(QColor(theme.accent if is_on else theme.muted))
        painter.setBrush(QColor(theme.accent if is_on else theme.window))
        painter.drawRoundedRect(QRectF(box).adjusted(0.5, 0.5, -0.5, -0.5), RADIUS_S, RADIUS_S)
        if is_on:
            ratio = 2 if painter.device().devicePixelRatio() > 1 else 1
            painter.drawPixmap(box, pixmap("check", theme.on_accent, box.width(), ratio))

    def _paint_tag(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> int:
        """Answers where it begins."""
        words, tag = cast("tuple[str, Tag]", index.data(ToolRole.TAG))
        theme = self._themes.theme
        colours = {
            "safe": (theme.success, theme.success_background),
            "caution": (theme.warning, theme.warning_background),
            "risk": (theme.danger, theme.danger_background),
        }
        ink, ground = colours[tag]
        font = body_font(theme, self._themes.zoom, 0.88)
        font.setWeight(font.Weight.DemiBold)
        painter.setFont(font)
        width = painter.fontMetrics().horizontalAdvance(words) + 2 * SPACE_S
        height = painter.fontMetrics().height() + 4
        area = option.rect
        left = area.right() - SPACE_M - width
        pill = QRectF(
            QStyle.visualRect(option.direction, area, QRect(left, area.center().y() - height // 2, width, height))
        )
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(ground))
        painter.drawRoundedRect(pill, height / 2, height / 2)
        painter.setPen(QColor(ink))
        painter.drawText(pill, Qt.AlignmentFlag.AlignCenter, words)
        return left

    def _paint_text(
        self, painter: QPainter, option: QStyleOptionViewItem, index: Index, right: int, *, is_on: bool
    ) -> None:
        theme = self._themes.theme
        area = option.rect
        # Reckoned from left to right, and mirrored where it is drawn.
        left = area.left() + self._box_rect(option).width() + 2 * SPACE_M
        line = round(option.fontMetrics.height() * 0.95)
        under = str(index.data(ToolRole.DESCRIPTION) or "")
        top = area.center().y() - (line if under else line // 2)
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine
        for text, factor, colour in (
            (str(index.data()), 1.0, theme.text if is_on else theme.muted),
            (under, 0.88, theme.muted),
        ):
            painter.setFont(body_font(theme, self._themes.zoom, factor))
            painter.setPen(QColor(colour))
            place = QRect(left, top, max(0, right - SPACE_S - left), line)
            shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, place.width())
            painter.drawText(QStyle.visualRect(option.direction, area, place), flags, shown)
            top += line
