"""Fields of one form stand alike, say what is wrong once they were touched, and keep what is finer than they show."""

from datetime import datetime

import pytest
from PySide6.QtCore import QDate, QLocale, QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QComboBox, QDateEdit, QFileDialog, QPushButton, QTimeEdit

from desktop_agent.types.preferences import StoragePreferences
from desktop_agent.types.schedules import LAST_TIME, Once
from ui.forms.controls import check_box, check_boxes, menu, number_box, radio_buttons, text_area, text_line
from ui.forms.form import Form
from ui.forms.model_fields import add_model_fields
from ui.settings.schedule_timing import TimingEditor
from ui.settings.tool_picker import GroupedMenu
from ui.style.style_sheet import apply_theme
from ui.style.theme import ThemeSource


class Fields(Form):
    def __init__(self):
        super().__init__()
        controls = {
            "Text": text_line(),
            "Menu": menu([("", "||||")]),
            "Few": number_box(0, 99, prefix="||||"),
            "Many": number_box(0, 99, decimals=2, prefix="||||", suffix=" tokens for each call"),
        }
        controls["Text"].show("||||")
        for title, control in controls.items():
            self.add_field(title, title, control)
        self.text, self.menu, self.few, self.many = (control.widget for control in controls.values())


@pytest.fixture(params=[100, 150, 200])
def form(request, qtbot, qapp):
    font, palette, themes = qapp.font(), qapp.palette(), ThemeSource()
    themes.use(themes.theme, request.param)
    apply_theme(qapp, themes)
    made = Fields()
    made.resize(900, 600)
    qtbot.addWidget(made)
    made.show()
    yield made
    qapp.setStyleSheet("")
    qapp.setFont(font)
    qapp.setPalette(palette)


def first_letter(field):
    """How far it stands from the leading edge."""
    picture, middle = field.grab().toImage(), field.height() // 2
    columns = range(3, picture.width() - 3)
    return next(
        x for x in columns if any(picture.pixelColor(x, y).lightness() < 150 for y in range(middle - 4, middle + 4))
    )


def test_they_begin_at_one_line(qtbot, form):
    form.setFocus()
    qtbot.waitUntil(lambda: form.few.lineEdit().textMargins().left() > 0)
    places = [first_letter(each) for each in (form.text, form.menu, form.few, form.many)]
    assert max(places) - min(places) <= 1


def test_from_the_right_the_room_is_at_the_right(qtbot, form):
    form.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    margins = form.few.lineEdit().textMargins()
    assert margins.left() == 0 < margins.right()


def test_numbers_are_as_wide_as_the_widest_needs(qtbot, form):
    qtbot.waitUntil(lambda: form.few.width() == form.many.width())
    assert form.many.width() == form.many.sizeHint().width() < form.text.width()
    form.resize(form.minimumSizeHint().width(), 600)
    qtbot.waitUntil(lambda: form.width() < 700)
    assert form.many.geometry().right() <= form.width()


def worded(name):
    return "" if name else "Write one."


def test_an_error_shows_at_its_field_once_that_was_changed(qtbot):
    form = Form()
    qtbot.addWidget(form)
    name, other = (form.add_field(each, each, text_line(), worded, help_text="Help.") for each in ("Name", "Other"))
    form.show()
    name.control.widget.setText("x")
    name.control.widget.clear()
    assert name.control.widget.accessibleDescription() == "Write one. Help."
    assert other.control.widget.accessibleDescription() == "Help."
    assert name.control.widget.property("invalid") == "true"
    name.control.show("Ada")
    assert form.show_errors()
    assert name.control.widget.accessibleDescription() == "Help."
    assert form.focusWidget() is other.control.widget
    other.control.widget.setText("B")
    assert not form.show_errors()
    assert form.values == {"Name": "Ada", "Other": "B"}


def test_showing_values_is_no_change(qtbot):
    form = Form()
    qtbot.addWidget(form)
    controls = {
        "line": text_line(),
        "area": text_area(2),
        "box": check_box("On"),
        "menu": menu([("a", "A"), ("b", "B")], missing="{0} (missing)"),
        "several": check_boxes([("a", "A"), ("b", "B")]),
        "one": radio_buttons([("a", "A"), ("b", "B")], "a"),
        "number": number_box(0, 9),
    }
    for name, control in controls.items():
        form.add_field(name, name, control)
    values = {"line": "x", "area": "y", "box": True, "menu": "c", "several": ["b"], "one": "b", "number": 3}
    with qtbot.assertNotEmitted(form.changed):
        form.show_values(values)
    assert form.values == values
    with qtbot.waitSignal(form.changed) as caught:
        controls["number"].widget.setValue(4)
    assert caught.args == ["number"]


