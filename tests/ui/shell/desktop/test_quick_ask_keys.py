"""The keys of the quick question in the settings: chosen by pressing them, and what becomes of them is said."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from desktop_agent.types.preferences import ChatPreferences
from tests.fakes.desktop_portal import SHORTCUTS, desktop_portal
from tests.fakes.qt_loop import until
from tests.ui.shell.test_side_windows import shown_windows
from ui.forms.key_field import KeyField

CTRL_ALT = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier


async def field_of(screen):
    await until(lambda: screen.desk._desktop is not None and screen.desk._desktop._keys is not None)
    await screen.idle()
    dialog = screen.desk._settings_presenter.show("chat", "quick_ask_keys")
    field = await until(
        lambda: next(
            (
                key_field
                for key_field in dialog.findChildren(KeyField)
                if key_field.accessibleName() == "Keys for a quick question"
            ),
            None,
        )
    )
    await screen.idle()
    return field


def says(screen, field, words):
    return any(words in text for text in screen.words(field.window()))


def test_chosen_keys_open_the_window_and_go_away_again(on_screen, bus):
    async def work(screen):
        with desktop_portal(bus, SHORTCUTS, BindShortcuts="Strg+Alt+Q") as portal:
            field = await field_of(screen)
            assert field.isEnabled()
            # Nothing is asked before the person chooses.
            assert portal.of("bound") == []
            QTest.keyClick(field, Qt.Key.Key_Q, CTRL_ALT)
            await until(lambda: says(screen, field, "Your desktop calls these keys Strg+Alt+Q."))
            assert screen.desk._settings.preferences.chat.quick_ask_keys == "Ctrl+Alt+Q"
            portal.rename("Super+Q")
            await until(lambda: says(screen, field, "Your desktop calls these keys Super+Q."))
            assert "Super+Q" in field.accessibleDescription()
            portal.press()
            await until(lambda: shown_windows(screen))
            QTest.keyClick(field, Qt.Key.Key_Backspace)
            await until(lambda: not screen.desk._settings.preferences.chat.quick_ask_keys)
            await screen.idle()
            assert not says(screen, field, "Your desktop calls these keys")
            assert screen.desk._desktop._keys._shortcut._portal is None
            field.window().close()

    on_screen(work)


def test_keys_that_are_needed_for_writing_are_not_taken(on_screen, bus):
    async def work(screen):
        with desktop_portal(bus, SHORTCUTS) as portal:
            field = await field_of(screen)
            QTest.keyClick(field, Qt.Key.Key_Q)
            await until(lambda: says(screen, field, "Q alone is needed for typing."))
            await screen.idle()
            assert portal.of("bound") == []
            assert screen.desk._settings.preferences.chat.quick_ask_keys == ""
            field.window().close()

    on_screen(work)


def test_where_there_is_no_portal_the_settings_say_why_and_what_helps(on_screen, bus):
    async def work(screen):
        field = await field_of(screen)
        await until(lambda: says(screen, field, "Your desktop has no portal for global shortcuts"))
        assert says(screen, field, "desktop-agent --quick-ask")
        assert not field.isEnabled()
        field.window().close()

    on_screen(work)


@pytest.mark.parametrize("answer", [None, "Ctrl+Alt+Q"])
def test_at_the_start_they_are_taken_again_or_the_window_says_why_not(on_screen, bus, tmp_path, answer):
    folder = tmp_path / "data"

    async def set_keys(screen):
        preferences = screen.desk._settings.preferences
        chat = ChatPreferences(quick_ask_keys="Ctrl+Alt+Q")
        await screen.engine.change_preferences(preferences.model_copy(update={"chat": chat}))
        await screen.idle()

    async def work(screen):
        with desktop_portal(bus, SHORTCUTS, BindShortcuts=answer) as portal:
            await until(lambda: portal.of("bound"))
            if answer is None:
                words = "Your desktop gave no key for the quick question."
                await until(lambda: any(words in text for text in screen.words()))
            else:
                await screen.idle()
                portal.press()
                await until(lambda: shown_windows(screen))

    with desktop_portal(bus, SHORTCUTS):
        on_screen(set_keys, folder=folder)
    on_screen(work, folder=folder, saved=True)


def test_the_end_of_the_portal_is_said_and_the_program_ends_while_it_asks(on_screen, bus):
    async def work(screen):
        field = await field_of(screen)
        with desktop_portal(bus, SHORTCUTS):
            field = await field_of(screen)
            QTest.keyClick(field, Qt.Key.Key_Q, CTRL_ALT)
            await until(lambda: says(screen, field, "Your desktop calls these keys Ctrl+Alt+Q."))
        await until(lambda: says(screen, field, "The desktop's portal has ended"))
        with desktop_portal(bus, SHORTCUTS, BindShortcuts=True) as portal:
            QTest.keyClick(field, Qt.Key.Key_W, CTRL_ALT)
            await until(lambda: portal.of("bound"))
            field.window().close()
            await screen.desk._desktop._keys.close()
            await screen.idle()

    on_screen(work)
