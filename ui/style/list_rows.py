"""Rows of lists: what a row says, the model of search results, and the delegate that paints them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
)
from PySide6.QtGui import QColor, QFont, QPainter, QPen
from PySide6.QtWidgets import QAbstractItemView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from ui.style.style_sheet import mix_colours, selected_background
from ui.style.text import join_names, plain_tooltip
from ui.style.theme import RADIUS_M, SPACE_M, SPACE_S, Theme, ThemeSource, body_font, folder_tint, pixmap


class RowRole(IntEnum):
    """The roles of a model beyond its display text."""

    DETAIL = Qt.ItemDataRole.UserRole + 1
    """Muted text at the right, a string."""
    BADGE = Qt.ItemDataRole.UserRole + 2
    """One of "", "working", "attention", "unread", "problem"."""
    HEADING = Qt.ItemDataRole.UserRole + 3
    """Whether this row is the heading of a group."""
    ICON = Qt.ItemDataRole.UserRole + 4
    """The name of an icon at the left, a string."""
    SUBTITLE = Qt.ItemDataRole.UserRole + 5
    """Muted text in a second line, a string; without it the row has one line."""
    FADED = Qt.ItemDataRole.UserRole + 6
    """Whether the title is muted too."""
    TINT = Qt.ItemDataRole.UserRole + 7
    """The colour of the icon, the word of a FolderColour; without one it is muted."""


Index = QModelIndex | QPersistentModelIndex
ROOT = QModelIndex()
"""The parent of all rows of a list or table."""

_BADGE_SIDE = 8


def paint_row_background(painter: QPainter, area: QRect, theme: Theme, colour: str) -> None:
    """Fill a row; with strong contrast give it an edge too."""
    painter.setPen(QColor(theme.outline) if theme.outline else Qt.PenStyle.NoPen)
    painter.setBrush(QColor(colour))
    inset = 0.5 if theme.outline else 0
    painter.drawRoundedRect(QRectF(area).adjusted(inset, inset, -inset, -inset), RADIUS_M, RADIUS_M)


def paint_row_ring(painter: QPainter, area: QRect, theme: Theme) -> None:
    """Paint the ring of what has the keyboard."""
    painter.setPen(QPen(QColor(theme.accent), 2))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRoundedRect(area.adjusted(1, 1, -1, -1), RADIUS_M, RADIUS_M)


class RowDelegate(QStyledItemDelegate):
    """Paints rows in the theme's colours; the current row is filled, a focused one has a ring."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None, space: int = SPACE_S) -> None:
        """`space` is the room above and below the text, in pixels at 100 % zoom."""
        super().__init__(parent)
        self._themes = themes
        self._space = space
        self._whole = QRect()
        self._by_mouse = False
        if isinstance(parent, QAbstractItemView):
            parent.installEventFilter(self)
            parent.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Show the ring for the keyboard only: who clicked a row knows which one it is."""
        view = self.parent()
        if isinstance(view, QAbstractItemView) and watched in (view, view.viewport()):
            if event.type() == QEvent.Type.MouseButtonPress:
                self._by_mouse = True
            elif event.type() in {QEvent.Type.KeyPress, QEvent.Type.FocusOut}:
                self._by_mouse = False
                view.viewport().update()
            return False
        return super().eventFilter(watched, event)

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        lines = 1.9 if index.data(RowRole.SUBTITLE) else 1
        return QSize(80, round(option.fontMetrics.height() * lines) + 2 * self._themes.space(self._space))

    def badge_room(self, index: Index) -> int:
        """Return the width of the row's badge with the gap before it."""
        return _BADGE_SIDE + SPACE_S if index.data(RowRole.BADGE) else 0

    def button_room(self, _index: Index) -> int:
        """Return the width of a button on this row, before the badge, in place of the muted text."""
        return 0

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint one row. Areas are computed from left to right, and mirrored when they are drawn."""
        theme = self._themes.theme
        painter.save()
        painter.setLayoutDirection(option.direction)
        self._whole = option.rect
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if index.data(RowRole.HEADING):
            self._paint_heading(painter, option, index, theme)
        else:
            self._paint_background(painter, option, theme)
            self._paint_row(painter, option, index, theme)
        painter.restore()

    def _paint_heading(self, painter: QPainter, option: QStyleOptionViewItem, index: Index, theme: Theme) -> None:
        painter.setFont(self._font(0.88, QFont.Weight.DemiBold))
        painter.setPen(QColor(theme.muted))
        area = option.rect.adjusted(SPACE_M, SPACE_S, -SPACE_M, 0)
        self._draw_text(painter, area, str(index.data()), Qt.AlignmentFlag.AlignLeft)

    def _paint_background(self, painter: QPainter, option: QStyleOptionViewItem, theme: Theme) -> None:
        state = option.state
        area = option.rect.adjusted(0, 1, 0, -1)
        selected = bool(state & QStyle.StateFlag.State_Selected)
        if selected or state & QStyle.StateFlag.State_MouseOver:
            paint_row_background(painter, area, theme, selected_background(theme) if selected else theme.hover)
        if state & QStyle.StateFlag.State_HasFocus and not (self._by_mouse and selected):
            paint_row_ring(painter, area, theme)

    def _paint_row(self, painter: QPainter, option: QStyleOptionViewItem, index: Index, theme: Theme) -> None:
        area = option.rect.adjusted(SPACE_M, 0, -SPACE_M, 0)
        area = self._paint_icon(painter, area, index, theme)
        self._paint_badge(painter, area, str(index.data(RowRole.BADGE) or ""), theme)
        area = area.adjusted(0, 0, -self.badge_room(index), 0)
        # Muted text would be hard to read on the background of a selected row.
        is_selected = option.state & QStyle.StateFlag.State_Selected
        painter.setPen(QColor(mix_colours(theme.muted, theme.text, 0.35) if is_selected else theme.muted))
        if room := self.button_room(index):
            area = area.adjusted(0, 0, -room, 0)
        else:
            area = self._paint_detail(painter, area, str(index.data(RowRole.DETAIL) or ""))
        area = self._paint_subtitle(painter, area, str(index.data(RowRole.SUBTITLE) or ""), option.fontMetrics.height())
        painter.setFont(option.font)
        painter.setPen(QColor(theme.muted if index.data(RowRole.FADED) and not is_selected else theme.text))
        self._draw_text(painter, area, str(index.data() or ""), Qt.AlignmentFlag.AlignLeft)

    def _paint_icon(self, painter: QPainter, area: QRect, index: Index, theme: Theme) -> QRect:
        tint = folder_tint(theme, str(index.data(RowRole.TINT) or ""))
        return self._paint_symbol(painter, area, str(index.data(RowRole.ICON) or ""), tint)

    def _paint_symbol(self, painter: QPainter, area: QRect, name: str, colour: str) -> QRect:
        if not name:
            return area
        side = self._themes.scaled(16)
        ratio = 2 if painter.device().devicePixelRatio() > 1 else 1
        box = QRect(area.left(), area.center().y() - side // 2 + 1, side, side)
        painter.drawPixmap(self._mirrored(painter, box).topLeft(), pixmap(name, colour, side, ratio))
        return area.adjusted(side + SPACE_S, 0, 0, 0)

    def _paint_badge(self, painter: QPainter, area: QRect, badge: str, theme: Theme) -> None:
        colours = {"working": theme.accent, "attention": theme.warning, "unread": theme.accent, "problem": theme.danger}
        if badge not in colours:
            return
        side = _BADGE_SIDE
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colours[badge]))
        dot = self._mirrored(painter, QRect(area.right() - side, area.center().y() - side // 2, side, side))
        # Shapes differ, not only colours.
        if badge == "attention":
            painter.drawRoundedRect(dot.adjusted(-1, -1, 1, 1), 2, 2)
        elif badge == "working":
            painter.setPen(QPen(QColor(colours[badge]), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawEllipse(dot.adjusted(0, 0, -1, -1))
        else:
            painter.drawEllipse(dot)

    def _paint_detail(self, painter: QPainter, area: QRect, detail: str) -> QRect:
        if not detail:
            return area
        painter.setFont(self._font(0.88))
        width = min(painter.fontMetrics().horizontalAdvance(detail) + 2, area.width() // 2)
        self._draw_text(painter, QRect(area.right() - width, area.top(), width, area.height()), detail)
        return area.adjusted(0, 0, -width - SPACE_S, 0)

    def _paint_subtitle(self, painter: QPainter, area: QRect, text: str, line: int) -> QRect:
        """Paint the second line; return the area of the first."""
        if not text:
            return area
        painter.setFont(self._font(0.88))
        top = area.center().y() - line
        below = QRect(area.left(), top + line + 1, area.width(), line)
        self._draw_text(painter, below, text, Qt.AlignmentFlag.AlignLeft)
        return QRect(area.left(), top + 1, area.width(), line)

    def _draw_text(
        self, painter: QPainter, area: QRect, text: str, align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignRight
    ) -> None:
        """Draw one line at an edge of the row, which is mirrored; the text has the direction of its own letters."""
        flat = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, area.width())
        mirrored, direction = self._mirrored(painter, area), painter.layoutDirection()
        edge = QStyle.visualAlignment(direction, align) | Qt.AlignmentFlag.AlignAbsolute
        painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)
        painter.drawText(mirrored, edge | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, flat)
        painter.setLayoutDirection(direction)

    def _mirrored(self, painter: QPainter, area: QRect) -> QRect:
        return QStyle.visualRect(painter.layoutDirection(), self._whole, area)

    def _font(self, factor: float, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        font = body_font(self._themes.zoom, factor)
        font.setWeight(weight)
        return font


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """The look and text of a row. Each search adds what the row stands for."""

    text: str
    under: str = ""
    detail: str = ""
    icon: str = ""
    tint: str = ""
    """As RowRole.TINT."""
    badge: str = ""
    """As RowRole.BADGE."""
    tip: str = ""
    """The tooltip; by default the text and the subtitle."""
    spoken: str = ""
    """For a screen reader; by default the text and the subtitle."""
    is_heading: bool = False
    is_faded: bool = False
    is_choosable: bool = False
    is_current: bool = False
    """It is in use already."""


class ResultModel(QAbstractListModel):
    """The model of a list of result rows, of which only choosable ones can be selected."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: Sequence[ResultRow] = ()

    def show_rows(self, rows: Sequence[ResultRow]) -> None:
        """Show these rows in this order."""
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def row(self, number: int) -> ResultRow:
        """Return one row."""
        return self._rows[number]

    def place_of(self, row: ResultRow | None) -> int:
        """Return the index of an equal row, or -1."""
        return next((index for index, candidate in enumerate(self._rows) if candidate == row), -1)

    @property
    def current(self) -> int:
        """Return the index of the row in use, or -1."""
        return next((index for index, row in enumerate(self._rows) if row.is_current), -1)

    def next_choosable(self, start: int, step: int) -> int:
        """Return the next choosable row after `start`, going by `step`; -1 if there is none."""
        number = start + step
        while 0 <= number < len(self._rows):
            if self._rows[number].is_choosable:
                return number
            number += step
        return -1

    def rowCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the row's data for a role."""
        return _row_data(self._rows[index.row()], role) if index.isValid() else None

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Headings and remarks cannot be chosen."""
        if index.isValid() and self._rows[index.row()].is_choosable:
            return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return Qt.ItemFlag.NoItemFlags


_FIELD_OF_ROLE: dict[int, str] = {
    Qt.ItemDataRole.DisplayRole: "text",
    RowRole.DETAIL: "detail",
    RowRole.SUBTITLE: "under",
    RowRole.ICON: "icon",
    RowRole.TINT: "tint",
    RowRole.BADGE: "badge",
    RowRole.HEADING: "is_heading",
    RowRole.FADED: "is_faded",
}


def _row_data(row: ResultRow, role: int) -> object:
    lines = [line for line in (row.text, row.under) if line]
    match role:
        case Qt.ItemDataRole.AccessibleTextRole:
            return row.spoken or join_names(lines)
        case Qt.ItemDataRole.ToolTipRole:
            return plain_tooltip(row.tip or "\n".join(lines))
        case _:
            return getattr(row, _FIELD_OF_ROLE[role]) if role in _FIELD_OF_ROLE else None
