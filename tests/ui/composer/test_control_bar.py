"""The controls under the editor at every width that a window can have."""

import pytest
from PySide6.QtCore import QPoint, QRect, QSize, Qt
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
        for each in (self.model, self.reasoning, self.mode, self.folder, self.server):
            self.composer.add_control(each)
        able = Capabilities(reasoning_modes=frozenset({"disabled", "effort"}), efforts=("low", "high"))
        self.reasoning.show_choices(able, None)
        self.composer.show()

    def narrow(self, width):
        self.composer.resize(width, self.composer.heightForWidth(width))
        QTest.qWait(0)
        QApplication.sendPostedEvents()

    def area(self, each):
        return QRect(each.mapTo(self.composer, QPoint(0, 0)), each.size())

    @property
    def buttons(self):
        return [each for each in self.composer.findChildren(QAbstractButton) if each.isVisible()]

    def by_name(self, name):
        return next(each for each in self.composer.findChildren(QWidget) if each.accessibleName() == name)

    def assert_all_can_be_reached(self):
        whole, taken = self.composer.rect(), []
        names = [each.accessibleName() for each in self.buttons]
        assert set(ORDER) <= set(names)
        for each in self.buttons:
            area = self.area(each)
            assert whole.contains(area), each.accessibleName()
            assert area.width() >= each.minimumSizeHint().width(), each.accessibleName()
            assert not [other for other in taken if other.intersects(area)], each.accessibleName()
            assert each.toolTip()
            taken.append(area)


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
    ends = {"idle": ["Send"], "written": ["Send"]}.get(state, ["Queue the message", "Stop"])
    assert {*ends} <= {each.accessibleName() for each in screen.buttons}


@pytest.mark.usefixtures("plain")
def test_nothing_moves_when_the_agent_begins_to_work_and_no_row_comes_when_something_is_written(qtbot):
    screen = Screen(qtbot)
    for width in (NARROW, 440, 620, 700, 780):
        screen.narrow(width)
        before = {name: screen.area(screen.by_name(name)) for name in ORDER}
        high = screen.composer.heightForWidth(width)
        screen.composer.set_working(True)
        screen.narrow(width)
        assert {name: screen.area(screen.by_name(name)) for name in ORDER} == before
        screen.composer.set_draft("a")
        screen.narrow(width)
        screen.assert_all_can_be_reached()
        assert {screen.area(screen.by_name(name)).top() for name in ORDER} == {area.top() for area in before.values()}
        assert screen.composer.heightForWidth(width) == high
        screen.composer.set_working(False)
        screen.composer.set_draft("")


@pytest.mark.usefixtures("plain")
def test_the_room_beside_send_is_for_what_is_shown(qtbot):
    screen = Screen(qtbot)
    bar = screen.folder.parentWidget()
    screen.narrow(900)
    assert screen.folder.toolButtonStyle() == Qt.ToolButtonStyle.ToolButtonTextBesideIcon
    end = screen.composer._send_or_stop
    needed = sum(each.sizeHint().width() + SPACE_XS for each in bar.items if each.isVisible()) + end.usual_width()
    # What is around the bar.
    screen.narrow(needed + screen.composer.width() - bar.width())
    assert screen.folder.toolButtonStyle() == Qt.ToolButtonStyle.ToolButtonTextBesideIcon


@pytest.mark.usefixtures("plain")
def test_words_go_from_the_last_to_the_first_and_come_back(qtbot):
    screen = Screen(qtbot)
    pickers = (screen.reasoning, screen.mode, screen.folder)

    def with_words():
        return [each.toolButtonStyle() == Qt.ToolButtonStyle.ToolButtonTextBesideIcon for each in pickers]

    seen = []
    for width in [*range(900, CONTENT, -7), *range(CONTENT, 900, 7)]:
        screen.narrow(width)
        seen.append(with_words())
        assert screen.model.width() >= screen.model.minimumSizeHint().width()
    assert seen[0] == seen[-1] == [True] * 3
    assert [True, True, False] in seen
    assert [True, False, False] in seen
    assert [False, True, True] not in seen
    assert [False, False, True] not in seen


@pytest.mark.usefixtures("plain")
def test_a_folded_button_wants_the_same_as_before(qtbot):
    screen = Screen(qtbot)
    screen.narrow(900)
    wide = [(each.sizeHint(), each.minimumSizeHint()) for each in screen.composer.findChildren(CollapsingButton)]
    screen.narrow(NARROW)
    assert [
        (each.sizeHint(), each.minimumSizeHint()) for each in screen.composer.findChildren(CollapsingButton)
    ] == wide


@pytest.mark.usefixtures("plain")
def test_tab_goes_as_it_is_read(qtbot):
    screen = Screen(qtbot)
    screen.composer.set_draft("Written")
    screen.narrow(NARROW)
    seen, at = [], screen.by_name("Attach files")
    for _ in range(len(ORDER) + 1):
        seen.append(at.accessibleName())
        at = at.nextInFocusChain()
        while at.focusPolicy() == Qt.FocusPolicy.NoFocus or not at.isVisible():
            at = at.nextInFocusChain()
    assert seen == [*ORDER, "Send"]


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
    composer.add_control(folder)
    composer.add_control(reasoning)
    assert (folder.isVisible(), reasoning.isVisible()) == (True, False)
    qtbot.waitUntil(lambda: folder.width() == folder.sizeHint().width() and folder.x() > 0)


def test_a_row_of_nothing_is_the_end_alone(qtbot):
    from ui.composer.control_bar import ControlBar

    end = QWidget()
    end.setMinimumSize(QSize(50, 20))
    rows = ControlBar(end, lambda: 50, lambda: 50)
    qtbot.addWidget(rows)
    rows.resize(10, 20)
    rows.show()
    assert rows.heightForWidth(10) == rows.heightForWidth(500)
