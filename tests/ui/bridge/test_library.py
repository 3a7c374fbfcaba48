"""The conversations for the screens."""

import asyncio
from io import BytesIO

import pytest
from PIL import Image as Picture
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from shiboken6 import isValid

from desktop_agent.conversation.picture_preparation import import_picture_async
from desktop_agent.storage import journal_queue
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.records import ConversationState
from desktop_agent.storage.store import Store
from desktop_agent.types.engine_events import ApprovalRequested, Envelope, RunStarted
from desktop_agent.types.errors import DiskFull
from desktop_agent.types.messages import AttachedText, Message, now
from desktop_agent.types.policies import QueuedMessage
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import AllowOnce, UntrustedSource
from tests.fakes.agent_run import call
from tests.fakes.qt_loop import Bridge, Heard, prompts, until
from tests.fakes.scripted_provider import Turn, Wait
from ui.bridge import conversation_listing
from ui.bridge.drafts import ComposerDraft, Draft

NOTES = AttachedText("Week 12", "decided", "notes://12", "Notes")
OUTSIDE = UntrustedSource("mcp", "Notes", "notes")


def run(in_loop, folder, work, *turns, connected=True):
    async def whole():
        bridge = await Bridge.open(folder, *turns, connected=connected)
        try:
            await work(bridge)
        finally:
            await bridge.close()

    in_loop(whole())


async def converse(bridge, text):
    bridge.library.new()
    conversation = bridge.library.current
    finished = Heard(conversation.finished)
    conversation.send(Message.user(text))
    await until(lambda: finished)
    await bridge.engine._sessions[conversation.id].wait_idle()
    await bridge.idle()
    return conversation.id


def test_a_new_conversation_is_shown_and_listed_from_its_first_prompt(in_loop, tmp_path):
    async def work(bridge):
        opened, listed = Heard(bridge.library.opened), Heard(bridge.library.listing.listed)
        bridge.library.refresh()
        await bridge.idle()
        assert listed == [()]
        id_ = await converse(bridge, "Hello")
        assert [conversation.id for conversation in opened] == [id_]
        assert [row.title for row in listed[-1]] == ["Hello"]

    run(in_loop, tmp_path, work, Turn())


def test_a_stored_conversation_opens_and_the_latest_at_the_start(in_loop, tmp_path):
    async def work(bridge):
        first, second = await converse(bridge, "first"), await converse(bridge, "second")
        opened = Heard(bridge.library.opened)
        bridge.library.open(second)
        await bridge.idle()
        assert opened == []  # it is open
        bridge.library.open(first)
        await bridge.idle()
        assert [conversation.id for conversation in opened] == [first]
        bridge.library.open_last("", pytest.fail)
        await bridge.idle()
        assert bridge.library.current.id == second
        bridge.library.open_last(first, pytest.fail)
        await bridge.idle()
        assert bridge.library.current.id == first
        # What is gone, or in the trash, is none to begin with.
        bridge.library.delete(first)
        await bridge.idle()
        for missing_id in ("nobody", first):
            bridge.library.open_last(missing_id, pytest.fail)
            await bridge.idle()
            assert bridge.library.current.id == second
        bridge.library.open("nobody")
        await bridge.idle()
        assert [error.kind for error in bridge.errors] == ["wrong_use"]
        assert bridge.library.current.id == second

    run(in_loop, tmp_path, work, Turn(), Turn())


def delay_loading(bridge, conversation_id):
    """Delay loading this conversation until the returned event is set."""
    load, may_come = bridge.engine.session, asyncio.Event()

    async def session(id_, *, whole):
        if id_ == conversation_id:
            await may_come.wait()
        return await load(id_, whole=whole)

    bridge.engine.session = session
    return may_come


def open_the_other(library, long, other):
    library.open(long)
    library.open(other)


def return_to_what_is_shown(library, long, _):
    library.open(long)
    library.open(library.current.id)


def begin_a_new_one(library, long, _):
    library.open(long)
    library.new()


def begin_the_demo(library, long, _):
    library.open(long)
    library.new_demo()


def take_one_back(library, long, other):
    library.restore(long)
    library.open(other)


