"""What a search found, as rows of a list: things to choose under headings, and remarks between them."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from ui.look.rows import RowRole
from ui.look.sentences import plain_tooltip

Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """What a row looks like and says. What it stands for is added by those who search."""

    text: str
    under: str = ""
    detail: str = ""
    icon: str = ""
    badge: str = ""
    """As RowRole.BADGE."""
    tip: str = ""
    """More about it; without one the tooltip has the text and what is under it."""
    spoken: str = ""
    """For a screen reader, where the text and what is under it are not said best in turn."""
    is_heading: bool = False
    is_faded: bool = False
    is_choosable: bool = False
    is_current: bool = False
    """It is in use already."""


class ResultModel(QAbstractListModel):
    """Only what is choosable can be selected."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: Sequence[ResultRow] = ()

    def show_rows(self, rows: Sequence[ResultRow]) -> None:
        """These, in this order."""
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def row(self, number: int) -> ResultRow:
        """One row."""
        return self._rows[number]

    def place_of(self, row: ResultRow | None) -> int:
        """Where the like of this one stands now, or -1."""
        return next((at for at, each in enumerate(self._rows) if each == row), -1)

    @property
    def current(self) -> int:
        """Where the one in use stands, or -1."""
        return next((at for at, each in enumerate(self._rows) if each.is_current), -1)

    def next_choosable(self, start: int, step: int) -> int:
        """The next row after `start`, going by `step`, that can be chosen; -1 if there is none."""
        number = start + step
        while 0 <= number < len(self._rows):
            if self._rows[number].is_choosable:
                return number
            number += step
        return -1

    def rowCount(self, parent: Index = _ROOT) -> int:
        """How many rows."""
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """What a row says and looks like."""
        return _row_data(self._rows[index.row()], role) if index.isValid() else None

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Headings and remarks cannot be chosen."""
        if index.isValid() and self._rows[index.row()].is_choosable:
            return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return Qt.ItemFlag.NoItemFlags


def _row_data(row: ResultRow, role: int) -> object:
    lines = [each for each in (row.text, row.under) if each]
    match role:
        case Qt.ItemDataRole.DisplayRole:
            return row.text
        case Qt.ItemDataRole.AccessibleTextRole:
            return row.spoken or ", ".join(lines)
        case Qt.ItemDataRole.ToolTipRole:
            return plain_tooltip(row.tip or "\n".join(lines))
        case _:
            return _appearance_data(row, role)


def _appearance_data(row: ResultRow, role: int) -> object:
    match role:
        case RowRole.DETAIL:
            return row.detail
        case RowRole.SUBTITLE:
            return row.under
        case RowRole.ICON:
            return row.icon
        case RowRole.BADGE:
            return row.badge
        case RowRole.HEADING:
            return row.is_heading
        case RowRole.FADED:
            return row.is_faded
        case _:
            return None
