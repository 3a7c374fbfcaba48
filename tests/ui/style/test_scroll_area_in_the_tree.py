"""Scroll areas for assistive technology, which may ask for a child that has just gone."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QLabel, QScrollArea

from ui.style.accessibility import install_accessibility


@pytest.fixture
def area(qtbot):
    install_accessibility(QApplication.instance())
    area = QScrollArea()
    qtbot.addWidget(area)
    area.setWidget(QLabel("wide " * 100))
    area.resize(200, 200)
    area.show()
    return area


def test_its_children_are_what_is_shown(area):
    node = QAccessible.queryAccessibleInterface(area)
    shown = [node.child(index) for index in range(node.childCount())]
    assert shown[0].object() is area.viewport()
    assert [node.indexOfChild(each) for each in shown] == list(range(len(shown)))
    assert len(shown) == 2
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    assert node.childCount() == 1


def test_a_child_that_has_gone_is_none(area):
    node = QAccessible.queryAccessibleInterface(area)
    assert node.child(2) is None
    assert node.child(40) is None
    assert node.child(-1) is None
