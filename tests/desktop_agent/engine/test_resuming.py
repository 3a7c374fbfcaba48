"""A run that its process died in is gone on with: what waited is asked again, what had started is never run again."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.conversation.items import CallState, ToolCallItem
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_opening import reopen_session
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.store import Store
from desktop_agent.tools.tool import DynamicToolRegistry, ToolRegistry
from desktop_agent.types.blocks import Outcome, Text, ToolResult
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    RunEnd,
    RunFinished,
    RunStarted,
    ToolFinished,
    ToolStarted,
)
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import AllowOnce, Deny
from tests.fakes.agent_run import call, tool
from tests.fakes.scripted_provider import ScriptedProvider, Turn
from tests.fakes.session import LIMIT, Shaky, Stage, calls_of, results_of, shaky_store


class Life:
    """One process: a session over a store, and the tools that it ran."""

    def __init__(self, store: Store, *turns: Turn) -> None:
        self.ran: list[str] = []
        self.hold: asyncio.Event | None = None
        self.stage = Stage(Shaky(store), *turns, tools=(self._tool("act"), self._tool("look")))
        self.session = self.stage.session

    def _tool(self, name: str) -> Any:
        async def work(word: str) -> str:
            self.ran.append(word)
            if self.hold is not None:
                await self.hold.wait()
            return word

        return tool(name, work, read_only=name == "look")

    async def reopen(self, conversation_id: str) -> Session:
        """The conversation, as this process finds it."""
        self.session = await reopen_session(self.stage.shaky.store, conversation_id, self.stage.session._runs._setup)
        self.session.subscribe(on_event=self.stage.events.append)
        return self.session

    async def begin_without_tools(self, conversation_id: str) -> None:
        """Reopen it while the server of its tools has not been started yet: `server_is_ready` starts it."""
        self.is_starting, self.server_is_ready = False, asyncio.Event()
        fixed, act = ToolRegistry(()), self._tool("act")

        async def tools_ready(_: object) -> None:
            self.is_starting = True
            await self.server_is_ready.wait()

        def offered() -> tuple[Any, ...]:
            return (act,) if self.server_is_ready.is_set() else ()

        runs = self.stage.session._runs
        tools_for = lambda _: DynamicToolRegistry(fixed, offered)  # noqa: E731
        runs._setup = replace(runs._setup, tools_for=tools_for, tools_ready=tools_ready)
        await self.reopen(conversation_id)

    async def waiting(self, count: int = 1) -> None:
        await self.stage.until(lambda: len(self.session.approvals.open_approvals) == count)
        await self.session._writer.flush()

    def decide(self, decision: Any) -> None:
        self.session.approvals.answer(self.session.approvals.open_approvals[0].approval_id, decision)

    async def idle(self) -> None:
        async with asyncio.timeout(LIMIT):
            await self.session.wait_idle()


@asynccontextmanager
async def copied(store: Store, folder: Path) -> AsyncIterator[Store]:
    """Copy the folder, as a process finds it whose predecessor died just now."""
    await asyncio.to_thread(folder.mkdir)
    await store.snapshot(folder / DATABASE_NAME)
    copy = await Store.open(folder)
    try:
        yield copy
    finally:
        await copy.close()


@pytest.fixture
async def shaky(tmp_path: Path) -> AsyncIterator[Shaky]:
    async with shaky_store(tmp_path / "first") as shaky:
        yield shaky


def run_ids(events: list[Envelope]) -> set[str]:
    return {envelope.run_id for envelope in events if envelope.run_id}


async def test_what_waited_is_asked_again_and_then_run_in_the_same_run(shaky: Shaky, tmp_path: Path) -> None:
    first = Life(shaky.store, Turn(call("1", "act", "a")))
    first.session.send(Message.user("go"))
    await first.waiting()
    (approval,) = first.stage.of(ApprovalRequested)
    async with copied(shaky.store, tmp_path / "second") as store:
        life = Life(store, Turn(ContentDelta("done")))
        session = await life.reopen(first.session.record.id)
        assert session.can_resume
        assert life.stage.events == []
        assert session.resume()
        assert not session.resume()
        assert session.working
        await life.waiting()
        assert [event.approval_id for event in life.stage.of(ApprovalRequested)] == [approval.approval_id]
        (item,) = [item for item in session.transcript if isinstance(item, ToolCallItem)]
        assert (item.state, item.approval_id) == (CallState.WAITING, approval.approval_id)
        life.decide(AllowOnce())
        await life.idle()
        assert life.ran == ["a"]
        assert session.history[-1].text == "done"
        assert results_of(session.history)["1"].outcome is Outcome.SUCCEEDED
        assert run_ids(life.stage.events) == run_ids(first.stage.events)
        before = [envelope.seq for envelope in first.stage.events]
        assert next(envelope.seq for envelope in life.stage.events if envelope.run_id) == before[-1] + 1
        assert life.stage.of(RunStarted)[0].resumed
        assert life.stage.of(RunFinished) == [RunFinished(RunEnd.COMPLETED)]
        loaded = await store.load(session.record.id)
        assert loaded.messages == session.history
        assert loaded.journal == ()
        await session.close()
    await first.session.close()


async def test_a_tool_that_its_server_offers_only_later_is_waited_for(shaky: Shaky, tmp_path: Path) -> None:
    first = Life(shaky.store, Turn(call("1", "act", "a")))
    first.session.send(Message.user("go"))
    await first.waiting()
    async with copied(shaky.store, tmp_path / "second") as store:
        life = Life(store, Turn(ContentDelta("done")))
        await life.begin_without_tools(first.session.record.id)
        session = life.session
        session.resume()
        await life.stage.until(lambda: life.is_starting)
        # Whoever quits meanwhile loses nothing: the next process asks.
        assert session.can_wait_for_next_process()
        life.server_is_ready.set()
        await life.waiting()
        life.decide(AllowOnce())
        await life.idle()
        assert life.ran == ["a"]
        assert results_of(session.history)["1"].outcome is Outcome.SUCCEEDED
        await session.close()
    await first.session.close()


async def test_stopped_before_it_has_gone_on_every_call_has_its_result(shaky: Shaky, tmp_path: Path) -> None:
    first = Life(shaky.store, Turn(call("1", "act", "a"), call("2", "act", "b")))
    first.hold = asyncio.Event()
    first.session.send(Message.user("go"))
    await first.waiting(2)
    first.decide(AllowOnce())
    await first.stage.until(lambda: first.ran == ["a"])
    await first.session._writer.flush()
    async with copied(shaky.store, tmp_path / "second") as store:
        life = Life(store)
        session = await life.reopen(first.session.record.id)
        session.resume()
        session.interrupt()
        await life.idle()
        assert life.ran == []
        outcomes = [result.outcome for result in results_of(session.history).values()]
        assert outcomes == [Outcome.UNKNOWN, Outcome.CANCELLED]
        assert life.stage.of(RunFinished) == [RunFinished(RunEnd.CANCELLED)]
        await session.close()
    first.hold.set()
    await first.session.close()


async def test_what_was_decided_is_not_asked_again(shaky: Shaky, tmp_path: Path) -> None:
    first = Life(shaky.store, Turn(call("1", "act", "a"), call("2", "act", "b"), call("3", "act", "c")))
    first.session.send(Message.user("go"))
    await first.waiting(3)
    waiting = first.session.approvals.open_approvals
    first.session.approvals.answer(waiting[1].approval_id, AllowOnce())
    first.session.approvals.answer(waiting[2].approval_id, Deny(message="no"))
    await first.stage.until(lambda: len(first.stage.of(ApprovalResolved)) == 2)
    await first.session._writer.flush()
    async with copied(shaky.store, tmp_path / "second") as store:
        life = Life(store, Turn(ContentDelta("done")))
        session = await life.reopen(first.session.record.id)
        session.resume()
        await life.waiting()
        assert len(life.stage.of(ApprovalRequested)) == 1
        life.decide(Deny())
        await life.idle()
        assert life.ran == ["b"]
        outcomes = [result.outcome for result in results_of(session.history).values()]
        assert outcomes == [Outcome.DENIED, Outcome.SUCCEEDED, Outcome.DENIED]
        await session.close()
    await first.session.close()


async def test_what_had_started_is_unknown_and_what_was_done_is_kept(shaky: Shaky, tmp_path: Path) -> None:
    first = Life(shaky.store, Turn(call("1", "look", "a"), call("2", "act", "b")))
    first.session.send(Message.user("go"))
    await first.waiting()
    await first.stage.until(lambda: first.stage.of(ToolFinished))
    first.hold = asyncio.Event()
    first.decide(AllowOnce())
    await first.stage.until(lambda: first.ran == ["a", "b"])
    await first.session._writer.flush()
    async with copied(shaky.store, tmp_path / "second") as store:
        life = Life(store, Turn(ContentDelta("done")))
        session = await life.reopen(first.session.record.id)
        done, _ = [item for item in session.transcript if isinstance(item, ToolCallItem)]
        assert done.outcome is Outcome.SUCCEEDED  # also before anybody goes on
        session.resume()
        await life.idle()
        assert life.ran == []
        outcomes = [result.outcome for result in results_of(session.history).values()]
        assert outcomes == [Outcome.SUCCEEDED, Outcome.UNKNOWN]
        assert session.history[-1].text == "done"
        await session.close()
    first.hold.set()
    await first.session.close()


@pytest.mark.parametrize("how", ["send", "retry"])
async def test_who_does_not_go_on_closes_what_is_open_first(shaky: Shaky, tmp_path: Path, how: str) -> None:
    first = Life(shaky.store, Turn(call("1", "act", "a")))
    first.session.send(Message.user("go"))
    await first.waiting()
    async with copied(shaky.store, tmp_path / "second") as store:
        life = Life(store, Turn(ContentDelta("done")))
        session = await life.reopen(first.session.record.id)
        if how == "send":
            session.send(Message.user("something else"))
        else:
            session.retry()
        assert not session.can_resume
        await life.idle()
        assert life.ran == []
        assert results_of(session.history)["1"].outcome is Outcome.CANCELLED
        (item,) = [item for item in session.transcript if isinstance(item, ToolCallItem)]
        assert item.outcome is Outcome.CANCELLED
        await session.close()
        loaded = await store.load(session.record.id)
        assert loaded.messages == session.history
        assert loaded.journal == ()
        assert life.stage.of(RunFinished) == [RunFinished(RunEnd.ABORTED), RunFinished(RunEnd.COMPLETED)]
    await first.session.close()


async def test_who_edits_what_was_said_does_not_go_on_either(shaky: Shaky, tmp_path: Path) -> None:
    first = Life(shaky.store, Turn(call("1", "act", "a")))
    first.session.send(Message.user("go"))
    await first.waiting()
    async with copied(shaky.store, tmp_path / "second") as store:
        life = Life(store)
        session = await life.reopen(first.session.record.id)
        session.edit_history(session.history[:1])
        assert not session.can_resume
        await session.close()
        loaded = await store.load(session.record.id)
        assert loaded.messages == session.history == first.session.history[:1]
        assert loaded.journal == ()
    await first.session.close()


async def test_a_run_that_was_stopped_is_not_gone_on_with(shaky: Shaky, tmp_path: Path) -> None:
    ends = asyncio.Event()

    async def stubborn(word: str) -> str:
        try:
            await ends.wait()
        except asyncio.CancelledError:
            await ends.wait()
        return word

    first = Life(shaky.store, Turn(call("1", "look", "a")))
    first.stage.tools_for = lambda _: ToolRegistry((tool("look", stubborn, read_only=True),))
    first.session.send(Message.user("go"))
    await first.stage.until(lambda: first.stage.of(ToolStarted))
    first.session.interrupt()
    # It dies within the grace that its tool gets.
    await first.session._writer.flush()
    async with copied(shaky.store, tmp_path / "second") as store:
        life = Life(store)
        session = await life.reopen(first.session.record.id)
        assert not session.can_resume
        assert not session.resume()
        assert set(results_of(session.history)) == {"1"}
        assert (await store.load(session.record.id)).journal == ()
        await session.close()
    ends.set()
    await first.idle()
    await first.session.close()


async def test_runs_below_it_are_over(shaky: Shaky, tmp_path: Path) -> None:
    first = Life(shaky.store, Turn(call("1", "act", "a")))
    first.session.send(Message.user("go"))
    await first.waiting()
    recorder = first.session._active_run.recorder
    assert recorder is not None
    below = recorder.nested()
    below.emit(RunStarted("p", agent="finder", call_id="1"))
    below.emit(ContentDelta("half a thought"))
    await below.flush()
    async with copied(shaky.store, tmp_path / "second") as store:
        life = Life(store, Turn(ContentDelta("done")))
        session = await life.reopen(first.session.record.id)
        # What the specialist said is none of the conversation's.
        assert [message.text for message in session.history if message.text] == ["go"]
        journal = (await store.load(session.record.id)).journal
        assert {envelope.run_id for envelope in journal} == {recorder.run_id}
        assert session.can_resume
        session.resume()
        await life.waiting()
        life.decide(AllowOnce())
        await life.idle()
        await session.close()
    await first.session.close()


async def test_a_second_death_changes_nothing(shaky: Shaky, tmp_path: Path) -> None:
    first = Life(shaky.store, Turn(call("1", "act", "a"), call("2", "act", "b")))
    first.session.send(Message.user("go"))
    await first.waiting(2)
    async with copied(shaky.store, tmp_path / "second") as store:
        second = Life(store, Turn(ContentDelta("never")))
        await second.reopen(first.session.record.id)
        second.session.resume()
        await second.waiting(2)
        second.decide(AllowOnce())
        await second.stage.until(lambda: second.stage.of(ToolFinished))
        await second.session._writer.flush()
        async with copied(store, tmp_path / "third") as third_store:
            third = Life(third_store, Turn(ContentDelta("done")))
            await third.reopen(first.session.record.id)
            third.session.resume()
            await third.waiting()
            third.decide(AllowOnce())
            await third.idle()
            assert (second.ran, third.ran) == (["a"], ["b"])
            outcomes = [result.outcome for result in results_of(third.session.history).values()]
            assert outcomes == [Outcome.SUCCEEDED] * 2
            assert run_ids(third.stage.events) == run_ids(first.stage.events)
            await third.session.close()
        await second.session.close()
    await first.session.close()


async def test_a_folder_that_is_gone_is_said_and_it_can_be_gone_on_with_later(shaky: Shaky, tmp_path: Path) -> None:
    first = Life(shaky.store, Turn(call("1", "act", "a")))
    first.session.send(Message.user("go"))
    await first.waiting()
    async with copied(shaky.store, tmp_path / "second") as store:
        life = Life(store, Turn(ContentDelta("done")))
        session = await life.reopen(first.session.record.id)
        tools = life.stage.tools_for

        def gone(_: object) -> Any:
            raise ValueError("gone")

        life.stage.tools_for = gone
        with pytest.raises(ValueError, match="gone"):
            session.resume()
        assert session.can_resume
        life.stage.tools_for = tools
        assert session.resume()
        await life.waiting()
        life.decide(Deny())
        await life.idle()
        await session.close()
    await first.session.close()


_turns = st.lists(
    st.lists(st.sampled_from(["act", "look", "nobody"]), max_size=3),
    min_size=1,
    max_size=3,
)


def _script(turns: list[list[str]]) -> list[Turn]:
    """Each call has a word of its own, so that what ran can be told apart."""
    script: list[Turn] = []
    for number, names in enumerate(turns):
        calls = [call(f"{number}-{place}", name, f"{number}-{place}") for place, name in enumerate(names)]
        script.append(Turn(ContentDelta(f"turn {number}"), *calls))
    return [*script, Turn(ContentDelta("end")), Turn(ContentDelta("end")), Turn(ContentDelta("end"))]


async def _decide(life: Life, chance: random.Random) -> None:
    while True:
        for approval in life.session.approvals.open_approvals:
            decision = chance.choice([AllowOnce(), AllowOnce(), Deny(message="no")])
            life.session.approvals.answer(approval.approval_id, decision)
            await asyncio.sleep(chance.choice((0, 0.002)))
        await asyncio.sleep(0.001)


async def _die_at_any_moment(folder: Path, turns: list[list[str]], seed: int) -> None:
    chance = random.Random(seed)
    async with shaky_store(folder / "first") as shaky:
        life = Life(shaky.store, *_script(turns))
        life.session.send(Message.user("go"))
        id_, store = life.session.record.id, shaky.store
        ran: list[str] = []
        lives: list[tuple[Life, Any, asyncio.Task[None]]] = []
        for number in range(3):
            person = asyncio.create_task(_decide(life, chance))
            for _ in range(chance.randrange(0, 40)):
                await asyncio.sleep(0)
            await asyncio.sleep(chance.choice((0, 0, 0.01)))
            if life.session.is_new:
                await life.session._writer.flush()
            ran += life.ran
            copy = copied(store, folder / f"life {number}")
            store = await copy.__aenter__()
            lives.append((life, copy, person))
            call_count = len(calls_of(life.session.history))
            provider = ScriptedProvider(*_script(turns)[_turns_said(await store.load(id_)) :])
            life = Life(store)
            life.stage.provider = provider
            await life.reopen(id_)
            assert len(calls_of(life.session.history)) <= max(call_count, 9)
            life.session.resume()
        person = asyncio.create_task(_decide(life, chance))
        await life.idle()
        person.cancel()
        ran += life.ran
        assert len(ran) == len(set(ran)), "a call ran twice"
        _check_history(life.session.history)
        await life.session.close()
        loaded = await store.load(id_)
        assert loaded.journal == ()
        assert loaded.messages == life.session.history
        for earlier, copy, task in reversed(lives):
            await copy.__aexit__(None, None, None)
            task.cancel()
            await earlier.session.close()


def _turns_said(loaded: Any) -> int:
    return sum(message.role is Role.ASSISTANT for message in loaded.messages)


def _check_history(history: tuple[Message, ...]) -> None:
    for position, message in enumerate(history):
        if message.tool_uses and position + 1 < len(history):
            results = [block.tool_use_id for block in history[position + 1].blocks if isinstance(block, ToolResult)]
            assert results == [call.id for call in message.tool_uses]
        for block in message.blocks:
            if isinstance(block, ToolResult) and block.outcome is Outcome.SUCCEEDED:
                assert block.content == (Text(text=block.tool_use_id),)


@settings(max_examples=25, deadline=None)
@given(_turns, st.integers(0, 10_000))
def test_no_call_runs_twice_however_often_the_process_dies(
    tmp_path_factory: pytest.TempPathFactory, turns: list[list[str]], seed: int
) -> None:
    asyncio.run(_die_at_any_moment(tmp_path_factory.mktemp("lives"), turns, seed))
