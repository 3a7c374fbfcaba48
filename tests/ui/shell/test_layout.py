"""The list of conversations and the page share the window, or take turns where it is narrow."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QListView, QPushButton, QSplitterHandle, QToolButton, QWidget

from desktop_agent.types.provider_events import ContentDelta, Usage, UsageUpdate
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn

SPENT = UsageUpdate(Usage(input_tokens=100, output_tokens=5, total_tokens=105, cost=0.25))
WAY = "Show or hide the conversations"


def test_in_a_narrow_window_the_list_takes_turns_with_the_page(on_screen):
    async def work(screen):
        await screen.say("Tides")
        first = screen.conversation.id
        screen.action("New conversation").trigger()
        await screen.idle()
        assert screen.find(QToolButton, WAY) is None
        screen.window.resize(480, 600)
        await until(lambda: screen.find(QListView, "Conversations") is None)
        assert screen.window.width() == 480
        assert screen.editor.isVisible()
        screen.press(WAY)
        assert screen.find(QListView, "Conversations").hasFocus()
        assert screen.editor is None
        QTest.keyClick(screen.find(QListView, "Conversations"), Qt.Key.Key_Home)
        screen.window.sidebar.choose_row(screen.window.sidebar._rows.number_of(first))
        await until(lambda: screen.conversation.id == first and screen.editor is not None)
        assert screen.find(QListView, "Conversations") is None
        screen.window.resize(1100, 700)
        await until(lambda: screen.find(QListView, "Conversations") and screen.find(QToolButton, WAY) is None)

    on_screen(work)


def test_the_window_works_360_pixels_wide(on_screen):
    async def work(screen):
        await screen.say("Tides")
        screen.window.resize(300, 600)
        await until(lambda: screen.find(QListView, "Conversations") is None)
        assert screen.window.width() == 360

        def is_inside(name):
            button = screen.find(QWidget, name)
            return screen.window.rect().contains(button.mapTo(screen.window, button.rect().bottomRight()))

        await until(lambda: all(map(is_inside, ("Send", "Attach files", WAY))))

    on_screen(work, Turn(ContentDelta("Twice a day.")))


def test_the_title_leaves_room_for_the_tokens_where_everything_is_large(on_screen):
    async def work(screen):
        await screen.say("Tides, and all that there is to know about them")
        screen.window.resize(360, 800)
        appearance = screen.engine.preferences.appearance.model_copy(update={"zoom": 230})
        await screen.engine.change_preferences(screen.engine.preferences.model_copy(update={"appearance": appearance}))
        title, meter = screen.window.frame.title, screen.find(QPushButton, "Tokens and cost")
        await until(lambda: screen.front.themes.zoom == 230)
        await until(lambda: title.geometry().right() < meter.x() and meter.geometry().right() < screen.window.width())

    on_screen(work, Turn(SPENT, ContentDelta("Twice a day.")))


def test_a_hidden_list_stays_hidden_in_the_next_window(on_screen):
    async def hide(screen):
        screen.window.resize(1100, 700)
        screen.action(WAY).trigger()

    async def show(screen):
        assert not screen.window.sidebar.isVisible()
        screen.press(WAY)
        assert screen.window.sidebar.isVisible()

    async def check(screen):
        assert screen.window.sidebar.isVisible()

    on_screen(hide)
    on_screen(show, saved=True)
    on_screen(check, saved=True)


def test_the_list_can_be_hidden_in_a_wide_window_and_a_search_brings_it_back(on_screen):
    async def work(screen):
        screen.window.resize(1100, 700)
        screen.action(WAY).trigger()
        assert not screen.window.sidebar.isVisible()
        assert screen.find(QToolButton, WAY) is not None
        screen.action("Search conversations").trigger()
        assert screen.window.sidebar.isVisible()

    on_screen(work)


def test_tab_goes_from_the_sidebar_over_its_edge_to_the_meter_and_the_transcript(on_screen):
    async def work(screen):
        await screen.say("Tides")
        window = screen.window
        window.activateWindow()
        screen.find(QToolButton, "Help").setFocus()
        stops = []
        for _ in range(4):
            QTest.keyClick(window.focusWidget(), Qt.Key.Key_Tab)
            stops.append(window.focusWidget().accessibleName())
        assert stops[:3] == ["Width of the sidebar", "Tokens and cost", "Transcript"]

    on_screen(work, Turn(ContentDelta("Hi"), SPENT))


def test_arrows_move_the_edge_of_the_sidebar(on_screen):
    async def work(screen):
        screen.window.resize(1000, 600)
        edge = screen.find(QSplitterHandle, "Width of the sidebar")
        edge.setFocus()
        width = screen.window.sidebar.width()
        QTest.keyClick(edge, Qt.Key.Key_Right)
        assert screen.window.sidebar.width() > width
        QTest.keyClick(edge, Qt.Key.Key_Left)
        assert screen.window.sidebar.width() in range(width - 2, width + 3)

    on_screen(work)
