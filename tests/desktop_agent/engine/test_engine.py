"""The engine: opened, used and closed without a window."""

import asyncio
import gc
import stat
import sys
from pathlib import Path
from urllib.parse import urlsplit
from weakref import ref

import pytest
from pydantic import SecretStr

from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.session import Session
from desktop_agent.storage.opening import open_database
from desktop_agent.storage.store import Store
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.engine_events import ErrorOccurred, RunEnd, RunFinished
from desktop_agent.types.errors import StorageFailed, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from desktop_agent.types.preferences import (
    ChatPreferences,
    ModelPreferences,
    NetworkPreferences,
    Preferences,
    ProviderPreferences,
)
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import (
    DEMO_ENDPOINT,
    Endpoint,
    PromptCaching,
    ProviderConfig,
    ReasoningDisabled,
    ReasoningEffort,
    Timeouts,
)
from tests.fakes.agent_run import tool
from tests.fakes.model_server import answer, endpoint, keys_seen, model_server
from tests.fakes.scripted_provider import ScriptedProvider, Turn, Wait
from tests.frame.patience import PATIENCE

SCRIPTED = Endpoint(id="scripted", title="Scripted", base_url="http://127.0.0.1:9/v1")


async def opened(folder: Path, *turns: Turn, **defaults: object) -> tuple[Engine, ScriptedProvider]:
    """An engine whose server `scripted` plays these turns."""
    engine = await Engine.open(folder, RunDefaults(**defaults))  # type: ignore[arg-type]
    provider = ScriptedProvider(*turns)
    engine.connections._providers["scripted"] = provider
    providers = ProviderPreferences(endpoints=(SCRIPTED,), endpoint_id="scripted", model="m")
    await engine.change_preferences(Preferences(providers=providers))
    return engine, provider


