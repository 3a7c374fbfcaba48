"""The model of a specialist: that of whoever calls it, one that a server listed, or another by name."""

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QComboBox, QLineEdit, QVBoxLayout, QWidget

from ui.bridge.servers import ModelGroup
from ui.look.controls import ComboBox
from ui.look.theme import SPACE_XS

_CALLER_MODEL, _CUSTOM_MODEL = "", "\n"
"""Data of the two entries that name no model; no model is called so."""
MIN_MODEL_CHARS = 22


class ModelChoice(QWidget):
    """`model` is what is chosen; None: that of whoever calls it."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._groups: tuple[ModelGroup, ...] = ()
        self._items = QStandardItemModel(self)
        self.menu = ComboBox()
        self.menu.setModel(self._items)
        self.menu.setMinimumContentsLength(MIN_MODEL_CHARS)
        self.menu.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.menu.setAccessibleName(self.tr("Model"))
        self.other = QLineEdit()
        self.other.setAccessibleName(self.tr("Name of the model"))
        self.other.setPlaceholderText(self.tr("Name of the model, as its server calls it"))
        self.other.setMaxLength(200)
        self.setFocusProxy(self.menu)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self.menu)
        layout.addWidget(self.other)
        self._populate_menu(None)
        self.menu.currentIndexChanged.connect(self._on_selected)
        self.other.textChanged.connect(self.changed)

    @property
    def model(self) -> str | None:
        """What is chosen."""
        chosen = str(self.menu.currentData())
        return (self.other.text().strip() if chosen == _CUSTOM_MODEL else chosen) or None

    @property
    def is_missing(self) -> bool:
        """Whether another one is wanted and not named."""
        return self.menu.currentData() == _CUSTOM_MODEL and not self.other.text().strip()

    def set_model(self, model: str | None) -> None:
        """This one; one that no server listed stays, and says so."""
        self._populate_menu(model)

    def show_models(self, groups: Sequence[ModelGroup]) -> None:
        """What servers listed; what is chosen stays."""
        self._groups = tuple(groups)
        chosen = self.menu.currentData()
        self._populate_menu(self.model)
        if chosen == _CUSTOM_MODEL:
            self.menu.setCurrentIndex(self.menu.findData(_CUSTOM_MODEL))

    def _populate_menu(self, model: str | None) -> None:
        with QSignalBlocker(self.menu):
            self._items.clear()
            self._add_item(self.tr("Same as whoever calls it"), _CALLER_MODEL)
            for group in self._groups:
                if group.models:
                    heading = QStandardItem(group.endpoint.title)
                    heading.setFlags(Qt.ItemFlag.NoItemFlags)
                    self._items.appendRow(heading)
                for each in group.models:
                    self._add_item(each.id, each.id)
            if model is not None and self.menu.findData(model) < 0:
                self._add_item(self.tr("{0} (not listed)").format(model), model)
            self._add_item(self.tr("Another model…"), _CUSTOM_MODEL)
            self.menu.setCurrentIndex(self.menu.findData(model or _CALLER_MODEL))
        self._on_selected()

    def _on_selected(self) -> None:
        is_other = self.menu.currentData() == _CUSTOM_MODEL
        self.other.setVisible(is_other)
        if is_other and self.menu.hasFocus():
            self.other.setFocus()
        self.changed.emit()

    def _add_item(self, words: str, model: str) -> None:
        item = QStandardItem(words)
        item.setData(model, Qt.ItemDataRole.UserRole)
        self._items.appendRow(item)
