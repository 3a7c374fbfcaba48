"""The window before there is anything behind it, and what becomes of what is done in it."""

import asyncio

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QPushButton
from shiboken6 import isValid

from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.types.errors import AgentError
from desktop_agent.types.preferences import AppearancePreferences, ChatPreferences, Preferences
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import in_loop, until
from tests.fakes.scripted_provider import Turn
from tests.fakes.window import Screen, on_screen
from tests.ui.shell.conftest import no_pause
from ui.__main__ import _load
from ui.shell.startup_errors import show_startup_error
from ui.shell.startup_window import StartupWindow, run_until_painted
from ui.style.theme import DARK, ICON_SIZE, LIGHT, ThemeSource, body_font

__all__ = ["in_loop", "no_pause", "on_screen"]


@pytest.fixture
def front(qapp, tmp_path):
    startup_window = StartupWindow(qapp, ThemeSource(), tmp_path)
    yield startup_window
    if isValid(startup_window.window):
        startup_window.close_window()
    startup_window.deleteLater()


class Hasty(Screen):
    """Uses the window before there is an engine."""

    def before(self):
        self.type("Hello")
        QTest.keyClick(self.front.window.frame.composer.editor, Qt.Key.Key_Return)
        self.type("and then")

    def type(self, text):
        QTest.keyClicks(self.front.window.frame.composer.editor, text)


class Impatient(Screen):
    def before(self):
        new = next(button for button in self.front.window.findChildren(QPushButton) if "New" in button.accessibleName())
        QTest.mouseClick(new, Qt.MouseButton.LeftButton)


def test_one_can_write_when_the_first_loop_ends(front):
    run_until_painted(front)
    editor = front.window.frame.composer.editor
    assert front.window.isVisible()
    assert editor.hasFocus()
    QTest.keyClicks(editor, "Hello")
    assert editor.toPlainText() == "Hello"
    assert not hasattr(front.window, "page")


def test_what_was_written_and_sent_before_there_was_an_engine_is_sent_and_stands_there(qapp, in_loop, tmp_path):
    async def work():
        screen = await Hasty.open(qapp, tmp_path / "data", Turn(ContentDelta("Hi")))
        try:
            await until(lambda: screen.answers() == ["Hi"])
            await until(lambda: not screen.conversation.working)
            assert screen.find(QPlainTextEdit, "Message").toPlainText() == "and then"
            assert screen.find(QPlainTextEdit, "Message").hasFocus()
        finally:
            await screen.close()

    in_loop(work())


def test_a_new_conversation_that_was_asked_for_early_is_the_one_that_is_shown(qapp, in_loop, tmp_path):
    async def work(kind):
        screen = await kind.open(qapp, tmp_path / "data", Turn(ContentDelta("Hi")))
        try:
            await until(lambda: screen.conversation is not None)
            if kind is Screen:
                await screen.say("Hello")
            return screen.conversation.is_empty
        finally:
            await screen.close()

    results = []

    async def open_both():
        results.append(await work(Screen))
        results.append(await work(Impatient))

    in_loop(open_both())
    assert results == [False, True]


def test_closing_it_early_ends_the_program(front):
    front.show()
    assert not front.is_ended
    front.window.close()
    assert front.is_ended


def test_what_was_written_and_sent_before_it_was_closed_early_is_there_next_time(qapp, in_loop, tmp_path):
    async def closed_early(connected):
        engine = await Engine.open(tmp_path, RunDefaults())
        await Hasty(qapp, engine, None, tmp_path).close()
        screen = await Screen.open(qapp, tmp_path, Turn(ContentDelta("Hi")), connected=connected)
        try:
            text = screen.find(QPlainTextEdit, "Message").toPlainText()
            await screen.say("")
            return text
        finally:
            await screen.close()

    # First there is no conversation at all, then there is one.
    assert in_loop(closed_early(connected=True)) == "Hello\n\nand then"
    assert in_loop(closed_early(connected=True)) == "Hello\n\nand then"


def test_what_was_written_before_it_was_closed_early_is_in_the_conversation_that_was_shown_last(
    qapp, in_loop, tmp_path
):
    async def work():
        screen = await Screen.open(qapp, tmp_path, Turn(), Turn())
        await screen.say("one")
        shown_id = screen.conversation.id
        screen.desk.library.new()
        await screen.say("two")
        screen.desk.library.open(shown_id)
        await until(lambda: screen.conversation.id == shown_id)
        await screen.close()
        engine = await Engine.open(tmp_path, RunDefaults())
        await Hasty(qapp, engine, None, tmp_path).close()
        screen = await Screen.open(qapp, tmp_path)
        try:
            await until(lambda: screen.find(QPlainTextEdit, "Message").toPlainText() == "Hello\n\nand then")
            assert screen.conversation.id == shown_id
        finally:
            await screen.close()

    in_loop(work())


def test_the_program_starts_again_where_that_was_asked_last(front):
    front.window.quit(starts_again=True)
    assert (front.is_ended, front.starts_again) == (True, True)
    front.app.aboutToQuit.emit()
    assert front.starts_again
    # It was not ended. The system ends it later, or the person closes it.
    front.cancel_end()
    front.app.aboutToQuit.emit()
    assert (front.is_ended, front.starts_again) == (True, False)
    front.cancel_end()
    front.window.close()
    assert (front.is_ended, front.starts_again) == (True, False)


def test_the_system_ends_it_for_good(front):
    front.window.quit(starts_again=True)
    front.end_without_asking()
    assert not front.starts_again


