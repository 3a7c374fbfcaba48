"""The log of one MCP server: its model, delegate and view."""

from collections.abc import Iterable, Sequence
from enum import IntEnum, StrEnum

from PySide6.QtCore import QAbstractListModel, QObject, QRect, QSize, Qt
from PySide6.QtGui import QColor, QGuiApplication, QKeySequence, QPainter, QPen, QShortcut
from PySide6.QtWidgets import QAbstractItemView, QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from desktop_agent.types.mcp import McpLogLine
from ui.style.auto_height_text import ReadOnlyText
from ui.style.boxes import hbox, vbox
from ui.style.controls import announce, button, label
from ui.style.list_rows import ROOT, Index
from ui.style.style_sheet import selected_background
from ui.style.theme import SPACE_S, SPACE_XS, ThemeSource, mono_font
from ui.style.widgets import ComboBox

MAX_LINES = 1_000
# Characters painted of a line; a selected one is shown whole.
_MAX_PAINTED_LENGTH = 400

# RFC 5424, which the protocol refers to.
_SEVERITIES = {"debug": 0, "warning": 2, "error": 3, "critical": 3, "alert": 3, "emergency": 3}


class LogFilter(StrEnum):
    """Which lines are shown: all, from a level on, or only the error stream of the program."""

    ALL = "all"
    INFO = "info"
    WARNINGS = "warnings"
    ERRORS = "errors"
    WRITTEN = "written"


_MIN_SEVERITY = {LogFilter.ALL: -1, LogFilter.INFO: 1, LogFilter.WARNINGS: 2, LogFilter.ERRORS: 3}


class LogRole(IntEnum):
    """The data of a row besides its text."""

    TIME = Qt.ItemDataRole.UserRole + 1
    """Local time as hours, minutes and seconds; a string."""
    LEVEL = Qt.ItemDataRole.UserRole + 2
    """The level as the server names it; "" for lines of the error stream."""
    SEVERITY = Qt.ItemDataRole.UserRole + 3
    """From 0 for debugging to 3 for errors; -1 without a level."""


def severity_of(level: str) -> int:
    """Return 0 for debugging to 3 for errors, -1 without a level. All other levels count as information."""
    return _SEVERITIES.get(level.lower(), 1) if level else -1


def format_line(line: McpLogLine) -> str:
    """Return a whole line, as it is copied."""
    level = f"[{line.level}] " if line.level else ""
    return f"{format_time(line)} {level}{line.text}"


def format_time(line: McpLogLine) -> str:
    """Return the local time of day."""
    return line.at.astimezone().strftime("%H:%M:%S")


class LogModel(QAbstractListModel):
    """At most MAX_LINES lines, oldest first."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lines: list[McpLogLine] = []
        self._rows: list[McpLogLine] = []
        self._filter = LogFilter.ALL

    def show_lines(self, lines: Sequence[McpLogLine]) -> None:
        """Replace all lines."""
        self._lines = list(lines)[-MAX_LINES:]
        self._reset()

    def add(self, lines: Sequence[McpLogLine]) -> int:
        """Append lines, and drop the oldest beyond the limit; return how many rows were removed at the top."""
        self._lines += lines
        removed, self._lines = self._lines[:-MAX_LINES], self._lines[-MAX_LINES:]
        removed_rows = len(self._filtered(removed))
        if removed_rows >= len(self._rows):
            # All visible rows are dropped, or none was visible.
            removed_rows = len(self._rows)
            self._reset()
            return removed_rows
        if removed_rows:
            self.beginRemoveRows(ROOT, 0, removed_rows - 1)
            del self._rows[:removed_rows]
            self.endRemoveRows()
        new = self._filtered(lines)
        if new:
            self.beginInsertRows(ROOT, len(self._rows), len(self._rows) + len(new) - 1)
            self._rows += new
            self.endInsertRows()
        return removed_rows

    def set_filter(self, shown: LogFilter) -> None:
        """Show only lines that the filter accepts."""
        self._filter = shown
        self._reset()

    def lines(self, rows: Iterable[int] | None = None) -> tuple[McpLogLine, ...]:
        """Return the lines of these rows, or all visible ones."""
        if rows is None:
            return tuple(self._rows)
        return tuple(self._rows[row] for row in sorted(rows) if 0 <= row < len(self._rows))

    def rowCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return text, time, level or severity of a row."""
        if not 0 <= index.row() < len(self._rows):
            return None
        line = self._rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return line.text[:_MAX_PAINTED_LENGTH]
            case Qt.ItemDataRole.AccessibleTextRole:
                return format_line(line)
            case LogRole.TIME:
                return format_time(line)
            case LogRole.LEVEL:
                return line.level
            case LogRole.SEVERITY:
                return severity_of(line.level)
            case _:
                return None

    def _reset(self) -> None:
        self.beginResetModel()
        self._rows = self._filtered(self._lines)
        self.endResetModel()

    def _filtered(self, lines: Sequence[McpLogLine]) -> list[McpLogLine]:
        if self._filter is LogFilter.WRITTEN:
            return [line for line in lines if not line.level]
        minimum = _MIN_SEVERITY[self._filter]
        return [line for line in lines if severity_of(line.level) >= minimum]


_FONT_SCALE = 0.9
_WIDEST_TIME = "00:00:00"
_WIDEST_LEVEL = "warning"


