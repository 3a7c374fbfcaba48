"""In a window from the right a label stands at the right, in whatever letters it is written; code and rows do not."""

from datetime import time
from functools import partial

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QMenu, QPushButton, QTimeEdit, QWidget

from desktop_agent.types.line_diff import DiffLine
from desktop_agent.types.schedules import Weekly
from ui.approval.code_view import CodeView
from ui.composer.message_editor import MessageEditor
from ui.forms.controls import text_area
from ui.settings.schedule_timing import TimingEditor
from ui.style.controls import ElidedLabel, label, open_menu_at
from ui.style.theme import LIGHT, ThemeSource, chevron_towards
from ui.transcript.style import RenderStyle

WHITE = QColor("#ffffff")


@pytest.fixture
def from_the_right(qapp):
    # The direction of the program: painters take it, whatever that of their widget is.
    qapp.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    yield
    qapp.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)


def inked_columns(widget):
    """Where something dark is."""
    image = widget.grab().toImage()
    columns = range(image.width())
    return {x for x in columns if any(image.pixelColor(x, y).lightness() < 180 for y in range(image.height()))}


@pytest.mark.parametrize("words", ["Language", "שפה"])
@pytest.mark.parametrize("make", [label, partial(label, wrap=True), ElidedLabel], ids=["label", "wrapped", "elided"])
def test_a_label_stands_where_the_window_begins(qtbot, from_the_right, make, words):
    made = make(words)
    qtbot.addWidget(made)
    made.setStyleSheet("background: #ffffff; color: #000000")
    made.resize(400, 30)
    inked = inked_columns(made)
    assert inked
    assert min(inked) > 200


@pytest.mark.parametrize("edge", ["start", "end"])
def test_an_arrow_points_to_an_edge_of_the_window(qapp, edge, from_the_right):
    mirrored = chevron_towards(edge)
    qapp.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
    assert {mirrored, chevron_towards(edge)} == {"chevron-left", "chevron-right"}
    assert chevron_towards("start") == "chevron-left"


def test_a_menu_begins_where_its_button_does(qtbot, qt_messages, from_the_right):
    # The offscreen platform says so of every popup.
    qt_messages.expect("grabbing the keyboard")
    window = QWidget()
    qtbot.addWidget(window)
    over, menu = QPushButton("Mode", window), QMenu(window)
    menu.addAction("Asks before it changes something")
    window.resize(600, 100)
    over.setGeometry(400, 10, 100, 30)
    window.show()
    open_menu_at(over, menu, over.height())
    assert menu.geometry().right() == over.mapToGlobal(over.rect().topRight()).x()
    menu.close()


@pytest.mark.parametrize(
    ("align", "is_at_the_left"), [(Qt.AlignmentFlag.AlignVCenter, True), (Qt.AlignmentFlag.AlignRight, False)]
)
def test_a_line_of_the_transcript_stands_where_it_was_put(qtbot, from_the_right, align, is_at_the_left):
    class Line(QWidget):
        def paintEvent(self, _):  # noqa: N802  Qt's name
            painter = QPainter(self)
            painter.fillRect(self.rect(), WHITE)
            RenderStyle(LIGHT, 100).draw_text(painter, self.rect(), "Read a file", align=align)
            painter.end()

    line = Line()
    qtbot.addWidget(line)
    line.resize(400, 30)
    inked = inked_columns(line)
    assert inked
    assert all((x < 200) is is_at_the_left for x in inked)


def test_the_number_and_the_sign_of_a_line_stand_apart(qtbot, from_the_right):
    view = CodeView(ThemeSource(LIGHT), "Change", 2, 4)
    qtbot.addWidget(view)
    view.resize(400, 60)
    view.show_lines([DiffLine("same", "x", new=1111)], ["x"])
    number = inked_columns(view._margin)
    view.show_lines([DiffLine("added", "x", new=1111)], ["x"])
    sign = inked_columns(view._margin) - number
    assert number
    assert max(sign) > max(number)


@pytest.mark.parametrize(
    ("typed", "is_at_the_right"), [("", True), ("Plum jam", False), ("ריבת שזיפים", True), ("Marmelade für Ada", False)]
)
def test_an_editor_aligns_what_is_typed_by_its_letters(qtbot, from_the_right, typed, is_at_the_right):
    editor = MessageEditor(ThemeSource(LIGHT))
    qtbot.addWidget(editor)
    editor.resize(400, 60)
    editor.show()
    editor.insert_text(typed)
    qtbot.waitUntil(lambda: (editor.cursorRect().x() > 200) is is_at_the_right)
    editor.clear()
    qtbot.waitUntil(lambda: editor.cursorRect().x() > 200)


def test_an_editor_aligns_its_text_in_a_window_from_the_left(qtbot):
    control = text_area(2)
    editor = control.widget
    qtbot.addWidget(editor)
    editor.resize(400, 60)
    editor.show()
    assert editor.cursorRect().x() < 200
    control.show("ריבת שזיפים")
    qtbot.waitUntil(lambda: editor.cursorRect().x() > 200)
    control.show("Plum jam")
    qtbot.waitUntil(lambda: editor.cursorRect().x() < 200)


def test_a_time_is_shown_in_its_order(qtbot, from_the_right):
    editor = TimingEditor()
    qtbot.addWidget(editor)
    editor.set_timing(Weekly(days=(0,), at=time(9, 5)))
    assert editor.findChild(QTimeEdit).text() in {"09:05", "9:05 AM"}
