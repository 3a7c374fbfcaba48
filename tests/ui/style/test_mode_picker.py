"""The menu of modes stays as it is while it is open, and the button says that it has one."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMenu, QVBoxLayout, QWidget

from desktop_agent.types.permissions import BUILT_IN_MODES, DEFAULT_MODE
from ui.composer.parameter_buttons import ParametersButton, ReasoningPicker
from ui.composer.pickers import ModelPicker, WorkspacePicker
from ui.style.pickers import ModePicker
from ui.style.style_sheet import apply_theme
from ui.style.theme import ThemeSource

PLAN = next(each for each in BUILT_IN_MODES if each.name == "plan")


class Desk:
    def __init__(self, qtbot, themes):
        self.window = QWidget()
        self.picker = ModePicker(themes)
        row = QVBoxLayout(self.window)
        row.addWidget(self.picker, 0, Qt.AlignmentFlag.AlignLeft)
        self.window.resize(400, 100)
        qtbot.addWidget(self.window)
        self.window.show()
        self.picker.show_modes(BUILT_IN_MODES, DEFAULT_MODE)
        self.menu = self.picker.findChild(QMenu)

    @property
    def offers(self):
        return [each.text() for each in self.menu.actions() if each.text()]


@pytest.fixture
def desk(qtbot, qapp):
    font, palette, themes = qapp.font(), qapp.palette(), ThemeSource()
    apply_theme(qapp, themes)
    yield Desk(qtbot, themes)
    qapp.setStyleSheet("")
    qapp.setFont(font)
    qapp.setPalette(palette)


def test_what_comes_while_it_is_open_waits_until_it_is_opened_again(qtbot, desk, qt_messages):
    # The offscreen platform says so of every popup.
    qt_messages.expect("grabbing the keyboard")
    desk.picker.open_menu()
    before, active = desk.offers, desk.menu.activeAction()
    assert active.text().startswith("Default")
    desk.picker.show_modes(BUILT_IN_MODES, DEFAULT_MODE, PLAN)
    assert (desk.offers, desk.menu.activeAction()) == (before, active)
    assert "Plan" in desk.picker.text()

    chosen = []
    desk.picker.mode_chosen.connect(chosen.append)
    qtbot.keyClick(desk.menu, Qt.Key.Key_Return)
    assert chosen == ["default"]
    desk.picker.open_menu()
    assert desk.offers == ["Change to “Plan” now", "Keep “Default”", *before]
    desk.menu.close()


@pytest.mark.parametrize("direction", [Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft])
def test_the_arrow_stands_at_the_end_and_not_over_the_words(qtbot, desk, direction):
    desk.window.setLayoutDirection(direction)
    button = desk.picker
    button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    button.clearFocus()
    qtbot.waitUntil(lambda: button.width() == button.sizeHint().width())
    picture = button.grab().toImage()
    ground = picture.pixel(2, 2)
    columns = [
        any(picture.pixel(x, y) != ground for y in range(4, picture.height() - 4))
        for x in range(3, picture.width() - 3)
    ]
    if direction is Qt.LayoutDirection.RightToLeft:
        columns.reverse()
    last = len(columns) - columns[::-1].index(True)
    arrow = columns[last - 10 : last]
    # A gap, then the arrow by itself, then no more than the room inside of the edge.
    assert True in arrow
    assert columns[last - 14 : last - 10] == [False] * 4
    assert len(columns) - last < 12


def test_without_room_only_the_icon_is_left(qtbot, desk):
    button = desk.picker
    button.resize(button.minimumSizeHint())
    assert button.toolButtonStyle() is Qt.ToolButtonStyle.ToolButtonIconOnly
    button.resize(button.sizeHint())
    assert button.toolButtonStyle() is Qt.ToolButtonStyle.ToolButtonTextBesideIcon


def test_icons_of_the_bar_grow_with_the_text(qtbot):
    themes = ThemeSource()
    made = [ModePicker(themes), ReasoningPicker(themes), WorkspacePicker(themes), ParametersButton(themes)]
    made.append(ModelPicker(themes))
    for each in made:
        qtbot.addWidget(each)
    before = [each.iconSize().width() for each in made]
    themes.use(themes.theme, 200)
    assert [each.iconSize().width() for each in made] == [2 * side for side in before]
