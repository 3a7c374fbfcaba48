"""Rows of lists: icons stand where a line begins, badges where it ends, in either direction."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QListView

from ui.style.list_rows import RowDelegate, RowRole
from ui.style.theme import ThemeSource


@pytest.mark.parametrize("direction", [Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft])
def test_a_row_is_mirrored(qtbot, direction):
    themes, model, rows = ThemeSource(), QStandardItemModel(), QListView()
    qtbot.addWidget(rows)
    item = QStandardItem("")
    item.setData("document", RowRole.ICON)
    item.setData("problem", RowRole.BADGE)
    model.appendRow(item)
    rows.setModel(model)
    rows.setItemDelegate(RowDelegate(themes, rows))
    rows.setLayoutDirection(direction)
    rows.resize(400, 100)
    rows.show()
    picture = rows.viewport().grab().toImage()
    plain, danger = picture.pixelColor(200, 60), QColor(themes.theme.danger)
    columns = {"icon": [], "badge": []}
    for x in range(picture.width()):
        for y in range(rows.sizeHintForRow(0)):
            colour = picture.pixelColor(x, y)
            if colour == danger:
                columns["badge"].append(x)
            elif colour == QColor(themes.theme.muted) and colour != plain:
                columns["icon"].append(x)
    assert all(columns.values())
    is_mirrored = direction is Qt.LayoutDirection.RightToLeft
    middle = picture.width() // 2
    assert all((x > middle) is is_mirrored for x in columns["icon"])
    assert all((x < middle) is is_mirrored for x in columns["badge"])


def ink(rows):
    """Where the only row is dark, counted from the left and the top of all that is, and how far that left is."""
    picture = rows.viewport().grab(rows.visualRect(rows.model().index(0, 0))).toImage()
    columns, lines = range(picture.width()), range(picture.height())
    places = [(x, y) for x in columns for y in lines if picture.pixelColor(x, y).lightness() < 128]
    left, top = min(x for x, _ in places), min(y for _, y in places)
    return left, {(x - left, y - top) for x, y in places}


def test_a_title_reads_as_its_letters_do(qtbot):
    model, rows = QStandardItemModel(), QListView()
    qtbot.addWidget(rows)
    model.appendRow(QStandardItem("WWW."))
    rows.setModel(model)
    rows.setItemDelegate(RowDelegate(ThemeSource(), rows))
    rows.setStyleSheet("background: #ffffff")
    rows.resize(400, 100)
    rows.show()
    at_left = ink(rows)
    rows.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    at_right = ink(rows)
    assert at_left[0] < 200 < at_right[0]
    for _, places in (at_left, at_right):
        # The full stop, which is low, is not before the W.
        assert min(y for x, y in places if x < 3) < max(y for _, y in places) / 2
