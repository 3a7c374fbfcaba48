"""The menu bar: every action of the window is in it, and it is out of sight until somebody asks for it."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from ui.shell.commands.action import window_actions
from ui.shell.commands.menu_bar import MenuBar, MenuBarPresenter


async def bar_of(screen):
    return await until(lambda: screen.window.findChild(MenuBar))


def entries(menu):
    for action in menu.actions():
        if isinstance(action.menu(), QMenu):
            yield from entries(action.menu())
        elif not action.isSeparator():
            yield action


def menu(bar, title):
    return next(each for each in bar.findChildren(QMenu) if each.accessibleName() == title)


def enabled(bar, title):
    """The entries that apply, as they are while the menu is open."""
    opened = menu(bar, title)
    opened.popup(bar.mapToGlobal(bar.rect().bottomLeft()))
    found = [action.text() for action in entries(opened) if action.isEnabled()]
    opened.hide()
    return found


def test_every_action_of_the_window_is_in_it_once(on_screen):
    async def work(screen):
        bar = await bar_of(screen)
        assert sorted(each.name for each in entries(bar)) == sorted(each.name for each in window_actions(screen.window))
        titles = [each.text() for each in bar.actions()]
        assert titles == ["&File", "&Edit", "&View", "&Conversation", "&Message", "&Help"]
        assert [each.text() for each in entries(menu(bar, "Help"))] == [
            "Help",
            "Keyboard shortcuts",
            "About Desktop Agent",
            "Licences",
        ]

    on_screen(work)


def test_what_does_not_apply_is_disabled_only_while_its_menu_is_open(on_screen, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(screen):
        bar = await bar_of(screen)
        before = enabled(bar, "Message")
        assert "Write a message" in before
        assert not {"Stop the answer", "Regenerate answer", "Answer the question"} & set(before)
        assert "Pin this conversation" not in enabled(bar, "Conversation")
        assert all(action.isEnabled() for action in entries(bar))
        assert not {"Copy last answer", "Copy last code block"} & set(enabled(bar, "Edit"))
        await screen.say("Tides")
        copied = "Copy last answer"
        assert {copied, "Copy last code block"} & set(enabled(bar, "Edit")) == {copied}
        screen.action(copied).trigger()
        await until(lambda: QApplication.clipboard().text() == "Twice a day.")
        assert "Regenerate answer" in enabled(bar, "Message")
        now = enabled(bar, "Conversation")
        assert "Pin this conversation" in now
        absent = {
            "Unpin this conversation",
            "Bring this conversation back from the archive",
            "Merge the selected conversations",
        }
        assert not absent & set(now)

    on_screen(work, Turn(ContentDelta("Twice a day.")))


def test_f10_shows_it_for_a_moment_and_the_keyboard_stays_where_it_was(on_screen, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(screen):
        bar = await bar_of(screen)
        screen.window.activateWindow()
        screen.editor.setFocus()
        await until(screen.editor.hasFocus)
        assert bar.height() == 0
        QTest.keyClick(screen.editor, Qt.Key.Key_F10)
        opened = menu(bar, "File")
        await until(opened.isVisible)
        assert bar.height() > 10
        QTest.keyClick(opened, Qt.Key.Key_Right)
        await until(menu(bar, "Edit").isVisible)
        assert bar.height() > 10
        QTest.keyClick(QApplication.activePopupWidget(), Qt.Key.Key_Escape)
        await until(lambda: bar.height() == 0)
        assert screen.window.focusWidget() is screen.editor

    on_screen(work)


def test_alt_alone_leads_into_it_and_back(on_screen, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(screen):
        bar = await bar_of(screen)
        screen.window.activateWindow()
        screen.editor.setFocus()
        await until(screen.editor.hasFocus)
        QTest.keyClick(screen.editor, Qt.Key.Key_Alt)
        await until(menu(bar, "File").isVisible)
        assert bar.height() > 10
        QTest.keyClick(menu(bar, "File"), Qt.Key.Key_Alt)
        await until(lambda: bar.height() == 0)
        assert screen.window.focusWidget() is screen.editor

    on_screen(work)


def test_alt_works_in_the_moment_it_is_built(on_screen, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(screen):
        screen.window.activateWindow()
        screen.editor.setFocus()
        await until(screen.editor.hasFocus)
        bar = screen.window.findChild(MenuBarPresenter).build()
        QTest.keyClick(screen.editor, Qt.Key.Key_Alt)
        await until(menu(bar, "File").isVisible)
        QTest.keyClick(menu(bar, "File"), Qt.Key.Key_Alt)
        await until(lambda: bar.height() == 0)

    on_screen(work)


def test_alt_and_a_letter_open_a_menu_of_the_hidden_bar(on_screen, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(screen):
        bar = await bar_of(screen)
        screen.window.activateWindow()
        screen.editor.setFocus()
        await until(screen.editor.hasFocus)
        QTest.keyClick(screen.editor, Qt.Key.Key_E, Qt.KeyboardModifier.AltModifier)
        opened = menu(bar, "Edit")
        await until(opened.isVisible)
        assert bar.height() > 10
        assert opened.y() >= bar.mapToGlobal(bar.rect().bottomLeft()).y() - 4
        QTest.keyClick(opened, Qt.Key.Key_Escape)
        await until(lambda: bar.height() == 0)
        assert screen.window.focusWidget() is screen.editor

    on_screen(work)


def test_the_preference_keeps_it_there(on_screen):
    async def work(screen):
        bar = await bar_of(screen)
        for wanted in (True, False):
            preferences = screen.engine.preferences
            appearance = preferences.appearance.model_copy(update={"menu_bar": wanted})
            await screen.engine.change_preferences(preferences.model_copy(update={"appearance": appearance}))
            await until(lambda wanted=wanted: (bar.height() > 10) == wanted)

    on_screen(work)