def all_bytes(folder: Path) -> bytes:
    """Everything that was written."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_a_conversation_lasts(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    engine, provider = await opened(folder, Turn(ContentDelta("Hi")))
    session = engine.new_session()
    assert await engine.session(session.record.id) is session
    assert await engine.store.list_conversations() == ()
    session.send(Message.user("Hello"))
    await session.wait_idle()
    provider.assert_finished()
    id_, history = session.record.id, session.history
    await engine.close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    engine, provider = await opened(folder, Turn(ContentDelta("again")))
    assert [summary.title for summary in await engine.store.list_conversations()] == ["Hello"]
    session = await engine.session(id_)
    assert session.history == history
    assert (session.record.endpoint_id, session.record.model) == ("scripted", "m")
    session.send(Message.user("more"))
    await session.wait_idle()
    assert [message.text for message in provider.requests[0].messages] == ["Hello", "Hi", "more"]
    await engine.close()


async def test_an_unknown_conversation_is_wrong_use(tmp_path: Path) -> None:
    engine = await Engine.open(tmp_path)
    with pytest.raises(WrongUse):
        await engine.session("nobody")
    await engine.close()


@pytest.mark.parametrize(("endpoint_id", "model"), [(None, None), (DEMO_ENDPOINT, None)])
async def test_a_conversation_without_server_or_model_says_so(
    tmp_path: Path, endpoint_id: str | None, model: str | None
) -> None:
    engine = await Engine.open(tmp_path)
    session = engine.new_session(endpoint_id=endpoint_id, model=model)
    events: list[object] = []
    session.subscribe(on_event=lambda envelope: events.append(envelope.event))
    session.send(Message.user("p"))
    await session.wait_idle()
    (error,) = [event for event in events if isinstance(event, ErrorOccurred)]
    assert error.kind == "wrong_use"
    assert events[-1] == RunFinished(RunEnd.FAILED)
    await engine.close()


async def test_what_the_command_line_says_holds_and_is_not_saved(tmp_path: Path) -> None:
    async with model_server("a", says=answer("from the server")) as server:
        given = endpoint(server, "command-line")
        config = ProviderConfig(system_prompt="Be brief.", max_tokens=7)
        engine, _ = await opened(
            tmp_path, endpoint=given, api_key=SecretStr("sk-given"), model="a", config=config, toolset="none"
        )
        await engine.change_preferences(
            engine.preferences.model_copy(
                update={"chat": ChatPreferences(system_prompt="Be long."), "network": NetworkPreferences()}
            )
        )
        session = engine.new_session()
        session.send(Message.user("p"))
        await session.wait_idle()
        assert session.history[-1].text == "from the server"
        (request,) = [request for request in server.requests if request.method == "POST"]
        assert request.json["model"] == "a"
        assert request.json["messages"][0]["content"] == "Be brief."
        assert "tools" not in request.json
        assert keys_seen(server) == {"Bearer sk-given"}
        await engine.close()
    written = all_bytes(tmp_path)
    assert b"Be long." in written
    assert b"sk-given" not in written
    assert b"Be brief." not in written


async def test_preferences_hold_from_the_next_prompt_on(tmp_path: Path) -> None:
    engine, provider = await opened(tmp_path, Turn(), Turn())
    published: list[Preferences] = []
    engine.on_preferences(published.append)
    session = engine.new_session()
    session.send(Message.user("p"))
    await session.wait_idle()
    changed = engine.preferences.model_copy(
        update={
            "chat": ChatPreferences(system_prompt="Answer in rhyme."),
            "network": NetworkPreferences(idle_timeout=7),
        }
    )
    await engine.change_preferences(changed)
    assert published == [changed]
    session.send(Message.user("q"))
    await session.wait_idle()
    first, second = (request.config for request in provider.requests)
    assert (first.system_prompt, second.system_prompt) == (None, "Answer in rhyme.")
    assert (first.timeouts.idle, second.timeouts.idle) == (300, 7)
    await engine.close()
    engine = await Engine.open(tmp_path)
    assert engine.preferences == changed
    await engine.close()


async def test_time_limits_are_the_preferences_but_for_those_that_were_given(tmp_path: Path) -> None:
    config = ProviderConfig(timeouts=Timeouts(first_event=9))
    engine, provider = await opened(tmp_path, Turn(), Turn(), config=config)
    session = engine.new_session()
    session.send(Message.user("p"))
    await session.wait_idle()
    network = NetworkPreferences(connect_timeout=4, headers_timeout=5, first_event_timeout=6, idle_timeout=7)
    await engine.change_preferences(engine.preferences.model_copy(update={"network": network}))
    session.send(Message.user("q"))
    await session.wait_idle()
    first, second = (request.config.timeouts for request in provider.requests)
    assert first == Timeouts(first_event=9)
    assert second == Timeouts(connect=4, headers=5, first_event=9, idle=7)
    await engine.close()


async def test_reasoning_and_caching_come_from_conversation_preferences_and_command_line(tmp_path: Path) -> None:
    engine, provider = await opened(tmp_path / "a", Turn(), Turn())
    models = ModelPreferences(reasoning="low", show_reasoning=False, caching=False, cache_lifetime="long")
    await engine.change_preferences(engine.preferences.model_copy(update={"models": models}))
    session = engine.new_session()
    assert session.record.reasoning == ReasoningEffort(level="low")
    session.send(Message.user("p"))
    await session.wait_idle()
    session.change_record(reasoning=ReasoningDisabled())
    session.send(Message.user("q"))
    await session.wait_idle()
    first, second = (request.config for request in provider.requests)
    assert (first.reasoning, second.reasoning) == (ReasoningEffort(level="low"), ReasoningDisabled())
    assert (first.show_reasoning, first.caching) == (False, PromptCaching(enabled=False, lifetime="long"))
    await engine.close()
    chosen = ProviderConfig(reasoning=ReasoningEffort(level="max"), show_reasoning=True)
    engine, provider = await opened(tmp_path / "b", Turn(), config=chosen)
    await engine.change_preferences(engine.preferences.model_copy(update={"models": models}))
    session = engine.new_session()
    session.send(Message.user("p"))
    await session.wait_idle()
    (config,) = (request.config for request in provider.requests)
    assert (config.reasoning, config.show_reasoning) == (ReasoningEffort(level="max"), True)
    assert config.caching == models.prompt_caching
    await engine.close()


ALWAYS = ("calculate", "update_todos", "fetch_page")
READING = ("read_file", "list_files", "find_files", "search_files", "view_image")
CHANGING = ("write_file", "edit_file", "move_file", "delete_file", "run_command")


@pytest.mark.parametrize(
    ("toolset", "names"),
    [
        ("none", []),
        ("read", [*ALWAYS, *READING]),
        ("all", [*ALWAYS, *READING, *CHANGING]),
    ],
)
async def test_tools_follow_the_workspace(tmp_path: Path, toolset: str, names: list[str]) -> None:
    engine, provider = await opened(tmp_path / "data", Turn(), Turn(), toolset=toolset)
    session = engine.new_session(workspace=str(tmp_path))
    session.send(Message.user("p"))
    await session.wait_idle()
    assert [tool.name for tool in provider.requests[0].tools] == names
    session.change_record(workspace=None)
    session.send(Message.user("p"))
    await session.wait_idle()
    assert [tool.name for tool in provider.requests[1].tools] == names[: len(ALWAYS)]
    await engine.close()


async def test_a_folder_that_is_gone_is_said_before_anything_is_shown(tmp_path: Path) -> None:
    engine, _ = await opened(tmp_path / "data", Turn())
    session = engine.new_session(workspace=str(tmp_path / "gone"))
    with pytest.raises(WrongUse, match="gone"):
        session.send(Message.user("p"))
    assert len(session.transcript) == 0
    session.change_record(workspace=None)
    session.send(Message.user("p"))
    await session.wait_idle()
    assert not session.working
    await engine.close()


async def test_deleting_stops_and_puts_it_into_the_trash(tmp_path: Path) -> None:
    wait = Wait(asyncio.Event(), asyncio.Event())
    engine, _ = await opened(tmp_path, Turn(ContentDelta("half"), wait))
    session = engine.new_session()
    session.send(Message.user("p"))
    await wait.reached.wait()  # type: ignore[union-attr]
    assert engine.working_sessions
    await engine.delete_conversation(session.record.id)
    assert not session.working
    assert not engine.working_sessions
    assert await engine.store.list_conversations() == ()
    assert [summary.id for summary in await engine.store.list_conversations(in_trash=True)] == [session.record.id]
    await engine.store.restore_conversation(session.record.id)
    reopened = await engine.session(session.record.id)
    assert reopened is not session
    assert [message.text for message in reopened.history] == ["p", "half"]
    await engine.close()


@pytest.mark.parametrize("steps", range(0, 12, 2))
async def test_who_opens_what_is_being_deleted_is_told_that_it_is_not_there(tmp_path: Path, steps: int) -> None:
    engine, _ = await opened(tmp_path, Turn(ContentDelta("whole")))
    session = engine.new_session()
    session.send(Message.user("p"))
    await session.wait_idle()
    deleting = asyncio.create_task(engine.delete_conversation(session.record.id))
    while not session.is_closed:
        await asyncio.sleep(0)
    for _ in range(steps):
        await asyncio.sleep(0)
    with pytest.raises(WrongUse):
        await engine.session(session.record.id)
    await deleting
    assert [summary.id for summary in await engine.store.list_conversations(in_trash=True)] == [session.record.id]
    await engine.close()


async def test_another_is_opened_while_one_that_is_deleted_takes_long_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desktop_agent.agent.tool_calls.tool_execution._GRACE_SECONDS", PATIENCE)
    monkeypatch.setattr("desktop_agent.agent.run.STOP_GRACE", PATIENCE)
    started, stopped, ends = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def stubborn(word: str) -> str:
        started.set()
        try:
            await ends.wait()
        except asyncio.CancelledError:
            stopped.set()
            await ends.wait()
        return word

    use = ToolUse(id="1", name="look", input={"word": "a"})
    engine, _ = await opened(tmp_path, Turn(ContentDelta("whole")), Turn(use))
    monkeypatch.setattr(engine, "_tools_for", lambda _: ToolRegistry((tool("look", stubborn, read_only=True),)))
    other = engine.new_session()
    other.send(Message.user("p"))
    await other.wait_idle()
    await other.close()
    session = engine.new_session()
    session.send(Message.user("go"))
    await started.wait()
    deleting = asyncio.create_task(engine.delete_conversation(session.record.id))
    await stopped.wait()
    assert (await engine.session(other.record.id)).history == other.history
    assert not deleting.done()
    ends.set()
    await deleting
    await engine.close()


async def test_deleting_what_was_never_written_leaves_nothing(tmp_path: Path) -> None:
    engine, _ = await opened(tmp_path)
    session = engine.new_session()
    await engine.delete_conversation(session.record.id)
    assert await engine.store.list_conversations(in_trash=True) == ()
    with pytest.raises(WrongUse):
        await engine.session(session.record.id)
    await engine.close()


async def test_close_ends_every_run_and_keeps_it(tmp_path: Path) -> None:
    waits = [Wait(asyncio.Event(), asyncio.Event()) for _ in range(2)]
    engine, _ = await opened(tmp_path, *(Turn(ContentDelta("half"), wait) for wait in waits))
    for _ in waits:
        engine.new_session().send(Message.user("p"))
    for wait in waits:
        await wait.reached.wait()  # type: ignore[union-attr]
    await engine.close()
    engine = await Engine.open(tmp_path)
    records = await engine.store.list_conversations()
    assert len(records) == 2
    for record in records:
        loaded = await engine.store.load(record.id)
        assert [message.text for message in loaded.messages] == ["p", "half"]
        assert loaded.journal == ()
    await engine.close()


async def test_what_cannot_be_closed_keeps_nothing_else_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = Wait(asyncio.Event(), asyncio.Event())
    engine, provider = await opened(tmp_path, Turn(ContentDelta("half"), wait))

    async def broken(**_: bool) -> None:
        raise RuntimeError("cannot be closed")

    demo = (await engine.connections.start_demo()).base_url
    broken_session, session = engine.new_session(), engine.new_session()
    monkeypatch.setattr(broken_session, "close", broken)
    monkeypatch.setattr(provider, "aclose", broken)
    before = asyncio.all_tasks()
    session.send(Message.user("p"))
    await wait.reached.wait()  # type: ignore[union-attr]
    with pytest.raises(RuntimeError, match="cannot be closed"):
        await engine.close()
    assert asyncio.all_tasks() <= before
    assert session.is_closed
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", urlsplit(demo).port)
    engine = await Engine.open(tmp_path)
    loaded = await engine.store.load(session.record.id)
    assert [message.text for message in loaded.messages] == ["p", "half"]
    assert loaded.journal == ()
    await engine.close()


async def test_a_preferences_file_that_cannot_be_read_lets_go_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Store] = []
    close = Store.close

    async def watched(store: Store) -> None:
        closed.append(store)
        await close(store)

    monkeypatch.setattr(Store, "close", watched)
    (tmp_path / "preferences.json").mkdir()
    with pytest.raises(StorageFailed):
        await Engine.open(tmp_path)
    assert len(closed) == 1
    (tmp_path / "preferences.json").rmdir()
    engine = await Engine.open(tmp_path)
    await engine.close()


async def test_a_damaged_preferences_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "preferences.json").write_text("no JSON")
    engine = await Engine.open(tmp_path)
    assert len(engine.notices) == 1
    assert engine.preferences == Preferences()
    await engine.close()


async def test_the_demo_speaks_and_acts_in_its_own_folder(tmp_path: Path) -> None:
    engine = await Engine.open(tmp_path)
    session = await engine.new_demo_session()
    assert session.record.workspace == str(tmp_path / "demo workspace")
    session.send(Message.user("What is 6 * 7?"))
    await session.wait_idle()
    assert "42" in session.history[-1].text
    await engine.close()


async def freed(session: "ref[Session]") -> None:
    """Until nobody holds it."""
    async with asyncio.timeout(PATIENCE):
        while session() is not None:
            gc.collect()
            await asyncio.sleep(0.001)


async def test_a_session_lives_while_somebody_holds_it_or_it_works(tmp_path: Path) -> None:
    wait = Wait(asyncio.Event(), asyncio.Event())
    engine, _ = await opened(tmp_path, Turn(ContentDelta("one")), Turn(wait, ContentDelta("two")))
    kept_session, released_session = engine.new_session(), engine.new_session()
    released_session.send(Message.user("p"))
    await released_session.wait_idle()
    id_ = released_session.record.id
    reference = ref(released_session)
    del released_session
    await freed(reference)
    assert set(engine._sessions) == {kept_session.record.id}
    # One that works lives without anybody, and is the one that is opened again.
    session = await engine.session(id_)
    session.send(Message.user("q"))
    await wait.reached.wait()  # type: ignore[union-attr]
    there = ref(session)
    del session
    gc.collect()
    assert there() is not None
    assert await engine.session(id_) is there()
    wait.until.set()
    await (await engine.session(id_)).wait_idle()
    assert [message.text for message in (await engine.store.load(id_)).messages] == ["p", "one", "q", "two"]
    await freed(there)
    await engine.close()


async def test_a_session_with_something_unwritten_lives_until_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, _ = await opened(tmp_path, Turn(ContentDelta("one")))
    session = engine.new_session()
    session.send(Message.user("p"))
    await session.wait_idle()

    async def refuse(*_: object, **__: object) -> None:
        raise StorageFailed("the disk refuses")

    monkeypatch.setattr(Store, "update_conversation", refuse)
    session.change_record(title="Mine")
    await session._writer.journal_queue.commit()
    there = ref(session)
    id_ = session.record.id
    del session
    gc.collect()
    reopened = await engine.session(id_)
    assert reopened is there()
    assert reopened.record.title == "Mine"
    monkeypatch.undo()
    await engine.close()
    engine = await Engine.open(tmp_path)
    assert [summary.title for summary in await engine.store.list_conversations()] == ["Mine"]
    await engine.close()


async def test_what_has_something_unwritten_is_not_deleted_and_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, _ = await opened(tmp_path, Turn(ContentDelta("one")))
    session = engine.new_session()
    session.send(Message.user("p"))
    await session.wait_idle()

    async def refuse(*_: object, **__: object) -> None:
        raise StorageFailed("the disk refuses")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "update_conversation", refuse)
        session.change_record(title="Mine")
        with pytest.raises(StorageFailed, match="the disk refuses"):
            await engine.delete_conversation(session.record.id)
    assert not session.is_closed
    assert await engine.session(session.record.id) is session
    await engine.delete_conversation(session.record.id)
    assert [summary.title for summary in await engine.store.list_conversations(in_trash=True)] == ["Mine"]
    await engine.close()


async def test_rules_are_shared_by_conversations_and_outlast_the_program(tmp_path: Path) -> None:
    engine, _ = await opened(tmp_path)
    rule = Rule(effect=RuleEffect.DENY, tool="write_file", scope=RuleScope.ALWAYS)
    one, two = engine.new_session(), engine.new_session()
    one.permission_policy.add(rule)
    assert rule in two.permission_policy.rules
    await engine.close()
    engine, _ = await opened(tmp_path)
    assert engine.rules == (rule,)
    session = engine.new_session()
    assert session.permission_policy.rules == (rule,)
    await engine.revoke_rule(rule.id)
    assert (engine.rules, session.permission_policy.rules) == ((), ())
    await engine.close()
    engine = await Engine.open(tmp_path)
    assert engine.rules == ()
    await engine.close()


async def test_rounds_of_tools_are_a_preference(tmp_path: Path) -> None:
    engine, _ = await opened(tmp_path, Turn(ToolUse(id="1", name="calculate", input={"expression": "1+1"})))
    chat = ChatPreferences(max_tool_iterations=1)
    await engine.change_preferences(engine.preferences.model_copy(update={"chat": chat}))
    session = engine.new_session()
    events: list[object] = []
    session.subscribe(on_event=lambda envelope: events.append(envelope.event))
    session.send(Message.user("p"))
    await session.wait_idle()
    assert events[-1] == RunFinished(RunEnd.LIMIT)
    await engine.close()


async def test_what_the_agent_may_ask_of_the_person_is_said_by_who_opens_the_engine(tmp_path: Path) -> None:
    for may in (False, True):
        engine, provider = await opened(tmp_path / str(may), Turn(), questions=may, mode_requests=may)
        session = engine.new_session()
        session.send(Message.user("p"))
        await session.wait_idle()
        names = {tool.name for tool in provider.requests[0].tools}
        assert names & {"ask_user", "change_mode"} == ({"ask_user", "change_mode"} if may else set())
        await engine.close()


async def test_rules_that_are_not_understood_are_told_of(tmp_path: Path) -> None:
    engine = await Engine.open(tmp_path)
    for effect in (RuleEffect.DENY, RuleEffect.ALLOW):
        await engine.store.rules.save(Rule(effect=effect, tool="act", scope=RuleScope.ALWAYS))
    assert engine.notices == ()
    await engine.close()
    connection = open_database(tmp_path).connection
    connection.execute("UPDATE rules SET body = replace(body, '\"pattern\":null', '\"pattern\":7')")
    connection.close()
    engine = await Engine.open(tmp_path)
    assert [(rule.effect, rule.tool) for rule in engine.rules] == [(RuleEffect.DENY, "act")]
    assert [str(notice).partition(":")[2][:3] for notice in engine.notices] == [" 1.", " 1."]
    assert "only partly understood" in str(engine.notices[0])
    assert "no longer apply" in str(engine.notices[1])
    await engine.close()


async def test_a_closed_conversation_is_opened_only_when_all_of_it_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, _ = await opened(tmp_path, *(Turn(ContentDelta(word)) for word in ("one", "two", "three")))
    first = engine.new_session()
    first.send(Message.user("go"))
    await first.wait_idle()

    async def full(*_given: object, **_named: object) -> None:
        raise StorageFailed("The disk is full.")

    with monkeypatch.context() as patched:
        for name in ("commit", "append_journal", "update_conversation"):
            patched.setattr(Store, name, full)
        first.send(Message.user("more"))
        await first.wait_idle()
        await first.close()
        with pytest.raises(StorageFailed):
            await engine.session(first.record.id)
    reopened = await engine.session(first.record.id)
    reopened.send(Message.user("again"))
    await reopened.wait_idle()
    assert [message.text for message in reopened.history] == ["go", "one", "more", "two", "again", "three"]
    await engine.close()


async def test_a_prompt_without_mcp_servers_loads_nothing_of_them_and_one_added_later_counts(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from desktop_agent.engine.engine import Engine\n"
        "from desktop_agent.types.mcp import McpServer, StdioConnection\n"
        "from desktop_agent.types.messages import Message\n"
        "from desktop_agent.types.preferences import McpPreferences\n"
        "async def main():\n"
        "    engine = await Engine.open(Path(sys.argv[1]))\n"
        "    session = await engine.new_demo_session()\n"
        "    session.send(Message.user('hello'))\n"
        "    await session.wait_idle()\n"
        "    print(sum(name.startswith(('desktop_agent.mcp', 'desktop_agent.engine.mcp')) for name in sys.modules))\n"
        "    server = McpServer(id='s', title='S', connection=StdioConnection(command='/nowhere'))\n"
        "    change = {'mcp': McpPreferences(servers=(server,))}\n"
        "    await engine.change_preferences(engine.preferences.model_copy(update=change))\n"
        "    session.send(Message.user('hello'))\n"
        "    await session.wait_idle()\n"
        "    print(engine.mcp.state('s', Path(session.record.workspace)).state)\n"
        "    await session.close()\n"
        "    await engine.close()\n"
        "asyncio.run(main())\n"
    )
    words = [sys.executable, "-c", program, str(tmp_path)]
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    printed, _ = await process.communicate()
    loaded, state = printed.decode().split()
    assert (loaded, state) == ("0", "failed")


@pytest.mark.parametrize("steps", range(4))
async def test_a_closing_that_is_cancelled_keeps_what_was_sent(tmp_path: Path, steps: int) -> None:
    turns = Turn(ContentDelta("one")), Turn(Wait(asyncio.Event()))
    engine, _ = await opened(tmp_path, *turns)
    session = engine.new_session()
    session.send(Message.user("first"))
    await session.wait_idle()
    session.send(Message.user("second"))
    closing = asyncio.create_task(engine.close())
    for _ in range(steps):
        await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    if not steps:
        await engine.close()
    engine, _ = await opened(tmp_path)
    stored = await engine.session(session.record.id)
    assert [message.text for message in stored.history] == ["first", "one", "second"]
    await engine.close()
