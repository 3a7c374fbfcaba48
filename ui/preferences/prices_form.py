"""What models cost: a table to look things up in and to correct."""

from collections.abc import Sequence

from PySide6.QtCore import QSortFilterProxyModel, Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QHBoxLayout, QHeaderView, QTableView, QVBoxLayout, QWidget

from ui.look.controls import ClearableField, button, label
from ui.look.theme import SPACE_S, ThemeSource
from ui.preferences.price_rows import PricedModel, PriceTableModel

TABLE_HEIGHT = 300
COLUMN_WIDTHS = {0: 92, 2: 68, 3: 68, 4: 96, 5: 96}


class PricesForm(QWidget):
    """Numbers are changed in place (F2 or a double click); a row goes back to what the program knows."""

    price_changed = Signal(str, str, object)
    """Vendor, model, and the Price whose numbers are new, or None to go back."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._rows = PriceTableModel(self)
        self._filtered = QSortFilterProxyModel(self)
        self._filter = ClearableField(themes, self.tr("Filter by server or model"))
        self._table = QTableView()
        self._none = label(self.tr("Models are listed here when a server is connected."), "muted", wrap=True)
        self._reset = button(self.tr("Reset"), self._reset_row, name=self.tr("Reset the price to what is shipped"))
        self._configure_table()
        self._build_layout()
        self._rows.price_edited.connect(self.price_changed)
        self._filter.textChanged.connect(self._filtered.setFilterFixedString)
        self._table.selectionModel().currentChanged.connect(self._refresh)
        self._rows.dataChanged.connect(self._refresh)
        self._rows.modelReset.connect(self._refresh)
        themes.changed.connect(self._apply_zoom)
        self._apply_zoom()
        self._refresh()

    def show_models(self, models: Sequence[PricedModel]) -> None:
        """What there is; nothing is reported."""
        self._rows.show_models(models)
        self._none.setVisible(not models)

    def _current(self) -> PricedModel | None:
        index = self._filtered.mapToSource(self._table.currentIndex())
        return self._rows.row(index.row()) if index.isValid() else None

    def _refresh(self) -> None:
        row = self._current()
        self._reset.setEnabled(row is not None and row.is_own)

    def _reset_row(self) -> None:
        row = self._current()
        if row is not None:
            self.price_changed.emit(row.vendor, row.model, None)

    def _apply_zoom(self) -> None:
        zoom = self._themes.zoom / 100
        self._table.setMinimumHeight(round(TABLE_HEIGHT * zoom))
        for column, width in COLUMN_WIDTHS.items():
            self._table.setColumnWidth(column, round(width * zoom))
        self._table.verticalHeader().setDefaultSectionSize(round(30 * zoom))

    def _configure_table(self) -> None:
        self._filtered.setSourceModel(self._rows)
        self._filtered.setFilterKeyColumn(-1)
        self._filtered.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self._filter.setAccessibleName(self.tr("Filter prices"))
        table = self._table
        table.setModel(self._filtered)
        table.setAccessibleName(self.tr("Prices"))
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setEditTriggers(
            QAbstractItemView.EditTrigger.DoubleClicked
            | QAbstractItemView.EditTrigger.EditKeyPressed
            | QAbstractItemView.EditTrigger.AnyKeyPressed
        )
        # Tab leaves the table; the arrow keys walk it.
        table.setTabKeyNavigation(False)
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.verticalHeader().hide()
        header = table.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)

    def _build_layout(self) -> None:
        words = self.tr(
            "US dollars for a million tokens. Costs are counted with these. Your changes are kept in “models.toml” "
            "in the data folder and stand in bold."
        )
        head = QHBoxLayout()
        head.setSpacing(SPACE_S)
        head.addWidget(self._filter, 1)
        head.addWidget(self._reset)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(label(self.tr("Prices"), "strong"))
        layout.addWidget(label(words, "muted", wrap=True))
        layout.addLayout(head)
        layout.addWidget(self._none)
        layout.addWidget(self._table, 1)
