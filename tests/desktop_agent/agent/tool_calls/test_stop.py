"""Stop, of the round and of one call: nothing starts after it, and every event is sent once."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_agent.permissions.approvals import Approval
from desktop_agent.storage.content_files import BlobFiles
from desktop_agent.tools.checkpoints.checkpointer import Checkpointer
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Outcome
from desktop_agent.types.checkpoints import Checkpoint
from desktop_agent.types.engine_events import ApprovalResolved, ToolFinished, ToolProgress, ToolStarted
from desktop_agent.types.messages import new_id
from desktop_agent.types.permissions import ACCEPT_EDITS_MODE
from desktop_agent.types.policies import Hooks, PostToolUse, PreToolUse
from desktop_agent.types.tool_calls import AllowOnce, Effect
from tests.fakes.tool_batch import Desk, Stubborn, Words, call, tool, until


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop_agent.agent.tool_calls.tool_execution._GRACE_SECONDS", 0.02)


async def asleep(word: str, _call: RunningCall) -> str:
    await asyncio.sleep(60)
    return word


class TestRound:
    """The whole round."""

    async def test_before_it_began(self) -> None:
        desk = Desk(call("1", "look"), tools=[tool("look", reads=True)])
        desk.round.stop()
        assert not await desk.run()
        assert desk.outcomes == [Outcome.CANCELLED]
        assert not desk.memory.of(ToolStarted)

    async def test_what_waits_is_taken_back_and_told_before_its_result(self) -> None:
        desk = Desk(call("1", "act"), call("2", "act", "y"), tools=[tool("act")])
        running = desk.start()
        await desk.asked(2)
        desk.round.stop()
        assert not desk.approvals.open_approvals
        assert not await running
        assert desk.outcomes == [Outcome.CANCELLED] * 2
        expected = ["tool_call_pending", "approval_requested", "approval_resolved", "tool_finished"]
        assert desk.memory.about("2") == expected
        assert {event.decision for event in desk.memory.of(ApprovalResolved)} == {"withdrawn"}

    async def test_only_its_own_cards_are_taken_back(self) -> None:
        desk = Desk(call("1", "act"), tools=[tool("act")])
        other = desk.approvals.open(Approval(new_id(), call("9", "act"), tool("act")))
        running = desk.start()
        await desk.asked(2)
        desk.round.stop()
        await running
        assert desk.approvals.open_approvals == (other,)

    async def test_a_decision_that_nobody_has_heard_of_yet_is_told_as_it_was(self) -> None:
        desk = Desk(call("1", "act"), tools=[tool("act")])
        running = desk.start()
        await desk.asked()
        desk.decide(AllowOnce())
        desk.round.stop()
        await running
        assert [event.decision for event in desk.memory.of(ApprovalResolved)] == ["allow_once"]
        assert not desk.memory.of(ToolStarted)
        assert desk.outcomes == [Outcome.CANCELLED]

    async def test_a_tool_that_heeds_it_ends_and_one_that_reads_has_changed_nothing(self) -> None:
        ended: list[str] = []
        inside = asyncio.Event()

        async def work(word: str, _call: RunningCall) -> str:
            inside.set()
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(word)
            return word

        desk = Desk(call("1", "look"), call("2", "look", "y"), tools=[tool("look", work, reads=True, concurrency=1)])
        running = desk.start()
        await inside.wait()
        desk.round.stop()
        assert not await running
        assert ended == ["x"]
        assert desk.outcomes == [Outcome.CANCELLED] * 2
        assert "It only reads: nothing was changed." in desk.words[0]
        assert "before it was started" in desk.words[1]

    async def test_a_call_that_was_about_to_begin_never_begins(self) -> None:
        ran: list[str] = []

        async def work(word: str, _call: RunningCall) -> str:
            ran.append(word)
            return word

        for steps in range(60):
            desk = Desk(call("1", "look"), tools=[tool("look", work, reads=True)])
            running = desk.start()
            for _ in range(steps):
                await asyncio.sleep(0)
            begun = list(ran)
            desk.round.stop()
            await running
            assert ran == begun
            desk.round.close(Outcome.CANCELLED)
            if ran:
                return
        raise AssertionError("it never ran")

    @pytest.mark.parametrize("deaf", [False, True])
    async def test_while_the_start_is_journalled(self, deaf: bool) -> None:
        ran: list[str] = []

        async def work(word: str, _call: RunningCall) -> str:
            ran.append(word)
            return word

        desk = Desk(call("1", "look"), tools=[tool("look", work, reads=True)])
        desk.memory.slow.clear()
        desk.memory.deaf = deaf
        running = desk.start()
        await until(lambda: desk.memory.of(ToolStarted))
        desk.round.stop()
        await asyncio.sleep(0)
        desk.memory.slow.set()
        assert not await running
        assert ran == []
        assert "before it was started" in desk.words[0]

    async def test_what_a_tool_gives_back_within_the_grace_counts_and_nothing_starts_behind_it(self) -> None:
        stubborn = Stubborn()
        desk = Desk(
            *(call("1", "act", "first"), call("2", "act", "second")),
            tools=[tool("act", stubborn.work)],
            mode=ACCEPT_EDITS_MODE,
        )
        running = desk.start()
        await stubborn.reached.wait()
        desk.round.stop()
        stubborn.may_end.set()
        assert not await running
        assert stubborn.has_begun == ["first"]
        assert desk.outcomes == [Outcome.SUCCEEDED, Outcome.CANCELLED]

    @pytest.mark.usefixtures("short_grace")
    async def test_a_tool_that_outlives_the_grace_is_left_behind_and_changes_nothing(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        stubborn = Stubborn()
        desk = Desk(call("1", "look"), tools=[tool("look", stubborn.work, reads=True)])
        running = desk.start()
        await stubborn.reached.wait()
        running_round = next(task for task in asyncio.all_tasks() if "ToolBatch.run" in repr(task))
        desk.round.stop()
        running_round.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert desk.outcomes == [Outcome.CANCELLED]
        event_count = len(desk.memory.events)
        # The batch and the tool have a grace each, and either may be over first.
        await until(lambda: "left behind" in caplog.text)
        stubborn.may_end.set()
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(desk.memory.events) == event_count

    async def test_a_cancel_is_a_stop_and_a_second_cancel_does_not_cut_the_grace_short(self) -> None:
        stubborn = Stubborn()
        desk = Desk(call("1", "look"), tools=[tool("look", stubborn.work, reads=True)])
        running = asyncio.create_task(desk.round.run())
        await stubborn.reached.wait()
        running.cancel()
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.sleep(0.01)
        assert not running.done()
        stubborn.may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert desk.outcomes == [Outcome.SUCCEEDED]

    async def test_a_tool_that_answers_stop_with_an_error_was_cancelled(self) -> None:
        inside = asyncio.Event()

        async def work(_word: str, _call: RunningCall) -> str:
            inside.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                raise OSError("closed") from None
            return ""

        desk = Desk(call("1", "look"), tools=[tool("look", work, reads=True)])
        running = desk.start()
        await inside.wait()
        desk.round.stop()
        await running
        assert desk.outcomes == [Outcome.CANCELLED]

    async def test_a_fault_of_ours_ends_the_round_and_leaves_nothing_behind(self) -> None:
        desk = Desk(call("1", "look"), call("2", "act"), tools=[tool("look", asleep, reads=True), tool("act")])

        def burst(event: object) -> None:
            if isinstance(event, ApprovalResolved) and event.decision != "withdrawn":
                raise LookupError("recorder")

        desk.memory.told = burst
        running = desk.start()
        await desk.asked()
        desk.decide(AllowOnce())
        with pytest.raises(LookupError):
            await running
        desk.memory.told = lambda _event: None
        assert desk.outcomes == [Outcome.CANCELLED] * 2

    async def test_what_closes_with_a_limit_says_so(self) -> None:
        desk = Desk(call("1", "act"), tools=[tool("act")])
        running = desk.start()
        await desk.asked()
        desk.round.stop()
        await running
        (result,) = desk.round.close(Outcome.LIMIT)
        assert result.outcome is Outcome.LIMIT
        assert desk.round.close(Outcome.CANCELLED) == [result]
        assert len(desk.memory.of(ToolFinished)) == 1


class TestCall:
    """One call of many."""

    async def test_one_that_waits_for_a_person(self) -> None:
        desk = Desk(call("1", "act"), call("2", "act", "y"), tools=[tool("act")])
        running = desk.start()
        await desk.asked(2)
        assert desk.round.stop_call("1")
        assert desk.finished("1")
        assert [approval.tool_use.id for approval in desk.approvals.open_approvals] == ["2"]
        desk.decide(AllowOnce())
        assert await running
        assert desk.outcomes == [Outcome.CANCELLED, Outcome.SUCCEEDED]
        expected = ["tool_call_pending", "approval_requested", "approval_resolved", "tool_finished"]
        assert desk.memory.about("1") == expected

    async def test_one_that_is_queued(self) -> None:
        gate, inside = asyncio.Event(), asyncio.Event()
        ran: list[str] = []

        async def work(word: str, _call: RunningCall) -> str:
            ran.append(word)
            inside.set()
            await gate.wait()
            return word

        look = tool("look", work, reads=True, concurrency=1)
        desk = Desk(*(call(str(n), "look", str(n)) for n in range(3)), tools=[look])
        running = desk.start()
        await inside.wait()
        assert desk.round.stop_call("1")
        assert desk.finished("1")
        gate.set()
        assert await running
        assert ran == ["0", "2"]
        assert desk.outcomes == [Outcome.SUCCEEDED, Outcome.CANCELLED, Outcome.SUCCEEDED]

    async def test_one_that_runs_and_the_next_begins_when_it_has_ended(self) -> None:
        inside = asyncio.Event()

        async def work(word: str, _call: RunningCall) -> str:
            if word == "long":
                inside.set()
                await asyncio.sleep(60)
            return word

        desk = Desk(
            *(call("1", "act", "long"), call("2", "act", "short")),
            tools=[tool("act", work)],
            mode=ACCEPT_EDITS_MODE,
        )
        running = desk.start()
        await inside.wait()
        assert desk.round.stop_call("1")
        assert await running
        assert desk.outcomes == [Outcome.CANCELLED, Outcome.SUCCEEDED]
        assert "may have taken effect" in desk.words[0]
        assert not desk.round.stop_call("1")

    @pytest.mark.usefixtures("short_grace")
    async def test_one_that_does_not_heed_it_holds_the_round_no_longer_than_the_grace(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        stubborn = Stubborn()
        desk = Desk(
            *(call("1", "act"), call("2", "look")),
            tools=[tool("act", stubborn.work), tool("look", reads=True)],
            mode=ACCEPT_EDITS_MODE,
        )
        running = desk.start()
        await stubborn.reached.wait()
        assert desk.round.stop_call("1")
        assert await running
        assert desk.outcomes == [Outcome.CANCELLED, Outcome.SUCCEEDED]
        stubborn.may_end.set()
        await asyncio.sleep(0)
        assert "left behind" in caplog.text

    async def test_one_that_gives_a_result_all_the_same_was_stopped(self) -> None:
        stubborn = Stubborn()
        desk = Desk(call("1", "look"), tools=[tool("look", stubborn.work, reads=True)])
        running = desk.start()
        await stubborn.reached.wait()
        desk.round.stop_call("1")
        stubborn.may_end.set()
        await running
        assert desk.outcomes == [Outcome.CANCELLED]

    @pytest.mark.parametrize("where", ["hook before", "preview", "journal", "hook after"])
    async def test_one_that_somebody_elses_code_holds_up(self, where: str) -> None:
        inside, gate = asyncio.Event(), asyncio.Event()

        async def hold(*_arguments: object) -> None:
            inside.set()
            await gate.wait()

        async def before(moment: PreToolUse) -> None:
            if moment.tool_use_id == "1":
                await hold()

        async def after(moment: PostToolUse) -> None:
            if moment.tool_use_id == "1":
                await hold()

        hooks = Hooks(
            pre_tool_use=(before,) if where == "hook before" else (),
            post_tool_use=(after,) if where == "hook after" else (),
        )
        network = frozenset({Effect.NETWORK})
        slow = tool("held", reads=True, effects=network if where == "preview" else frozenset())
        desk = Desk(
            *(call("1", "held"), call("2", "look")),
            tools=[replace(slow, preview=hold) if where == "preview" else slow, tool("look", reads=True)],
            hooks=hooks,
        )
        if where == "journal":
            desk.memory.slow.clear()
        running = desk.start()
        await (until(lambda: desk.memory.of(ToolStarted)) if where == "journal" else inside.wait())
        assert desk.round.stop_call("1")
        assert desk.finished("1")
        desk.memory.slow.set()
        assert await running
        assert desk.outcomes == [Outcome.CANCELLED, Outcome.SUCCEEDED]

    async def test_one_that_is_not_there_or_has_ended(self) -> None:
        desk = Desk(call("1", "look"), tools=[tool("look", reads=True)])
        assert not desk.round.stop_call("2")
        await desk.run()
        assert not desk.round.stop_call("1")
        assert desk.outcomes == [Outcome.SUCCEEDED]

    async def test_its_tool_is_signalled_once_so_that_it_can_end_in_order(self) -> None:
        signals: list[int] = []
        inside = asyncio.Event()

        async def work(word: str, _call: RunningCall) -> str:
            inside.set()
            for count in range(3):
                try:
                    await asyncio.sleep(60 if count == 0 else 0.01)
                except asyncio.CancelledError:
                    signals.append(count)
            return word

        desk = Desk(call("1", "look"), tools=[tool("look", work, reads=True)])
        running = desk.start()
        await inside.wait()
        desk.round.stop_call("1")
        desk.round.stop()
        await asyncio.sleep(0)
        desk.round.stop()
        await running
        assert signals == [0]

    async def test_its_output_is_not_heard_any_more(self) -> None:
        inside, gate = asyncio.Event(), asyncio.Event()
        tell: list[Callable[[str], None]] = []

        async def work(word: str, running: RunningCall) -> str:
            tell.append(running.progress)
            running.progress("early")
            inside.set()
            try:
                await gate.wait()
            finally:
                running.progress("late")
            return word

        desk = Desk(call("1", "look"), tools=[tool("look", work, reads=True)])
        running = desk.start()
        await inside.wait()
        desk.round.stop_call("1")
        await running
        tell[0]("later still")
        assert [event.text for event in desk.memory.of(ToolProgress)] == ["early"]
        assert desk.memory.about("1")[-1] == "tool_finished"


class TestWhatHadEnded:
    """A call whose tool had ended keeps what it gave."""

    @staticmethod
    def saving(tmp_path: Path) -> "tuple[Desk, asyncio.Event, asyncio.Event]":
        """A call that has done its work, and whose files are being noted as it left them."""
        (tmp_path / "work").mkdir()
        reached, may_end = asyncio.Event(), asyncio.Event()
        saved: list[Checkpoint] = []

        async def keep(checkpoint: Checkpoint) -> None:
            saved.append(checkpoint)
            if len(saved) > 1:
                reached.set()
                await may_end.wait()

        async def changes(_arguments: Words) -> tuple[str, ...]:
            return ("page.txt",)

        keeper = Checkpointer(Workspace(tmp_path / "work"), BlobFiles(tmp_path), keep, "conversation")
        act = tool("act", changes=changes)
        return Desk(call("1", "act"), tools=[act], mode=ACCEPT_EDITS_MODE, checkpointer=keeper), reached, may_end

    @pytest.mark.parametrize("which", ["round", "call"])
    async def test_while_its_files_are_noted(self, tmp_path: Path, which: str) -> None:
        desk, reached, may_end = self.saving(tmp_path)
        running = desk.start()
        await reached.wait()
        assert desk.round.stop_call("1") if which == "call" else desk.round.stop() is None
        may_end.set()
        await running
        assert (desk.outcomes, desk.words) == ([Outcome.SUCCEEDED], ["x"])
        assert len(desk.memory.of(ToolFinished)) == 1

    async def test_also_where_that_takes_longer_than_the_grace(self, tmp_path: Path, short_grace: None) -> None:
        desk, reached, may_end = self.saving(tmp_path)
        running = desk.start()
        await reached.wait()
        desk.round.stop()
        await running
        assert (desk.outcomes, desk.words) == ([Outcome.SUCCEEDED], ["x"])
        may_end.set()
        await until(lambda: len(asyncio.all_tasks()) == 1)

    @pytest.mark.parametrize("which", ["round", "call"])
    async def test_in_the_very_moment_in_which_it_ends(self, which: str) -> None:
        desk = Desk(call("1", "look"), tools=[tool("look", reads=True)])
        (one,) = desk.round._batch.calls
        running = desk.start()
        await until(lambda: one.tool_task is not None and one.tool_task.done())
        assert desk.round.stop_call("1") if which == "call" else desk.round.stop() is None
        await running
        assert (desk.outcomes, desk.words) == ([Outcome.SUCCEEDED], ["x"])

    @pytest.mark.parametrize("which", ["round", "call"])
    async def test_what_hooks_had_not_ruled_on_is_kept_out_and_the_effect_is_said(self, which: str) -> None:
        reached = asyncio.Event()

        async def slow(_moment: PostToolUse) -> None:
            reached.set()
            await asyncio.sleep(60)

        desk = Desk(call("1", "look", "secret"), tools=[tool("look", reads=True)], hooks=Hooks(post_tool_use=(slow,)))
        running = desk.start()
        await reached.wait()
        assert desk.round.stop_call("1") if which == "call" else desk.round.stop() is None
        await running
        assert desk.outcomes == [Outcome.CANCELLED]
        assert "took effect" in desk.words[0]
        assert "kept out" in desk.words[0]
        assert "secret" not in str(desk.memory.events[-1])
