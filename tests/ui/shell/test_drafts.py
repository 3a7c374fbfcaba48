"""What is attached stays with the message it was attached to, also while it is still on its way in."""

import asyncio
from io import BytesIO
from operator import attrgetter

import pytest
from PIL import Image as Picture
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolButton

from desktop_agent.storage.store import Store
from desktop_agent.types.errors import DiskFull
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn, Wait
from ui.bridge.conversation import OpenConversation
from ui.bridge.drafts import ComposerDraft, Draft
from ui.bridge.storage import PictureStore
from ui.composer.message_editor import MAX_TEXT_LENGTH
from ui.shell import drafts


def png():
    target = BytesIO()
    Picture.new("RGB", (40, 30), "red").save(target, "PNG")
    return target.getvalue()


class Slow:
    """An intake that begins when the test says so."""

    def __init__(self, screen):
        self.may_begin = asyncio.Event()
        attachments = screen.window.page.composer.attachments
        self._take, attachments._intake = attachments._intake, self

    async def __call__(self, data, name):
        await self.may_begin.wait()
        return await self._take(data, name)


def composer(screen):
    return screen.window.page.composer


def details(screen):
    return [chip._detail.text() for chip in composer(screen).attachments.chips]


async def show(screen, conversation_id):
    screen.desk.library.open(conversation_id)
    await until(lambda: screen.conversation.id == conversation_id)
    await until(lambda: screen.window.page._drafts._shown is screen.conversation)


async def pasted_and_left(screen, picture=None):
    """Paste a picture into the first conversation, and show another one while it is prepared."""
    await screen.say("One")
    first = screen.conversation.id
    slow = Slow(screen)
    screen.write("Look at this")
    composer(screen).attachments.add_pasted(picture or png())
    assert details(screen) == ["Preparing…"]
    screen.action("New conversation").trigger()
    await until(lambda: screen.conversation.id != first)
    await until(lambda: screen.window.page._drafts._shown is screen.conversation)
    assert composer(screen).attachments.chips == []
    return first, slow


def answers():
    return Turn(ContentDelta("Yes"))


def test_a_picture_on_its_way_comes_into_the_conversation_it_was_attached_in(on_screen):
    async def work(screen):
        first, slow = await pasted_and_left(screen)
        slow.may_begin.set()
        await screen.idle()
        assert composer(screen).draft() == ("", [])
        await show(screen, first)
        assert screen.editor.toPlainText() == "Look at this"
        (picture,) = composer(screen).draft()[1]
        assert (picture.name, picture.taken.width) == ("Pasted picture", 40)
        await screen.idle()

    on_screen(work, answers())


def test_who_comes_back_sees_it_prepared_and_sends_nothing_without_it(on_screen):
    async def work(screen):
        first, slow = await pasted_and_left(screen)
        await show(screen, first)
        assert details(screen) == ["Preparing…"]
        assert not screen.find(QToolButton, "Send").isEnabled()
        slow.may_begin.set()
        await until(lambda: composer(screen).draft()[1])
        await until(lambda: screen.find(QToolButton, "Send").isEnabled())
        await screen.idle()
        # Once, also on the disk.
        await screen.window.page._drafts.save()
        assert len((await screen.desk.library.drafts.load(screen.conversation)).pictures) == 1

    on_screen(work, answers())


@pytest.mark.parametrize("is_left", [True, False], ids=["of another conversation", "of the one shown"])
def test_the_end_waits_for_a_picture_on_its_way(is_left, on_screen):
    async def close(screen):
        if is_left:
            _, slow = await pasted_and_left(screen)
        else:
            await screen.say("One")
            slow = Slow(screen)
            composer(screen).attachments.add_pasted(png())
        asyncio.get_running_loop().call_later(0.05, slow.may_begin.set)

    async def check(screen):
        assert screen.conversation.title == "One"
        await until(lambda: composer(screen).draft()[1])

    on_screen(close, answers())
    on_screen(check)


def test_what_never_comes_is_said_before_the_end(on_screen, monkeypatch):
    monkeypatch.setattr(drafts, "_FETCH_SECONDS", 0.05)

    async def work(screen):
        await screen.say("One")
        slow = Slow(screen)
        composer(screen).attachments.add_pasted(png())
        confirming = asyncio.ensure_future(screen.desk._close_confirmation.confirm())
        await until(screen.question)
        slow.may_begin.set()
        await until(lambda: not composer(screen).attachments.is_preparing)
        screen.answer_question("Try again")
        assert await confirming

    on_screen(work, answers())


