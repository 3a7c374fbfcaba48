"""Messages that are sent while the agent works: they wait in a list, where they can be changed, moved and taken out."""

import asyncio

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QMenu, QPlainTextEdit, QPushButton, QToolButton, QWidget

from desktop_agent.conversation.items import UserItem
from desktop_agent.engine import session_lifecycle
from desktop_agent.types.errors import ConnectionFailed
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn, Wait
from tests.ui.shell.test_drafts import _new as new_conversation
from tests.ui.shell.test_drafts import show

CONTROL = Qt.KeyboardModifier.ControlModifier
ALT = Qt.KeyboardModifier.AltModifier


class PausedAnswer:
    """An answer that ends when the test says so."""

    def __init__(self):
        self.go, self.reached = asyncio.Event(), asyncio.Event()
        self.wait = Wait(self.go, self.reached)

    def turns(self, *after):
        return (Turn(ContentDelta("first"), self.wait), *after)

    async def begin(self, screen):
        screen.write("begin")
        screen.press("Send")
        await screen.wait_for(QPushButton, "Stop")
        # What is sent before the first request goes out goes with it.
        await self.reached.wait()
        await screen.idle()

    async def end(self, screen):
        self.go.set()
        await wait_for_end(screen)


@pytest.fixture
def paused():
    return PausedAnswer()


async def wait_for_end(screen):
    session = screen.engine._sessions[screen.conversation.id]
    await until(lambda: not screen.conversation.working and not screen.conversation.session_controls.queue)
    await session.wait_idle()
    await screen.idle()


async def steer(screen, text, modifiers=Qt.KeyboardModifier.NoModifier):
    count = len(waiting(screen))
    screen.write(text)
    QTest.keyClick(screen.editor, Qt.Key.Key_Return, modifiers)
    await until(lambda: len(waiting(screen)) == count + 1)
    await screen.idle()


def waiting(screen):
    return [(message.text, message.when) for message in screen.conversation.session_controls.queue]


def shown_messages(screen):
    rows = screen.window.page.session_controls.queue.rows
    assert all(row.isVisible() for row in rows)
    return [row.accessibleName().removeprefix("Waiting message: ") for row in rows]


def prompts(screen):
    return [item.text for item in screen.conversation.transcript if isinstance(item, UserItem)]


def test_enter_steers_and_ctrl_enter_waits_for_the_end(on_screen, paused):
    async def work(screen):
        assert screen.find(QWidget, "Waiting messages") is None
        await paused.begin(screen)
        await steer(screen, "soon")
        await steer(screen, "later", CONTROL)
        assert waiting(screen) == [("soon", "soon"), ("later", "idle")]
        assert shown_messages(screen) == ["soon", "later"]
        assert screen.editor.toPlainText() == ""
        assert screen.find(QWidget, "Waiting messages") is not None
        rows = screen.window.page.session_controls.queue.rows
        assert [row.accessibleDescription() for row in rows] == ["As soon as possible", "When the agent is done"]
        described = [{button.accessibleDescription() for button in row.findChildren(QAbstractButton)} for row in rows]
        assert described == [{"soon"}, {"later"}]
        await paused.end(screen)
        assert prompts(screen) == ["begin", "soon", "later"]
        assert screen.find(QWidget, "Waiting messages") is None

    on_screen(work, *paused.turns(Turn(ContentDelta("second")), Turn(ContentDelta("third"))))


def test_when_one_is_sent_can_be_changed_in_its_row(on_screen, paused):
    async def work(screen):
        await paused.begin(screen)
        await steer(screen, "first")
        await steer(screen, "second")
        row = screen.window.page.session_controls.queue.rows[0]
        button = next(
            button for button in row.findChildren(QPushButton) if button.accessibleName().startswith("Sent: ")
        )
        assert button.accessibleName() == ("Sent: As soon as possible. Press to change it to: When the agent is done")
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
        assert waiting(screen) == [("first", "idle"), ("second", "soon")]
        assert button.accessibleName().startswith("Sent: When the agent is done")
        QTest.keyClick(row, Qt.Key.Key_Return, CONTROL)
        assert waiting(screen) == [("first", "soon"), ("second", "soon")]
        QTest.keyClick(row, Qt.Key.Key_Return, CONTROL)
        await paused.end(screen)
        assert prompts(screen) == ["begin", "second", "first"]

    on_screen(work, *paused.turns(Turn(ContentDelta("second")), Turn(ContentDelta("third"))))


