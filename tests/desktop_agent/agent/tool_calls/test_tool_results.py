"""What happens around a call: the journal before it, its files saved, hooks after it."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.storage.content_files import BlobFiles
from desktop_agent.tools.checkpoints.checkpointer import Checkpointer
from desktop_agent.tools.tool import AnyTool, RunningCall
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Json, Outcome, Text, ToolResult
from desktop_agent.types.checkpoints import Checkpoint
from desktop_agent.types.engine_events import CheckpointCreated, CostUpdated, ToolFinished, ToolStarted
from desktop_agent.types.errors import DiskFull, OutsideWorkspace
from desktop_agent.types.permissions import ACCEPT_EDITS_MODE, DEFAULT_MODE, PLAN_MODE
from desktop_agent.types.policies import HookDeny, HookEdit, Hooks, Limits, PostToolUse
from desktop_agent.types.provider_events import Usage
from desktop_agent.types.tool_calls import AllowOnce
from tests.fakes.tool_batch import Desk, Words, call, tool, until


async def test_nothing_runs_when_the_start_cannot_be_journalled() -> None:
    ran: list[str] = []

    async def work(word: str, _call: RunningCall) -> str:
        ran.append(word)
        return word

    desk = Desk(call("1", "look"), tools=[tool("look", work, reads=True)])
    desk.memory.refuse = True
    await desk.run()
    assert desk.outcomes == [Outcome.FAILED]
    assert "the disk refuses" in desk.words[0]
    assert ran == []


async def test_what_results_take_counts_against_the_budget() -> None:
    async def much(_word: str, _call: RunningCall) -> Any:
        return (Text(text="x" * 100), Json(value=["yy"]))

    desk = Desk(call("1", "look"), tools=[tool("look", much, reads=True)])
    await desk.run()
    assert desk.budget._characters == 106


async def test_what_a_tool_has_a_model_use_counts_and_new_costs_are_told() -> None:
    async def asks(word: str, running: RunningCall) -> str:
        for usage in (Usage(input_tokens=3), Usage(cost=0.5), Usage(output_tokens=4), Usage(cost=0.25)):
            running.report_usage(usage)
        return word

    desk = Desk(call("1", "ask"), tools=[tool("ask", asks, reads=True)], limits=Limits(tokens=100, cost=1.0))
    await desk.run()
    assert [event.cost for event in desk.memory.of(CostUpdated)] == [0.5, 0.75]
    assert (desk.budget.tokens_left, desk.budget.cost_left) == (93, 0.25)


class TestHooksAfter:
    """Hooks that see results."""

    @staticmethod
    async def with_hook(hook: Any, **more: Any) -> Desk:
        desk = Desk(call("1", "look"), tools=[tool("look", reads=True)], hooks=Hooks(post_tool_use=(hook,)), **more)
        await desk.run()
        return desk

    async def test_they_see_what_really_ran_and_what_was_said_before(self) -> None:
        moments: list[PostToolUse] = []

        async def hook(moment: PostToolUse) -> None:
            moments.append(moment)

        desk = await self.with_hook(hook)
        (moment,) = moments
        assert (moment.tool_use_id, moment.name, moment.input) == ("1", "look", {"word": "x"})
        assert moment.result == desk.results[0]
        assert moment.history == desk.memory.history()

    async def test_what_they_make_of_a_result_is_bounded_and_pairs_with_its_call(self) -> None:
        async def hook(_moment: PostToolUse) -> HookEdit:
            return HookEdit(result=ToolResult(tool_use_id="another", content=(Text(text="y" * 50),)))

        desk = await self.with_hook(hook, limits=Limits(result_characters=10))
        assert desk.words[0].startswith("y" * 10 + "\n[cut")
        assert desk.results[0].tool_use_id == "1"

    async def test_one_that_denies_keeps_the_result_out(self) -> None:
        async def hook(_moment: PostToolUse) -> HookDeny:
            return HookDeny("secret inside")

        desk = await self.with_hook(hook)
        assert desk.outcomes == [Outcome.FAILED]
        assert desk.words == ["secret inside"]

    async def test_one_that_fails_keeps_the_result_out(self) -> None:
        async def hook(_moment: PostToolUse) -> None:
            raise LookupError

        desk = await self.with_hook(hook)
        assert desk.outcomes == [Outcome.FAILED]
        assert "x" not in desk.words[0].split()

    async def test_one_that_makes_nonsense_of_it_keeps_it_out(self) -> None:
        async def hook(_moment: PostToolUse) -> HookEdit:
            return HookEdit(result=ToolResult(tool_use_id="1", content=(Json(value={1, 2}),)))

        desk = await self.with_hook(hook)
        assert desk.outcomes == [Outcome.FAILED]

    async def test_they_do_not_hear_of_what_did_not_run(self) -> None:
        moments: list[PostToolUse] = []

        async def hook(moment: PostToolUse) -> None:
            moments.append(moment)

        desk = Desk(call("1", "none"), call("2", "act"), tools=[tool("act")], mode=PLAN_MODE)
        object.__setattr__(desk.context, "hooks", Hooks(post_tool_use=(hook,)))
        await desk.run()
        assert moments == []


class Folder:
    """A workspace on disk whose files are kept, and a tool that writes there."""

    def __init__(self, root: Path) -> None:
        (root / "work").mkdir()
        (root / "data").mkdir()
        self.page = root / "work" / "page.txt"
        self.page.write_text("old")
        self.kept: list[Checkpoint] = []
        self.checkpointer = Checkpointer(Workspace(root / "work"), BlobFiles(root / "data"), self.keep, "conversation")
        self.refuse = False

    async def keep(self, checkpoint: Checkpoint) -> None:
        if self.refuse:
            raise DiskFull("The disk is full.")
        self.kept.append(checkpoint)

    def writing(self, **more: Any) -> AnyTool:
        async def write(word: str, _call: RunningCall) -> str:
            self.page.write_text(word)
            if word == "late":
                await asyncio.sleep(60)
            return "written"

        async def changes(arguments: Words) -> tuple[str, ...]:
            if arguments.word == "outside":
                raise OutsideWorkspace("That is outside.")
            return ("page.txt",)

        return tool("write", write, **{"changes": changes, **more})

    def desk(self, word: str, **more: Any) -> Desk:
        return Desk(
            call("1", "write", word),
            tools=[self.writing(**more)],
            mode=ACCEPT_EDITS_MODE,
            checkpointer=self.checkpointer,
        )


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


class TestFiles:
    """Files are saved before a call changes them."""

    async def test_before_the_start_and_they_can_be_put_back(self, folder: Folder) -> None:
        desk = folder.desk("new")
        await desk.run()
        assert folder.page.read_text() == "new"
        assert desk.memory.about("1") == [
            "tool_call_pending",
            "checkpoint_created",
            "tool_started",
            "tool_finished",
        ]
        (created,) = desk.memory.of(CheckpointCreated)
        assert created.paths == ("page.txt",)
        assert folder.kept[-1].message_id == desk.answer.id
        await folder.checkpointer.restore(folder.kept[-1])
        assert folder.page.read_text() == "old"

    async def test_a_call_whose_files_cannot_be_saved_does_not_run(self, folder: Folder) -> None:
        folder.refuse = True
        desk = folder.desk("new")
        await desk.run()
        assert desk.outcomes == [Outcome.FAILED]
        assert "The disk is full." in desk.words[0]
        assert folder.page.read_text() == "old"
        assert not desk.memory.of(ToolStarted)

    @pytest.mark.parametrize("changes", ["outside", "burst", "nonsense", "mute"])
    async def test_nor_one_whose_tool_cannot_say_which_they_are(self, folder: Folder, changes: str) -> None:
        async def burst(_arguments: Words) -> tuple[str, ...]:
            raise SystemExit

        async def nonsense(_arguments: Words) -> Any:
            return 5

        class Mute:
            def __str__(self) -> str:
                raise SystemExit

        async def mute(_arguments: Words) -> Any:
            return (Mute(),)

        more = {"burst": {"changes": burst}, "nonsense": {"changes": nonsense}, "mute": {"changes": mute}}
        more = more.get(changes, {})
        desk = folder.desk(changes, **more)
        await desk.run()
        assert desk.outcomes == [Outcome.FAILED]
        assert folder.page.read_text() == "old"

    async def test_how_a_stopped_call_left_them_is_noted(self, folder: Folder) -> None:
        desk = folder.desk("late")
        running = desk.start()
        await until(lambda: folder.page.read_text() == "late")
        desk.round.stop_call("1")
        await running
        assert desk.outcomes == [Outcome.CANCELLED]
        assert folder.kept[-1].files[0].after is not None
        await folder.checkpointer.restore(folder.kept[-1])
        assert folder.page.read_text() == "old"

    async def test_a_call_that_is_refused_at_last_leaves_a_checkpoint_with_nothing_to_put_back(
        self, folder: Folder
    ) -> None:
        desk = folder.desk("new")
        desk.memory.told = lambda event: (
            desk.permission_policy.set_mode(PLAN_MODE) if isinstance(event, CheckpointCreated) else None
        )
        await desk.run()
        assert desk.outcomes == [Outcome.DENIED]
        assert folder.page.read_text() == "old"
        restored = await folder.checkpointer.restore(folder.kept[-1])
        assert restored.restored == restored.conflicts == ()
        assert desk.memory.of(ToolFinished)

    async def test_a_call_that_must_be_asked_about_at_last_is_asked_about_and_then_runs(self, folder: Folder) -> None:
        desk = folder.desk("new")
        desk.memory.told = lambda event: (
            desk.permission_policy.set_mode(DEFAULT_MODE) if isinstance(event, CheckpointCreated) else None
        )
        running = desk.start()
        await desk.asked()
        assert folder.page.read_text() == "old"
        desk.decide(AllowOnce())
        await running
        assert desk.outcomes == [Outcome.SUCCEEDED]
        assert folder.page.read_text() == "new"

    async def test_files_that_are_saved_after_all_results_are_in_are_not_told_of(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        saving, gate = asyncio.Event(), asyncio.Event()

        async def deaf(checkpoint: Checkpoint) -> None:
            saving.set()
            while not gate.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await gate.wait()
            folder.kept.append(checkpoint)

        monkeypatch.setattr(folder.checkpointer, "_save_checkpoint", deaf)
        desk = folder.desk("new")
        running = desk.start()
        await saving.wait()
        desk.round.stop()
        assert desk.outcomes == [Outcome.CANCELLED]
        event_count = len(desk.memory.events)
        gate.set()
        await running
        assert len(desk.memory.events) == event_count
        assert folder.page.read_text() == "old"

    async def test_what_fails_there_is_logged_without_what_it_says(
        self, folder: Folder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        saved: list[Checkpoint] = []

        async def burst(checkpoint: Checkpoint) -> None:
            saved.append(checkpoint)
            if len(saved) != 1:
                raise LookupError("a secret")

        monkeypatch.setattr(folder.checkpointer, "_save_checkpoint", burst)
        desk = folder.desk("new")
        await desk.run()
        assert desk.outcomes == [Outcome.SUCCEEDED]
        desk = folder.desk("newer")
        await desk.run()
        assert desk.outcomes == [Outcome.FAILED]
        assert caplog.text.count("LookupError") == 2
        assert "burst" in caplog.text
        assert "secret" not in caplog.text
