"""Writes that the disk refuses, one reason after the other, and such as can never be made."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.conversation.items import NoticeItem
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.session_opening import reopen_session
from desktop_agent.engine.session_writer import MESSAGE_WAITS, SAVED_NOW
from desktop_agent.tools.decorator import tool
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.engine_events import ErrorOccurred, ToolFinished, ToolStarted
from desktop_agent.types.errors import DatabaseReplaced, DiskFull, StorageFailed, WrittenElsewhere, WrongUse
from desktop_agent.types.messages import Message, MessageState
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import ToolClass
from tests.fakes.http_server import Loopback, Reply, chunk, sse
from tests.fakes.model_server import answer, endpoint
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import Shaky, Stage, shaky_store
from tests.frame.disks import fill
from tests.frame.patience import PATIENCE
from tests.soak.refusals import FROM_THE_START, break_disk


@pytest.fixture
async def shaky(tmp_path: Path) -> AsyncIterator[Shaky]:
    async with shaky_store(tmp_path) as shaky:
        yield shaky


def notices(stage: Stage) -> list[str]:
    return [str(item.sentence) for item in stage.session.transcript if isinstance(item, NoticeItem)]


async def test_a_deletion_that_a_full_disk_refuses_in_the_middle_of_an_answer_leaves_it_usable(
    small_disk: Path,
) -> None:
    long, gate = "half " * 20_000, asyncio.Event()
    half = Reply(sse(chunk({"content": long}), done=False), hold=gate, late=sse(chunk(finish="stop")))
    async with Loopback(half, answer("next")) as server:
        defaults = RunDefaults(endpoint=endpoint(server), model="m", toolset="none")
        engine = await Engine.open(small_disk / "data", defaults)
        session, events = engine.new_session(), list[object]()
        session.subscribe(on_event=lambda envelope: events.append(envelope.event))
        session.send(Message.user("go"))
        async with asyncio.timeout(PATIENCE):
            while not any(isinstance(event, ContentDelta) for event in events):
                await asyncio.sleep(0.001)
        session.steer(Message.user("later"), "idle")
        await session.flush()
        fill(small_disk / "ballast")
        with pytest.raises(DiskFull) as refused:
            await engine.delete_conversation(session.record.id)
        assert refused.value.remedy
        assert (session.is_closed, session.working) == (False, False)
        assert session.history[-1].state is MessageState.INTERRUPTED
        assert [entry.message.text for entry in session.queue.entries] == ["later"]
        assert MESSAGE_WAITS in [item.sentence for item in session.transcript if isinstance(item, NoticeItem)]
        assert await engine.session(session.record.id) is session
        (small_disk / "ballast").unlink()
        session.continue_run()
        await session.wait_idle()
        await session.flush()
        texts = ["go", long, "next", "later", "next"]
        assert [message.text for message in (await engine.store.load(session.record.id)).messages] == texts
        await engine.delete_conversation(session.record.id)
        (trashed,) = await engine.store.list_conversations(in_trash=True)
        assert trashed.id == session.record.id
        await engine.close()


async def test_a_deletion_that_is_refused_has_not_happened_where_the_folder_is_read_only(small_disk: Path) -> None:
    async with Loopback(answer("one"), answer("two")) as server:
        defaults = RunDefaults(endpoint=endpoint(server), model="m", toolset="none")
        engine = await Engine.open(small_disk / "data", defaults)
        session = engine.new_session()
        session.send(Message.user("go"))
        await session.wait_idle()
        await session.flush()
        mend = break_disk(small_disk, FROM_THE_START)
        try:
            await engine.delete_conversation(session.record.id)
            is_refused = False
        except StorageFailed:
            is_refused = True
        mend()
        assert session.is_closed != is_refused
        assert len(await engine.store.list_conversations(in_trash=True)) == 1 - is_refused
        await engine.close()


async def test_a_deletion_of_a_message_that_a_full_disk_refuses_leaves_it_usable(small_disk: Path) -> None:
    async with Loopback(answer("one " * 40_000), answer("two")) as server:
        defaults = RunDefaults(endpoint=endpoint(server), model="m", toolset="none")
        engine = await Engine.open(small_disk / "data", defaults)
        session = engine.new_session()
        session.send(Message.user("go"))
        with pytest.raises(WrongUse, match="still working"):
            await session.branches.delete(session.record.id)
        await session.wait_idle()
        fill(small_disk / "ballast")
        with suppress(DiskFull):
            await session.branches.delete(session.history[1].id)
        assert not session.is_closed
        session.retry()
        await session.wait_idle()
        (small_disk / "ballast").unlink()
        await session.flush()
        stored = (await engine.store.load(session.record.id)).messages
        assert [message.text for message in stored] == ["go", "two"]
        await engine.close()


@pytest.mark.parametrize("overtaken", [WrittenElsewhere("It was written."), DatabaseReplaced("It was replaced.")])
async def test_who_is_overtaken_while_the_disk_refuses_is_told_and_sends_nothing_more(
    shaky: Shaky, overtaken: StorageFailed
) -> None:
    stage = Stage(shaky, Turn(ContentDelta("one")), Turn(ContentDelta("two")))
    await stage.say("hello")
    shaky.refuse = DiskFull("The disk is full.")
    await stage.say("second")
    shaky.refuse = overtaken
    await stage.session.write_all()
    shaky.refuse = None
    assert [event.kind for event in stage.of(ErrorOccurred)] == [overtaken.kind]
    assert str(SAVED_NOW) not in notices(stage)
    with pytest.raises(WrongUse):
        stage.session.send(Message.user("third"))


async def test_what_can_never_be_written_is_not_called_saved(shaky: Shaky, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(shaky, Turn(ContentDelta("one")), Turn(ContentDelta("two")))
    await stage.say("hello")
    real = shaky.store.commit

    async def commit(id_: str, *messages: Message, **more: Any) -> Any:
        if any(message.text == "second" for message in messages):
            raise ValueError("never")
        return await real(id_, *messages, **more)

    monkeypatch.setattr(shaky.store, "commit", commit)
    await stage.say("second")
    await stage.session.write_all()
    assert notices(stage) == ["A part of the conversation could not be written (ValueError)."]
    await stage.session.close()


async def test_an_answer_that_could_not_be_written_is_read_from_its_pieces_when_it_is_opened_again(
    shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(shaky, Turn(ContentDelta("one")), Turn(ContentDelta("two")), Turn(ContentDelta("three")))
    await stage.say("hello")
    real, is_refused = shaky.store.commit, True

    async def commit(id_: str, *messages: Message, **more: Any) -> Any:
        if is_refused and any(message.text == "two" for message in messages):
            raise ValueError("never")
        return await real(id_, *messages, **more)

    monkeypatch.setattr(shaky.store, "commit", commit)
    await stage.say("second")
    await stage.say("third")
    await stage.session.close()
    texts = ["hello", "one", "second", "third", "three"]
    assert [message.text for message in (await shaky.store.load(stage.session.record.id)).messages] == texts
    for refuses in (True, False, False):
        is_refused = refuses
        session = await reopen_session(shaky.store, stage.session.record.id, stage.session._runs._setup)
        assert [message.text for message in session.history] == [*texts, "two"]
        assert session.history[-1].state is MessageState.INTERRUPTED
        await session.close()
    loaded = await shaky.store.load(stage.session.record.id)
    assert [message.text for message in loaded.messages] == [*texts, "two"]
    assert loaded.journal == ()


async def test_no_call_of_several_runs_where_their_start_cannot_be_journalled(
    shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []

    @tool(tool_class=ToolClass.READ_ONLY)
    async def look(number: int) -> str:
        """Look."""
        ran.append(number)
        return "seen"

    rules = (Rule(effect=RuleEffect.ALLOW, tool=look.identity, scope=RuleScope.ALWAYS),)
    uses = [ToolUse(id=f"c{number}", name="look", input={"number": number}) for number in range(5)]
    stage = Stage(shaky, Turn(*uses), Turn(ContentDelta("done")), tools=(look,), setup={"rules": rules})
    real = shaky.store.append_journal

    async def journal(id_: str, rows: Any) -> Any:
        if any(isinstance(row.event, ToolStarted) for row in rows):
            raise ValueError("never")
        return await real(id_, rows)

    monkeypatch.setattr(shaky.store, "append_journal", journal)
    await stage.say()
    assert ran == []
    assert {event.result.outcome for event in stage.of(ToolFinished)} == {Outcome.FAILED}
    await stage.session.close()
