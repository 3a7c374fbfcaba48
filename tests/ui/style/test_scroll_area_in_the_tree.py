"""Scroll areas for assistive technology, which may ask for a child that has just gone."""

import subprocess
import sys

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QLabel, QScrollArea

from tests.frame.patience import PATIENCE
from ui.style.accessibility import install_accessibility

ASKED_EARLY = """
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QLabel, QScrollArea
from ui.style.accessibility import install_accessibility
app = QApplication(["asked-early", "-platform", "offscreen"])
QAccessible.setActive(True)
area = QScrollArea()
area.setWidget(QLabel("words"))
area.show()
assert QAccessible.queryAccessibleInterface(area).childCount() > 0
install_accessibility(app)
print(QAccessible.queryAccessibleInterface(area).child(40), flush=True)
"""
"""A window is shown before its program is loaded, and may be read in between."""

ASKED_WHILE_LOADED = """
import sys
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QScrollArea
from ui import __main__ as program
async def load(startup):
    for area in startup.window.findChildren(QScrollArea):
        print(QAccessible.queryAccessibleInterface(area).child(40), flush=True)
    return False
program._load = load
program.main(["--data-dir", sys.argv[1]])
"""


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


def test_a_child_that_has_gone_is_none_in_an_area_that_was_read_before_too():
    assert said_by(ASKED_EARLY) == ["None"]


def test_a_child_that_has_gone_is_none_while_the_program_is_loaded_too(tmp_path):
    said = said_by(ASKED_WHILE_LOADED, str(tmp_path))
    assert set(said) == {"None"}


def said_by(program: str, *arguments: str) -> list[str]:
    """The lines of a process of its own, which may crash."""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