@pytest.mark.parametrize(
    "choose", [open_the_other, return_to_what_is_shown, begin_a_new_one, begin_the_demo, take_one_back]
)
def test_what_was_chosen_last_is_shown_although_what_was_chosen_first_takes_longer(in_loop, tmp_path, choose):
    async def work(bridge):
        long, other, _ = [await converse(bridge, text) for text in ("long", "other", "shown")]
        if choose is take_one_back:
            await bridge.engine.delete_conversation(long)
        may_come = delay_loading(bridge, long)
        choose(bridge.library, long, other)
        await until(lambda: len(bridge.tasks._running) == 1)
        shown = bridge.library.current
        may_come.set()
        await bridge.idle()
        assert bridge.library.current is shown
        assert shown.id != long
        bridge.library.open(long)
        await bridge.idle()
        assert bridge.library.current.id == long
        assert bridge.errors == []

    run(in_loop, tmp_path, work, Turn(), Turn(), Turn())


def test_what_is_deleted_meanwhile_does_not_keep_away_what_was_chosen(in_loop, tmp_path):
    async def work(bridge):
        long, shown = await converse(bridge, "long"), await converse(bridge, "shown")
        opened = Heard(bridge.library.opened)
        may_come = delay_loading(bridge, long)
        bridge.library.open(long)
        bridge.library.delete(shown)
        bridge.library.open(long)
        await until(lambda: len(bridge.tasks._running) == 2)
        may_come.set()
        await bridge.idle()
        assert [conversation.id for conversation in opened][1:] == [long]

    run(in_loop, tmp_path, work, Turn(), Turn())


def test_what_was_chosen_is_shown_although_one_that_is_not_stored_is_closed_meanwhile(in_loop, tmp_path):
    async def work(bridge):
        long = await converse(bridge, "long")
        bridge.library.new(in_memory=True)
        may_come = delay_loading(bridge, long)
        bridge.library.open(long)
        bridge.library.close_unstored(bridge.library.current.id)
        may_come.set()
        await bridge.idle()
        assert bridge.library.current.id == long

    run(in_loop, tmp_path, work, Turn())


def test_a_message_that_is_ready_only_when_another_one_is_shown_is_sent_all_the_same(in_loop, tmp_path):
    async def work(bridge):
        id_ = await converse(bridge, "Hello")
        previous = bridge.library.current
        bridge.library.new()
        await until(lambda: not isValid(previous))
        previous.send(Message.user("with a picture"))
        await bridge.engine._sessions[id_].wait_idle()
        assert prompts(previous)[-1] == "with a picture"
        assert bridge.library.current is not previous

    run(in_loop, tmp_path, work, Turn(ContentDelta("a")), Turn(ContentDelta("b")))


def test_without_a_stored_conversation_the_fallback_is_called(in_loop, tmp_path):
    async def work(bridge):
        done = []
        bridge.library.open_last("", lambda: done.append(1))
        await bridge.idle()
        assert done == [1]
        assert bridge.library.current is None

    run(in_loop, tmp_path, work)


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_new_name_is_listed_however_long_the_disk_takes(in_loop, tmp_path, monkeypatch, is_shown):
    stay_the_writer = journal_queue._OwnerLock.retake

    async def slowly(lock):
        await asyncio.sleep(0.2)
        await stay_the_writer(lock)

    async def work(bridge):
        id_ = await converse(bridge, "Hello")
        if not is_shown:
            bridge.library.new()
            await bridge.idle()
        monkeypatch.setattr(journal_queue._OwnerLock, "retake", slowly)
        listed = Heard(bridge.library.listing.listed)
        bridge.library.rename(id_, "Mine")
        await bridge.idle()
        assert listed[-1][0].title == "Mine"
        assert not (await bridge.engine.store.record(listed[-1][0].id)).title_is_automatic

    run(in_loop, tmp_path, work, Turn())


def test_deleting_can_be_undone(in_loop, tmp_path):
    async def work(bridge):
        id_ = await converse(bridge, "Hello")
        deleted, listed = Heard(bridge.library.deleted), Heard(bridge.library.listing.listed)
        bridge.library.delete(id_)
        await bridge.idle()
        assert deleted == [(id_, "Hello", True)]
        assert listed[-1] == ()
        assert bridge.library.current.is_empty  # not a deleted one on the screen
        bridge.library.restore(id_)
        await bridge.idle()
        assert bridge.library.current.id == id_
        assert [row.id for row in listed[-1]] == [id_]
        assert len(bridge.library.current.transcript) == 2

    run(in_loop, tmp_path, work, Turn(ContentDelta("Hi")))


