"""Section Events, of calls: from the model's wish to the result."""

from pathlib import Path

import pytest

from desktop_agent.tools.tool import RunningCall, Tool
from desktop_agent.types import engine_events as engine
from desktop_agent.types.blocks import Outcome, Text, ToolUse
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import Hooks, PreToolUse
from desktop_agent.types.provider_events import ContentDelta, MessageDelta
from desktop_agent.types.tool_calls import AllowOnce, Deny, ToolClass
from tests.contract.scenes import ACT, DONE, LOOK, answer_all, decided, in_folder, on_disk, one, only, until, write
from tests.desktop_agent.engine.restoring import restore
from tests.fakes.agent_run import Desk, Words, call, tool
from tests.fakes.library import Gate
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import Stage, results_of


async def test_tool_call_pending__comes_when_the_turn_has_ended_and_knows_the_class() -> None:
    desk = Desk(Turn(call("1", "look"), call("2", "nobody"), ContentDelta("text behind")), DONE, tools=(LOOK,))
    await desk.execute()
    events = desk.memory.events
    pending = desk.memory.of(engine.ToolCallPending)
    assert [(event.id, event.name, event.input, event.tool_class) for event in pending] == [
        ("1", "look", {"word": "x"}, ToolClass.READ_ONLY), ("2", "nobody", {"word": "x"}, ToolClass.MUTATING)
    ]  # fmt: skip
    assert events.index(desk.memory.of(MessageDelta)[0]) < events.index(pending[0])


async def test_approval_requested__names_call_and_digest_and_nothing_runs_meanwhile() -> None:
    desk = Desk(Turn(call("1", "act")), DONE, tools=(ACT,))
    running = desk.start()
    await desk.approvals_open()
    request = one(desk.memory.of(engine.ApprovalRequested))
    assert (request.tool_use_id, request.digest) == ("1", ACT.digest({"word": "x"}))
    assert request.approval_id == one(desk.approvals.open_approvals).approval_id
    assert not desk.memory.of(engine.ToolStarted)
    desk.decide(Deny())
    await running


@pytest.mark.parametrize(("by", "decision"), [("person", "allow_once"), ("rule", "deny"), ("stop", "withdrawn")])
async def test_approval_resolved__says_what_and_by_whom(by: str, decision: str) -> None:
    desk = Desk(Turn(call("1", "act")), DONE, tools=(ACT,))
    running = desk.start()
    await desk.approvals_open()
    if by == "person":
        desk.decide(AllowOnce())
    elif by == "rule":
        desk.modes.set_by_person("plan")
    else:
        desk.run.interrupt()
    await running
    resolved = one(desk.memory.of(engine.ApprovalResolved))
    assert (resolved.by, resolved.decision, resolved.tool_use_id) == (by, decision, "1")
    assert resolved.approval_id == one(desk.memory.of(engine.ApprovalRequested)).approval_id


async def test_tool_started__is_on_the_disk_before_the_effect(tmp_path: Path) -> None:
    async def effect(_: str) -> str:
        journal = (await stage.shaky.store.load(stage.session.record.id)).journal
        written.extend(only([envelope.event for envelope in journal], engine.ToolStarted))
        return ""

    written: list[engine.ToolStarted] = []
    async with on_disk(tmp_path, Turn(call("1", "look")), DONE, tools=(tool("look", effect, read_only=True),)) as stage:
        await stage.say()
        assert written == [engine.ToolStarted("1", {"word": "x"}, "default")]
        await stage.session.close()


async def test_tool_progress__is_told_while_the_tool_runs() -> None:
    gate = Gate()

    async def run(_: Words, running: RunningCall) -> tuple[Text, ...]:
        running.progress("half")
        gate.arrived.set()
        await gate.opened.wait()
        return (Text(text="whole"),)

    slow = Tool("slow", "Slow.", LOOK.schema, run, ToolClass.READ_ONLY)
    desk = Desk(Turn(call("1", "slow")), DONE, tools=(slow,))
    working = desk.start()
    await gate.until_arrived()
    await until(lambda: desk.memory.of(engine.ToolProgress))
    assert desk.memory.of(engine.ToolProgress) == [engine.ToolProgress("1", "half")]
    assert not desk.memory.of(engine.ToolFinished)
    gate.opened.set()
    await working


async def test_tool_finished__carries_the_outcome_of_every_call_once() -> None:
    async def fail(_: str) -> str:
        raise OSError("no")

    tools = LOOK, ACT, tool("fails", fail, read_only=True)
    desk = Desk(Turn(call("1", "look"), call("2", "fails"), call("3", "nobody"), call("4", "act")), DONE, tools=tools)
    await decided(desk, Deny())
    finished = {event.id: event.outcome for event in desk.memory.of(engine.ToolFinished)}
    expected = {"1": Outcome.SUCCEEDED, "2": Outcome.FAILED, "3": Outcome.FAILED, "4": Outcome.DENIED}
    assert finished == expected
    assert {result.tool_use_id: result.outcome for result in desk.memory.results} == expected
    assert len(desk.memory.of(engine.ToolFinished)) == 4