def test_what_is_refused_behind_another_conversation_is_said(on_screen):
    async def work(screen):
        first, slow = await pasted_and_left(screen, b"no picture at all")
        slow.may_begin.set()
        await until(lambda: "“Pasted picture”" in " ".join(screen.words(screen.banners)))
        await show(screen, first)
        assert composer(screen).draft() == ("Look at this", [])

    on_screen(work, answers())


LOG = "A line of a log.\n" * (MAX_TEXT_LENGTH // 16)


def test_what_is_typed_beside_a_pasted_text_can_be_edited_on(on_screen):
    def is_whole(screen):
        texts = composer(screen).attachments.texts
        return (screen.editor.toPlainText(), texts) == ("What is wrong in this log?", [LOG])

    async def work(screen):
        await screen.say("One")
        first = screen.conversation.id
        screen.write("What is wrong in this log?")
        screen.editor.insert_text(LOG)
        screen.action("New conversation").trigger()
        await until(lambda: screen.conversation.id != first)
        await screen.idle()
        await show(screen, first)
        assert is_whole(screen)

    async def check(screen):
        await until(lambda: is_whole(screen))
        await screen.say("!")
        assert screen.provider.requests[-1].messages[-1].text == f"What is wrong in this log?!\n\n{LOG}"

    on_screen(work, answers())
    on_screen(check, answers())


def test_the_last_prompt_comes_in_place_of_what_is_attached_which_comes_back(on_screen):
    async def work(screen):
        await screen.say("One")
        composer(screen).attachments.add_pasted(png())
        await until(lambda: composer(screen).draft()[1])
        QTest.keyClick(screen.editor, Qt.Key.Key_Up)
        await until(lambda: screen.editor.toPlainText() == "One")
        assert composer(screen).written() == ("One", [])
        assert len(composer(screen).draft()[1]) == 1
        QTest.keyClick(screen.editor, Qt.Key.Key_Escape)
        text, attached = composer(screen).written()
        assert (text, len(attached)) == ("", 1)
        await screen.idle()

    on_screen(work, answers())


def broken(*_arguments):
    raise RuntimeError("broken on purpose")


# Not by deleting the widget: where PySide 6.11 on Python 3.11 asks a widget for its height, an exception that C code
# raised ends the process.
@pytest.mark.parametrize("method", ["starters.setVisible", "session_controls.picker.show_modes"])
def test_a_part_of_the_window_that_fails_leaves_no_draft_over_another_conversation(on_screen, monkeypatch, method):
    async def work(screen):
        await screen.say("One")
        first, page = screen.conversation.id, screen.window.page
        session = screen.conversation._session
        await _new(screen)
        screen.write("half a thought")
        # Whatever shows the next conversation in it fails.
        part, name = method.rsplit(".", 1)
        with monkeypatch.context() as patch:
            patch.setattr(attrgetter(part)(page), name, broken)
            with pytest.raises(RuntimeError, match="on purpose"):
                page.show_conversation(OpenConversation(session, screen.desk._clock, screen.desk.library))
        assert screen.editor.toPlainText() == ""
        assert page._drafts._conversation.id == page._conversation.id == first
        await screen.idle()
        assert (await screen.engine.store.load_draft(None)).text == "half a thought"

    on_screen(work, answers())


def test_a_waiting_message_that_is_edited_stays_with_its_conversation(on_screen):
    may_go_on, reached = asyncio.Event(), asyncio.Event()

    async def work(screen):
        screen.write("begin")
        screen.press("Send")
        await reached.wait()
        first = screen.conversation
        screen.write("one")
        QTest.keyClick(screen.editor, Qt.Key.Key_Return)
        await until(lambda: first.session_controls.queue)
        (row,) = screen.window.page.session_controls.queue.rows
        QTest.keyClick(row, Qt.Key.Key_Return)
        QTest.keyClicks(screen.window.focusWidget(), " more")
        await _new(screen)
        assert screen.editor.toPlainText() == ""
        await show(screen, first.id)
        assert screen.editor.toPlainText() == "one more"
        screen.press("Stop")
        await until(lambda: not screen.conversation.working)
        await screen.idle()

    on_screen(work, Turn(ContentDelta("first"), Wait(may_go_on, reached)))


async def _new(screen):
    shown_id = screen.conversation.id
    screen.action("New conversation").trigger()
    await until(lambda: screen.conversation.id != shown_id)
    await until(lambda: screen.window.page._drafts._shown is screen.conversation)


def test_the_draft_of_a_new_conversation_outlasts_what_is_sent_elsewhere(on_screen):
    async def work(screen):
        await screen.say("One")
        first = screen.conversation.id
        await _new(screen)
        screen.write("A plan for something new")
        await until(lambda: screen.kept_draft() == "A plan for something new")
        await show(screen, first)
        await screen.say("Two")
        await screen.idle()
        await _new(screen)
        assert screen.editor.toPlainText() == "A plan for something new"
        # And when it is sent, it stands there no more, also where one writes on at once.
        second = screen.conversation
        screen.press("Send")
        screen.write("and then")
        await until(lambda: not second.is_empty and not second.working)
        await until(lambda: screen.kept_draft() == "and then")
        await _new(screen)
        assert screen.editor.toPlainText() == ""

    on_screen(work, answers(), answers(), answers())


def test_a_draft_that_the_disk_refuses_stays_and_is_not_saved_at_the_end(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("One")
        first = screen.conversation.id

        async def refuse(*_, **__):
            raise DiskFull("The disk is full.")

        with monkeypatch.context() as full:
            full.setattr(Store, "save_draft", refuse)
            screen.write("An hour of writing")
            await _new(screen)
            assert screen.editor.toPlainText() == ""
            await screen.desk._save_draft()
            assert "An hour of writing" in screen.desk._lost_draft.record.text
        await show(screen, first)
        assert screen.editor.toPlainText() == "An hour of writing"
        await screen.desk._save_draft()
        assert screen.desk._lost_draft is None
        assert (await screen.engine.store.load_draft(first)).text == "An hour of writing"

    on_screen(work, answers())


def test_the_end_waits_for_a_message_that_is_just_being_sent(on_screen, monkeypatch):
    may_keep = asyncio.Event()

    async def work(screen):
        await screen.say("One")
        composer(screen).attachments.add_pasted(png())
        await until(lambda: composer(screen).draft()[1])
        screen.write("Look at this")
        await until(lambda: screen.kept_draft() == "Look at this")
        real = PictureStore.save

        async def save_late(*args):
            await may_keep.wait()
            return await real(*args)

        monkeypatch.setattr(PictureStore, "save", save_late)
        screen.press("Send")
        await until(lambda: composer(screen).draft() == ("", []))
        closing = asyncio.ensure_future(screen.desk._save_draft())
        done, _ = await asyncio.wait({closing}, timeout=0.5)
        assert not done
        may_keep.set()
        await closing
        await until(lambda: "Look at this" in [message.text for message in screen.conversation._session.history])
        await until(lambda: not screen.conversation.working)

    on_screen(work, answers(), answers())


def test_what_is_handed_back_is_not_overwritten_by_a_draft_that_is_just_being_kept(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("One")
        conversation, kept_drafts = screen.conversation, screen.desk.library.drafts
        reached, may_go_on = asyncio.Event(), asyncio.Event()
        original = type(conversation).ensure_stored

        async def ensure_stored_late(self):
            reached.set()
            await may_go_on.wait()
            return await original(self)

        monkeypatch.setattr(type(conversation), "ensure_stored", ensure_stored_late)
        saving = asyncio.ensure_future(kept_drafts.save(conversation, ComposerDraft(Draft("typed"))))
        await reached.wait()
        returning = asyncio.ensure_future(kept_drafts.add_message(conversation.id, Message.user("handed back")))
        for _ in range(3):
            await asyncio.sleep(0.01)
        may_go_on.set()
        await asyncio.gather(saving, returning)
        assert (await screen.engine.store.load_draft(conversation.id)).text == "typed\n\nhanded back"

    on_screen(work, answers())


def test_what_the_disk_refused_and_was_sent_meanwhile_does_not_come_back(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("One")
        await _new(screen)
        conversation, is_refused = screen.conversation, asyncio.Event()

        async def refuse(*_, **__):
            is_refused.set()
            raise DiskFull("The disk is full.")

        with monkeypatch.context() as full:
            full.setattr(Store, "save_draft", refuse)
            screen.write("hello")
            await is_refused.wait()
        screen.press("Send")
        await until(lambda: not conversation.is_empty and not conversation.working)
        await screen.idle()
        await screen.desk._save_draft()
        assert (await screen.engine.store.load_draft(conversation.id)).text == ""
        await _new(screen)
        assert screen.editor.toPlainText() == ""

    on_screen(work, answers(), answers())
