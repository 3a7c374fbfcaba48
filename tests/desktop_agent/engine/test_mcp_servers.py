"""Servers of tools in conversations of the engine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.mcp.config_import import import_servers
from desktop_agent.types.blocks import ToolResult, ToolUse
from desktop_agent.types.engine_events import OutsideContentArrived
from desktop_agent.types.errors import SecretsUnavailable
from desktop_agent.types.mcp import McpServer, StdioConnection
from desktop_agent.types.messages import Message
from desktop_agent.types.preferences import McpPreferences, Preferences, ProviderPreferences
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import Endpoint
from desktop_agent.types.tool_calls import AllowOnce
from tests.fakes.mcp_client import own_server, until
from tests.fakes.scripted_provider import ScriptedProvider, Turn
from tests.frame.patience import PATIENCE

SCRIPTED = Endpoint(id="scripted", title="Scripted", base_url="http://127.0.0.1:9/v1")


def own(*words: str, **changes: object) -> McpServer:
    command, *args = own_server(*words)
    return McpServer(id="own", title="Own", connection=StdioConnection(command=command, args=tuple(args), **changes))


@asynccontextmanager
async def engine_with(folder: Path, *servers: McpServer, turns: tuple[Turn, ...] = ()) -> AsyncIterator[Engine]:
    engine = await Engine.open(folder, RunDefaults())
    try:
        provider = ScriptedProvider(*turns)
        engine.connections._providers["scripted"] = provider
        providers = ProviderPreferences(endpoints=(SCRIPTED,), endpoint_id="scripted", model="m")
        await engine.change_preferences(Preferences(providers=providers, mcp=McpPreferences(servers=servers)))
        yield engine
        provider.assert_finished()
    finally:
        await engine.close()


async def test_a_model_calls_a_tool_of_a_server_once_the_person_agrees(tmp_path):
    turns = (Turn(ToolUse(id="1", name="own__add", input={"a": 20, "b": 22})), Turn(ContentDelta("42")))
    (tmp_path / "work").mkdir()
    async with engine_with(tmp_path / "data", own(), turns=turns) as engine:
        session = engine.new_session(workspace=str(tmp_path / "work"))
        events = []
        session.subscribe(on_event=lambda envelope: events.append(envelope.event))
        session.send(Message.user("Add."))
        await until(lambda: bool(session.approvals.open_approvals))
        session.approvals.answer(session.approvals.open_approvals[0].approval_id, AllowOnce())
        await session.wait_idle()
        results = [block for message in session.history for block in message.blocks if isinstance(block, ToolResult)]
        assert [part.text for part in results[0].content] == ["42"]
        sources = [(event.kind, event.name) for event in events if isinstance(event, OutsideContentArrived)]
        assert sources == [("mcp", "Own")]


async def test_servers_run_while_they_are_wanted_and_no_longer(tmp_path):
    async with engine_with(tmp_path / "data", own()) as engine:
        await engine.mcp.ready(None, PATIENCE)
        live = engine.mcp.server("own", None)
        assert live is not None
        assert live.lifecycle.is_running
        assert "own__add" in {tool.name for tool in engine.mcp.tools(None)}
        assert engine.mcp.tools(tmp_path) == ()
        off = own().model_copy(update={"on": False})
        await engine.change_preferences(engine.preferences.model_copy(update={"mcp": McpPreferences(servers=(off,))}))
        assert engine.mcp.tools(None) == ()
        assert engine.mcp.server("own", None) is None
        await until(lambda: not live.lifecycle.is_running)


async def test_a_tool_that_changes_is_told_also_over_a_restart(tmp_path):
    notices: list[str] = []
    async with engine_with(tmp_path / "data", own()) as engine:
        engine.mcp.on_notice(lambda sentence: notices.append(str(sentence)))
        await engine.mcp.ready(None, PATIENCE)
        before = {tool.name: tool.identity for tool in engine.mcp.tools(None)}
        live = engine.mcp.server("own", None)
        assert live is not None
        await live.call("change", {})
        await until(lambda: bool(notices))
        assert "own__add" in notices[0]
        await until(lambda: {tool.name: tool.identity for tool in engine.mcp.tools(None)} != before)
    notices.clear()
    # The server begins with the first description again, which is a change too.
    async with engine_with(tmp_path / "data", own()) as engine:
        engine.mcp.on_notice(lambda sentence: notices.append(str(sentence)))
        await engine.mcp.ready(None, PATIENCE)
        assert len(notices) == 1
    notices.clear()
    async with engine_with(tmp_path / "data", own()) as engine:
        engine.mcp.on_notice(lambda sentence: notices.append(str(sentence)))
        await engine.mcp.ready(None, PATIENCE)
        assert notices == []


async def test_a_server_that_cannot_be_started_is_told_once_and_the_others_work(tmp_path):
    broken = McpServer(id="broken", title="Broken", connection=StdioConnection(command="/nowhere/program"))
    notices: list[str] = []
    async with engine_with(tmp_path / "data", broken, own()) as engine:
        engine.mcp.on_notice(lambda sentence: notices.append(str(sentence)))
        await asyncio.gather(engine.mcp.ready(None, PATIENCE), engine.mcp.ready(None, PATIENCE))
        assert len(notices) == 1
        assert "“Broken” could not be started" in notices[0]
        assert engine.mcp.tools(None)


async def test_a_secret_reaches_the_server_and_no_file(tmp_path):
    server = own(secret_env=("TOKEN",))
    async with engine_with(tmp_path / "data", server) as engine:
        await engine.mcp.ready(None, PATIENCE)
        assert any("TOKEN" in str(notice) or "keyring" in str(notice) for notice in engine.mcp.notices)
        engine.secrets.remember_for_session("mcp/own/TOKEN", SecretStr("t0ken-value"))
        live = engine.mcp.server("own", None)
        assert live is not None
        live.lifecycle.reset_backoff()
        assert "t0ken-value" in str(await live.call("environment", {}))
        await live.call("flood", {"lines": 1})
        await until(lambda: any("•••" in line.text for line in live.log.lines))
    files = [path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert files
    assert not any(b"t0ken-value" in file for file in files)


async def test_without_a_keyring_nothing_is_taken_over(tmp_path):
    imported = import_servers('{"mcpServers": {"a": {"command": "x", "env": {"API_KEY": "k"}}}}')
    async with engine_with(tmp_path / "data") as engine:

        async def keep(servers: tuple[McpServer, ...]) -> None:
            await engine.change_preferences(
                engine.preferences.model_copy(update={"mcp": McpPreferences(servers=servers)})
            )

        with pytest.raises(SecretsUnavailable):
            await engine.mcp.add_imported(imported, keep)
        assert engine.preferences.mcp.servers == ()
        plain = import_servers('{"mcpServers": {"a": {"command": "x", "disabled": true}}}')
        await engine.mcp.add_imported(plain, keep)
        assert [server.id for server in engine.preferences.mcp.servers] == ["a"]


async def test_whoever_comes_while_a_server_still_starts_waits_for_it_too(tmp_path):
    async with engine_with(tmp_path / "data", own()) as engine:
        stopped = asyncio.create_task(engine.mcp.ready(None, PATIENCE))
        await until(lambda: engine.mcp.state("own", None).state == "starting")
        stopped.cancel()
        await engine.mcp.ready(None, PATIENCE)
        assert "own__add" in {tool.name for tool in engine.mcp.tools(None)}