async def test_tool_results_received__counts_the_calls_of_the_turn_when_all_are_answered() -> None:
    desk = Desk(Turn(call("1", "look"), call("2", "look", "b")), DONE, tools=(LOOK,))
    await desk.execute()
    assert desk.memory.of(engine.ToolResultsReceived) == [engine.ToolResultsReceived(2)]
    kinds = [type(event) for event in only(desk.memory.events, engine.ToolFinished, engine.ToolResultsReceived)]
    assert kinds == [engine.ToolFinished] * 2 + [engine.ToolResultsReceived]


async def test_checkpoint_created__before_the_call_that_changes_files_starts(tmp_path: Path) -> None:
    async with in_folder(tmp_path, Turn(write("1", "a.txt", "new")), DONE) as stage:
        stage.session.send(Message.user("go"))
        await answer_all(stage, AllowOnce())
        await stage.idle()
        created = one(stage.of(engine.CheckpointCreated))
        assert (created.tool_use_id, created.paths) == ("1", ("a.txt",))
        kinds = [type(envelope.event) for envelope in stage.events]
        assert kinds.index(engine.CheckpointCreated) < kinds.index(engine.ToolStarted)
        await stage.session.close()


async def test_checkpoint_restored__names_it_and_what_was_left_alone(tmp_path: Path) -> None:
    async with in_folder(tmp_path, Turn(write("1", "a.txt", "new"), write("2", "b.txt", "new")), DONE) as stage:
        stage.session.send(Message.user("go"))
        await answer_all(stage, AllowOnce(), 2)
        await stage.idle()
        (tmp_path / "work" / "b.txt").write_text("the person's")
        first, second = stage.of(engine.CheckpointCreated)
        assert stage.session.checkpoints is not None
        for created in (first, second):
            await restore(stage.session.checkpoints, created.checkpoint_id)
        assert stage.of(engine.CheckpointRestored) == [
            engine.CheckpointRestored(first.checkpoint_id),
            engine.CheckpointRestored(second.checkpoint_id, conflicts=("b.txt",)),
        ]
        await stage.session.close()


async def test_doom_loop_suspected__at_the_third_identical_call() -> None:
    desk = Desk(*(Turn(call(str(n), "look")) for n in range(3)), DONE, tools=(LOOK,))
    await decided(desk, Deny())
    assert desk.memory.of(engine.DoomLoopSuspected) == [engine.DoomLoopSuspected("2", 3)]


ASKING = {"question": "Which?", "choices": ["red", "green"], "free_text": False}


async def asked(tmp_path: Path, answer: str | None) -> Stage:
    turns = Turn(ToolUse(id="1", name="ask_user", input=ASKING)), DONE
    async with on_disk(tmp_path, *turns, questions=True) as stage:
        stage.session.send(Message.user("go"))
        await stage.until(lambda: stage.session.questions.open_questions)
        question = one(stage.session.questions.open_questions)
        if answer is None:
            stage.session.questions.withdraw(question.question_id)
        else:
            stage.session.questions.answer(question.question_id, answer)
        await stage.idle()
        await stage.session.close()
        return stage


async def test_question_asked__with_its_choices(tmp_path: Path) -> None:
    event = one((await asked(tmp_path, "red")).of(engine.QuestionAsked))
    assert (event.question, event.choices, event.several, event.free_text) == ("Which?", ("red", "green"), False, False)


@pytest.mark.parametrize("answer", ["green", None])
async def test_question_answered__with_the_answer_or_with_none(tmp_path: Path, answer: str | None) -> None:
    stage = await asked(tmp_path, answer)
    event, question = one(stage.of(engine.QuestionAnswered)), one(stage.of(engine.QuestionAsked))
    assert (event.question_id, event.answer) == (question.question_id, answer)
    text = str(results_of(stage.session.history)["1"].content)
    assert (answer or "withdrawn") in text


async def test_order_of_one_call__from_its_use_to_its_result(tmp_path: Path) -> None:
    order: list[object] = []

    async def gate(_: PreToolUse) -> None:
        order.append("gate")

    turns = Turn(write("1", "a.txt", "new")), DONE
    async with in_folder(tmp_path, *turns, hooks=Hooks().add_pre_tool_use(gate)) as stage:
        stage.session.subscribe(on_event=lambda envelope: order.append(type(envelope.event)))
        stage.session.send(Message.user("go"))
        await answer_all(stage, AllowOnce())
        await stage.idle()
        await stage.session.close()
    expected = [
        ToolUse, MessageDelta, engine.ToolCallPending, "gate", engine.ApprovalRequested, engine.ApprovalResolved,
        engine.CheckpointCreated, engine.ToolStarted, engine.ToolFinished, engine.ToolResultsReceived,
    ]  # fmt: skip
    positions = [order.index(kind) for kind in expected]
    assert positions == sorted(positions)
