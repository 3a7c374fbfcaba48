"""Drafts that the disk refuses, or that are on their way when the program ends: what is written is never gone."""

import asyncio

import pytest

from desktop_agent.conversation.picture_preparation import import_picture_async
from desktop_agent.storage import conversation_rows as database
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import DiskFull, WrongUse
from desktop_agent.types.messages import Message
from tests.fakes.qt_loop import until
from tests.ui.shell.test_drafts import _new as new_conversation
from tests.ui.shell.test_drafts import answers, composer, png, show
from ui.bridge.drafts import ComposerDraft, Draft
from ui.bridge.storage import PictureStore
from ui.shell import conversation_page


async def refuse(*_, **__):
    raise DiskFull("The disk is full.")


async def unsaved_draft(screen):
    """Return the draft that would be lost if the program ended now; None where all is on the disk."""
    await screen.desk._save_draft()
    draft = screen.desk._lost_draft
    return draft.record.text if draft is not None else None


async def on_disk(screen, conversation_id):
    return (await screen.engine.store.load_draft(conversation_id)).text


@pytest.mark.parametrize("refused", ["save_draft", "load_draft"])
def test_a_message_that_comes_back_to_a_conversation_that_is_not_shown(on_screen, monkeypatch, refused):
    async def work(screen):
        await screen.say("One")
        first = screen.conversation
        await new_conversation(screen)
        with monkeypatch.context() as full:
            full.setattr(Store, refused, refuse)
            with pytest.raises(DiskFull):
                await screen.window.page._drafts.return_message(first, Message.user("handed back"))
            assert await unsaved_draft(screen) == "handed back"
        assert await unsaved_draft(screen) is None
        assert await on_disk(screen, first.id) == "handed back"

    on_screen(work, answers())