class LogDelegate(QStyledItemDelegate):
    """Draws a line in columns: time, level and text in a monospaced font."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._font = mono_font(themes.zoom, _FONT_SCALE)
        themes.changed.connect(self._on_theme)

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:  # noqa: ARG002  Qt's name
        return QSize(80, round(option.fontMetrics.height() * 1.1) + self._themes.space(SPACE_XS))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint one line."""
        theme, state = self._themes.theme, option.state
        painter.save()
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(option.rect, QColor(selected_background(theme)))
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(QColor(theme.accent), 1))
            painter.drawRect(option.rect.adjusted(0, 0, -1, -1))
        painter.setFont(self._font)
        # Columns run from left to right in every language.
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
        """Draw a text at the start of the area; return the rest of the area for the next column."""
        metrics = painter.fontMetrics()
        width = metrics.horizontalAdvance(widest) if widest else area.width()
        painter.setPen(QColor(colour))
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, width)
        painter.drawText(QRect(area.left(), area.top(), width, area.height()), flags, shown)
        return area.adjusted(width + SPACE_S, 0, 0, 0)

    def _on_theme(self) -> None:
        self._font = mono_font(self._themes.zoom, _FONT_SCALE)


LOG_HEIGHT = 220


class LogPane(QWidget):
    """Follows the end of the log until the person scrolls up, and again once they are back at the end."""

    def __init__(self, themes: ThemeSource, title: str) -> None:
        super().__init__()
        self.model = LogModel(self)
        self._is_following = True
        self._list = QListView()
        self._list.setAccessibleName(self.tr("Log of {0}").format(title))
        self._list.setModel(self.model)
        self._list.setItemDelegate(LogDelegate(themes, self._list))
        self._list.setUniformItemSizes(True)
        self._list.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self._list.setFixedHeight(LOG_HEIGHT)
        self._list.selectionModel().selectionChanged.connect(self._show_selected_line)
        bar = self._list.verticalScrollBar()
        bar.valueChanged.connect(self._on_scrolled)
        self._levels = ComboBox()
        self._levels.setAccessibleName(self.tr("Which lines are shown"))
        for shown, words in self._filter_names().items():
            self._levels.addItem(words, shown.value)
        self._levels.activated.connect(self._apply_filter)
        self._copy = button(self.tr("Copy"), self.copy, name=self.tr("Copy the log of {0}").format(title))
        copying = QShortcut(QKeySequence.StandardKey.Copy, self._list)
        copying.setContext(Qt.ShortcutContext.WidgetShortcut)
        copying.activated.connect(self.copy)
        self._empty_note = label(self.tr("The log is empty."), "muted")
        self._selected_line = ReadOnlyText("", self.tr("The whole line"))
        self._build_layout()
        self.show_lines(())

    def show_lines(self, lines: Sequence[McpLogLine]) -> None:
        """Replace all lines."""
        self.model.show_lines(lines)
        self._scroll_to_end()

    def add_lines(self, lines: Sequence[McpLogLine]) -> None:
        """Append lines."""
        bar = self._list.verticalScrollBar()
        scroll_position, follows = bar.value(), self._is_following
        removed = self.model.add(lines)
        self._is_following = follows
        if not follows:
            # Keep the visible lines in place though lines above are dropped.
            self._list.doItemsLayout()
            bar.setValue(max(0, scroll_position - removed))
            self._is_following = False
        self._scroll_to_end()

    def copy(self) -> None:
        """Copy the selected lines, or all visible ones."""
        chosen = [index.row() for index in self._list.selectionModel().selectedIndexes()]
        lines = self.model.lines(chosen or None)
        if lines:
            QGuiApplication.clipboard().setText("\n".join(format_line(line) for line in lines))
            announce(self, self.tr("{0} lines copied").format(len(lines)))

    def _filter_names(self) -> dict[LogFilter, str]:
        return {
            LogFilter.ALL: self.tr("All lines"),
            LogFilter.INFO: self.tr("Without debugging"),
            LogFilter.WARNINGS: self.tr("Warnings and errors"),
            LogFilter.ERRORS: self.tr("Errors"),
            LogFilter.WRITTEN: self.tr("Only the program's own output"),
        }

    def _apply_filter(self) -> None:
        self.model.set_filter(LogFilter(self._levels.currentData()))
        self._scroll_to_end()

    def _on_scrolled(self, value: int) -> None:
        self._is_following = value >= self._list.verticalScrollBar().maximum()

    def _scroll_to_end(self) -> None:
        count = self.model.rowCount()
        self._empty_note.setVisible(count == 0)
        self._list.setVisible(count > 0)
        self._copy.setEnabled(count > 0)
        if self._is_following:
            self._list.scrollToBottom()

    def _show_selected_line(self) -> None:
        chosen = [index.row() for index in self._list.selectionModel().selectedIndexes()]
        line = self.model.lines(chosen[:1]) if len(chosen) == 1 else ()
        self._selected_line.setVisible(bool(line))
        if line:
            self._selected_line.show_text(format_line(line[0]))

    def _build_layout(self) -> None:
        head = hbox(self._levels, spacing=SPACE_S, end_stretch=True)
        head.addWidget(self._copy)
        vbox(head, self._empty_note, self._list, self._selected_line, parent=self, spacing=SPACE_S, margins=0)
        self._selected_line.hide()
