"""The controls under the editor at every width that a window can have."""

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QVBoxLayout, QWidget

from desktop_agent.conversation.picture_preparation import import_picture_async
from desktop_agent.types.permissions import BUILT_IN_MODES
from desktop_agent.types.providers import Capabilities
from ui.composer.composer import Composer
from ui.composer.parameter_buttons import ReasoningPicker
from ui.composer.pickers import ModelPicker, WorkspacePicker
from ui.style.controls import IconButton
from ui.style.pickers import ModePicker
from ui.style.style_sheet import apply_theme
from ui.style.theme import LIGHT, SPACE_XS, ThemeSource
from ui.style.widgets import CollapsingButton

ORDER = ["Attach files", "Model", "Reasoning", "Mode", "Workspace folder", "Insert from a server"]
CONTENT = 316
"""What is left to the composer of a page of 360 pixels."""
NARROW = 329


class Screen:
    """The composer with all that the window puts into it."""

    def __init__(self, qtbot, zoom=100):
        themes = ThemeSource(LIGHT, zoom)
        apply_theme(QApplication.instance(), themes)
        self.composer = Composer(themes, import_picture_async)
        qtbot.addWidget(self.composer)
        self.model = ModelPicker(themes)
        self.model.set_current("studio", "aurora-large-2026-10-01")
        self.reasoning, self.mode = ReasoningPicker(themes), ModePicker(themes)
        self.folder, self.server = WorkspacePicker(themes), IconButton(themes, "server", "Insert from a server")
        self.mode.show_modes(BUILT_IN_MODES, BUILT_IN_MODES[1])
        for control in (self.model, self.reasoning, self.mode, self.folder, self.server):
            self.composer.controls.add(control)
        capabilities = Capabilities(reasoning_modes=frozenset({"disabled", "effort"}), efforts=("low", "high"))
        self.reasoning.show_choices(capabilities, None)
        self.composer.show()

    def narrow(self, width):
        self.composer.resize(width, self.composer.heightForWidth(width))
        QTest.qWait(0)
        QApplication.sendPostedEvents()

    def area(self, widget):
        return QRect(widget.mapTo(self.composer, QPoint(0, 0)), widget.size())

    @property
    def buttons(self):
        return [button for button in self.composer.findChildren(QAbstractButton) if button.isVisible()]

    def by_name(self, name):
        return next(widget for widget in self.composer.findChildren(QWidget) if widget.accessibleName() == name)

    def assert_all_can_be_reached(self):
        bounds, areas = self.composer.rect(), []
        names = [button.accessibleName() for button in self.buttons]
        assert set(ORDER) <= set(names)
        for button in self.buttons:
            area = self.area(button)
            assert bounds.contains(area), button.accessibleName()
            assert area.width() >= button.minimumSizeHint().width(), button.accessibleName()
            assert not [other_area for other_area in areas if other_area.intersects(area)], button.accessibleName()
            assert button.toolTip()
            areas.append(area)


@pytest.fixture
def plain(qapp):
    font, palette = qapp.font(), qapp.palette()
    yield
    qapp.setStyleSheet("")
    qapp.setFont(font)
    qapp.setPalette(palette)


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("width", [276, CONTENT, NARROW, 900])
@pytest.mark.parametrize("zoom", [100, 150, 200])
@pytest.mark.parametrize("state", ["idle", "written", "working", "stopping"])
def test_everything_can_be_reached(qtbot, zoom, width, state):
    screen = Screen(qtbot, zoom)
    if state != "idle":
        screen.composer.set_draft("One more thing")
    screen.composer.set_working(state in {"working", "stopping"})
    if state == "stopping":
        screen.composer._send_or_stop.stop()
    screen.narrow(width)
    assert screen.composer.minimumSizeHint().width() <= screen.composer.width()
    screen.assert_all_can_be_reached()
    buttons_at_end = {"idle": ["Send"], "written": ["Send"]}.get(state, ["Queue the message", "Stop"])
    assert {*buttons_at_end} <= {button.accessibleName() for button in screen.buttons}


@pytest.mark.usefixtures("plain")
def test_nothing_moves_when_the_agent_begins_to_work_and_no_row_comes_when_something_is_written(qtbot):
    screen = Screen(qtbot)
    for width in (NARROW, 440, 620, 700, 780):
        screen.narrow(width)
        areas = {name: screen.area(screen.by_name(name)) for name in ORDER}
        height = screen.composer.heightForWidth(width)
        screen.composer.set_working(True)
        screen.narrow(width)
        assert {name: screen.area(screen.by_name(name)) for name in ORDER} == areas
        screen.composer.set_draft("a")
        screen.narrow(width)
        screen.assert_all_can_be_reached()
        assert {screen.area(screen.by_name(name)).top() for name in ORDER} == {area.top() for area in areas.values()}
        assert screen.composer.heightForWidth(width) == height
        screen.composer.set_working(False)
        screen.composer.set_draft("")


