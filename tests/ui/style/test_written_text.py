import pytest
from PySide6.QtGui import QGuiApplication

from tests.ui.drawn_order import rows_of
from ui.style.text_display import LogicalOrderText


@pytest.fixture
def field(qtbot):
    made = LogicalOrderText()
    qtbot.addWidget(made)
    made.resize(600, 100)
    made.show()
    return made


def test_lines_stand_in_their_order_and_are_copied_as_they_were(field):
    field.set_text("mv א ב\ncat א > ב")
    assert rows_of(field) == ["mvאב", "catא>ב"]
    assert field.text == "mv א ב\ncat א > ב"
    field.selectAll()
    field.copy()
    assert QGuiApplication.clipboard().text() == "mv א ב\ncat א > ב"
