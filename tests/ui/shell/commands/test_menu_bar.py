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
    return next(submenu for submenu in bar.findChildren(QMenu) if submenu.accessibleName() == title)


def enabled(bar, title):
    """Return the texts of the entries that are enabled while the menu is open."""
    open_menu = menu(bar, title)
    open_menu.popup(bar.mapToGlobal(bar.rect().bottomLeft()))
    texts = [action.text() for action in entries(open_menu) if action.isEnabled()]
    open_menu.hide()
    return texts


def test_every_action_of_the_window_is_in_it_once(on_screen):
    async def work(screen):
        bar = await bar_of(screen)
        assert sorted(entry.name for entry in entries(bar)) == sorted(
            action.name for action in window_actions(screen.window)
        )
        titles = [action.text() for action in bar.actions()]
        assert titles == ["&File", "&Edit", "&View", "&Conversation", "&Message", "&Help"]
        assert [entry.text() for entry in entries(menu(bar, "Help"))] == [
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
        entries_before = enabled(bar, "Message")
        assert "Write a message" in entries_before
        assert not {"Stop the answer", "Regenerate answer", "Answer the question"} & set(entries_before)
        assert "Pin this conversation" not in enabled(bar, "Conversation")
        assert all(action.isEnabled() for action in entries(bar))
        assert not {"Copy last answer", "Copy last code block"} & set(enabled(bar, "Edit"))
        await screen.say("Tides")
        title = "Copy last answer"
        assert {title, "Copy last code block"} & set(enabled(bar, "Edit")) == {title}
        screen.action(title).trigger()
        await until(lambda: QApplication.clipboard().text() == "Twice a day.")
        assert "Regenerate answer" in enabled(bar, "Message")
        entries_now = enabled(bar, "Conversation")
        assert "Pin this conversation" in entries_now
        inapplicable = {
            "Unpin this conversation",
            "Bring this conversation back from the archive",
            "Merge the selected conversations",
        }
        assert not inapplicable & set(entries_now)

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
        for is_shown in (True, False):
            preferences = screen.engine.preferences
            appearance = preferences.appearance.model_copy(update={"menu_bar": is_shown})
            await screen.engine.change_preferences(preferences.model_copy(update={"appearance": appearance}))
            await until(lambda is_shown=is_shown: (bar.height() > 10) == is_shown)

    on_screen(work)
