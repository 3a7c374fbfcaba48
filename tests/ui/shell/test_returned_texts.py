"""What was being written for an answer, or instead of a message that waits, is not lost when its place goes."""

import asyncio

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from tests.frame.patience import PATIENCE
from tests.ui.shell.test_drafts import _new as new_conversation
from tests.ui.shell.test_drafts import show
from tests.ui.shell.test_message_queue import PausedAnswer, editor_in, prompts, steer
from tests.ui.shell.test_questions import ASKS, COLOURS, answer_field, asks, card

SEVERAL = {**COLOURS, "several": True}


@pytest.fixture
def paused():
    return PausedAnswer()


async def write_half_an_answer(screen):
    screen.write("paint it")
    screen.press("Send")
    await until(lambda: card(screen))
    QTest.keyClicks(answer_field(screen), "half an")


async def change_a_waiting_message(screen, paused):
    await paused.begin(screen)
    await steer(screen, "one")
    (row,) = screen.window.page.session_controls.queue.rows
    QTest.keyClick(row, Qt.Key.Key_Return)
    QTest.keyClicks(editor_in(screen), " more")


async def stop(screen):
    screen.press("Stop")
    await until(lambda: not screen.conversation.working)
    await screen.idle()


def questions(screen):
    return screen.conversation.session_controls._session.questions


async def on_disk(screen, conversation_id):
    return (await screen.engine.store.load_draft(conversation_id)).text


async def leave_and_come_back(screen, words):
    first = screen.conversation.id
    await new_conversation(screen)
    await until(lambda: screen.window.page._drafts._shown is screen.conversation)
    assert screen.editor.toPlainText() == ""
    await until_kept(screen, first, words)
    await show(screen, first)
    assert screen.editor.toPlainText() == words
    await stop(screen)


async def until_kept(screen, conversation_id, words):
    async with asyncio.timeout(PATIENCE):
        while await on_disk(screen, conversation_id) != words:
            await screen.idle()


@pytest.mark.parametrize("is_given", [False, True])
def test_an_answer_comes_back_where_the_question_was_answered_elsewhere(on_screen, is_given):
    async def work(screen):
        await write_half_an_answer(screen)
        (question,) = questions(screen).open_questions
        questions(screen).answer(question.question_id, "red")
        if is_given:
            # A moment too late.
            screen.press("Answer")
        await until(lambda: card(screen) is None)
        assert screen.editor.toPlainText() == "half an"
        await until(lambda: not screen.conversation.working)

    on_screen(work, asks(COLOURS), Turn(ContentDelta("ok")), defaults=ASKS)


def test_an_answer_that_was_given_does_not_come_back(on_screen):
    async def work(screen):
        await write_half_an_answer(screen)
        screen.press("Answer")
        assert card(screen) is None
        assert screen.editor.toPlainText() == ""
        await until(lambda: not screen.conversation.working)

    on_screen(work, asks(SEVERAL), Turn(ContentDelta("ok")), defaults=ASKS)


def test_half_an_answer_comes_back_where_the_run_is_stopped(on_screen):
    async def work(screen):
        await write_half_an_answer(screen)
        await stop(screen)
        await until(lambda: card(screen) is None)
        assert screen.editor.toPlainText() == "half an"

    on_screen(work, asks(COLOURS), defaults=ASKS)


def test_half_an_answer_goes_into_the_draft_of_its_own_conversation(on_screen):
    async def work(screen):
        await write_half_an_answer(screen)
        await leave_and_come_back(screen, "half an")

    on_screen(work, asks(COLOURS), defaults=ASKS)


def test_a_changed_message_goes_into_the_draft_of_its_own_conversation(on_screen, paused):
    async def work(screen):
        await change_a_waiting_message(screen, paused)
        await leave_and_come_back(screen, "one more")

    on_screen(work, *paused.turns())


def test_the_end_of_the_program_keeps_half_an_answer(on_screen):
    async def work(screen):
        await write_half_an_answer(screen)
        screen.editor.setPlainText("And this.")
        await screen.desk._save_draft()
        assert await on_disk(screen, screen.conversation.id) == "And this.\n\nhalf an"
        # Who keeps the window open finds it there, and once.
        assert screen.editor.toPlainText() == "And this.\n\nhalf an"
        assert answer_field(screen).toPlainText() == ""
        await screen.desk._save_draft()
        assert await on_disk(screen, screen.conversation.id) == "And this.\n\nhalf an"
        await stop(screen)

    on_screen(work, asks(COLOURS), defaults=ASKS)


def test_the_end_of_the_program_keeps_what_is_being_changed(on_screen, paused):
    async def work(screen):
        await change_a_waiting_message(screen, paused)
        screen.editor.setFocus()
        await screen.desk._save_draft()
        assert await on_disk(screen, screen.conversation.id) == "one more"
        assert editor_in(screen) is None
        assert screen.editor.hasFocus()
        await paused.end(screen)
        assert prompts(screen) == ["begin", "one"]
        assert screen.editor.toPlainText() == "one more"

    on_screen(work, *paused.turns(Turn(ContentDelta("second"))))


def test_a_screen_that_is_lost_costs_neither(on_screen, paused):
    async def work(screen):
        await change_a_waiting_message(screen, paused)
        assert screen.desk.save_immediately()
        assert await on_disk(screen, screen.conversation.id) == "one more"
        await paused.end(screen)

    on_screen(work, *paused.turns(Turn(ContentDelta("second"))))