def test_undoing_a_deletion_shows_only_what_was_shown(in_loop, tmp_path):
    async def work(bridge):
        first = await converse(bridge, "Hello")
        bridge.library.new()
        await bridge.idle()
        second = await converse(bridge, "And again")
        listed = Heard(bridge.library.listing.listed)
        bridge.library.delete(first)
        await bridge.idle()
        bridge.library.restore(first, shows=False)
        await bridge.idle()
        assert bridge.library.current.id == second
        assert {row.id for row in listed[-1]} == {first, second}
        bridge.library.delete(second)
        await bridge.idle()
        bridge.library.restore(second)
        await bridge.idle()
        assert bridge.library.current.id == second

    run(in_loop, tmp_path, work, Turn(ContentDelta("Hi")), Turn(ContentDelta("Hi")))


def test_what_is_chosen_while_it_is_put_into_the_trash_is_refused_with_a_sentence(in_loop, tmp_path, monkeypatch):
    async def work(bridge):
        delete, may_delete = Store.delete_conversation, asyncio.Event()

        async def delete_later(store, conversation_id):
            await may_delete.wait()
            await delete(store, conversation_id)

        monkeypatch.setattr(Store, "delete_conversation", delete_later)
        id_ = await converse(bridge, "Hello")
        session = bridge.engine._sessions[id_]
        bridge.library.delete(id_)
        await until(lambda: session.is_closed)
        assert bridge.library.current.id == id_
        bridge.library.change(id_, model="other")
        may_delete.set()
        await bridge.idle()
        bridge.library.restore(id_)
        await bridge.idle()
        assert [str(error.sentence) for error in bridge.errors] == ["This conversation is in the trash."]
        assert bridge.library.current.id == id_

    run(in_loop, tmp_path, work, Turn())


def test_what_another_process_deleted_for_good_is_listed_no_more_once_it_is_chosen(in_loop, tmp_path):
    async def work(bridge):
        other = await Store.open(tmp_path)
        id_ = (await other.create_conversation(title="Hello")).id
        listed = Heard(bridge.library.listing.listed)
        bridge.library.new()
        bridge.library.refresh()
        await bridge.idle()
        assert [row.id for row in listed[-1]] == [id_]
        await other.delete_conversation(id_)
        await other.purge_conversation(id_)
        await other.close()
        bridge.library.open(id_)
        await bridge.idle()
        (error,) = bridge.errors
        assert str(error.remedy) == "It may have been deleted meanwhile. Choose another one."
        assert listed[-1] == ()
        assert bridge.library.current.is_empty

    run(in_loop, tmp_path, work)


def test_drafts_belong_to_their_conversation(in_loop, tmp_path):
    data = BytesIO()
    Picture.new("RGB", (2, 2), "red").save(data, "PNG")

    async def work(bridge):
        id_ = await converse(bridge, "Hello")
        conversation = bridge.library.current
        prepared = await import_picture_async(data.getvalue(), "red.png")
        half = Draft("half a", (), (NOTES,), (OUTSIDE,))
        await bridge.library.drafts.save(conversation, ComposerDraft(half, ((prepared, "red.png"),)))
        bridge.library.new()
        fresh = bridge.library.current
        assert await bridge.library.drafts.load(fresh) == ComposerDraft()
        await bridge.library.drafts.save(fresh, ComposerDraft(Draft("something new")))
        bridge.library.open(id_)
        await bridge.idle()
        draft = await bridge.library.drafts.load(bridge.library.current)
        ((picture, name),) = draft.pictures
        assert (draft.record.text, name, picture.data) == ("half a", "red.png", prepared.data)
        assert (draft.record.resources, draft.record.outside) == ((NOTES,), (OUTSIDE,))
        # A picture whose file is gone is left out.
        for path in (tmp_path / "pictures").rglob("*.png"):
            path.unlink()
        assert await bridge.library.drafts.load(bridge.library.current) == ComposerDraft(half)
        # Sent: its own is gone, and that of a new one is none of its business.
        await bridge.library.drafts.save(bridge.library.current, ComposerDraft())
        assert await bridge.library.drafts.load(bridge.library.current) == ComposerDraft()
        bridge.library.new()
        assert await bridge.library.drafts.load(bridge.library.current) == ComposerDraft(Draft("something new"))

    run(in_loop, tmp_path, work, Turn())