def test_what_is_written_before_the_draft_is_there(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("One")
        first = screen.conversation
        with monkeypatch.context() as full:
            full.setattr(Store, "save_draft", refuse)
            screen.window.page._drafts.show(first)
            screen.write("quick")
            await new_conversation(screen)
            assert await unsaved_draft(screen) == "quick"
        assert await unsaved_draft(screen) is None
        assert await on_disk(screen, first.id) == "quick"

    on_screen(work, answers())


def test_a_picture_that_is_being_kept_when_the_program_ends(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("One")
        first = screen.conversation
        may_keep, real = asyncio.Event(), PictureStore.save

        async def save_late(*args):
            await may_keep.wait()
            return await real(*args)

        monkeypatch.setattr(PictureStore, "save", save_late)
        composer(screen).attachments.add_pasted(png())
        await until(lambda: composer(screen).draft()[1])
        screen.write("Look at this")
        screen.action("New conversation").trigger()
        await until(lambda: screen.conversation.id != first.id)
        closing = asyncio.ensure_future(screen.desk._save_draft())
        await asyncio.sleep(0)
        may_keep.set()
        await closing
        draft = await screen.engine.store.load_draft(first.id)
        assert (draft.text, len(draft.images)) == ("Look at this", 1)

    on_screen(work, answers())


def test_it_is_read_from_memory_until_the_disk_takes_it(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("One")
        first = screen.conversation.id
        with monkeypatch.context() as full:
            full.setattr(Store, "save_draft", refuse)
            screen.write("An hour of writing")
            await new_conversation(screen)
            await show(screen, first)
            assert screen.editor.toPlainText() == "An hour of writing"
        screen.write(", and more")
        await until(lambda: screen.kept_draft() == "An hour of writing, and more")
        assert screen.desk.library.drafts.refused == ()
        assert await on_disk(screen, first) == "An hour of writing, and more"

    on_screen(work, answers())


def test_what_was_written_early_stands_once_in_what_is_saved_elsewhere(on_screen, monkeypatch):
    async def work(screen):
        page = screen.window.page
        page._early = [("sent early", [], "soon")]
        monkeypatch.setattr(Store, "save_draft", refuse)
        for _ in range(2):
            assert (await unsaved_draft(screen)).count("sent early") == 1
        page._early = []

    on_screen(work)


def test_a_picture_that_cannot_be_read_now_stays_in_a_draft_that_gets_more(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("One")
        first = screen.conversation
        composer(screen).attachments.add_pasted(png())
        await until(lambda: composer(screen).draft()[1])
        await new_conversation(screen)
        await screen.idle()
        with monkeypatch.context() as unreadable:
            unreadable.setattr(PictureStore, "reload", refuse)
            await screen.window.page._drafts.return_message(first, Message.user("handed back"))
        draft = await screen.engine.store.load_draft(first.id)
        assert (draft.text, len(draft.images)) == ("handed back", 1)

    on_screen(work, answers())


def test_what_comes_back_to_a_conversation_that_is_gone_is_kept_all_the_same(on_screen):
    async def work(screen):
        await screen.desk.library.drafts.add_message("f" * 32, Message.user("handed back"))
        assert await on_disk(screen, None) == "handed back"

    on_screen(work)


async def forget(screen, conversation_id):
    """Remove the conversation, as when the database file is replaced."""
    await screen.engine.store.delete_conversation(conversation_id)
    await screen.engine.store.purge_conversation(conversation_id)


def test_what_is_written_in_a_conversation_that_is_gone_goes_behind_the_draft_of_new_ones(on_screen):
    async def work(screen):
        kept_drafts = screen.desk.library.drafts
        await screen.say("One")
        deleted = screen.conversation
        await new_conversation(screen)
        await kept_drafts.save(screen.conversation, ComposerDraft(Draft("a plan")))
        await forget(screen, deleted.id)
        for text in ("half", "half a thought"):
            await kept_drafts.save(deleted, ComposerDraft(Draft(text)))
        assert await on_disk(screen, None) == "a plan\n\nhalf a thought"
        await kept_drafts.add_message(deleted.id, Message.user("handed back"))
        assert await on_disk(screen, None) == "a plan\n\nhalf a thought\n\nhanded back"

    on_screen(work, answers())


def test_what_comes_back_to_a_conversation_that_is_gone_outlasts_what_is_written_in_a_new_one(on_screen):
    async def work(screen):
        new = screen.conversation
        screen.write("a")
        await until(lambda: screen.kept_draft() == "a")
        await screen.desk.library.drafts.add_message("f" * 32, Message.user("handed back"))
        screen.write(" plan")
        await until(lambda: screen.kept_draft() == "a plan")
        assert await on_disk(screen, None) == "a plan\n\nhanded back"
        screen.press("Send")
        await until(lambda: not new.is_empty and not new.working)
        screen.write("and then")
        await until(lambda: screen.kept_draft() == "and then")
        assert await on_disk(screen, new.id) == "and then"
        await new_conversation(screen)
        assert screen.editor.toPlainText() == "handed back"
        screen.write(", once")
        await until(lambda: screen.kept_draft() == "handed back, once")
        assert await on_disk(screen, None) == "handed back, once"

    on_screen(work, answers())


def test_what_the_disk_refused_of_a_conversation_that_is_gone_since_stays_when_more_comes_back(on_screen, monkeypatch):
    async def work(screen):
        kept_drafts = screen.desk.library.drafts
        await screen.say("One")
        deleted = screen.conversation
        await new_conversation(screen)
        with monkeypatch.context() as full:
            full.setattr(Store, "save_draft", refuse)
            with pytest.raises(DiskFull):
                await kept_drafts.save(deleted, ComposerDraft(Draft("half a thought")))
        await forget(screen, deleted.id)
        await kept_drafts.add_message(deleted.id, Message.user("handed back"))
        assert await on_disk(screen, None) == "half a thought\n\nhanded back"
        assert kept_drafts.refused == ()

    on_screen(work, answers())


def test_a_message_that_is_refused_goes_behind_what_was_written_since(on_screen, monkeypatch):
    async def refused(*_, **__):
        raise WrongUse("It cannot be sent.")

    async def work(screen):
        await screen.say("One")
        first, page = screen.conversation, screen.window.page
        monkeypatch.setattr(conversation_page, "to_blocks", refused)
        async with page._sending:
            screen.write("two")
            screen.press("Send")
            screen.write("more")
            await until(lambda: screen.kept_draft() == "more")
            await new_conversation(screen)
        async with page._sending:
            assert await on_disk(screen, first.id) == "more\n\ntwo"

    on_screen(work, answers())


@pytest.mark.parametrize("is_new", [False, True], ids=["a stored one", "one that was never sent"])
def test_a_message_that_is_refused_is_seen_by_who_left_and_came_back(on_screen, monkeypatch, is_new):
    async def refused(*_, **__):
        raise WrongUse("It cannot be sent.")

    async def work(screen):
        await screen.say("One")
        first, page = screen.conversation, screen.window.page
        if is_new:
            await new_conversation(screen)
        monkeypatch.setattr(conversation_page, "to_blocks", refused)
        async with page._sending:
            screen.write("two")
            screen.press("Send")
            await until(lambda: screen.editor.toPlainText() == "")
            if is_new:
                await show(screen, first.id)
                await new_conversation(screen)
            else:
                await new_conversation(screen)
                await show(screen, first.id)
        async with page._sending:
            assert screen.editor.toPlainText() == "two"
        screen.write(", more")
        await until(lambda: screen.kept_draft() == "two, more")

    on_screen(work, answers())


def test_a_message_that_comes_back_is_seen_by_who_left_and_came_back(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("One")
        first, drafts = screen.conversation, screen.window.page._drafts
        may_return, original = asyncio.Event(), type(screen.desk.library.drafts).content_of

        async def content_of(*args):
            await may_return.wait()
            return await original(*args)

        monkeypatch.setattr(type(screen.desk.library.drafts), "content_of", content_of)
        returning = asyncio.ensure_future(drafts.return_message(first, Message.user("handed back")))
        await new_conversation(screen)
        await show(screen, first.id)
        may_return.set()
        await returning
        assert screen.editor.toPlainText() == "handed back"
        await until(lambda: screen.kept_draft() == "handed back")

    on_screen(work, answers())


def test_what_is_written_in_a_new_conversation_outlasts_a_new_one_before_it_that_is_sent_later(on_screen):
    async def work(screen):
        await screen.say("One")
        page, kept_drafts = screen.window.page, screen.desk.library.drafts
        await new_conversation(screen)
        conversation = screen.conversation
        async with page._sending:
            # What is attached to it is still being kept, say.
            screen.write("two")
            await until(lambda: screen.kept_draft() == "two")
            screen.press("Send")
            await new_conversation(screen)
            screen.write("a plan")
            await until(lambda: screen.kept_draft() == "a plan")
        await until(lambda: not conversation.is_empty and not conversation.working)
        await kept_drafts.add(conversation, ComposerDraft(Draft("and more")))
        assert await on_disk(screen, conversation.id) == "and more"
        assert await on_disk(screen, None) == "a plan"

    on_screen(work, answers(), answers())


def test_what_the_disk_refused_of_a_new_conversation_is_gone_when_the_next_one_sends_it(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("One")
        first = screen.conversation.id
        await new_conversation(screen)
        with monkeypatch.context() as full:
            full.setattr(Store, "save_draft", refuse)
            screen.write("a plan")
            await show(screen, first)
            await until(lambda: screen.desk.library.drafts.refused)
        await new_conversation(screen)
        assert screen.editor.toPlainText() == "a plan"
        new = screen.conversation
        screen.press("Send")
        await until(lambda: not new.is_empty and not new.working)
        await new_conversation(screen)
        assert screen.editor.toPlainText() == ""
        assert await unsaved_draft(screen) is None
        assert await on_disk(screen, None) == ""

    on_screen(work, answers(), answers())


def test_a_draft_that_is_still_refused_keeps_no_other_from_the_disk(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("One")
        first, kept_drafts = screen.conversation, screen.desk.library.drafts
        prepared = await import_picture_async(png(), "red.png")
        await new_conversation(screen)
        with monkeypatch.context() as full:
            full.setattr(PictureStore, "save", refuse)
            full.setattr(Store, "save_draft", refuse)
            for saving in (
                kept_drafts.save(first, ComposerDraft(Draft("with a picture"), ((prepared, "red.png"),))),
                kept_drafts.save(screen.conversation, ComposerDraft(Draft("a plan"))),
                kept_drafts.add("f" * 32, ComposerDraft(Draft("of one that is gone"))),
            ):
                with pytest.raises(DiskFull):
                    await saving
        with monkeypatch.context() as full:
            full.setattr(PictureStore, "save", refuse)
            with pytest.raises(DiskFull):
                await kept_drafts.retry_refused()
        assert [draft.record.text for draft in kept_drafts.refused] == ["with a picture"]
        assert await on_disk(screen, None) == "a plan\n\nof one that is gone"
        await kept_drafts.retry_refused()
        assert kept_drafts.refused == ()
        assert await on_disk(screen, first.id) == "with a picture"

    on_screen(work, answers())


def test_what_the_disk_refuses_half_way_is_not_kept_twice(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("One")
        kept_drafts, real = screen.desk.library.drafts, database.save_draft
        await new_conversation(screen)
        new = screen.conversation
        await kept_drafts.save(new, ComposerDraft(Draft("written before")))
        # Sent without its draft being kept once more.
        screen.window.page._drafts._saved = ("", [])
        new.send(Message.user("written before"))
        await until(lambda: not new.is_empty and not new.working)

        def save(db, number, draft):
            if number == database.NO_CONVERSATION_NUMBER:
                raise DiskFull("The disk is full.")
            real(db, number, draft)

        with monkeypatch.context() as full:
            full.setattr(database, "save_draft", save)
            with pytest.raises(DiskFull):
                await kept_drafts.add(new, ComposerDraft(Draft("more")))
        assert (await kept_drafts.load(new)).record.text == "more"
        await kept_drafts.retry_refused()
        assert await on_disk(screen, new.id) == "more"
        assert await on_disk(screen, None) == ""

    on_screen(work, answers(), answers())


def test_what_is_written_is_kept_at_once_while_another_draft_is(on_screen):
    async def work(screen):
        await screen.say("One")
        screen.write("half a")
        async with screen.desk.library.drafts._lock:
            assert screen.desk.save_immediately()
            assert await on_disk(screen, screen.conversation.id) == "half a"

    on_screen(work, answers())


def test_what_the_disk_refused_goes_to_its_own_conversation_when_the_screen_is_lost(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("One")
        first, kept_drafts = screen.conversation, screen.desk.library.drafts
        await new_conversation(screen)
        await screen.say("Two")
        with monkeypatch.context() as full:
            full.setattr(Store, "save_draft", refuse)
            with pytest.raises(DiskFull):
                await kept_drafts.save(first, ComposerDraft(Draft("of the first")))
            with pytest.raises(DiskFull):
                await kept_drafts.add_message(first, Message.user("handed back"))
            screen.write("of the second")
            assert not screen.desk.save_immediately()
        assert screen.desk.save_immediately()
        assert await on_disk(screen, screen.conversation.id) == "of the second"
        assert await on_disk(screen, first.id) == "of the first\n\nhanded back"
        assert kept_drafts.refused == ()

    on_screen(work, answers(), answers())


def test_a_draft_that_is_just_being_kept_when_the_screen_is_lost_stays(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("One")
        first, kept_drafts = screen.conversation, screen.desk.library.drafts
        await new_conversation(screen)
        is_called, may_fail = asyncio.Event(), asyncio.Event()

        async def refuse_late(*_, **__):
            is_called.set()
            await may_fail.wait()
            raise DiskFull("The disk is full.")

        with monkeypatch.context() as full:
            full.setattr(Store, "save_draft", refuse_late)
            saving = asyncio.ensure_future(kept_drafts.save(first, ComposerDraft(Draft("of the first"))))
            await is_called.wait()
        saved = screen.desk.save_immediately()
        may_fail.set()
        with pytest.raises(DiskFull):
            await saving
        assert saved
        assert await on_disk(screen, first.id) == "of the first"

    on_screen(work, answers())


def test_a_conversation_that_the_disk_refuses_keeps_no_draft_from_it_when_the_screen_is_lost(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("One")
        first = screen.conversation
        with monkeypatch.context() as full:
            full.setattr(Store, "update_conversation", refuse)
            screen.desk.library.rename(first.id, "Another title")
            await until(lambda: screen.engine.unsaved)
            screen.write("half a thought")
            assert not screen.desk.save_immediately()
        assert await on_disk(screen, first.id) == "half a thought"

    on_screen(work, answers())


def test_a_screen_that_is_lost_before_a_draft_is_loaded_costs_none(on_screen):
    async def work(screen):
        await screen.say("One")
        first = screen.conversation.id
        screen.write("half a thought")
        await until(lambda: screen.kept_draft() == "half a thought")
        await new_conversation(screen)
        saved = []

        def lose(_conversation):
            # The window has just changed over; the draft comes from the disk a moment later.
            assert screen.editor.toPlainText() == ""
            saved.append(screen.desk.save_immediately())
            screen.editor.setPlainText("and more")
            saved.append(screen.desk.save_immediately())

        screen.desk.library.opened.connect(lose)
        screen.desk.library.open(first)
        await until(lambda: len(saved) == 2)
        assert saved == [True, True]
        assert await on_disk(screen, first) == "half a thought\n\nand more"

    on_screen(work, answers())


def test_a_screen_that_is_lost_after_the_disk_refused_to_read_a_draft_costs_none(on_screen, monkeypatch):
    async def work(screen):
        await screen.say("One")
        first, drafts = screen.conversation.id, screen.window.page._drafts
        screen.write("half a thought")
        await until(lambda: screen.kept_draft() == "half a thought")
        await new_conversation(screen)
        with monkeypatch.context() as unreadable:
            unreadable.setattr(Store, "load_draft", refuse)
            screen.desk.library.open(first)
            await until(lambda: screen.conversation.id == first)
            await until(lambda: "The disk is full." in " ".join(screen.words(screen.banners)))
            screen.editor.setPlainText("and more")
            assert not drafts.is_loaded
            # What was kept is not read, so nothing may be written in its place.
            assert not screen.desk.save_immediately()
            assert screen.editor.toPlainText() == "and more"
        assert screen.desk.save_immediately()
        assert await on_disk(screen, first) == "half a thought\n\nand more"

    on_screen(work, answers())
