"""The walk over the screens finds what it is for."""

from PySide6.QtWidgets import QApplication, QCheckBox, QPushButton, QVBoxLayout, QWidget

from tests.gallery.spoken import faults
from ui.style.accessibility import install_accessibility


def test_it_finds_what_has_no_name_a_count_in_it_or_the_same_twice(qapp, qtbot):
    install_accessibility(QApplication.instance())
    page = QWidget()
    qtbot.addWidget(page)
    column = QVBoxLayout(page)
    buttons = (QPushButton(), QPushButton("Waiting: 3"), QPushButton("Close"), QPushButton("Close"))
    for part in (*buttons, QCheckBox("Close")):
        column.addWidget(part)
    page.show()
    assert [fault.partition(": QPushButton")[0] for fault in faults()] == ["no name", "value in the name", "twice"]
