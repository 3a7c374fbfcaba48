"""One owner for each conversation, across processes: who comes second is refused by name, and recovers nothing."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from desktop_agent.engine import session_lifecycle
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.types.blocks import ToolResult
from desktop_agent.types.engine_events import Envelope, ErrorOccurred, RunFinished, RunStarted, ToolFinished
from desktop_agent.types.errors import ConversationInUse, WrittenElsewhere, WrongUse
from desktop_agent.types.messages import Message, Role, now
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import AllowOnce
from tests.desktop_agent.api.test_ask import calls, says
from tests.fakes.ask_command import Asker, finished
from tests.fakes.http_server import Loopback, Reply, chunk, sse
from tests.fakes.scripted_provider import ScriptedProvider, Turn
from tests.frame.another_loop import raised_on_another_loop
from tests.frame.selection import few

# Long enough for a loaded machine.
PATIENCE = 60.0


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Asker:
    return Asker(tmp_path / "data", capsys)


def held(text: str, gate: asyncio.Event) -> Reply:
    return Reply((sse(chunk({"content": text}), done=False), b""), hold=gate, cut=True)


async def the_conversation(engine: Engine) -> str:
    """The id of the only one, when it is there with the beginning of an answer."""
    async with asyncio.timeout(PATIENCE):
        while True:
            for record in await engine.store.list_conversations():
                if (await engine.store.load(record.id)).journal:
                    return record.id
            await asyncio.sleep(0.02)


async def test_one_owner__the_run_of_a_living_process_is_neither_opened_nor_recovered(ask: Asker) -> None:
    gate = asyncio.Event()
    async with Loopback(held("half", gate)) as server:
        working = await ask.start("go", server=server)
        await asyncio.wait_for(server.asked.wait(), PATIENCE)
        engine = await Engine.open(ask.folder, RunDefaults(program="window"))
        id_ = await the_conversation(engine)
        with pytest.raises(ConversationInUse, match=rf"“desktop-agent ask” \(process {working.pid}\) since "):
            await engine.session(id_)
        with pytest.raises(ConversationInUse):
            await engine.delete_conversation(id_)
        assert [message.role for message in (await engine.store.load(id_)).messages] == [Role.USER]
        assert not any(isinstance(envelope.event, RunFinished) for envelope in (await engine.store.load(id_)).journal)
        # It dies: now its run is nobody's.
        working.kill()
        await finished(working)
        session = await engine.session(id_)
        assert (await engine.store.load(id_)).journal == ()
        assert session.history[0].text == "go"
        await engine.close()


async def test_one_owner__a_conversation_is_taken_before_it_can_be_found(ask: Asker) -> None:
    engine = await Engine.open(ask.folder, RunDefaults(program="window"))
    session = engine.new_session()
    session.change_record(title="begun")
    session._writer.add(Message.user("go"))
    await session.flush()
    other = await Engine.open(ask.folder)
    with pytest.raises(ConversationInUse, match=rf"the window \(process {os.getpid()}\)"):
        await other.session(session.record.id)
    await session.close()
    theirs = await other.session(session.record.id)
    assert theirs.history[0].text == "go"
    with pytest.raises(ConversationInUse):
        await engine.session(session.record.id)
    await other.close()
    assert (await engine.session(session.record.id)).history[0].text == "go"
    with pytest.raises(WrongUse):
        await engine.session("nobody")
    assert not list(ask.folder.glob("locks/*nobody*"))
    await engine.close()


async def test_one_owner__ask_beside_a_card_that_waits_is_refused_and_the_call_runs_once(
    ask: Asker, tmp_path: Path
) -> None:
    write = ("write_file", {"path": "a.txt", "content": "written"})
    async with Loopback(calls(write), says("done")) as server:
        engine = await Engine.open(ask.folder, RunDefaults(program="window", endpoint=_endpoint(server), model="m"))
        (tmp_path / "work").mkdir()
        session = engine.new_session(workspace=str(tmp_path / "work"))
        results: list[ToolResult] = []
        session.subscribe(on_event=lambda envelope: _keep(envelope, results))
        session.send(Message.user("write it"))
        async with asyncio.timeout(PATIENCE):
            while not session.approvals.open_approvals:
                await asyncio.sleep(0.02)
        result = await ask.child("--continue", session.record.id, "and now?", server=server)
        assert result.code == 1
        assert f"is being worked on by the window (process {os.getpid()}) since " in result.err
        assert "Open another conversation there or close the window, then try again." in result.err
        session.approvals.answer(session.approvals.open_approvals[0].approval_id, AllowOnce())
        await session.wait_idle()
        stored = (await engine.store.load(session.record.id)).messages
        assert [message.role for message in stored] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
        assert [result.outcome.value for result in results] == ["succeeded"]
        assert (tmp_path / "work" / "a.txt").read_text() == "written"
        assert len([request for request in server.requests if request.method == "POST"]) == 2
        await engine.close()


def _keep(envelope: Envelope, results: list[ToolResult]) -> None:
    if isinstance(envelope.event, ToolFinished):
        results.append(envelope.event.result)


def _endpoint(server: Loopback):
    from desktop_agent.api.command_line import parse_window_arguments

    return parse_window_arguments(["--base-url", server.url, "--model", "m"]).endpoint


@pytest.mark.parametrize("several", few([4, 10], 1, "fewer at once"))
async def test_one_owner__several_at_once_queue_or_are_refused_and_never_mix(ask: Asker, several: int) -> None:
    def answer(request) -> Reply:
        return says(f"answer to {request.json['messages'][-1]['content']}")

    async with Loopback(choose=answer) as server:
        first = await ask.child("first", server=server)
        many = [ask.child("--continue", first.conversation, f"{n}", server=server) for n in range(several)]
        results = await asyncio.gather(*many)
    engine = await Engine.open(ask.folder)
    loaded = await engine.store.load(first.conversation)
    await engine.close()
    refused = [result for result in results if result.code == 1]
    assert all("worked on by" in result.err or "in use by another program" in result.err for result in refused), refused
    assert len(refused) + sum(result.code == 0 for result in results) == several
    assert any(result.code == 0 for result in results)
    texts = [message.text for message in loaded.messages]
    assert len(texts) == 2 * (1 + several - len(refused))
    assert [f"answer to {prompt}" for prompt in texts[::2]] == texts[1::2]
    assert loaded.journal == ()


async def test_one_owner__who_finds_another_writer_stops_writing_and_says_so_and_it_opens_again(ask: Asker) -> None:
    gate = asyncio.Event()
    async with Loopback(held("half", gate), says("again")) as server:
        engine = await Engine.open(ask.folder, RunDefaults(endpoint=_endpoint(server), model="m"))
        session = engine.new_session()
        envelopes: list[Envelope] = []
        session.subscribe(on_event=envelopes.append)
        session.send(Message.user("go"))
        await asyncio.wait_for(server.asked.wait(), PATIENCE)
        await session.flush()
        run_id, seq = next(
            (envelope.run_id, envelope.seq) for envelope in envelopes if isinstance(envelope.event, RunStarted)
        )
        id_ = session.record.id
        # Somebody without locks wrote on in this very run.
        strange = [
            Envelope(seq + more, run_id, None, None, now(), ErrorOccurred.of(WrongUse("x"))) for more in (2, 3, 4)
        ]
        for envelope in strange:
            try:
                await engine.store.append_journal(id_, [envelope])
            except WrittenElsewhere:
                continue
        gate.set()
        await asyncio.wait_for(session.wait_idle(), PATIENCE)
        errors = [envelope.event for envelope in envelopes if isinstance(envelope.event, ErrorOccurred)]
        assert WrittenElsewhere.kind in {error.kind for error in errors}
        assert session.is_closed
        with pytest.raises(WrittenElsewhere):
            await session.flush()
        with pytest.raises(WrongUse):
            session.send(Message.user("more"))
        assert len((await engine.store.load(id_)).messages) == 1
        reopened = await engine.session(id_)
        assert reopened is not session
        reopened.send(Message.user("more"))
        await reopened.wait_idle()
        assert reopened.history[-1].text == "again"
        await engine.close()


async def test_one_owner__what_nobody_looks_at_any_more_is_let_go_when_it_is_at_rest(ask: Asker, monkeypatch) -> None:
    monkeypatch.setattr(session_lifecycle, "LINGER_SECONDS", 0.01)
    gate = asyncio.Event()
    async with Loopback(held("half", gate), says("more")) as server:
        engine = await Engine.open(ask.folder, RunDefaults(program="window", endpoint=_endpoint(server), model="m"))
        session = engine.new_session()
        session.send(Message.user("go"))
        await asyncio.wait_for(server.asked.wait(), PATIENCE)
        await session.flush()
        engine.release_session(session)
        assert await engine.session(session.record.id) is session
        engine.release_session(session)
        refused = await ask.child("--continue", session.record.id, "and now?", server=server)
        assert refused.code == 1
        assert session.working
        gate.set()
        async with asyncio.timeout(PATIENCE):
            while not session.is_closed:
                await asyncio.sleep(0.01)
            await session.close()
        accepted = await ask.child("--continue", session.record.id, "and now?", server=server)
        assert accepted.code == 0
        assert accepted.out == "more\n"
        await engine.close()


async def test_one_owner__what_dead_processes_left_is_found_without_opening_it(ask: Asker, tmp_path: Path) -> None:
    write = ("write_file", {"path": "a.txt", "content": "written"})
    gate = asyncio.Event()
    server = Loopback(choose=lambda request: _first_calls(request, write, gate))
    async with server:
        dead = await Engine.open(ask.folder, RunDefaults(endpoint=_endpoint(server), model="m"))
        (tmp_path / "work").mkdir()
        waits = dead.new_session(workspace=str(tmp_path / "work"))
        waits.send(Message.user("write"))
        reads = dead.new_session()
        reads.send(Message.user("say"))
        async with asyncio.timeout(PATIENCE):
            while not waits.approvals.open_approvals or len(server.requests) < 2 or reads.is_new:
                await asyncio.sleep(0.02)
            while len(await dead.store.find_interrupted_runs()) < 2:
                await asyncio.sleep(0.02)
        await waits.flush()
        alive = await Engine.open(ask.folder, RunDefaults(program="window"))
        assert await alive.interrupted_conversations() == ()
        # As when their process dies: the locks are gone, the runs have no end.
        await dead._locks.close()
        conversations = {
            conversation.conversation_id: conversation.waits_for_approval
            for conversation in await alive.interrupted_conversations()
        }
        assert conversations == {waits.record.id: True, reads.record.id: False}
        # Somebody else looks at the same moment: the scheduler of this process, or another process.
        looking = alive._locks.lock(waits.record.id)._file
        assert looking.acquire()
        asyncio.get_running_loop().call_later(0.1, looking.release)
        assert len(await alive.interrupted_conversations()) == 2
        lock = dead._locks.lock(waits.record.id)
        await lock.acquire()
        assert waits.record.id not in {
            conversation.conversation_id for conversation in await alive.interrupted_conversations()
        }
        await alive.close()
        await lock.release()
        gate.set()
        await dead.close()


def _first_calls(request, write, gate: asyncio.Event) -> Reply:
    is_write = request.json["messages"][-1]["content"] == "write"
    return calls(write) if is_write else held("half", gate)


async def _two_on(folder: Path) -> tuple[Engine, Engine, str]:
    """Two programs on one folder, and a conversation in it."""
    first, second = [await Engine.open(folder, RunDefaults(model="m")) for _ in range(2)]
    first.connections._providers["e"] = ScriptedProvider(Turn(ContentDelta("answer of the first")))
    second.connections._providers["e"] = ScriptedProvider(Turn(ContentDelta("answer of the second")))
    record = await first.store.create_conversation(title="t", model="m", endpoint_id="e")
    await first.store.commit(record.id, Message.user("hi"), Message.assistant("ho"))
    return first, second, record.id


@pytest.mark.parametrize("is_there", [True, False])
async def test_one_owner__where_the_locks_were_removed_who_was_overtaken_writes_nothing(
    tmp_path: Path, *, is_there: bool
) -> None:
    first, second, id_ = await _two_on(tmp_path)
    mine = await first.session(id_)
    shutil.rmtree(tmp_path / "locks")
    theirs = await second.session(id_)
    theirs.send(Message.user("from the second"))
    await theirs.wait_idle()
    if not is_there:
        await theirs.close()
    mine.send(Message.user("from the first"))
    await mine.wait_idle()
    on_disk = [message.text for message in (await second.store.load(id_)).messages]
    assert on_disk == ["hi", "ho", "from the second", "answer of the second"]
    assert mine.is_closed
    await first.close()
    await second.close()


async def test_one_owner__who_was_overtaken_writes_nothing_at_the_last_moment_either(tmp_path: Path) -> None:
    """The loop of the window stands still then, and the writing is done on another one."""
    first, second, id_ = await _two_on(tmp_path)
    mine = await first.session(id_)
    shutil.rmtree(tmp_path / "locks")
    theirs = await second.session(id_)
    theirs.send(Message.user("from the second"))
    await theirs.wait_idle()
    mine.change_record(title="late")
    assert isinstance(raised_on_another_loop(mine.write_at_once), WrittenElsewhere)
    assert (await second.store.record(id_)).title == "t"
    await first.close()
    await second.close()


async def test_one_owner__where_the_locks_were_removed_and_nobody_came_it_stays_the_owner(tmp_path: Path) -> None:
    first, second, id_ = await _two_on(tmp_path)
    mine = await first.session(id_)
    shutil.rmtree(tmp_path / "locks")
    mine.send(Message.user("go on"))
    await mine.wait_idle()
    with pytest.raises(ConversationInUse):
        await second.session(id_)
    on_disk = [message.text for message in (await second.store.load(id_)).messages]
    assert on_disk == ["hi", "ho", "go on", "answer of the first"]
    await first.close()
    await second.close()