def test_an_early_end_needs_nothing_more_where_nothing_was_written(front):
    front.show()
    assert not front.can_close
    front.end()
    assert front.can_close
    editor = front.window.frame.composer.editor
    QTest.keyClicks(editor, "Hello")
    assert not front.can_close
    QTest.keyClick(editor, Qt.Key.Key_Return)
    assert editor.toPlainText() == ""
    assert not front.can_close


def test_keys_work_before_there_is_anything_behind_them(front):
    run_until_painted(front)
    QTest.keyClick(front.window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    assert front.window.new_was_requested
    assert not front.is_ended
    QTest.keyClick(front.window, Qt.Key.Key_Q, Qt.KeyboardModifier.ControlModifier)
    assert front.is_ended


def test_early_keys_are_not_ambiguous_later(on_screen):
    async def work(screen):
        conversation = screen.conversation
        QTest.keyClick(screen.window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
        assert screen.conversation is not conversation
        QTest.keyClick(screen.window, Qt.Key.Key_Q, Qt.KeyboardModifier.ControlModifier)
        assert screen.desk.closed.done()

    on_screen(work)


def test_enter_makes_a_new_line_from_the_first_moment_on_where_it_did_last_time(on_screen, qapp, tmp_path, front):
    async def work(screen):
        preferences = screen.engine.preferences
        await screen.engine.change_preferences(
            preferences.model_copy(update={"chat": ChatPreferences(enter_sends=False)})
        )

    assert front.window.frame.composer.editor.enter_sends
    on_screen(work, folder=tmp_path)
    again = StartupWindow(qapp, ThemeSource(), tmp_path)
    try:
        assert not again.window.frame.composer.editor.enter_sends
    finally:
        again.window.deleteLater()
        again.deleteLater()


def test_a_second_start_raises_it_before_it_is_whole(front):
    front.show()
    front.window.showMinimized()
    front.raise_window()
    assert not front.window.isMinimized()


def test_why_it_cannot_go_on_is_said_and_what_was_sent_is_handed_back(front, in_loop):
    async def work():
        front.show()
        editor = front.window.frame.composer.editor
        QTest.keyClicks(editor, "Hello")
        QTest.keyClick(editor, Qt.Key.Key_Return)
        showing = asyncio.create_task(show_startup_error(front, AgentError("It is broken.", "Repair it.")))
        await asyncio.sleep(0)
        words = [label.text() for label in front.window.findChildren(QLabel) if label.isVisible()]
        assert {"It is broken.", "Repair it."} <= set(words)
        assert editor.toPlainText() == "Hello"
        QTest.keyClick(editor, Qt.Key.Key_Return)
        assert editor.toPlainText() == "Hello"
        assert not showing.done()
        front.window.close()
        await showing
        assert not isValid(front.window)

    in_loop(work())


def test_a_part_that_is_missing_is_said_in_the_window(front, in_loop, monkeypatch, capsys):
    monkeypatch.setattr("ui.__main__.BACKGROUND_IMPORTS", ("no_such_room_behind",))

    async def work():
        front.show()
        loading = asyncio.create_task(_load(front))
        area = front.window.banners
        await until(lambda: loading.done() or area.isVisible())
        front.end()
        return await loading

    assert not in_loop(work())
    assert "no_such_room_behind" in capsys.readouterr().err


def test_it_looks_as_it_did_last_time(on_screen, qapp, tmp_path):
    appearance = AppearancePreferences(theme="dark", zoom=120, density="compact")

    async def work(screen):
        preferences = replace_look(screen.engine.preferences, appearance)
        await screen.engine.change_preferences(preferences)

    on_screen(work, folder=tmp_path)
    themes = ThemeSource()
    assert (themes.theme, themes.zoom) == (LIGHT, 100)
    front = StartupWindow(qapp, themes, tmp_path)
    try:
        assert (themes.theme, themes.zoom, themes.reading.is_compact) == (DARK, 120, True)
    finally:
        front.window.deleteLater()
        front.deleteLater()


def replace_look(preferences: Preferences, appearance: AppearancePreferences) -> Preferences:
    return preferences.model_copy(update={"appearance": appearance})


def test_the_tab_key_goes_through_what_was_added_later_where_it_is_seen(on_screen):
    async def work(screen):
        names, widget = [], screen.window
        while (widget := widget.nextInFocusChain()) is not screen.window:
            if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.window() is screen.window:
                names.append(widget.accessibleName())
        expected = [
            "Search conversations",
            "Conversations",
            "Settings",
            "Trash",
            "Commands",
            "Help",
            "Find in conversation",
            "Transcript",
            "Message",
        ]
        expected += ["Attach files", "Model", "Mode", "Workspace folder"]
        assert [name for name in names if name in expected] == expected

    on_screen(work)


def test_a_zoom_reaches_what_stands_in_the_window_already(front):
    run_until_painted(front)
    editor = front.window.frame.composer.editor
    new = next(
        button for button in front.window.findChildren(QPushButton) if button.accessibleName() == "New conversation"
    )
    for zoom in (200, 50, 100):
        front.themes.use(front.themes.theme, zoom)
        assert editor.font() == body_font(zoom, 1.05)
        assert editor.document().defaultFont() == editor.font() == editor.viewport().font()
        assert new.iconSize().width() == round(ICON_SIZE * zoom / 100)


def test_attachments_are_as_high_as_their_row_after_a_zoom(front, qtbot):
    run_until_painted(front)
    row = front.window.frame.composer.attachments
    row.add_text("a long text")
    [chip] = row.chips
    for zoom in (200, 100):
        front.themes.use(front.themes.theme, zoom)
        bar = row.horizontalScrollBar()
        qtbot.waitUntil(lambda bar=bar: row.height() == chip.sizeHint().height() + bar.sizeHint().height())
    assert chip.sizeHint().height() > 0
