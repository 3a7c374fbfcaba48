"""What a tool undoes when the checkpoint of a call is restored: once at most, and only what succeeded."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.engine.checkpoints import Checkpoints
from desktop_agent.tools.checkpoints.checkpointer import RestoreReport
from desktop_agent.tools.decorator import tool as made_tool
from desktop_agent.tools.tool import AnyTool, ToolRegistry
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.checkpoints import Checkpoint
from desktop_agent.types.engine_events import CheckpointRestored
from desktop_agent.types.errors import StorageFailed, ToolFailed
from desktop_agent.types.messages import Message
from desktop_agent.types.tool_calls import AllowOnce
from tests.desktop_agent.engine.restoring import restore, restore_one, restore_since
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import Shaky, Stage, results_of, shaky_store

USE = ToolUse(id="1", name="book", input={"city": "Oslo"})
Undo = Callable[[dict[str, Any]], Awaitable[str]]


@pytest.fixture
async def shaky(tmp_path: Path) -> AsyncIterator[Shaky]:
    async with shaky_store(tmp_path / "data") as opened:
        yield opened


class Agency:
    """Books cities, and undoes that; a folder besides where one is named."""

    def __init__(self, shaky: Shaky, folder: Path | None = None, fails: Exception | None = None) -> None:
        self.booked: list[str] = []
        self.has_begun: list[str] = []
        self.undo: Undo = self.unbook
        self.folder = folder
        self.fails = fails
        self.rule_book = self.tool()
        self.stage = Stage(
            shaky,
            Turn(USE),
            Turn(),
            tools=(self.rule_book,),
            setup={"store": shaky.store},
            workspace=None if folder is None else str(folder),
        )

    def tool(self, name: str = "book") -> AnyTool:
        async def undo(made: dict[str, Any]) -> str:
            return await self.undo(made)

        async def changes(_: dict[str, Any]) -> tuple[str, ...]:
            return ("ticket",)

        async def book(city: str) -> str:
            """Book a city."""
            self.booked.append(city)
            if self.folder is not None:
                (self.folder / "ticket").write_text(city)
            if self.fails is not None:
                raise self.fails
            return city

        if self.folder is None:
            return made_tool(undo=undo, timeout=5.0, name=name)(book)
        return made_tool(undo=undo, changes=changes, timeout=5.0, name=name)(book)

    async def unbook(self, made: dict[str, Any]) -> str:
        self.has_begun.append(made["city"])
        made.clear()
        self.booked.remove(self.has_begun[-1])
        return f"Unbooked {self.has_begun[-1]}."

    @property
    def checkpoints(self) -> Checkpoints:
        found = self.stage.session.checkpoints
        assert found is not None
        return found

    async def work(self) -> Checkpoint:
        self.stage.session.send(Message.user("go"))
        approvals = self.stage.session.approvals
        await self.stage.until(lambda: approvals.open_approvals)
        approvals.answer(approvals.open_approvals[0].approval_id, AllowOnce())
        await self.stage.idle()
        (checkpoint,) = await self.checkpoints.list()
        return checkpoint

    async def restore(self, checkpoint: Checkpoint) -> RestoreReport:
        return await restore_one(self.checkpoints, checkpoint.id)


def why(restored: RestoreReport) -> str:
    (only,) = restored.skipped
    assert only.is_undo
    return str(only.why)


async def test_a_call_is_undone_once_and_its_files_are_put_back(shaky: Shaky, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    agency = Agency(shaky, tmp_path / "work")
    checkpoint = await agency.work()
    assert (checkpoint.tool, checkpoint.input, checkpoint.succeeded) == ("book", {"city": "Oslo"}, True)
    assert (tmp_path / "work/ticket").read_text() == "Oslo"
    first = await agency.restore(checkpoint)
    assert (first.restored, first.undone, first.skipped) == (("ticket",), "Unbooked Oslo.", ())
    assert await restore(agency.checkpoints, checkpoint.id) == ()
    assert (agency.booked, agency.has_begun, (tmp_path / "work/ticket").exists()) == ([], ["Oslo"], False)
    assert first.checkpoint.restored
    assert await restore_since(agency.checkpoints, agency.stage.session.history[0].id) == ()
    assert agency.stage.of(CheckpointRestored) == [CheckpointRestored(checkpoint.id, undone="Unbooked Oslo.")]


async def test_a_conversation_without_a_folder_undoes_as_well(shaky: Shaky) -> None:
    agency = Agency(shaky)
    checkpoint = await agency.work()
    assert (checkpoint.workspace, checkpoint.files) == ("", ())
    (restored,) = await restore_since(agency.checkpoints, agency.stage.session.history[0].id)
    assert (agency.booked, restored.checkpoint.restored, restored.undone) == ([], True, "Unbooked Oslo.")


async def test_a_call_that_failed_is_not_undone(shaky: Shaky) -> None:
    agency = Agency(shaky, fails=ToolFailed("No seats."))
    checkpoint = await agency.work()
    assert results_of(agency.stage.session.history)["1"].outcome is Outcome.FAILED
    restored = await agency.restore(checkpoint)
    assert (agency.has_begun, restored.skipped, restored.checkpoint.restored) == ([], (), True)


async def test_that_it_begins_is_on_the_disk_first(shaky: Shaky) -> None:
    async def look(_: dict[str, Any]) -> str:
        checkpoints.extend(await shaky.store.checkpoints.of_conversation(agency.stage.session.record.id))
        return "Looked."

    checkpoints: list[Checkpoint] = []
    agency = Agency(shaky)
    agency.undo = look
    await agency.restore(await agency.work())
    assert [(checkpoint.undone, checkpoint.undo_said) for checkpoint in checkpoints] == [(True, None)]


async def test_a_disk_that_refuses_to_note_it_keeps_it_from_beginning(
    shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_: Checkpoint) -> None:
        raise StorageFailed("the disk refuses")

    agency = Agency(shaky)
    checkpoint = await agency.work()
    with monkeypatch.context() as patch:
        patch.setattr(shaky.store.checkpoints, "save", refuse)
        with pytest.raises(StorageFailed):
            await agency.restore(checkpoint)
    assert agency.has_begun == []
    await agency.restore(checkpoint)
    assert (agency.has_begun, agency.booked) == (["Oslo"], [])


async def test_one_that_began_and_never_ended_is_reported_and_not_begun_again(shaky: Shaky) -> None:
    agency = Agency(shaky)
    checkpoint = await agency.work()
    # As a process leaves it that dies between the note and the deed.
    await shaky.store.checkpoints.save(checkpoint.model_copy(update={"undone": True}))
    for _ in range(2):
        restored = await agency.restore(checkpoint)
        assert "is not known" in why(restored)
        assert not restored.checkpoint.restored
    assert (agency.has_begun, agency.booked) == ([], ["Oslo"])


async def test_a_call_whose_end_was_never_noted_is_reported(shaky: Shaky) -> None:
    agency = Agency(shaky)
    checkpoint = await agency.work()
    await shaky.store.checkpoints.save(checkpoint.model_copy(update={"succeeded": None}))
    assert "broken off" in why(await agency.restore(checkpoint))
    assert agency.has_begun == []


async def test_a_tool_that_is_gone_is_reported_and_may_come_back(shaky: Shaky) -> None:
    agency = Agency(shaky)
    checkpoint = await agency.work()
    agency.stage.tools_for = lambda _: ToolRegistry((agency.tool("other"),))
    restored = await agency.restore(checkpoint)
    assert "not there any more" in why(restored)
    assert (restored.failed, agency.stage.of(CheckpointRestored)[0].not_undone) == ((), why(restored))
    agency.stage.tools_for = lambda _: ToolRegistry((agency.rule_book,))
    assert (await agency.restore(checkpoint)).undone == "Unbooked Oslo."


@pytest.mark.parametrize("error", [RuntimeError("a secret"), SystemExit(), asyncio.CancelledError()])
async def test_one_that_raises_is_reported_without_its_words_and_not_begun_again(
    shaky: Shaky, error: BaseException
) -> None:
    async def fail(_: dict[str, Any]) -> str:
        agency.has_begun.append("")
        raise error

    agency = Agency(shaky)
    agency.undo = fail
    checkpoint = await agency.work()
    reasons = why(await agency.restore(checkpoint))
    assert type(error).__name__ in reasons
    assert "a secret" not in reasons
    assert "is not tried again" in why(await agency.restore(checkpoint))
    assert agency.has_begun == [""]


async def test_one_that_says_no_text_or_more_than_enough_is_held(shaky: Shaky) -> None:
    async def chatter(_: dict[str, Any]) -> str:
        return "x" * 5_000

    agency = Agency(shaky)
    agency.undo = chatter
    assert (await agency.restore(await agency.work())).undone == "x" * 1_000
