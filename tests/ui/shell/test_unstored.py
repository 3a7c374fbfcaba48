"""Conversations that are never stored, in the whole window."""

import asyncio

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFrame, QPushButton, QToolButton, QWidget

from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from ui.style.widgets import QuestionBox

HI = Turn(ContentDelta("Hi"))


async def begin_unstored(screen):
    QTest.keyClick(screen.window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier)
    await until(lambda: screen.conversation.is_in_memory)
    await screen.idle()
    return screen.conversation.id


def rows(screen):
    view = screen.find(QWidget, "Conversations that are not stored")
    buttons = [] if view is None else view.findChildren(QToolButton)
    return [button.accessibleName() for button in buttons if button.isCheckable() and not button.isHidden()]


def marked(screen):
    return screen.find(QFrame, "Not stored") is not None


async def question(screen):
    return await until(lambda: screen.window.findChildren(QuestionBox) and screen.window.findChildren(QuestionBox)[-1])


async def send(screen, text):
    screen.editor.setPlainText(text)
    screen.window.page.composer.send()
    await until(lambda: not screen.conversation.working and screen.answers())


def test_it_is_marked_listed_beside_and_stays_while_another_is_shown(on_screen):
    async def work(screen):
        id_ = await begin_unstored(screen)
        assert marked(screen)
        assert rows(screen) == ["New conversation, not stored"]
        await send(screen, "Hello you")
        assert rows(screen) == ["Hello you, not stored"]
        assert screen.window.windowTitle() == "Hello you (not stored) — Desktop Agent"
        assert screen.window.frame.title.text() == "Hello you"
        screen.editor.setPlainText("half a thought")
        screen.desk.library.new()
        await screen.idle()
        assert not marked(screen)
        assert screen.editor.toPlainText() == ""
        screen.desk.library.open(id_)
        await until(lambda: screen.conversation.id == id_)
        await until(lambda: screen.editor.toPlainText() == "half a thought")
        assert screen.answers() == ["Hi"]
        assert await screen.engine.store.list_conversations() == ()

    on_screen(work, HI)


def test_an_empty_one_goes_when_it_is_left_and_one_with_a_draft_stays(on_screen):
    async def work(screen):
        await begin_unstored(screen)
        await begin_unstored(screen)
        await until(lambda: len(rows(screen)) == 1)
        screen.editor.setPlainText("a draft")
        screen.desk.library.new()
        await screen.idle()
        assert rows(screen) == ["New conversation, not stored"]

    on_screen(work)


def test_closing_asks_once_and_forgets(on_screen):
    async def work(screen):
        id_ = await begin_unstored(screen)
        await send(screen, "Hello you")
        screen.action("Delete this conversation").trigger()
        box = await question(screen)
        assert box.accessibleName() == "This conversation is not stored. Close it?"
        box.answer_with("")
        await screen.idle()
        assert screen.conversation.id == id_
        screen.find(QPushButton, "Close this conversation").click()
        (await question(screen)).answer_with("close")
        await until(lambda: not screen.conversation.is_in_memory and rows(screen) == [])
        assert not marked(screen)

    on_screen(work, HI)


def test_it_is_kept_with_its_draft(on_screen):
    async def work(screen):
        id_ = await begin_unstored(screen)
        await send(screen, "Hello you")
        screen.editor.setPlainText("more")
        screen.find(QPushButton, "Keep this conversation: store it").click()
        await until(lambda: screen.conversation.id == id_ and not screen.conversation.is_in_memory)
        await screen.idle()
        assert not marked(screen)
        assert [conversation.title for conversation in await screen.engine.store.list_conversations()] == ["Hello you"]
        assert screen.editor.toPlainText() == "more"
        assert (await screen.engine.store.load_draft(id_)).text == "more"

    on_screen(work, HI)


def test_what_is_sent_while_it_is_kept_is_not_lost_and_twice_is_once(on_screen):
    async def work(screen):
        id_ = await begin_unstored(screen)
        await send(screen, "Hello you")
        keep = screen.find(QPushButton, "Keep this conversation: store it")
        keep.click()
        keep.click()
        await asyncio.sleep(0)
        screen.editor.setPlainText("and this")
        screen.window.page.composer.send()
        await until(lambda: screen.conversation.id == id_ and not screen.conversation.is_in_memory)
        await screen.idle()
        assert screen.editor.toPlainText() == "and this"
        assert screen.words(screen.banners) == []
        assert len(await screen.engine.store.list_conversations()) == 1

    on_screen(work, HI)


def test_the_end_of_the_program_asks(on_screen):
    async def work(screen):
        await begin_unstored(screen)
        await send(screen, "Hello you")
        screen.window.close()
        screen.desk._tasks.start(screen.desk.wait_until_closed())
        box = await question(screen)
        assert box.accessibleName() == "A conversation is not stored. Close it?"
        box.answer_with("")
        await until(lambda: not screen.desk.closed.done())
        screen.window.close()
        (await question(screen)).answer_with("keep")
        await screen.idle()
        assert [conversation.title for conversation in await screen.engine.store.list_conversations()] == ["Hello you"]

    on_screen(work, HI)
