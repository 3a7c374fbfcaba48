"""Fields of one form stand alike: numbers are equally wide, and begin where words in a field begin."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QLineEdit, QSpinBox

from ui.preferences.forms import ValidatedForm
from ui.style.style_sheet import apply_theme
from ui.style.theme import ThemeSource


class Form(ValidatedForm):
    def __init__(self):
        super().__init__()
        self.text, self.menu, self.few, self.many = QLineEdit("||||"), QComboBox(), QSpinBox(), QDoubleSpinBox()
        self.menu.addItem("||||")
        self.few.setPrefix("||||")
        self.many.setPrefix("||||")
        self.many.setSuffix(" tokens for each call")
        for title, field in (("Text", self.text), ("Menu", self.menu), ("Few", self.few), ("Many", self.many)):
            self.add(title, field)


@pytest.fixture(params=[100, 150, 200])
def form(request, qtbot, qapp):
    font, palette, themes = qapp.font(), qapp.palette(), ThemeSource()
    themes.use(themes.theme, request.param)
    apply_theme(qapp, themes)
    made = Form()
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
