"""The table of usage: a row for each day, model or project."""

from datetime import date

from PySide6.QtCore import QAbstractTableModel, QObject, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView

from desktop_agent.types.spending import UsageGrouping, UsageReport, UsageRow
from ui.settings.usage.usage_text import cache_text, cost_text, row_title, tokens_text
from ui.style.layouts import scroll_area_of
from ui.style.list_rows import ROOT, Index
from ui.style.text import format_number, labelled, plain_tooltip
from ui.style.theme import ThemeSource

_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter

COST_COLUMN = 6
# Least important first: they are hidden if there is no room.
_OPTIONAL_COLUMNS = (3, 2, 4, 1)
FIRST_ROWS = 10
"""Rows that are shown at first; the others on request."""
_ROW_HEIGHT, _NAME_WIDTH, _CELL_PADDING = 30, 120, 10


class UsageTableModel(QAbstractTableModel):
    """Title, answers, input and output, share of the cache, tokens, cost. The newest day is first."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._grouping: UsageGrouping = "day"
        self._rows: tuple[UsageRow, ...] = ()
        self._today = date.min

    def show_report(self, report: UsageReport, today: date, most: int | None = None) -> None:
        """Show the rows of a report, at most `most`. If only the figures of the rows changed, the current row stays."""
        rows = (report.rows[::-1] if report.grouping == "day" else report.rows)[:most]
        is_same = [row.key for row in rows] == [row.key for row in self._rows] and report.grouping == self._grouping
        if not is_same:
            self.beginResetModel()
        self._grouping, self._today, self._rows = report.grouping, today, rows
        if not is_same:
            self.endResetModel()
        elif rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, COST_COLUMN))

    def rowCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else COST_COLUMN + 1

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(_RIGHT if section else _LEFT)
        return self._titles()[section] if role == Qt.ItemDataRole.DisplayRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return what a cell shows."""
        if not index.isValid():
            return None
        row, column = self._rows[index.row()], index.column()
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._cells(row)[column]
            case Qt.ItemDataRole.AccessibleTextRole:
                return labelled(self._titles()[column], self._cells(row)[column])
            case Qt.ItemDataRole.ToolTipRole if not column:
                return plain_tooltip(row.key)
            case Qt.ItemDataRole.TextAlignmentRole:
                return int(_RIGHT if column else _LEFT)
            case _:
                return None

    def _titles(self) -> tuple[str, ...]:
        first = {"day": self.tr("Day"), "model": self.tr("Model"), "project": self.tr("Workspace folder")}
        return (
            first[self._grouping],
            self.tr("Answers"),
            self.tr("Input"),
            self.tr("Output"),
            self.tr("From cache"),
            self.tr("Tokens"),
            self.tr("Cost"),
        )

    def _cells(self, row: UsageRow) -> tuple[str, ...]:
        figures = row.figures
        return (
            row_title(self._grouping, row.key, self._today),
            format_number(figures.answers),
            format_number(figures.input_tokens) if figures.known_tokens is not None else "",
            format_number(figures.output_tokens) if figures.known_tokens is not None else "",
            cache_text(figures),
            tokens_text(figures),
            cost_text(figures),
        )


class UsageTable(QTableView):
    """The rows of a report, read by arrow keys. Columns that have no room are hidden, the least important first.

    It is as high as its rows and never scrolls: the page does.
    """

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self.rows = UsageTableModel(self)
        self.setModel(self.rows)
        self.setAccessibleName(self.tr("Usage"))
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        # Tab leaves the table; the arrow keys move in it.
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.verticalHeader().hide()
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setMinimumSectionSize(round(_NAME_WIDTH / 3))
        themes.changed.connect(self._fit)

    def show_report(self, report: UsageReport, today: date, *, is_whole: bool) -> None:
        """Show a report, or its first ten rows."""
        self.rows.show_report(report, today, None if is_whole else FIRST_ROWS)
        self._fit()

    def currentChanged(self, current: Index, previous: Index) -> None:
        """Scroll the page to the row that the arrow keys reached."""
        super().currentChanged(current, previous)
        page = scroll_area_of(self)
        if page is not None and (inside := page.widget()) is not None and current.isValid():
            row = self.visualRect(current)
            page.ensureVisible(0, self.viewport().mapTo(inside, row.center()).y(), 0, row.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._hide_columns()

    def _fit(self) -> None:
        height = self._themes.scaled(_ROW_HEIGHT)
        self.verticalHeader().setDefaultSectionSize(height)
        rows = self.rows.rowCount() * height
        self.setFixedHeight(self.horizontalHeader().sizeHint().height() + rows + 2 * self.frameWidth() + 2)
        self._hide_columns()

    def _hide_columns(self) -> None:
        room = self.viewport().width() - self._themes.scaled(_NAME_WIDTH)
        titles = (str(self.rows.headerData(column, Qt.Orientation.Horizontal)) for column in range(COST_COLUMN + 1))
        padding = round(2 * _CELL_PADDING * self._themes.zoom / 100)
        needed = {
            column: max(self.sizeHintForColumn(column), self.fontMetrics().horizontalAdvance(title) + padding)
            for column, title in enumerate(titles)
            if column
        }
        total = sum(needed.values())
        for column in _OPTIONAL_COLUMNS:
            is_hidden = total > room
            self.setColumnHidden(column, is_hidden)
            total -= needed[column] if is_hidden else 0
