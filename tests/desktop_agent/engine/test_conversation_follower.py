"""What another process writes is shown as it comes, and nothing of it is written or changed here."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.api.command_line import parse_window_arguments
from desktop_agent.conversation.items import AnswerItem, NoticeItem, ToolCallItem, UserItem
from desktop_agent.engine import session_opening
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_opening import ConversationFollower
from desktop_agent.engine.session_runs import RunRecorder
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.storage.journal_queue import JournalQueue
from desktop_agent.storage.store import Store
from desktop_agent.types.engine_events import AnswerAwaited, Envelope, RetryScheduled, RunStarted
from desktop_agent.types.errors import ConversationInUse, DatabaseBusy, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.tool_calls import AllowOnce
from tests.desktop_agent.api.test_ask import calls, says
from tests.fakes.http_server import Loopback, Reply, chunk, sse
from tests.frame.patience import PATIENCE


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_opening, "POLL_SECONDS", 0.01)


@asynccontextmanager
async def engine_at(folder: Path, server: Loopback) -> AsyncIterator[Engine]:
    """Another process, as far as locks and the database go: its own files, its own connection."""
    endpoint = parse_window_arguments(["--base-url", server.url, "--model", "m"]).endpoint
    engine = await Engine.open(folder, RunDefaults(program="ask", endpoint=endpoint, model="m"))
    try:
        yield engine
    finally:
        await engine.close()


async def follow(engine: Engine, id_: str) -> ConversationFollower:
    with pytest.raises(ConversationInUse) as error:
        await engine.session(id_)
    return await engine.follow_conversation(id_, error.value)


async def still_following(
    engine: Engine, follower: ConversationFollower, following: asyncio.Task[None]
) -> tuple[ConversationFollower, asyncio.Task[None]]:
    """Follow again where the first one has ended: the conversation was free for a moment."""
    if not following.done():
        return follower, following
    next_follower = await follow(engine, follower.session.record.id)
    return next_follower, asyncio.create_task(next_follower.run_until_free())


async def until(is_so, *_: object) -> None:
    async with asyncio.timeout(PATIENCE):
        while not is_so():
            await asyncio.sleep(0.01)


def shown(session: Session) -> list[str]:
    words: list[str] = []
    for item in session.transcript:
        match item:
            case UserItem() | AnswerItem():
                words.append(str(item.text))
            case ToolCallItem():
                words.append(f"{item.name} {item.state.value}")
            case NoticeItem():
                words.append(f"notice {item.sentence}")
            case _:
                words.append(type(item).__name__)
    return words


def held(text: str, gate: asyncio.Event) -> Reply:
    """The beginning of an answer; then the connection breaks off."""
    return Reply(sse(chunk({"content": text}), done=False), hold=gate, cut=True)


async def test_text_calls_and_the_next_prompt_come_as_they_are_written(tmp_path: Path) -> None:
    write = ("write_file", {"path": "a.txt", "content": "x"})
    gate = asyncio.Event()
    ending = Reply(sse(chunk({"content": "done"}), done=False), hold=gate, late=sse(chunk(finish="stop")))
    server = Loopback(says("first"), calls(write), ending)
    (tmp_path / "work").mkdir()
    async with server, engine_at(tmp_path / "data", server) as owner, engine_at(tmp_path / "data", server) as other:
        session = owner.new_session(workspace=str(tmp_path / "work"))
        session.send(Message.user("one"))
        await session.wait_idle()
        follower = await follow(other, session.record.id)
        assert shown(follower.session) == ["one", "first"]
        changes: list[object] = []
        follower.session.subscribe(on_changes=changes.extend)
        following_ = asyncio.create_task(follower.run_until_free())
        session.send(Message.user("two"))
        await until(lambda: session.approvals.open_approvals)
        await until(lambda: shown(follower.session)[2:] == shown(session)[2:])
        assert shown(follower.session)[2] == "two"
        assert not follower.session.approvals.open_approvals
        session.approvals.answer(session.approvals.open_approvals[0].approval_id, AllowOnce())
        # A run that ends between two looks is not read along, but loaded when it is over.
        await until(lambda: "done" in shown(follower.session))
        gate.set()
        await session.wait_idle()
        await until(lambda: follower.session.history == session.history)
        assert shown(follower.session) == shown(session)
        assert changes
        assert not following_.done()
        # It lets go: the other may open it now, and shows the same.
        await session.close()
        await asyncio.wait_for(following_, PATIENCE)
        reopened = await other.session(session.record.id)
        assert reopened.history == session.history


async def test_a_message_that_the_owner_deletes_is_gone_here_too(tmp_path: Path) -> None:
    server = Loopback(says("first"), says("second"), says("third"))
    async with server, engine_at(tmp_path / "data", server) as owner, engine_at(tmp_path / "data", server) as other:
        session = owner.new_session()
        for prompt in ("one", "two"):
            session.send(Message.user(prompt))
            await session.wait_idle()
        follower = await follow(other, session.record.id)
        # The next messages get the numbers of the deleted ones.
        await session.branches.delete(session.history[2].id)
        session.send(Message.user("three"))
        await session.wait_idle()
        await asyncio.wait_for(follower.run_until_free(), PATIENCE)
        next_follower = await follow(other, session.record.id)
        assert shown(next_follower.session) == ["one", "first", "three", "third"]


async def test_who_comes_in_the_middle_sees_what_there_is_and_what_comes(tmp_path: Path) -> None:
    gate = asyncio.Event()
    server = Loopback(held("half", gate))
    async with server, engine_at(tmp_path / "data", server) as owner, engine_at(tmp_path / "data", server) as other:
        session = owner.new_session()
        session.send(Message.user("go"))
        await until(lambda: "half" in shown(session))
        await session.flush()
        follower = await follow(other, session.record.id)
        assert shown(follower.session) == ["go", "half"]
        following_ = asyncio.create_task(follower.run_until_free())
        gate.set()
        await session.wait_idle()
        await until(lambda: follower.session.history == session.history or following_.done())
        if following_.done():
            follower = await follow(other, session.record.id)
        follower.stop()
        await asyncio.wait_for(following_, PATIENCE)
        assert follower.session.history == session.history
        assert shown(follower.session)[:2] == ["go", "half"]


async def test_nothing_can_be_changed_and_the_reason_names_the_owner(tmp_path: Path) -> None:
    server = Loopback(says("first"))
    async with server, engine_at(tmp_path / "data", server) as owner, engine_at(tmp_path / "data", server) as other:
        session = owner.new_session()
        session.send(Message.user("one"))
        await session.wait_idle()
        follower = await follow(other, session.record.id)
        before = await other.store.load(session.record.id)
        # It is stored, although not from here.
        assert not follower.session.is_in_memory
        for change in (
            lambda: follower.session.send(Message.user("no")),
            follower.session.retry,
            follower.session.continue_run,
            follower.session.resume,
            follower.session.compact,
            lambda: follower.session.edit_history(()),
            lambda: follower.session.change_record(title="no"),
        ):
            with pytest.raises(ConversationInUse, match="worked on by “desktop-agent ask”"):
                change()
        assert not follower.session.interrupt()
        await follower.session.close()
        assert await other.store.load(session.record.id) == before
        # An edit is no continuation: it has to be read anew.
        following_ = asyncio.create_task(follower.run_until_free())
        session.edit_history((Message.user("other"),))
        await session.flush()
        await asyncio.wait_for(following_, PATIENCE)
        assert shown((await follow(other, session.record.id)).session) == ["other"]


async def test_a_wait_for_an_answer_is_no_gap(tmp_path: Path) -> None:
    mine, other = await Store.open(tmp_path), await Store.open(tmp_path)
    try:
        record = await mine.create_conversation(title="t")
        writer = SessionWriter(JournalQueue(mine, record, is_new=False))
        recorder, envelopes = RunRecorder(writer), list[Envelope]()
        writer.subscribe(None, envelopes.append)
        recorder.emit(RunStarted("m"))
        await recorder.flush()
        _, position = await other.begin_following(record.id)
        for seconds in (10.0, 11.0):
            recorder.emit(AnswerAwaited(seconds))
        recorder.emit(RetryScheduled(1.0, "why"))
        await recorder.flush()
        news = await other.news(record.id, position)
        assert news is not None
        assert news.is_continued
        assert [envelope.seq for envelope in news.envelopes] == [2]
        assert [envelope.seq for envelope in envelopes] == [1, 0, 0, 2]
        assert {envelope.run_id for envelope in envelopes} == {recorder.run_id}
    finally:
        await mine.close()
        await other.close()


async def test_a_run_that_begins_and_ends_between_two_looks_is_shown_right(
    tmp_path: Path,
) -> None:
    server = Loopback(says("first"), calls(("read_file", {"path": "a.txt"})), says("second"), says("third"))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("x")
    async with server, engine_at(tmp_path / "data", server) as owner, engine_at(tmp_path / "data", server) as other:
        session = owner.new_session(workspace=str(tmp_path / "work"))
        session.send(Message.user("one"))
        await session.wait_idle()
        follower = await follow(other, session.record.id)
        # It does not look before both runs are over and their pieces deleted.
        for prompt in ("two", "three"):
            session.send(Message.user(prompt))
            await session.wait_idle()
        following_ = asyncio.create_task(follower.run_until_free())
        await until(lambda: follower.session.history == session.history or following_.done())
        follower, following_ = await still_following(other, follower, following_)
        assert follower.session.history == session.history
        assert shown(follower.session) == shown(session)
        session.send(Message.user("four"))
        await session.wait_idle()
        await until(lambda: follower.session.history == session.history or following_.done())
        follower.stop()
        await asyncio.wait_for(following_, PATIENCE)


async def test_another_owner_is_another_follower(tmp_path: Path) -> None:
    server = Loopback(says("first"))
    async with server, engine_at(tmp_path / "data", server) as owner, engine_at(tmp_path / "data", server) as other:
        session = owner.new_session()
        session.send(Message.user("one"))
        await session.wait_idle()
        lock = other._locks.lock(session.record.id)
        follower = await follow(other, session.record.id)
        following_ = asyncio.create_task(follower.run_until_free())
        await session.close()
        await asyncio.wait_for(following_, PATIENCE)
        await lock.acquire()
        with pytest.raises(ConversationInUse):
            await other.session(session.record.id)
        await lock.release()


async def test_a_look_that_finds_the_database_busy_does_not_end_the_reading_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Loopback(says("first"), says("second"))
    async with server, engine_at(tmp_path / "data", server) as owner, engine_at(tmp_path / "data", server) as other:
        session = owner.new_session()
        session.send(Message.user("one"))
        await session.wait_idle()
        follower = await follow(other, session.record.id)
        real, refused = Store.news, asyncio.Event()

        async def news(*args: Any) -> Any:
            if not refused.is_set():
                refused.set()
                raise DatabaseBusy("The conversations are in use by another program.")
            return await real(*args)

        monkeypatch.setattr(Store, "news", news)
        following_ = asyncio.create_task(follower.run_until_free())
        await refused.wait()
        session.send(Message.user("two"))
        await session.wait_idle()
        await until(lambda: "second" in shown(follower.session) or following_.done())
        await session.close()
        await asyncio.wait_for(following_, PATIENCE)
        reopened = await other.session(session.record.id)
        assert [message.text for message in reopened.history] == ["one", "first", "two", "second"]


async def test_a_long_conversation_is_followed_by_its_end(tmp_path: Path) -> None:
    server = Loopback(says("answer"))
    async with server, engine_at(tmp_path / "data", server) as owner, engine_at(tmp_path / "data", server) as other:
        session = owner.new_session()
        for number in range(20):
            session.send(Message.user(f"prompt {number}"))
            await session.wait_idle()
        # With a version that nobody can go to from here.
        session.branches.regenerate(session.history[1].id)
        await session.wait_idle()
        await session.branches.show(next(iter(session.branches.versions.values())).ids[0])
        await session.flush()
        follower = await follow(other, session.record.id)
        loader = follower.session.history_loader
        assert loader.unloaded_count > 10
        assert follower.session.history == session.history[loader.unloaded_count :]
        following_ = asyncio.create_task(follower.run_until_free())
        session.send(Message.user("the next"))
        await session.wait_idle()
        await until(lambda: follower.session.history[-1] == session.history[-1] or following_.done())
        follower, following_ = await still_following(other, follower, following_)
        loader = follower.session.history_loader
        assert follower.session.history == session.history[loader.unloaded_count :]
        await loader.load_all()
        assert follower.session.history == session.history
        assert shown(follower.session) == shown(session)
        assert not follower.session.branches.versions
        follower.stop()
        await asyncio.wait_for(following_, PATIENCE)


async def test_what_the_owner_deleted_above_is_not_taken_for_damage(tmp_path: Path) -> None:
    server = Loopback(says("answer"))
    async with server, engine_at(tmp_path / "data", server) as owner, engine_at(tmp_path / "data", server) as other:
        session = owner.new_session()
        for number in range(20):
            session.send(Message.user(f"prompt {number}"))
            await session.wait_idle()
        follower = await follow(other, session.record.id)
        assert follower.session.history_loader.unloaded_count
        await session.branches.delete(session.history[2].id)
        with pytest.raises(WrongUse, match="changed meanwhile"):
            await follower.session.history_loader.load_all()
        await asyncio.wait_for(follower.run_until_free(), PATIENCE)
        assert (await follow(other, session.record.id)).session.history == session.history