def test_a_finer_number_stays_until_it_is_edited(qtbot):
    control = number_box(0, 1440, decimals=1, scale=1 / 60, zero_text="No limit", zero_is_none=True)
    qtbot.addWidget(control.widget)
    control.show(100.25)
    assert (control.widget.value(), control.read()) == (1.7, 100.25)
    control.widget.setValue(2.5)
    assert control.read() == 150
    control.widget.setValue(0)
    assert control.read() is None
    control.show(None)
    assert control.widget.text() == "No limit"


def test_a_number_is_grouped_as_in_the_locale_and_typed_as_one_likes(qtbot):
    box = number_box(0, 99_999, suffix=" tokens").widget
    box.setLocale(QLocale("en_US"))
    qtbot.addWidget(box)
    for typed, value, shown in (("16384", 16384, "16,384 tokens"), ("2,048", 2048, "2,048 tokens")):
        box.selectAll()
        qtbot.keyClicks(box, typed)
        qtbot.keyClick(box, Qt.Key.Key_Return)
        assert (box.value(), box.text()) == (value, shown)


def test_a_warning_is_said_with_the_field(qtbot):
    form = Form()
    qtbot.addWidget(form)
    row = form.add_field("a", "A", text_line(), is_optional=True)
    row.show_warning("It is kept in a file.")
    assert row.control.widget.accessibleDescription() == "Optional. It is kept in a file."


def test_a_folder_is_typed_or_chosen_in_a_dialog(qtbot, tmp_path):
    form = Form()
    qtbot.addWidget(form)
    add_model_fields(form, StoragePreferences, ["backup_folder"])
    form.show_values({"backup_folder": str(tmp_path)})
    form.show()
    browse = form.findChild(QPushButton)
    assert browse.accessibleName() == "Browse… Folder for backups"
    assert browse.focusPolicy() != Qt.FocusPolicy.NoFocus
    browse.click()
    dialog = form.findChild(QFileDialog)
    assert dialog.fileMode() == QFileDialog.FileMode.Directory
    assert dialog.directory().absolutePath() == str(tmp_path)
    with qtbot.waitSignal(form.changed):
        dialog.fileSelected.emit(str(tmp_path / "other"))
        dialog.close()
    assert form.values == {"backup_folder": str(tmp_path / "other")}


def grouped_menu():
    field = GroupedMenu(5, "{0}")
    for value in "abc":
        field.add_choice(value, value)
    return field


def timing_part(kind):
    editor = TimingEditor()
    editor.set_timing(Once(at=datetime(2030, 1, 2, 9, 0)))  # noqa: DTZ001
    return editor, editor.findChildren(kind)[0]


def test_the_day_of_a_scheduled_prompt_ends_where_times_can_be_counted(qtbot):
    editor, day = timing_part(QDateEdit)
    qtbot.addWidget(editor)
    day.setDate(QDate(9999, 12, 31))
    assert editor.timing.at.date() == LAST_TIME.date()
    assert editor.problem == ""


@pytest.mark.parametrize(
    "create",
    [
        lambda: menu([("a", "A"), ("b", "B")]).widget,
        grouped_menu,
        lambda: number_box(0, 99).widget,
        lambda: number_box(0, 99, decimals=2).widget,
        lambda: timing_part(QDateEdit),
        lambda: timing_part(QTimeEdit),
    ],
    ids=["menu", "grouped", "number", "decimals", "date", "time"],
)
def test_the_wheel_is_left_to_the_page_and_changes_no_value(qtbot, create):
    made = create()
    view, field = made if isinstance(made, tuple) else (made, made)
    qtbot.addWidget(view)
    for direction in (-120, 120):
        before, turned = shown_value(field), (QPoint(), QPoint(0, direction))
        phase, none = Qt.ScrollPhase.NoScrollPhase, Qt.KeyboardModifier.NoModifier
        event = QWheelEvent(QPointF(5, 5), QPointF(5, 5), *turned, Qt.MouseButton.NoButton, none, phase, False)
        QApplication.sendEvent(field, event)
        assert shown_value(field) == before
        assert not event.isAccepted()
    assert field.focusPolicy() is Qt.FocusPolicy.StrongFocus


def shown_value(field):
    return field.currentIndex() if isinstance(field, QComboBox) else field.text()