def test_the_demo_can_be_talked_to(in_loop, tmp_path):
    async def work(bridge):
        bridge.library.new_demo()
        await bridge.idle()
        conversation = bridge.library.current
        assert (conversation.endpoint_id, conversation.model) == ("demo", "demo")
        bridge.library.new()
        assert bridge.library.current is not conversation
        assert bridge.library.current.endpoint_id == "demo"

    run(in_loop, tmp_path, work, connected=False)


def test_a_new_conversation_after_one_without_a_server_has_the_model_that_was_used_last(in_loop, tmp_path):
    async def work(bridge):
        bridge.library.new_demo()
        await bridge.idle()
        bridge.library.current.send(Message.user("Hello"))
        await bridge.idle()
        imported = await bridge.engine.store.create_conversation(title="Imported")
        await bridge.engine.store.commit(imported.id, Message.user("Hello"), Message.assistant("Hi."))
        bridge.library.open(imported.id)
        await bridge.idle()
        assert bridge.library.current.endpoint_id is None
        bridge.library.new()
        assert (bridge.library.current.endpoint_id, bridge.library.current.model) == ("demo", "demo")

    run(in_loop, tmp_path, work, connected=False)


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_new_conversation_while_the_demo_starts_is_one_with_the_demo(in_loop, tmp_path, in_memory):
    async def work(bridge):
        bridge.library.new_demo()
        bridge.library.new(in_memory=in_memory)
        await bridge.idle()
        assert bridge.library.current.endpoint_id == "demo"
        assert bridge.library.current.is_in_memory == in_memory

    run(in_loop, tmp_path, work, connected=False)


def test_a_demo_that_cannot_start_keeps_nobody_from_a_new_conversation(in_loop, tmp_path):
    async def work(bridge):
        (tmp_path / "demo workspace").write_text("a file is in its place")
        bridge.library.new_demo()
        await bridge.idle()
        assert bridge.library.current is None
        bridge.library.new()
        assert bridge.library.current.is_empty

    run(in_loop, tmp_path, work, connected=False)


def test_work_in_a_conversation_that_is_not_shown_counts(in_loop, tmp_path):
    wait = []

    async def work(bridge):
        wait.append(Wait(asyncio.Event(), asyncio.Event()))
        bridge.provider._turns.append(Turn(wait[0]))
        bridge.library.new()
        bridge.library.current.send(Message.user("p"))
        await wait[0].reached.wait()
        bridge.library.new()
        assert not bridge.library.current.working
        assert bridge.library.working_sessions

    run(in_loop, tmp_path, work)


def test_a_conversation_is_listed_while_its_first_answer_is_under_way(in_loop, tmp_path):
    async def work(bridge):
        wait = Wait(asyncio.Event(), asyncio.Event())
        bridge.provider._turns.append(Turn(wait))
        bridge.library.new()
        listed = Heard(bridge.library.listing.listed)
        bridge.library.current.send(Message.user("p"))
        await wait.reached.wait()
        await bridge.idle()
        assert [row.title for row in listed[-1]] == ["p"]
        assert bridge.library.working_sessions

    run(in_loop, tmp_path, work)


def test_what_its_process_died_in_is_gone_on_with_when_it_is_opened(in_loop, tmp_path):
    (tmp_path / "after").mkdir()

    async def work():
        write = call("1", "write_file").model_copy(update={"input": {"path": "a.txt", "content": "new"}})
        old_bridge = await Bridge.open(tmp_path / "before", Turn(write))
        old_bridge.library.new()
        conversation = old_bridge.library.current
        (tmp_path / "work").mkdir()
        conversation.change(workspace=str(tmp_path / "work"))
        conversation.send(Message.user("p"))
        await until(conversation.approvals.waiting)
        (waiting,) = conversation.approvals.waiting()
        await old_bridge.engine._sessions[conversation.id]._writer.flush()
        await old_bridge.engine.store.snapshot(tmp_path / "after" / DATABASE_NAME)
        id_ = conversation.id
        await old_bridge.close()

        bridge = await Bridge.open(tmp_path / "after", Turn(ContentDelta("done")))
        shown_ids = []
        bridge.library.opened.connect(lambda shown: shown.approvals_changed.connect(lambda: shown_ids.append(shown.id)))
        bridge.library.open(id_)
        await bridge.idle()
        conversation = bridge.library.current
        assert conversation.working
        await until(conversation.approvals.waiting)
        await until(lambda: shown_ids)  # so that somebody shows it
        assert [call.approval_id for call in conversation.approvals.waiting()] == [waiting.approval_id]
        finished = Heard(conversation.finished)
        conversation.approvals.answer(waiting.approval_id, AllowOnce())
        await until(lambda: finished)
        assert (tmp_path / "work" / "a.txt").read_text() == "new"
        assert not conversation.working
        assert bridge.errors == []
        await bridge.close()

    in_loop(work())