def test_the_mouse_finds_both_in_a_menu_beside_stop(on_screen, paused, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(screen):
        await paused.begin(screen)
        assert screen.find(QToolButton, "Queue the message") is None
        screen.write("later")
        screen.press("Queue the message")
        menu = screen.window.page.composer._send_or_stop.findChild(QMenu)
        assert menu.isVisible()
        assert [(action.text(), action.shortcut().toString()) for action in menu.actions()] == [
            ("Send as soon as possible", "Enter"),
            ("Send when the agent is done", "Ctrl+Enter"),
        ]
        menu.close()
        menu.actions()[1].trigger()
        await until(lambda: waiting(screen) == [("later", "idle")])
        await screen.idle()
        await paused.end(screen)

    on_screen(work, *paused.turns(Turn(ContentDelta("second"))))


def test_where_enter_makes_a_line_ctrl_enter_sends_soon(on_screen, paused):
    async def work(screen):
        screen.window.page.composer.set_enter_sends(False)
        await paused.begin(screen)
        await steer(screen, "soon", CONTROL)
        assert waiting(screen) == [("soon", "soon")]
        await paused.end(screen)

    on_screen(work, *paused.turns(Turn(ContentDelta("second"))))


def test_they_are_moved_and_removed_by_keys(on_screen, paused):
    async def work(screen):
        await paused.begin(screen)
        for text in ("one", "two", "three"):
            await steer(screen, text)
        screen.action("Waiting messages").trigger()
        first, _, last = rows = screen.window.page.session_controls.queue.rows
        QTest.keyClick(first, Qt.Key.Key_Down, ALT)
        assert shown_messages(screen) == ["two", "one", "three"]
        assert screen.window.page.session_controls.queue.rows[1] is first
        QTest.keyClick(first, Qt.Key.Key_Down)
        QTest.keyClick(last, Qt.Key.Key_Delete)
        assert shown_messages(screen) == ["two", "one"]
        # Beyond an end nothing moves.
        QTest.keyClick(rows[1], Qt.Key.Key_Up, ALT)
        assert [text for text, _ in waiting(screen)] == ["two", "one"]
        await paused.end(screen)
        assert prompts(screen) == ["begin", "two", "one"]

    on_screen(work, *paused.turns(Turn(ContentDelta("second")), Turn(ContentDelta("third"))))


def test_they_are_moved_and_removed_by_the_mouse_and_undo_brings_one_back(on_screen, paused):
    async def work(screen):
        await paused.begin(screen)
        for text in ("one", "two", "three"):
            await steer(screen, text)
        row = screen.window.page.session_controls.queue.rows[1]
        buttons = {button.accessibleName(): button for button in row.findChildren(QToolButton)}
        QTest.mouseClick(buttons["Send earlier"], Qt.MouseButton.LeftButton)
        assert shown_messages(screen) == ["two", "one", "three"]
        assert not buttons["Send earlier"].isEnabled()
        QTest.mouseClick(buttons["Send later"], Qt.MouseButton.LeftButton)
        QTest.mouseClick(buttons["Remove"], Qt.MouseButton.LeftButton)
        assert shown_messages(screen) == ["one", "three"]
        screen.press("Undo")
        assert shown_messages(screen) == ["one", "two", "three"]
        screen.press("Stop")
        await wait_for_end(screen)

    on_screen(work, *paused.turns())


def test_what_was_removed_comes_back_after_a_look_at_another_conversation(on_screen, paused, monkeypatch):
    monkeypatch.setattr(session_lifecycle, "LINGER_SECONDS", 0.0)

    async def work(screen):
        await paused.begin(screen)
        await steer(screen, "one", CONTROL)
        paused.go.set()
        await until(lambda: not screen.conversation.working)
        first = screen.conversation.id
        session_of_first = screen.engine._sessions[first]
        row = screen.window.page.session_controls.queue.rows[0]
        buttons = {button.accessibleName(): button for button in row.findChildren(QToolButton)}
        QTest.mouseClick(buttons["Remove"], Qt.MouseButton.LeftButton)
        assert shown_messages(screen) == []
        await new_conversation(screen)
        await until(lambda: session_of_first.is_closed)
        await show(screen, first)
        screen.press("Undo")
        await until(lambda: shown_messages(screen) == ["one"])

    on_screen(work, Turn(ContentDelta("first"), paused.wait, ConnectionFailed("gone")))


def editor_in(screen):
    return screen.find(QPlainTextEdit, "Text of the waiting message")


def test_the_text_is_changed_in_place(on_screen, paused):
    async def work(screen):
        await paused.begin(screen)
        await steer(screen, "one")
        (row,) = screen.window.page.session_controls.queue.rows
        QTest.keyClick(row, Qt.Key.Key_Return)
        QTest.keyClicks(editor_in(screen), " and a half")
        QTest.keyClick(editor_in(screen), Qt.Key.Key_Escape)
        assert shown_messages(screen) == ["one"]
        assert screen.conversation.working
        QTest.keyClick(row, Qt.Key.Key_F2)
        QTest.keyClicks(editor_in(screen), " and two")
        QTest.keyClick(editor_in(screen), Qt.Key.Key_Return)
        assert shown_messages(screen) == ["one and two"]
        assert editor_in(screen) is None
        await paused.end(screen)
        assert prompts(screen) == ["begin", "one and two"]

    on_screen(work, *paused.turns(Turn(ContentDelta("second"))))


def test_what_is_being_changed_while_it_is_delivered_is_not_lost(on_screen, paused):
    async def work(screen):
        await paused.begin(screen)
        await steer(screen, "one")
        (row,) = screen.window.page.session_controls.queue.rows
        QTest.keyClick(row, Qt.Key.Key_Return)
        QTest.keyClicks(editor_in(screen), " more")
        await paused.end(screen)
        assert prompts(screen) == ["begin", "one"]
        assert screen.editor.toPlainText() == "one more"

    on_screen(work, *paused.turns(Turn(ContentDelta("second"))))


def test_what_is_being_changed_is_saved_with_the_draft(on_screen, paused):
    async def work(screen):
        await paused.begin(screen)
        await steer(screen, "one")
        screen.write("draft")
        (row,) = screen.window.page.session_controls.queue.rows
        QTest.keyClick(row, Qt.Key.Key_Return)
        QTest.keyClicks(editor_in(screen), " more")
        await until(lambda: screen.kept_draft() == "draft\n\none more")
        QTest.keyClick(editor_in(screen), Qt.Key.Key_Escape)
        await until(lambda: screen.kept_draft() == "draft")
        await paused.end(screen)

    on_screen(work, *paused.turns(Turn(ContentDelta("second"))))


def test_what_was_not_changed_is_delivered_and_not_handed_back(on_screen, paused):
    async def work(screen):
        await paused.begin(screen)
        # The editor has another space than the message.
        await steer(screen, "one")
        (entry,) = screen.conversation.session_controls._session.queue.entries
        screen.conversation.session_controls.edit_queued_message(entry.id, "10\xa0%")
        (row,) = screen.window.page.session_controls.queue.rows
        QTest.keyClick(row, Qt.Key.Key_Return)
        QTest.keyClicks(editor_in(screen), "s")
        QTest.keyClick(editor_in(screen), Qt.Key.Key_Backspace)
        await paused.end(screen)
        assert prompts(screen) == ["begin", "10\xa0%"]
        assert screen.editor.toPlainText() == ""

    on_screen(work, *paused.turns(Turn(ContentDelta("second"))))


def test_stop_hands_them_back_to_the_editor(on_screen, paused):
    async def work(screen):
        await paused.begin(screen)
        await steer(screen, "one")
        await steer(screen, "two")
        screen.press("Stop")
        await wait_for_end(screen)
        await until(lambda: screen.editor.toPlainText() == "one\n\ntwo")
        assert prompts(screen) == ["begin"]
        assert screen.find(QWidget, "Waiting messages") is None

    on_screen(work, *paused.turns())


def test_what_waits_after_a_failure_is_sent_on_demand(on_screen, paused):
    async def work(screen):
        await paused.begin(screen)
        await steer(screen, "one", CONTROL)
        assert screen.find(QPushButton, "Send now") is None
        paused.go.set()
        await until(lambda: not screen.conversation.working)
        await screen.idle()
        assert shown_messages(screen) == ["one"]
        screen.press("Send now")
        await wait_for_end(screen)
        assert prompts(screen) == ["begin", "one"]
        assert screen.answers()[-1] == "second"

    failing = Turn(ContentDelta("first"), paused.wait, ConnectionFailed("gone"))
    on_screen(work, failing, Turn(ContentDelta("second")))


def test_each_conversation_has_its_own(on_screen, paused):
    async def work(screen):
        await paused.begin(screen)
        first = screen.conversation.id
        await steer(screen, "one")
        screen.action("New conversation").trigger()
        await screen.idle()
        assert screen.find(QWidget, "Waiting messages") is None
        screen.desk.library.open(first)
        await until(lambda: screen.conversation.id == first)
        assert shown_messages(screen) == ["one"]
        screen.press("Stop")
        await wait_for_end(screen)

    on_screen(work, *paused.turns())
