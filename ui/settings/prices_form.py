"""The page of prices: a table of what each model costs, edited in place."""

import math
from collections.abc import Sequence

from PySide6.QtCore import QAbstractTableModel, QObject, QSortFilterProxyModel, Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from desktop_agent.types.providers import Price
from ui.bridge.settings import ModelPriceEntry, Settings
from ui.style.boxes import hbox, vbox
from ui.style.controls import ClearableField, button, label
from ui.style.list_rows import ROOT, Index
from ui.style.text import labelled, localize_point, plain_tooltip
from ui.style.theme import SPACE_S, ThemeSource

_PRICE_FIELDS = ("input", "output", "cache_read", "cache_write")
FIRST_PRICE_COLUMN = 2
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


class PriceTableModel(QAbstractTableModel):
    """Server, model, and dollars per million tokens: input, output, cache read and cache write."""

    price_edited = Signal(str, str, object)
    """Vendor, model, and a Price with only the changed number."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._models: Sequence[ModelPriceEntry] = ()

    def show_models(self, models: Sequence[ModelPriceEntry]) -> None:
        """Show the models. Scroll position, selection and a number that is being typed stay with their model."""
        old = [_key(model) for model in self._models]
        rows = {_key(model): number for number, model in enumerate(models)}
        if old == list(rows):
            self._models = models
        else:
            # Not a reset: that would discard a number that is being typed.
            self.layoutAboutToBeChanged.emit()
            self._models = models
            indexes = self.persistentIndexList()
            moved = [self.index(rows.get(old[index.row()], -1), index.column()) for index in indexes]
            self.changePersistentIndexList(indexes, moved)
            self.layoutChanged.emit()
        if models:
            self.dataChanged.emit(self.index(0, 0), self.index(len(models) - 1, self.columnCount() - 1))

    def row(self, number: int) -> ModelPriceEntry:
        """Return the model of a row."""
        return self._models[number]

    def rowCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(self._models)

    def columnCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else FIRST_PRICE_COLUMN + len(_PRICE_FIELDS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(_LEFT if section < FIRST_PRICE_COLUMN else _RIGHT)
        title = self._column_titles()[section]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                # One word per line: the names of models need the room.
                return title.replace(" ", "\n")
            case Qt.ItemDataRole.AccessibleTextRole:
                return title
            case _:
                return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return what a cell shows."""
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
        """Emit an edited price. A text that is no price changes nothing."""
        if role != Qt.ItemDataRole.EditRole or index.column() < FIRST_PRICE_COLUMN:
            return False
        row, name = self._models[index.row()], _PRICE_FIELDS[index.column() - FIRST_PRICE_COLUMN]
        number = parse_price(str(value))
        if number is None or number == getattr(row.price, name):
            return False
        self.price_edited.emit(row.vendor, row.model, Price.model_validate({name: number}))
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Prices can be edited."""
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

    def _cell_text(self, row: ModelPriceEntry, column: int) -> str:
        if column < FIRST_PRICE_COLUMN:
            return (row.server, row.model)[column]
        number: float | None = getattr(row.price, _PRICE_FIELDS[column - FIRST_PRICE_COLUMN])
        return "" if number is None else localize_point(f"{number:.10g}")

    def _accessible_text(self, row: ModelPriceEntry, column: int) -> str:
        text = self._cell_text(row, column)
        if column < FIRST_PRICE_COLUMN:
            return text
        words = f"${text}" if text else self.tr("not known")
        title = self._column_titles()[column]
        return self.tr("{0}: {1}, changed by you").format(title, words) if row.is_own else labelled(title, words)


def _key(model: ModelPriceEntry) -> tuple[str, str, str]:
    return model.vendor, model.server, model.model


class _PriceDelegate(QStyledItemDelegate):
    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        editor = super().createEditor(parent, option, index)
        super().setEditorData(editor, index)
        return editor

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        """Do nothing: Qt calls this whenever the prices are listed again, and a typed text must stay."""


def parse_price(typed: str) -> float | None:
    """Parse dollars as people type them, with a comma or a point; None if it is no amount."""
    try:
        number = float(typed.strip().lstrip("$").replace(",", "."))
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


TABLE_HEIGHT = 300
_SERVER_WIDTH = 84


class PriceSettings(QWidget):
    """The prices, edited in place (F2 or double click), with a reset to what is shipped."""

    def __init__(self, themes: ThemeSource, settings: Settings) -> None:
        super().__init__()
        self._themes = themes
        self._settings = settings
        self._rows = PriceTableModel(self)
        self._filtered = QSortFilterProxyModel(self)
        self._filter = ClearableField(themes, self.tr("Filter by server or model"))
        self._table = QTableView()
        self._none = label(self.tr("Models are listed here when a server is connected."), "muted", wrap=True)
        self._reset = button(self.tr("Reset"), self._reset_row, name=self.tr("Reset to the original price"))
        self._configure_table()
        self._build_layout()
        self._rows.price_edited.connect(settings.change_price)
        self._filter.textChanged.connect(self._filtered.setFilterFixedString)
        self._table.selectionModel().currentChanged.connect(self._refresh)
        self._rows.dataChanged.connect(self._refresh)
        themes.follow(self._apply_zoom)
        self._refresh()

    def refresh(self) -> None:
        """Show the prices now in force."""
        self.show_models(self._settings.prices())

    def show_models(self, models: Sequence[ModelPriceEntry]) -> None:
        """Show the models without a signal."""
        self._rows.show_models(models)
        self._none.setVisible(not models)

    def _current(self) -> ModelPriceEntry | None:
        index = self._filtered.mapToSource(self._table.currentIndex())
        return self._rows.row(index.row()) if index.isValid() else None

    def _refresh(self) -> None:
        row = self._current()
        self._reset.setEnabled(row is not None and row.is_own)

    def _reset_row(self) -> None:
        row = self._current()
        if row is not None:
            self._settings.change_price(row.vendor, row.model, None)

    def _apply_zoom(self) -> None:
        zoom = self._themes.zoom / 100
        self._table.setMinimumHeight(round(TABLE_HEIGHT * zoom))
        self._table.setColumnWidth(0, round(_SERVER_WIDTH * zoom))
        self._table.verticalHeader().setDefaultSectionSize(round(30 * zoom))

    def _configure_table(self) -> None:
        self._filtered.setSourceModel(self._rows)
        self._filtered.setFilterKeyColumn(-1)
        self._filtered.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self._filter.setAccessibleName(self.tr("Filter prices"))
        table = self._table
        table.setModel(self._filtered)
        table.setItemDelegate(_PriceDelegate(table))
        table.setAccessibleName(self.tr("Prices"))
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setEditTriggers(
            QAbstractItemView.EditTrigger.DoubleClicked
            | QAbstractItemView.EditTrigger.EditKeyPressed
            | QAbstractItemView.EditTrigger.AnyKeyPressed
        )
        # Tab leaves the table; the arrow keys move in it.
        table.setTabKeyNavigation(False)
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.verticalHeader().hide()
        header = table.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Interactive)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)

    def _build_layout(self) -> None:
        words = self.tr(
            "US dollars per million tokens. Costs are calculated with these prices. Your changes are shown in bold "
            "and kept in “models.toml” in the data folder."
        )
        head = hbox(self._filter, self._reset, spacing=SPACE_S, grow=self._filter)
        title, intro = label(self.tr("Prices"), "strong"), label(words, "muted", wrap=True)
        parts = (title, intro, head, self._none, self._table)
        vbox(*parts, parent=self, spacing=SPACE_S, margins=0, grow=self._table)
