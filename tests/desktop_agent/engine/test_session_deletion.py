"""Messages that are deleted for good: what goes with them, what comes in view, what is left of them on the disk."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.conversation.items import AnswerItem, NoticeItem, UserItem
from desktop_agent.engine.history_loader import BranchLoader
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_opening import in_memory_session, reopen_session
from desktop_agent.storage.records import BranchPart
from desktop_agent.storage.store import Store
from desktop_agent.types.checkpoints import Checkpoint, FileState, SavedFile
from desktop_agent.types.engine_events import Envelope, RunEnd, RunFinished, RunStarted, ToolStarted, TurnStarted
from desktop_agent.types.errors import DiskFull, WrongUse
from desktop_agent.types.messages import Message, now
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.search import SearchQuery
from tests.desktop_agent.storage.test_store import age_pictures, files_with, png, source_of
from tests.fakes.agent_run import call, tool
from tests.fakes.scripted_provider import Turn, Wait
from tests.fakes.session import Shaky, Stage, shaky_store

MARKER = "zqxmarker"


@pytest.fixture
async def shaky(tmp_path: Path) -> AsyncIterator[Shaky]:
    async with shaky_store(tmp_path / "data") as shaky:
        yield shaky


def stage_for(shaky: Shaky, *answers: str, **more: Any) -> Stage:
    return Stage(shaky, *(Turn(ContentDelta(answer)) for answer in answers), setup={"store": shaky.store}, **more)


def texts(session: Session) -> list[str]:
    return [message.text for message in session.history]


def shown(session: Session) -> list[str]:
    return [str(item.text) for item in session.transcript if isinstance(item, UserItem | AnswerItem)]


async def test_a_prompt_goes_with_all_that_follows_it(shaky: Shaky) -> None:
    stage = stage_for(shaky, "one", "two", "three", "four")
    session = stage.session
    for prompt in "abc":
        await stage.say(prompt)
    plan = await session.branches.plan_deletion(session.history[2].id)
    assert (plan.is_prompt, plan.following, plan.elsewhere, plan.head) == (True, 3, 0, session.history[1].id)
    await session.branches.delete(session.history[2].id)
    assert texts(session) == shown(session) == ["a", "one"]
    assert session.branches.versions == {}
    assert session.branches.continuations == ()
    assert [message.text for message in await stage.stored()] == ["a", "one"]
    await stage.say("d")
    assert texts(session) == ["a", "one", "d", "four"]
    await session.close()
    assert [message.text for message in await stage.stored()] == texts(session)


async def test_a_whole_answer_goes_with_its_calls_and_the_prompt_waits_for_another(shaky: Shaky) -> None:
    turns = [Turn(call("1", "look")), Turn(ContentDelta("one")), Turn(ContentDelta("two"))]
    stage = Stage(shaky, *turns, tools=(tool("look", read_only=True),), setup={"store": shaky.store})
    session = stage.session
    await stage.say("a")
    plan = await session.branches.plan_deletion(session.history[-1].id)
    assert (plan.is_prompt, plan.following, plan.tool_calls, len(plan.ids)) == (False, 0, 1, 3)
    await session.branches.delete(session.history[-1].id)
    assert texts(session) == shown(session) == ["a"]
    assert any(isinstance(item, NoticeItem) for item in session.transcript)  # with Retry
    session.retry()
    await stage.idle()
    assert texts(session) == ["a", "two"]
    await session.close()


@pytest.mark.parametrize(("deleted", "remaining"), [(0, "two"), (1, "one"), (2, "two")])
async def test_the_version_before_comes_in_view_or_else_the_one_after(
    shaky: Shaky, deleted: int, remaining: str
) -> None:
    stage = stage_for(shaky, "one", "two", "three")
    session = stage.session
    await stage.say("a")
    for _ in range(2):
        session.branches.regenerate(session.history[-1].id)
        await stage.idle()
    (versions,) = session.branches.versions.values()
    await session.branches.show(versions.ids[deleted])
    await session.branches.delete(versions.ids[deleted])
    assert texts(session) == shown(session) == ["a", remaining]
    (place,) = session.branches.versions.values()
    assert place.ids == tuple(id_ for id_ in versions.ids if id_ != versions.ids[deleted])
    await session.branches.delete(place.ids[1 - place.index])  # not in view
    assert texts(session) == ["a", remaining]
    assert session.branches.versions == {}
    await session.close()


async def test_what_is_on_other_branches_below_goes_too_and_is_counted(shaky: Shaky) -> None:
    stage = stage_for(shaky, "one", "two", "other", "new")
    session = stage.session
    await stage.say("a")
    await stage.say("b")
    session.branches.edit_prompt(session.history[2].id, Message.user("c"))
    await stage.idle()
    plan = await session.branches.plan_deletion(session.history[1].id)
    assert (plan.following, plan.elsewhere) == (4, 2)
    await session.branches.delete(session.history[1].id)
    tree = await shaky.store.load_tree(session.record.id)
    assert [node.message.text for node in tree.messages] == texts(session) == ["a"]
    await session.close()


async def test_the_title_of_what_goes_goes_too(shaky: Shaky) -> None:
    stage = stage_for(shaky, "one", "two")
    session = stage.session
    await stage.say(MARKER)
    session.branches.edit_prompt(session.history[0].id, Message.user("b"))
    await stage.idle()
    await session.branches.delete(session.history[0].id)
    assert (session.record.title, texts(session)) == (MARKER, [MARKER, "one"])
    await session.branches.delete(session.history[0].id)
    assert (session.record.title, session.history) == ("", ())
    stored = await shaky.store.record(session.record.id)
    assert (stored.title, stored.message_count, stored.title_is_automatic) == ("", 0, True)
    session.change_record(title="mine")
    await session.close()


async def test_no_byte_of_it_is_left(shaky: Shaky, tmp_path: Path) -> None:
    await shaky.store.search.index_all()
    turns = [Turn(ContentDelta("one")), Turn(call("1", "look", MARKER)), Turn(ContentDelta(MARKER))]
    stage = Stage(shaky, *turns, tools=(tool("look", read_only=True),), setup={"store": shaky.store})
    session = stage.session
    await stage.say("a")
    session.send(Message.user_with_base64_image(MARKER, png(), "image/png"))
    await stage.idle()
    await session.flush()
    call_id, message_id = session.history[3].tool_uses[0].id, session.history[3].id
    (stored,) = [message for message in await stage.stored() if message.text == MARKER and message.tool_uses == ()][:1]
    picture = shaky.store.pictures.path_of(source_of(stored))
    digest = await shaky.store.blobs.put(MARKER.encode())
    file = SavedFile(path="a", before=FileState(digest=digest, mode=0o600), after=FileState())
    checkpoint = Checkpoint(
        id="c",
        conversation_id=session.record.id,
        tool_use_id=call_id,
        message_id=message_id,
        workspace=str(tmp_path),
        created_at=now(),
        files=(file,),
    )
    await shaky.store.checkpoints.save(checkpoint)
    assert len(files_with(tmp_path, MARKER.encode())) > 1
    plan = await session.branches.plan_deletion(session.history[2].id)
    assert plan.checkpoints == ("c",)
    age_pictures(tmp_path / "data")
    await session.branches.delete(session.history[2].id)
    await shaky.store.search.index_all()
    assert (await shaky.store.search.find(SearchQuery(MARKER))).conversations == ()  # type: ignore[union-attr]
    assert not picture.exists()
    assert texts(session) == ["a", "one"]
    await session.close()
    await shaky.store.close()
    assert files_with(tmp_path, MARKER.encode()) == []


async def test_what_others_still_need_stays(shaky: Shaky, tmp_path: Path) -> None:
    stage = stage_for(shaky, "one", "two")
    session = stage.session
    for _ in range(2):
        session.send(Message.user_with_base64_image("look", png(), "image/png"))
        await stage.idle()
    source = source_of((await stage.stored())[0])
    age_pictures(tmp_path / "data")
    await session.branches.delete(session.history[2].id)
    assert shaky.store.pictures.path_of(source).exists()
    await session.branches.delete(session.history[0].id)
    assert not shaky.store.pictures.path_of(source).exists()
    await session.close()


async def test_of_a_run_that_goes_on_before_it_only_its_own_turns_go(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    record = await store.create_conversation(title="t")
    history = [Message.user("a"), Message.assistant("one"), Message.user("b"), Message.assistant("two")]
    await store.commit(record.id, *history)
    specialist, other = Message.assistant("s"), Message.assistant("o")
    rows = [
        Envelope(1, "run", None, None, now(), RunStarted(history[0].id)),
        Envelope(2, "run", None, "t1", now(), TurnStarted("t1", history[1].id, "m")),
        Envelope(3, "run", None, "t1", now(), ToolStarted("call-1", {})),
        Envelope(4, "run", None, "t2", now(), TurnStarted("t2", history[3].id, "m")),
        Envelope(5, "run", None, "t2", now(), ToolStarted("call-2", {})),
        Envelope(6, "run", None, "t2", now(), RunFinished(RunEnd.COMPLETED)),
        Envelope(1, "kept", "run", None, now(), RunStarted("x", agent="s", call_id="call-1")),
        Envelope(2, "kept", "run", "s1", now(), TurnStarted("s1", other.id, "m")),
        Envelope(1, "gone", "run", None, now(), RunStarted("x", agent="s", call_id="call-2")),
        Envelope(2, "gone", "run", "s2", now(), TurnStarted("s2", specialist.id, "m")),
        Envelope(1, "below", "gone", None, now(), RunStarted("x", agent="s", call_id="call-3")),
    ]
    await store.append_journal(record.id, rows)
    saved = Checkpoint(
        id="c",
        conversation_id=record.id,
        tool_use_id="1",
        message_id=specialist.id,
        workspace="",
        created_at=now(),
        files=(),
    )
    await store.checkpoints.save(saved)
    await store.checkpoints.save(saved.model_copy(update={"id": "d", "message_id": other.id}))
    for _ in range(2):  # to repeat it is harmless
        await store.branches.delete(record.id, history[2].id, head_message_id=history[1].id)
    rows_left = await store.run(
        lambda db: db.execute(
            "SELECT runs.id, journal.number & 255 FROM journal JOIN runs ON runs.number = journal.number >> 32"
        ).fetchall()
    )
    assert rows_left == [("run", 1), ("run", 2), ("run", 3), ("kept", 1), ("kept", 2)]
    assert [checkpoint.id for checkpoint in await store.checkpoints.of_conversation(record.id)] == ["d"]
    assert (await store.load(record.id)).messages == tuple(history[:2])
    await store.close()


async def test_nothing_is_deleted_while_the_model_works_or_calls_are_open(shaky: Shaky) -> None:
    gate = asyncio.Event()
    stage = Stage(shaky, Turn(ContentDelta("one")), Turn(Wait(gate), ContentDelta("two")), setup={"store": shaky.store})
    session = stage.session
    await stage.say("a")
    session.send(Message.user("b"))
    with pytest.raises(WrongUse, match="still working"):
        await session.branches.delete(session.history[0].id)
    gate.set()
    await stage.idle()
    with pytest.raises(WrongUse, match="no message"):
        await session.branches.delete("nothing")
    session.edit_history([Message.user("x"), Message(role=session.history[1].role, blocks=(call("1", "look"),))])
    with pytest.raises(WrongUse, match="still open"):
        await session.branches.delete(session.history[0].id)
    await session.close()
    with pytest.raises(WrongUse, match="closed"):
        await session.branches.delete(session.history[0].id)


async def test_a_prompt_that_is_sent_meanwhile_is_not_lost(shaky: Shaky) -> None:
    stage = stage_for(shaky, "one", "two")
    session = stage.session
    await stage.say("a")
    shaky.gate = asyncio.Event()
    session._writer.journal_queue._store = shaky  # type: ignore[assignment]
    deleting = asyncio.create_task(session.branches.delete(session.history[1].id))
    await asyncio.sleep(0)
    session.send(Message.user("b"))
    shaky.gate.set()
    # It still works, or has answered by now.
    with pytest.raises(WrongUse, match=r"still working|went on meanwhile"):
        await deleting
    await stage.idle()
    assert texts(session) == ["a", "one", "b", "two"]
    await session.close()


async def test_a_version_that_is_deleted_while_it_is_loaded_is_not_shown(
    shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = stage_for(shaky, "one", "two")
    session = stage.session
    await stage.say("a")
    first = session.history[1].id
    session.branches.regenerate(first)
    await stage.idle()
    load, is_loaded, is_deleted = BranchLoader.load_branch, asyncio.Event(), asyncio.Event()

    async def load_late(loader: BranchLoader, message_id: str, at_least: int | None) -> BranchPart:
        part = await load(loader, message_id, at_least)
        is_loaded.set()
        await is_deleted.wait()
        return part

    monkeypatch.setattr(BranchLoader, "load_branch", load_late)
    showing = asyncio.create_task(session.branches.show(first))
    await is_loaded.wait()
    await session.branches.delete(first)
    is_deleted.set()
    with pytest.raises(WrongUse, match="no message"):
        await showing
    assert texts(session) == shown(session) == ["a", "two"]
    await session.close()
    assert [message.text for message in await stage.stored()] == ["a", "two"]


async def test_a_message_that_is_deleted_twice_at_once_goes_once(shaky: Shaky) -> None:
    stage = stage_for(shaky, "one", "two")
    session = stage.session
    await stage.say("a")
    first = session.history[1].id
    session.branches.regenerate(first)
    await stage.idle()
    twice = [session.branches.delete(first), session.branches.delete(first)]
    results = await asyncio.gather(*twice, return_exceptions=True)
    assert sorted(map(type, results), key=str) == [type(None), WrongUse]
    assert session.unsaved is None
    assert texts(session) == ["a", "two"]
    await session.close()


async def test_what_the_disk_refuses_is_deleted_later(shaky: Shaky) -> None:
    stage = stage_for(shaky, "one")
    session = stage.session
    await stage.say("a")
    await session.flush()
    shaky.refuse = DiskFull("full")
    with pytest.raises(DiskFull):
        await session.branches.delete(session.history[1].id)
    assert texts(session) == ["a"]
    shaky.refuse = None
    await session.close()
    assert [message.text for message in await stage.stored()] == ["a"]


async def test_a_conversation_in_memory_forgets_it_too(shaky: Shaky) -> None:
    stage = stage_for(shaky, "one", "two")
    setup = replace(stage.session._runs._setup, store=None)
    session = in_memory_session(setup, model="m")
    session.send(Message.user("a"))
    await session.wait_idle()
    first = session.history
    session.branches.regenerate(first[1].id)
    await session.wait_idle()
    await session.branches.delete(first[1].id)
    assert texts(session) == ["a", "two"]
    with pytest.raises(WrongUse, match="no message"):
        await session.branches.show(first[1].id)
    await session.close()
    await stage.session.close()


async def test_the_outline_of_a_long_conversation_is_read_in_parts(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    record = await store.create_conversation(title="t")
    await store.commit(record.id, *(Message.user(f"\n  line {index}\nmore") for index in range(250)))
    await store.commit(record.id, Message.user("x" * 300_000), Message.user(" " * 1_000 + "end"))
    outline = await store.branches.load_outline(record.id)
    assert [message.line for message in outline] == [*(f"line {index}" for index in range(250)), "x" * 200, "end"]
    assert outline[9].parent == outline[8].id
    with pytest.raises(WrongUse, match="no conversation"):
        await store.branches.load_outline("nothing")
    await store.close()


async def test_it_is_still_gone_in_a_conversation_that_is_opened_again(shaky: Shaky) -> None:
    stage = stage_for(shaky, "one", "two")
    await stage.say("a")
    stage.session.branches.regenerate(stage.session.history[1].id)
    await stage.idle()
    await stage.session.close()
    session = await reopen_session(shaky.store, stage.session.record.id, stage.session._runs._setup)
    await session.branches.delete(session.history[1].id)
    assert texts(session) == shown(session) == ["a", "one"]
    await session.close()