def test_a_message_that_waits_is_sent_when_the_person_wants_it(in_loop, tmp_path):
    ids = []

    async def before(bridge):
        ids.append(await converse(bridge, "first"))
        await bridge.engine._sessions[ids[0]].close()
        waiting = QueuedMessage(message=Message.user("kept"))
        await bridge.engine.store.update_conversation(ids[0], state=ConversationState(queue=(waiting,)))

    async def work(bridge):
        bridge.library.open(ids[0])
        await bridge.idle()
        conversation = bridge.library.current
        assert not conversation.working
        finished = Heard(conversation.finished)
        conversation.continue_run()
        await until(lambda: finished)
        assert prompts(conversation)[-1] == "kept"

    run(in_loop, tmp_path, before, Turn(ContentDelta("one")))
    run(in_loop, tmp_path, work, Turn(ContentDelta("two")))


def test_a_call_that_a_dead_process_left_waiting_is_told_until_its_conversation_is_opened(in_loop, tmp_path):
    async def work(bridge):
        id_ = await converse(bridge, "Hello")
        await bridge.engine._sessions[id_].close()
        rows = [RunStarted("m"), ApprovalRequested("a", "1", "digest")]
        envelopes = [Envelope(seq, "left", None, "t", now(), event) for seq, event in enumerate(rows, 1)]
        await bridge.engine.store.append_journal(id_, envelopes)
        bridge.library.new()
        del bridge.engine._sessions[id_]
        left = Heard(bridge.library.waiting.interrupted_changed)
        bridge.library.waiting.find_interrupted()
        await bridge.idle()
        assert left == [(id_, True)]
        bridge.library.open(id_)
        await bridge.idle()
        assert left == [(id_, True), (id_, False)]

    run(in_loop, tmp_path, work, Turn())


def test_a_conversation_whose_deletion_the_disk_refuses_can_be_gone_on_with(in_loop, tmp_path, monkeypatch):
    async def work(bridge):
        id_ = await converse(bridge, "Hello")

        async def refuse(_self, _id):
            raise DiskFull("The disk is full.")

        with monkeypatch.context() as patch:
            patch.setattr(Store, "delete_conversation", refuse)
            bridge.library.delete(id_)
            await until(lambda: bridge.errors)
        finished = Heard(bridge.library.current.finished)
        bridge.library.current.send(Message.user("again"))
        await until(lambda: finished)
        assert bridge.library.current.id == id_

    run(in_loop, tmp_path, work, Turn(), Turn())


def test_a_title_that_a_model_made_is_shown_in_the_list(in_loop, tmp_path):
    async def work():
        answer, title = Turn(ContentDelta("Hello")), Turn(ContentDelta("Sorting lists"))
        bridge = await Bridge.open(tmp_path, answer, title, titles=True)
        listed = Heard(bridge.library.listing.listed)
        bridge.library.new()
        conversation = bridge.library.current
        changed = Heard(conversation.record_changed)
        conversation.send(Message.user("How do I sort?"))
        await until(lambda: conversation.title == "Sorting lists" and changed)
        await until(lambda: listed and [entry.title for entry in listed[-1]] == ["Sorting lists"])
        await bridge.close()

    in_loop(work())


def test_what_another_process_wrote_is_listed_when_the_program_comes_to_the_front(in_loop, tmp_path, monkeypatch):
    monkeypatch.setattr(conversation_listing, "is_active", lambda: True)

    async def work(bridge):
        await bridge.library.listing.refresh()
        other = await Store.open(tmp_path)
        await other.create_conversation(title="From a terminal")
        await other.close()
        listed = Heard(bridge.library.listing.listed)
        QGuiApplication.instance().applicationStateChanged.emit(Qt.ApplicationState.ApplicationActive)
        await bridge.idle()
        assert [[row.title for row in rows] for rows in listed] == [["From a terminal"]]

    run(in_loop, tmp_path, work)