@pytest.mark.usefixtures("plain")
def test_the_room_beside_send_is_for_what_is_shown(qtbot):
    screen = Screen(qtbot)
    bar = screen.folder.parentWidget()
    screen.narrow(900)
    assert screen.folder.toolButtonStyle() == Qt.ToolButtonStyle.ToolButtonTextBesideIcon
    end = screen.composer._send_or_stop
    needed = sum(item.sizeHint().width() + SPACE_XS for item in bar.items if item.isVisible()) + end.usual_width()
    # What is around the bar.
    screen.narrow(needed + screen.composer.width() - bar.width())
    assert screen.folder.toolButtonStyle() == Qt.ToolButtonStyle.ToolButtonTextBesideIcon


@pytest.mark.usefixtures("plain")
def test_words_go_from_the_last_to_the_first_and_come_back(qtbot):
    screen = Screen(qtbot)
    pickers = (screen.reasoning, screen.mode, screen.folder)

    def have_words():
        return [picker.toolButtonStyle() == Qt.ToolButtonStyle.ToolButtonTextBesideIcon for picker in pickers]

    states = []
    for width in [*range(900, CONTENT, -7), *range(CONTENT, 900, 7)]:
        screen.narrow(width)
        states.append(have_words())
        assert screen.model.width() >= screen.model.minimumSizeHint().width()
    assert states[0] == states[-1] == [True] * 3
    assert [True, True, False] in states
    assert [True, False, False] in states
    assert [False, True, True] not in states
    assert [False, False, True] not in states


@pytest.mark.usefixtures("plain")
def test_a_folded_button_wants_the_same_as_before(qtbot):
    screen = Screen(qtbot)
    screen.narrow(900)
    hints = [(button.sizeHint(), button.minimumSizeHint()) for button in screen.composer.findChildren(CollapsingButton)]
    screen.narrow(NARROW)
    assert [
        (button.sizeHint(), button.minimumSizeHint()) for button in screen.composer.findChildren(CollapsingButton)
    ] == hints


@pytest.mark.usefixtures("plain")
def test_tab_goes_as_it_is_read(qtbot):
    screen = Screen(qtbot)
    screen.composer.set_draft("Written")
    screen.narrow(NARROW)
    names, widget = [], screen.by_name("Attach files")
    for _ in range(len(ORDER) + 1):
        names.append(widget.accessibleName())
        widget = widget.nextInFocusChain()
        while widget.focusPolicy() == Qt.FocusPolicy.NoFocus or not widget.isVisible():
            widget = widget.nextInFocusChain()
    assert names == [*ORDER, "Send"]


@pytest.mark.usefixtures("plain")
def test_rows_begin_where_the_window_is_read_from(qtbot):
    screen = Screen(qtbot)
    screen.composer.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
    screen.narrow(NARROW)
    screen.assert_all_can_be_reached()
    assert screen.area(screen.by_name("Attach files")).right() > NARROW // 2
    assert screen.area(screen.by_name("Send")).left() < NARROW // 2


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("width", [262, 316])
def test_a_layout_gives_it_the_height_of_all_its_rows(qtbot, width):
    screen = Screen(qtbot, 150)
    screen.composer.set_draft("One more thing")
    screen.composer.set_working(True)
    page = QWidget()
    qtbot.addWidget(page)
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 0, 0, 0)
    column.addStretch(1)
    column.addWidget(screen.composer)
    page.resize(width, 700)
    page.show()
    qtbot.waitUntil(lambda: screen.composer.height() == screen.composer.heightForWidth(width))
    screen.assert_all_can_be_reached()


def test_what_comes_after_the_window_is_shown_is_seen_and_what_is_hidden_is_not(qtbot):
    themes = ThemeSource()
    composer = Composer(themes, import_picture_async)
    qtbot.addWidget(composer)
    composer.resize(900, 120)
    composer.show()
    folder, reasoning = WorkspacePicker(themes), ReasoningPicker(themes)
    composer.controls.add(folder)
    composer.controls.add(reasoning)
    assert (folder.isVisible(), reasoning.isVisible()) == (True, False)
    qtbot.waitUntil(lambda: folder.width() == folder.sizeHint().width() and folder.x() > 0)


def test_a_row_of_nothing_is_the_end_alone(qtbot):
    from ui.composer.control_bar import ControlBar, SendStopButton

    rows = ControlBar(SendStopButton(ThemeSource()))
    qtbot.addWidget(rows)
    rows.resize(10, 20)
    rows.show()
    assert rows.heightForWidth(10) == rows.heightForWidth(500)
