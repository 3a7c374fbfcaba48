"""Section Invariants, 9 to 15: a short example of each. The random worlds are in tests/invariants."""

import re
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.agent.guards import Guards
from desktop_agent.api.provider import Provider
from desktop_agent.conversation.history import compacted_view, normalised_history
from desktop_agent.types.blocks import Summary, Text, Thinking, ToolResult
from desktop_agent.types.engine_events import (
    CheckpointCreated,
    CheckpointRestored,
    ErrorOccurred,
    RunEnd,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.policies import Guard, GuardContinue, GuardMoment, Hooks, Limits
from desktop_agent.types.provider_events import ContentDelta, Done, MessageDelta, StopReason
from desktop_agent.types.tool_calls import AllowOnce, Deny
from tests.contract.scenes import (
    ACT,
    DONE,
    LOOK,
    answer_all,
    in_folder,
    on_disk,
    one,
    only,
    results_follow_calls,
    write,
)
from tests.contract.vendors import MODELS, answers_like, history_of, recorded
from tests.desktop_agent.engine.restoring import restore
from tests.fakes.agent_run import Desk, call, tool
from tests.fakes.http_server import Loopback, Reply
from tests.fakes.scripted_provider import ScriptedProvider, Turn
from tests.fakes.session import check_invariants
from tests.fakes.specialist_run import Team, ask, specialist


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic", "gemini"])
async def test_invariant_9__however_the_bytes_are_cut_the_pieces_are_the_text(dialect: Any) -> None:
    body = recorded(dialect, "tools_parallel" if dialect != "openai-responses" else "reasoning_tools")
    answers: list[Any] = []
    for size in (len(body), 1, 17):
        pieces = [body[index : index + size] for index in range(0, len(body), size)]
        async with Loopback(Reply(pieces)) as server:
            root = server.url if dialect == "openai-chat" else server.root
            async with await Provider.create(MODELS[dialect], "k", dialect=dialect, base_url=root) as provider:
                response = await provider.complete("hi")
        # The clock says how long it thought, and chance names a call that its server gave no id.
        same = re.compile(r'"seconds":[^,}]*|call_[0-9a-f]{8,}')
        blocks = [same.sub("", block.model_dump_json()) for block in response.blocks]
        answers.append((blocks, response.usage, response.stop_reason))
    assert answers[0] == answers[1] == answers[2]


async def test_invariant_9__what_was_streamed_is_what_is_committed(tmp_path: Path) -> None:
    turns = Turn(*(ContentDelta(letter) for letter in "Zürich 😀"), call("1", "look")), DONE
    async with on_disk(tmp_path, *turns, tools=(LOOK,)) as stage:
        await stage.say()
        streamed: list[str] = []
        for event in only([envelope.event for envelope in stage.events], TurnStarted, ContentDelta):
            if isinstance(event, TurnStarted):
                streamed.append("")
            else:
                streamed[-1] += event.text
        assert streamed == [message.text for message in stage.session.history if message.role is Role.ASSISTANT]
        assert streamed == ["Zürich 😀", "Done."]
        await stage.session.close()


def test_invariant_10__repair_is_idempotent_and_changes_nothing_that_is_whole() -> None:
    answer = Message(role=Role.ASSISTANT, blocks=(call("1", "look"), call("2", "look")))
    results = Message.tool_results([ToolResult(tool_use_id="2", content=(Text(text="b"),))])
    broken = (Message.user("a"), results, answer, results, Message.user("c"), answer)
    once = normalised_history(broken)
    results_follow_calls(once)
    assert normalised_history(once) == once
    assert " ".join(message.role for message in once) == "user assistant tool user assistant tool"


@pytest.mark.parametrize("dialect", ["openai-responses", "anthropic", "gemini"])
async def test_invariant_10__what_a_provider_said_goes_back_to_it_as_it_was(dialect: Any) -> None:
    name = {"openai-responses": "reasoning_tools", "anthropic": "thinking_text", "gemini": "thinking_text"}[dialect]
    async with Loopback(choose=answers_like(dialect, name)) as server:
        history = await history_of(dialect, name, server)
        thoughts = [block for message in history for block in message.blocks if isinstance(block, Thinking)]
        assert thoughts
        async with await Provider.create(MODELS[dialect], "k", dialect=dialect, base_url=server.root) as provider:
            for _ in range(2):
                await provider.complete((*normalised_history(history), Message.user("and now?")))
        first, second = (request.body for request in server.requests[-2:])
    assert first == second
    assert [block for message in history for block in message.blocks if isinstance(block, Thinking)] == thoughts


def test_invariant_11__no_place_of_a_cut_splits_a_group() -> None:
    history = [
        message
        for n in range(3)
        for message in (
            Message.user(str(n)),
            Message(role=Role.ASSISTANT, blocks=(call(f"a{n}", "look"), call(f"b{n}", "look"))),
            Message.tool_results([ToolResult(tool_use_id=f"a{n}"), ToolResult(tool_use_id=f"b{n}")]),
        )
    ]
    for first_kept in history:
        summary = Message(role=Role.SYSTEM, blocks=(Summary(text="s", first_kept_id=first_kept.id),))
        results_follow_calls(
            [message for message in compacted_view([*history, summary]) if message.role is not Role.SYSTEM]
        )


class Adversary(ScriptedProvider):
    """Never ends by itself: calls, or pauses, for ever."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    async def stream(self, request: Any) -> Any:
        self.requests.append(request)
        number = str(len(self.requests))
        if self.kind == "calls":
            yield call(number, "look", number)
        elif self.kind == "nobody's calls":
            yield call(number, "nobody", number)
        elif self.kind == "pauses":
            yield MessageDelta(StopReason.PAUSE_TURN)
        elif self.kind == "text":
            while True:
                yield ContentDelta("x" * 1_000)
        yield Done()


@pytest.mark.parametrize("kind", ["calls", "nobody's calls", "pauses", "text"])
async def test_invariant_12__every_loop_ends(kind: str) -> None:
    desk = Desk(tools=(LOOK,), limits=Limits(turns=60, tool_iterations=5, answer_characters=10_000))
    desk.provider = Adversary(kind)
    assert await desk.execute() is RunEnd.LIMIT
    assert len(desk.provider.requests) < 30


async def test_invariant_12__guards_and_agents_that_call_agents_end_too() -> None:
    async def more(_: GuardMoment) -> GuardContinue:
        return GuardContinue("more")

    guards = Guards((Guard("g", more, 3), Guard("h", more, 2, at="turn_end")))
    desk = Desk(*[DONE] * 20, guards=guards)
    assert await desk.execute() is RunEnd.COMPLETED
    assert len(desk.provider.requests) <= 6
    itself = specialist("again", specialists=("again",))
    plays = {"again": (*[Turn(ask("n", "again"))] * 3, *[DONE] * 9)}
    team = Team(Turn(ask("0", "again")), DONE, specialists=(itself,), plays=plays)
    assert await team.execute() is RunEnd.COMPLETED
    assert len(team.models["again"].requests) == 6


async def test_invariant_13__a_second_decision_changes_nothing() -> None:
    desk = Desk(Turn(call("1", "act")), DONE, tools=(ACT,))
    running = desk.start()
    await desk.approvals_open()
    approval_id = one(desk.approvals.open_approvals).approval_id
    reports = [desk.approvals.answer(approval_id, decision) for decision in (AllowOnce(), Deny(), AllowOnce())]
    await running
    reports.append(desk.approvals.answer(approval_id, Deny()))
    assert [report.accepted for report in reports] == [True, False, False, False]
    assert len({id(report.resolution) for report in reports}) == 1
    assert len(desk.memory.of(ToolStarted)) == 1


class Raising(ScriptedProvider):
    """Fails once with what no provider should raise."""

    async def stream(self, request: Any) -> Any:
        if not self.requests:
            self.requests.append(request)
            raise KeyError("a fault of the adapter")
        async for event in super().stream(request):
            yield event


@pytest.mark.parametrize("what", ["prompt hook", "hook", "result hook", "tool", "guard", "provider"])
async def test_invariant_14__whatever_raises_the_next_send_is_answered(
    tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(*_: Any) -> Any:
        if not raised:
            raised.append(what)
            raise RuntimeError("a fault")

    raised: list[str] = []
    hooks = {"prompt hook": "user_prompt_submit", "hook": "pre_tool_use", "result hook": "post_tool_use"}
    setup: dict[str, Any] = {"hooks": Hooks(**{hooks[what]: (fails,)})} if what in hooks else {}
    if what == "guard":
        setup = {"guards": (Guard("g", fails, 1),)}
    look = tool("look", fails, read_only=True) if what == "tool" else LOOK
    async with on_disk(tmp_path, Turn(call("1", "look")), *[DONE] * 3, tools=(look,), **setup) as stage:
        if what == "provider":
            stage.provider = Raising(DONE)
        await stage.say("first")
        assert raised or what == "provider"
        assert (what == "provider") is any(event.kind == "error" for event in stage.of(ErrorOccurred))
        await stage.say("second")
        assert stage.session.history[-1].text == "Done."
        assert stage.session.history[-1].state is MessageState.COMPLETE
        check_invariants(stage.session.history, stage.events)
        await stage.session.close()
    caplog.clear()


async def test_invariant_15__restoring_twice_is_once_and_the_persons_changes_are_reported(tmp_path: Path) -> None:
    async with in_folder(tmp_path, Turn(write("1", "a.txt", "new"), write("2", "b.txt", "new")), DONE) as stage:
        work = tmp_path / "work"
        (work / "a.txt").write_text("old")
        stage.session.send(Message.user("go"))
        await answer_all(stage, AllowOnce(), 2)
        await stage.idle()
        (work / "b.txt").write_text("the person's own")
        checkpoints = stage.session.checkpoints
        assert checkpoints is not None
        ids = [event.checkpoint_id for event in stage.of(CheckpointCreated)]
        first = await restore(checkpoints, *ids)
        after_once = {path.name: path.read_text() for path in work.iterdir()}
        second = await restore(checkpoints, *ids)
        assert after_once == {"a.txt": "old", "b.txt": "the person's own"}
        assert {path.name: path.read_text() for path in work.iterdir()} == after_once
        assert [result.conflicts for result in first] == [("b.txt",), ()]
        assert [(result.restored, result.conflicts) for result in second] == [((), ("b.txt",))]
        assert [event.conflicts for event in stage.of(CheckpointRestored)] == [("b.txt",), (), ("b.txt",)]
        await stage.session.close()
