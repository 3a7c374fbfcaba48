"""The last lines of a server's log as rows, of which those of one level and graver are shown."""

from collections.abc import Iterable, Sequence
from enum import IntEnum, StrEnum

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from desktop_agent.vocabulary.mcp.log import McpLogLine

Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()
MAX_LINES = 1_000
# What is painted of one line; the whole of it is shown when it is chosen.
_MAX_PAINTED_LENGTH = 400

# RFC 5424, as the protocol has them.
_SEVERITIES = {
    name: gravity
    for gravity, names in enumerate(
        (("debug",), ("info", "notice"), ("warning",), ("error", "critical", "alert", "emergency"))
    )
    for name in names
}


class LogFilter(StrEnum):
    """Which lines are shown: all, what the server reports from a level on, or only what the program itself wrote."""

    ALL = "all"
    INFO = "info"
    WARNINGS = "warnings"
    ERRORS = "errors"
    WRITTEN = "written"


_MIN_SEVERITY = {LogFilter.INFO: 1, LogFilter.WARNINGS: 2, LogFilter.ERRORS: 3}


class LogRole(IntEnum):
    """What a row says beyond its text."""

    TIME = Qt.ItemDataRole.UserRole + 1
    """Hours, minutes and seconds of the day here, a string."""
    LEVEL = Qt.ItemDataRole.UserRole + 2
    """As the server says it; "" for what the program wrote to its error stream."""
    SEVERITY = Qt.ItemDataRole.UserRole + 3
    """From 0, for debugging, to 3, for errors; -1 for what has no level."""


def severity_of(level: str) -> int:
    """From 0, for debugging, to 3, for errors; -1 for none. A level that nobody knows counts as information."""
    return _SEVERITIES.get(level.lower(), 1) if level else -1


def format_line(line: McpLogLine) -> str:
    """A whole line, as it is copied."""
    level = f"[{line.level}] " if line.level else ""
    return f"{format_time(line)} {level}{line.text}"


def format_time(line: McpLogLine) -> str:
    """The time of day here."""
    return line.at.astimezone().strftime("%H:%M:%S")


class LogModel(QAbstractListModel):
    """At most MOST_LINES, oldest first. `dropped` counts the rows that went at the top to make room."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lines: list[McpLogLine] = []
        self._rows: list[McpLogLine] = []
        self._filter = LogFilter.ALL
        self.dropped = 0

    def show_lines(self, lines: Sequence[McpLogLine]) -> None:
        """These and no others."""
        self._lines = list(lines)[-MAX_LINES:]
        self._reset()

    def add(self, lines: Sequence[McpLogLine]) -> None:
        """These came."""
        self._lines += lines
        gone, self._lines = self._lines[:-MAX_LINES], self._lines[-MAX_LINES:]
        left = len(self._filtered(gone))
        if left >= len(self._rows):
            # The lines that came are more than there is room for, or nothing was shown.
            self.dropped += len(self._rows)
            self._reset()
            return
        self._remove_first(left)
        new = self._filtered(lines)
        if new:
            self.beginInsertRows(_ROOT, len(self._rows), len(self._rows) + len(new) - 1)
            self._rows += new
            self.endInsertRows()

    def set_filter(self, shown: LogFilter) -> None:
        """Show only such lines."""
        self._filter = shown
        self._reset()

    def lines(self, rows: Iterable[int] | None = None) -> tuple[McpLogLine, ...]:
        """Those of these rows, or all that are shown."""
        if rows is None:
            return tuple(self._rows)
        return tuple(self._rows[each] for each in sorted(rows) if 0 <= each < len(self._rows))

    def rowCount(self, parent: Index = _ROOT) -> int:
        """One for each line that is shown."""
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """The text, its time and its level."""
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

    def _remove_first(self, count: int) -> None:
        if count:
            self.beginRemoveRows(_ROOT, 0, count - 1)
            del self._rows[:count]
            self.endRemoveRows()
            self.dropped += count

    def _reset(self) -> None:
        self.beginResetModel()
        self._rows = self._filtered(self._lines)
        self.endResetModel()

    def _filtered(self, lines: Sequence[McpLogLine]) -> list[McpLogLine]:
        if self._filter is LogFilter.ALL:
            return list(lines)
        if self._filter is LogFilter.WRITTEN:
            return [each for each in lines if not each.level]
        least = _MIN_SEVERITY[self._filter]
        return [each for each in lines if severity_of(each.level) >= least]
