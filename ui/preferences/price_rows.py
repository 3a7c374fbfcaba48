"""The table of prices: a row for each model of each server in use, with numbers that can be changed in place."""

import math
from collections.abc import Sequence
from typing import Protocol

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QFont

from desktop_agent.vocabulary.requests import Price
from ui.look.sentences import plain_tooltip

_ROOT = QModelIndex()
_PRICE_FIELDS = ("input", "output", "cache_read", "cache_write")
FIRST_PRICE_COLUMN = 2
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
Index = QModelIndex | QPersistentModelIndex


class PricedModel(Protocol):
    """One model of one server, and what it costs."""

    @property
    def server(self) -> str:
        """The server's title."""
        ...

    @property
    def vendor(self) -> str:
        """Whose row of the table of models it is."""
        ...

    @property
    def model(self) -> str:
        """The model's id."""
        ...

    @property
    def price(self) -> Price:
        """What is known."""
        ...

    @property
    def is_own(self) -> bool:
        """Whether the person changed something about it."""
        ...


class PriceTableModel(QAbstractTableModel):
    """Server, model, and dollars for a million tokens in, out, read from the cache and written to it."""

    price_edited = Signal(str, str, object)
    """Vendor, model, and a Price in which only the changed number is set."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._models: Sequence[PricedModel] = ()

    def show_models(self, models: Sequence[PricedModel]) -> None:
        """What there is. The same models again keep the place and the selection."""
        before, self._models = self._models, models
        if [(each.vendor, each.server, each.model) for each in before] == [
            (each.vendor, each.server, each.model) for each in models
        ]:
            if models:
                self.dataChanged.emit(self.index(0, 0), self.index(len(models) - 1, self.columnCount() - 1))
            return
        self.beginResetModel()
        self.endResetModel()

    def row(self, number: int) -> PricedModel:
        """One row."""
        return self._models[number]

    def rowCount(self, parent: Index = _ROOT) -> int:
        """How many models."""
        return 0 if parent.isValid() else len(self._models)

    def columnCount(self, parent: Index = _ROOT) -> int:
        """Always the same."""
        return 0 if parent.isValid() else FIRST_PRICE_COLUMN + len(_PRICE_FIELDS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """What the columns are."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(_LEFT if section < FIRST_PRICE_COLUMN else _RIGHT)
        return self._column_titles()[section] if role == Qt.ItemDataRole.DisplayRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """What a cell says."""
        if not index.isValid():
            return None
        row, column = self._models[index.row()], index.column()
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole:
                return self._cell_text(row, column)
            case Qt.ItemDataRole.AccessibleTextRole:
                return self._accessible_text(row, column)
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tooltip(row.model if column < FIRST_PRICE_COLUMN else self._accessible_text(row, column))
            case Qt.ItemDataRole.TextAlignmentRole:
                return int(_LEFT if column < FIRST_PRICE_COLUMN else _RIGHT)
            case Qt.ItemDataRole.FontRole if row.is_own and column >= FIRST_PRICE_COLUMN:
                bold = QFont()
                bold.setWeight(QFont.Weight.DemiBold)
                return bold
            case _:
                return None

    def setData(self, index: Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """A number was typed. What is no number changes nothing."""
        if role != Qt.ItemDataRole.EditRole or index.column() < FIRST_PRICE_COLUMN:
            return False
        row, name = self._models[index.row()], _PRICE_FIELDS[index.column() - FIRST_PRICE_COLUMN]
        number = parse_price(str(value))
        if number is None or number == getattr(row.price, name):
            return False
        self.price_edited.emit(row.vendor, row.model, Price.model_validate({name: number}))
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Numbers can be changed."""
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemIsEditable if index.column() >= FIRST_PRICE_COLUMN else flags

    def _column_titles(self) -> tuple[str, ...]:
        return (
            self.tr("Server"),
            self.tr("Model"),
            self.tr("In"),
            self.tr("Out"),
            self.tr("Cache read"),
            self.tr("Cache write"),
        )

    def _cell_text(self, row: PricedModel, column: int) -> str:
        if column < FIRST_PRICE_COLUMN:
            return (row.server, row.model)[column]
        number: float | None = getattr(row.price, _PRICE_FIELDS[column - FIRST_PRICE_COLUMN])
        return "" if number is None else f"{number:.10g}"

    def _accessible_text(self, row: PricedModel, column: int) -> str:
        text = self._cell_text(row, column)
        if column < FIRST_PRICE_COLUMN:
            return text
        words = f"${text}" if text else self.tr("not known")
        title = self._column_titles()[column]
        return self.tr("{0}: {1}, changed by you").format(title, words) if row.is_own else f"{title}: {words}"


def parse_price(typed: str) -> float | None:
    """Dollars as people type them, with a comma or a point; None for what is no amount."""
    try:
        number = float(typed.strip().lstrip("$").replace(",", "."))
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
