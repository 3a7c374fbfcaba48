"""An earlier prompt is edited in the composer, whose draft comes back."""

import asyncio

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFrame

from desktop_agent.conversation.items import UserItem
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn, Wait
from tests.ui.shell.test_branches import commands, run, session, settled, turns, view
from tests.ui.shell.test_draft_pictures import png
from tests.ui.shell.test_drafts import composer, show


def bar(screen):
    return screen.find(QFrame, "Editing an earlier message")


def prompts(screen):
    return [item.text for item in screen.conversation.transcript if isinstance(item, UserItem)]


async def edit(screen, row=0):
    commands(screen, row)["Edit"].run()
    await until(lambda: bar(screen))


async def send(screen):
    QTest.keyClick(screen.editor, Qt.Key.Key_Return)
    await until(lambda: bar(screen) is None)
    await until(lambda: len(screen.provider.requests) == screen.expected)
    await settled(screen)


def test_a_prompt_is_edited_and_sent_in_its_place(on_screen):
    async def work(screen):
        await screen.say("a")
        await screen.say("b")
        screen.write("draft")
        await edit(screen)
        assert screen.editor.toPlainText() == "a"
        assert screen.editor.hasFocus()
        assert view(screen)._render_context.edited_message == session(screen).history[0].id
        screen.write("lpha")
        screen.expected = 3
        await send(screen)
        assert prompts(screen) == ["alpha"]
        assert screen.answers() == ["three"]
        assert screen.editor.toPlainText() == "draft"
        assert view(screen)._render_context.edited_message == ""
        await run(screen, "Previous version", 0)
        assert prompts(screen) == ["a", "b"]

    on_screen(work, *turns("one", "two", "three"))


def test_escape_brings_the_draft_back_which_stayed_on_the_disk(on_screen):
    async def work(screen):
        await screen.say("a")
        screen.write("draft")
        await until(lambda: screen.kept_draft() == "draft")
        await edit(screen)
        screen.write("lpha")
        await asyncio.sleep(0.5)
        assert screen.kept_draft() == "draft"
        QTest.keyClick(screen.editor, Qt.Key.Key_Escape)
        assert bar(screen) is None
        assert screen.editor.toPlainText() == "draft"
        assert prompts(screen) == ["a"]

    on_screen(work, *turns("one"))


def test_its_pictures_come_along_and_can_be_removed(on_screen):
    async def work(screen):
        composer(screen).attachments.add_pasted(png())
        await until(lambda: composer(screen).draft()[1])
        await screen.say("a")
        await edit(screen)
        assert len(composer(screen).attachments.chips) == 1
        screen.expected = 2
        await send(screen)
        assert len(screen.conversation.transcript[0].images) == 1
        await edit(screen)
        composer(screen).attachments.clear()
        screen.expected = 3
        await send(screen)
        assert screen.conversation.transcript[0].images == ()
        assert "3" in "".join(part for part in footer_texts(screen, 0))

    on_screen(work, *turns("one", "two", "three"))


def footer_texts(screen, row):
    rows = view(screen).row_viewport.rows
    rows.settle()
    return [part for part, _ in rows.row(row).footer._placed if isinstance(part, str)]


def test_up_in_an_empty_editor_edits_the_last_prompt(on_screen):
    async def work(screen):
        await screen.say("a")
        await screen.say("b")
        screen.editor.setFocus()
        QTest.keyClick(screen.editor, Qt.Key.Key_Up)
        await until(lambda: bar(screen))
        assert screen.editor.toPlainText() == "b"
        screen.press("Cancel editing")
        assert screen.editor.toPlainText() == ""

    on_screen(work, *turns("one", "two"))


def test_it_waits_while_the_model_works(on_screen):
    async def work(screen):
        await screen.say("a")
        await edit(screen)
        screen.conversation.send(Message.user("b"))
        await wait.reached.wait()
        QTest.keyClick(screen.editor, Qt.Key.Key_Return)
        assert "The model is still working. Wait, or press Stop first." in screen.words()
        assert bar(screen) is not None
        assert screen.editor.toPlainText() == "a"
        wait.until.set()
        await settled(screen)
        screen.expected = 3
        await send(screen)
        assert prompts(screen) == ["a"]

    wait = Wait(asyncio.Event(), asyncio.Event())
    on_screen(work, *turns("one"), Turn(wait, ContentDelta("two")), *turns("three"))


def test_what_was_changed_goes_behind_the_draft_when_another_conversation_is_shown(on_screen):
    async def work(screen):
        await screen.say("a")
        first = screen.conversation.id
        screen.write("draft")
        await edit(screen)
        screen.write("lpha")
        screen.action("New conversation").trigger()
        await until(lambda: screen.conversation.id != first)
        await screen.idle()
        assert bar(screen) is None
        assert screen.editor.toPlainText() == ""
        await show(screen, first)
        assert screen.editor.toPlainText() == "draft\n\nalpha"

    on_screen(work, *turns("one"))


def test_what_was_changed_is_not_lost_when_another_prompt_or_the_same_is_edited(on_screen):
    async def work(screen):
        await screen.say("a")
        await screen.say("b")
        screen.write("draft")
        await edit(screen)
        screen.write("lpha")
        await edit(screen)
        await screen.idle()
        assert screen.editor.toPlainText() == "alpha"
        commands(screen, 2)["Edit"].run()
        await until(lambda: screen.editor.toPlainText() == "b")
        screen.press("Cancel editing")
        assert screen.editor.toPlainText() == "draft\n\nalpha"

    on_screen(work, *turns("one", "two"))


def test_what_cannot_be_sent_goes_on_being_edited(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("a")
        screen.write("draft")
        await edit(screen)
        monkeypatch.setattr(type(screen.conversation.branches), "edit_prompt", refuse)
        QTest.keyClick(screen.editor, Qt.Key.Key_Return)
        await until(lambda: bar(screen) and screen.editor.toPlainText() == "a")
        assert composer(screen).draft()[0] == "draft"
        assert any("Not now." in words for words in screen.words())

    def refuse(*_arguments):
        raise StorageFailed("Not now.")

    on_screen(work, *turns("one"))


def test_a_prompt_that_is_in_view_no_more_is_edited_no_more(on_screen):
    async def work(screen):
        await screen.say("a")
        await screen.say("b")
        await edit(screen, 2)
        screen.write("eta")
        await run(screen, "Branch from here", 1)
        assert bar(screen) is None
        assert screen.editor.toPlainText() == "beta"

    on_screen(work, *turns("one", "two"))
