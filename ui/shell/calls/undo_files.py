"""The files that an undoing would change: what becomes of each, and which are let be replaced."""

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from desktop_agent.vocabulary.conduct.checkpoints import FileRestorePlan, RestoreEffect
from ui.look.icons import icon
from ui.look.sentences import plain_tooltip, translate_sentence
from ui.look.style import selected_background
from ui.look.theme import RADIUS_M, ThemeSource
from ui.look.visible_text import show_hidden

_FILE, _FATE, _REPLACE = range(3)
_MAX_VISIBLE_ROWS = 7
_Index = QModelIndex | QPersistentModelIndex


class UndoFileList(QTreeWidget):
    """A line for each file. A tick lets one be put back although it was changed since."""

    chosen = Signal(object, bool)
    """The file at hand, and whether it is to be replaced even if it was changed."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._files: tuple[FileRestorePlan, ...] = ()
        self._items: list[QTreeWidgetItem] = []
        self.setAccessibleName(self.tr("Files that would be changed"))
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setItemDelegate(_CellDelegate(self))
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHeaderLabels([self.tr("File"), self.tr("What becomes of it"), self.tr("Even if changed")])
        header = self.header()
        header.setStretchLastSection(False)
        header.setSectionsMovable(False)
        header.setSectionResizeMode(_FILE, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(_FATE, QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(_REPLACE, QHeaderView.ResizeMode.ResizeToContents)
        self.currentItemChanged.connect(self._choose)
        self.itemChanged.connect(self._on_tick)
        themes.changed.connect(self._draw)

    @property
    def replaced(self) -> list[FileRestorePlan]:
        """Those that are ticked."""
        return [file for at, file in enumerate(self._files) if self._is_ticked(at)]

    def show_files(self, files: Sequence[FileRestorePlan]) -> None:
        """These, none of them ticked."""
        self._files = tuple(files)
        self.blockSignals(True)  # Qt's way
        self.clear()
        self._items = []
        folders = {each.folder for each in files}
        for file in files:
            name = file.path if len(folders) == 1 else f"{file.folder}/{file.path}"
            item = QTreeWidgetItem([show_hidden(name), "", ""])
            if file.is_conflict:
                item.setCheckState(_REPLACE, Qt.CheckState.Unchecked)
            self._items.append(item)
        self.addTopLevelItems(self._items)
        self.blockSignals(False)  # Qt's way
        self.setColumnHidden(_REPLACE, not any(each.is_conflict for each in files))
        self._draw()
        self._fit()
        if files:
            self.setCurrentItem(self._items[0])

    def drawRow(self, painter: QPainter, options: QStyleOptionViewItem, index: _Index) -> None:
        """One ground under all cells of the row at hand, as in lists of one column."""
        theme = self._themes.theme
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = options.rect.adjusted(0, 1, 0, -1)
        if self.selectionModel().isSelected(index):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(selected_background(theme)))
            painter.drawRoundedRect(area, RADIUS_M, RADIUS_M)
        if self.hasFocus() and self.currentIndex().row() == index.row():
            painter.setPen(QPen(QColor(theme.accent), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(area.adjusted(1, 1, -1, -1), RADIUS_M, RADIUS_M)
        painter.restore()
        super().drawRow(painter, options, index)

    def _is_ticked(self, at: int) -> bool:
        file = self._files[at]
        return file.is_conflict and self._items[at].checkState(_REPLACE) == Qt.CheckState.Checked

    def _draw(self) -> None:
        self.blockSignals(True)  # Qt's way
        for at, file in enumerate(self._files):
            self._draw_one(self._items[at], file, replaced=self._is_ticked(at))
        self.blockSignals(False)  # Qt's way

    def _draw_one(self, item: QTreeWidgetItem, file: FileRestorePlan, *, replaced: bool) -> None:
        fate = file.effect(replaced=replaced)
        words = fate_labels()[fate]
        why = "" if file.reason is None or replaced else show_hidden(translate_sentence(file.reason))
        if why and fate != "left":
            words = self.tr("{0}, in part").format(words)
        theme = self._themes.theme
        name, colour = {
            "put_back": ("undo", theme.text),
            "brought_back": ("plus", theme.text),
            "removed": ("trash", theme.text),
            "left": ("warning", theme.warning),
        }[fate]
        item.setText(_FATE, words)
        item.setIcon(_FATE, icon(name, colour, size=15))
        item.setToolTip(_FILE, plain_tooltip(item.text(_FILE)))
        item.setToolTip(_FATE, plain_tooltip(why or words))
        item.setData(_FATE, Qt.ItemDataRole.AccessibleTextRole, f"{words}. {why}" if why else words)
        item.setData(_REPLACE, Qt.ItemDataRole.AccessibleTextRole, self.tr("Even if changed"))

    def _fit(self) -> None:
        rows = min(max(len(self._files), 1), _MAX_VISIBLE_ROWS)
        height = self.sizeHintForRow(0) if self._files else self.fontMetrics().height() * 2
        self.setFixedHeight(self.header().sizeHint().height() + rows * height + 4)

    def _choose(self, *_items: object) -> None:
        current = self.currentItem()
        at = -1 if current is None else self.indexOfTopLevelItem(current)
        if at >= 0:
            self.chosen.emit(self._files[at], self._is_ticked(at))

    def _on_tick(self, item: QTreeWidgetItem) -> None:
        self._draw()
        self.setCurrentItem(item)
        self._choose()


class _CellDelegate(QStyledItemDelegate):
    """Nothing of the row's state: that is drawn under all of them."""

    def initStyleOption(self, option: QStyleOptionViewItem, index: _Index) -> None:
        super().initStyleOption(option, index)
        drawn_below = (
            QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_HasFocus | QStyle.StateFlag.State_MouseOver
        )
        option.state &= ~drawn_below


def fate_labels() -> dict[RestoreEffect, str]:
    """What becomes of a file, in the language of now."""
    translate = QCoreApplication.translate
    return {
        "put_back": translate("UndoFiles", "Put back"),
        "brought_back": translate("UndoFiles", "Brought back"),
        "removed": translate("UndoFiles", "Removed again"),
        "left": translate("UndoFiles", "Stays as it is"),
    }
