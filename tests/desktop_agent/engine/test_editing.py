"""What was said is edited, summarised, put back: the session goes on from it, the disk keeps all."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.conversation.history import compacted_view
from desktop_agent.conversation.items import NoticeItem, UserItem
from desktop_agent.engine.session_opening import reopen_session
from desktop_agent.types.blocks import Summary, Text
from desktop_agent.types.engine_events import (
    CheckpointCreated,
    CheckpointRestored,
    ContextCompacted,
    ErrorOccurred,
    RunEnd,
    RunFinished,
)
from desktop_agent.types.errors import QuotaExhausted, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import ContentDelta, MessageDelta, StopReason
from desktop_agent.types.tool_calls import Effect
from tests.desktop_agent.engine.restoring import restore_one
from tests.fakes.agent_run import call, tool
from tests.fakes.scripted_provider import Turn, Wait
from tests.fakes.session import DISK, Shaky, Stage, check_invariants, shaky_store


@pytest.fixture
async def shaky(tmp_path: Path) -> AsyncIterator[Shaky]:
    async with shaky_store(tmp_path / "data") as shaky:
        yield shaky


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages]


async def test_it_goes_on_from_what_was_edited_and_keeps_what_was_said(shaky: Shaky) -> None:
    stage = Stage(shaky, *(Turn(ContentDelta(text)) for text in ("one", "two", "three")))
    session = stage.session
    await stage.say("a")
    await stage.say("b")
    before = session.history
    edited = before[2].model_copy(update={"blocks": Message.user("other").blocks})
    session.edit_history((*before[:2], edited))
    assert texts(session.history) == ["a", "one", "other"]
    assert session.history[:2] == before[:2]
    assert session.history[2].id != before[2].id  # what is on the disk stays what it is
    assert [item.text for item in session.transcript if isinstance(item, UserItem)] == ["a", "other"]
    session.continue_run()
    await stage.idle()
    assert texts(session.history) == ["a", "one", "other", "three"]
    await session.close()
    assert await stage.stored() == session.history
    # The branch that was left is there all the same.
    await shaky.store.update_conversation(session.record.id, head_message_id=before[-1].id)
    assert await stage.stored() == before


async def test_all_may_be_forgotten(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(ContentDelta("one")), Turn(ContentDelta("two")))
    await stage.say("a")
    changes: list[Any] = []
    stage.session.subscribe(on_changes=changes.extend)
    stage.session.edit_history(())
    assert stage.session.history == ()
    assert len(stage.session.transcript) == 0
    assert stage.session.usage is None
    assert len(changes) == 1
    with pytest.raises(WrongUse):
        stage.session.continue_run()
    await stage.say("b")
    assert texts(stage.provider.requests[-1].messages) == ["b"]
    assert await stage.stored() == stage.session.history
    await stage.session.close()


async def test_nothing_is_edited_while_it_works(shaky: Shaky) -> None:
    wait = Wait(asyncio.Event(), asyncio.Event())
    stage = Stage(shaky, Turn(wait, ContentDelta("a")))
    stage.session.send(Message.user("go"))
    await wait.reached.wait()  # type: ignore[union-attr]
    with pytest.raises(WrongUse, match="still working"):
        stage.session.edit_history(())
    with pytest.raises(WrongUse, match="still working"):
        stage.session.compact()
    wait.until.set()
    await stage.idle()
    await stage.session.close()


async def test_an_edit_that_the_disk_refuses_is_written_later(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(ContentDelta("one")))
    await stage.say("a")
    shaky.refuse = DISK
    stage.session.edit_history((Message.user("other"),))
    await stage.session._writer.journal_queue.commit()
    shaky.refuse = None
    await stage.session.close()
    assert texts(await stage.stored()) == ["other"]


async def test_older_messages_are_summarised_when_the_person_wants_it(shaky: Shaky) -> None:
    turns = [Turn(ContentDelta(f"answer {number}")) for number in range(4)]
    summary = Turn(ContentDelta("They said hello."), MessageDelta(StopReason.END_TURN))
    stage = Stage(shaky, *turns, summary, Turn(ContentDelta("last")))
    for number in range(4):
        await stage.say(f"prompt {number}")
    stage.session.compact()
    assert stage.session.working
    await stage.idle()
    (compacted,) = stage.of(ContextCompacted)
    assert compacted.summary == "They said hello."
    last = stage.session.history[-1]
    assert last.role is Role.SYSTEM
    assert isinstance(last.blocks[0], Summary)
    assert stage.of(RunFinished)[-1] == RunFinished(RunEnd.COMPLETED)
    check_invariants(stage.session.history, stage.events)
    await stage.say("on")
    sent = stage.provider.requests[-1].messages
    assert "They said hello." in sent[0].text
    assert len(sent) < len(stage.session.history)
    await stage.session.close()
    reopened = await reopen_session(shaky.store, stage.session.record.id, stage.session._runs._setup)
    assert reopened.history == stage.session.history
    assert [item.folded for item in reopened.transcript if isinstance(item, NoticeItem)] == [("They said hello.",)]
    await reopened.close()


async def test_that_nothing_could_be_summarised_is_said(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(ContentDelta("a")), Turn(ContentDelta("b")))
    with pytest.raises(WrongUse):
        stage.session.compact()
    await stage.say()
    stage.session.compact()
    await stage.idle()
    assert "summarised" in str(stage.of(ErrorOccurred)[0].sentence)
    assert stage.of(RunFinished)[-1] == RunFinished(RunEnd.FAILED)
    await stage.say("on")
    assert stage.session.history[-1].text == "b"
    await stage.session.close()


async def test_summarising_can_be_stopped(shaky: Shaky) -> None:
    wait = Wait(asyncio.Event(), asyncio.Event())
    turns = [Turn(ContentDelta(f"answer {number}")) for number in range(4)]
    stage = Stage(shaky, *turns, Turn(ContentDelta("half"), wait))
    for number in range(4):
        await stage.say(f"prompt {number}")
    before = stage.session.history
    stage.session.compact()
    await wait.reached.wait()  # type: ignore[union-attr]
    assert stage.session.interrupt()
    await stage.idle()
    assert stage.session.history == before
    assert stage.of(RunFinished)[-1] == RunFinished(RunEnd.CANCELLED)
    check_invariants(before, stage.events)
    await stage.session.close()


async def test_the_files_of_a_call_are_put_back(shaky: Shaky, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    await asyncio.to_thread(folder.mkdir)
    file = folder / "a.txt"
    await asyncio.to_thread(file.write_text, "before")

    async def write(word: str) -> str:
        await asyncio.to_thread(file.write_text, word)
        return "written"

    async def changes(_: object) -> tuple[str, ...]:
        return ("a.txt",)

    act = replace(tool("act", write), changes=changes, effects=frozenset({Effect.WRITE}))
    turns = (Turn(call("1", "act", "after")), Turn(ContentDelta("done")))
    stage = Stage(shaky, *turns, tools=(act,), setup={"store": shaky.store}, workspace=str(folder))
    stage.session.modes.set_by_person("accept-edits")
    await stage.say()
    assert await asyncio.to_thread(file.read_text) == "after"
    (created,) = stage.of(CheckpointCreated)
    checkpoints = stage.session.checkpoints
    assert checkpoints is not None
    assert [checkpoint.id for checkpoint in await checkpoints.list()] == [created.checkpoint_id]
    restored = await restore_one(checkpoints, created.checkpoint_id)
    assert restored.restored == ("a.txt",)
    assert await asyncio.to_thread(file.read_text) == "before"
    (restoring,) = [envelope for envelope in stage.events if isinstance(envelope.event, CheckpointRestored)]
    assert (restoring.run_id, restoring.seq) == ("", 0)
    await stage.session.close()


async def test_summarising_that_heeds_no_cancel_is_left_behind_after_the_grace(
    shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desktop_agent.agent.run.STOP_GRACE", 0.02)
    stage = Stage(shaky, *(Turn(ContentDelta(f"answer {number}")) for number in range(4)))
    for number in range(4):
        await stage.say(f"prompt {number}")
    before = stage.session.history
    requested, goes_on, over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def deaf(_: object) -> AsyncIterator[Any]:
        try:
            requested.set()
            while not goes_on.is_set():
                with suppress(asyncio.CancelledError):
                    await goes_on.wait()
            yield ContentDelta("late")
        finally:
            over.set()

    monkeypatch.setattr(stage.provider, "stream", deaf)
    stage.session.compact()
    await requested.wait()
    stage.session.interrupt()
    await stage.idle()
    assert stage.of(RunFinished)[-1] == RunFinished(RunEnd.CANCELLED)
    assert not over.is_set()
    goes_on.set()
    await over.wait()
    await asyncio.sleep(0)
    assert stage.session.history == before
    assert stage.of(ErrorOccurred) == []
    check_invariants(before, stage.events)
    await stage.session.close()


async def test_summarising_that_fails_because_of_stop_was_stopped(
    shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(shaky, *(Turn(ContentDelta(f"answer {number}")) for number in range(4)))
    for number in range(4):
        await stage.say(f"prompt {number}")
    requested = asyncio.Event()

    async def fails(_: object) -> AsyncIterator[Any]:
        requested.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise QuotaExhausted("closed") from None
        yield ContentDelta("never")

    monkeypatch.setattr(stage.provider, "stream", fails)
    stage.session.compact()
    await requested.wait()
    stage.session.interrupt()
    await stage.idle()
    assert stage.of(RunFinished)[-1] == RunFinished(RunEnd.CANCELLED)
    assert stage.of(ErrorOccurred) == []
    await stage.session.close()


async def test_a_summary_still_stands_for_what_it_said_after_an_edit_before_it(shaky: Shaky) -> None:
    history = [make(f"{number}") for number in range(3) for make in (Message.user, Message.assistant)]
    summary = Message(role=Role.SYSTEM, blocks=(Summary(text="S", first_kept_id=history[4].id),))
    stage = Stage(shaky)
    session = stage.over(stage.session.record, (*history, summary), is_new=True)
    mended = history[0].model_copy(update={"blocks": Message.user("mended").blocks})
    session.edit_history((mended, *session.history[1:]))
    assert session.history[4].id != history[4].id
    assert texts(compacted_view(session.history))[1:] == ["2", "2"]
    await session.close()


async def test_an_edit_can_be_taken_back(shaky: Shaky) -> None:
    """What was said first is on the disk as another branch, and stays there what it is."""
    stage = Stage(shaky, Turn(ContentDelta("one")))
    await stage.say("a")
    before = stage.session.history
    stage.session.edit_history((Message.user("other"),))
    stage.session.edit_history(before)
    assert texts(stage.session.history) == ["a", "one"]
    await stage.session.close()
    assert await stage.stored() == stage.session.history


@pytest.mark.parametrize("door", ["edit_history", "send", "queue.add", "queue.edit"])
async def test_what_cannot_be_kept_is_refused_at_every_door(shaky: Shaky, door: str) -> None:
    block = Text(text="x").model_copy(update={"metadata": {"a": fails}})
    odd = Message.user("x").model_copy(update={"blocks": (block,)})
    stage = Stage(shaky, Turn(ContentDelta("one")))
    session, waits = stage.session, Message.user("waits")
    await stage.say("a")
    if door == "queue.edit":
        session.queue.add(waits)
    before = session.history, session.queue.entries
    doors: dict[str, Callable[[], None]] = {
        "edit_history": lambda: session.edit_history((*session.history, odd)),
        "send": lambda: session.send(odd),
        "queue.add": lambda: session.queue.add(odd),
        "queue.edit": lambda: session.queue.edit(waits.id, odd.blocks),
    }
    with pytest.raises(WrongUse) as refused:
        doors[door]()
    assert str(refused.value.remedy)
    assert (session.history, session.queue.entries) == before
    await session.close()


def fails() -> None:
    """No JSON says this."""


async def test_what_the_caller_does_to_a_message_later_changes_nothing(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(ContentDelta("one")))
    await stage.say("a")
    metadata: dict[str, Any] = {"a": 1}
    text_block = Text(text="x").model_copy(update={"metadata": metadata})
    stage.session.edit_history([Message.user("x").model_copy(update={"blocks": (text_block,)})])
    metadata["a"] = 2
    (block,) = stage.session.history[0].blocks
    assert isinstance(block, Text)
    assert block.metadata == {"a": 1}
    await stage.session.close()
