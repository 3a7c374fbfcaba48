"""How servers are, and what the person says of their tools."""

import asyncio

import pytest

from desktop_agent.tools.tool import DynamicToolRegistry, ToolRegistry
from desktop_agent.types.mcp import McpServer, StdioConnection
from desktop_agent.types.tool_calls import ToolClass, UntrustedSource
from tests.fakes.mcp_client import until
from tests.fakes.mcp_servers import Stand, own, stand
from tests.frame.patience import PATIENCE

READ, CHANGE = ToolClass.READ_ONLY, ToolClass.MUTATING


def class_of(setup: Stand, name: str) -> ToolClass:
    return DynamicToolRegistry(ToolRegistry(()), lambda: setup.servers.tools(None)).class_of(name)


async def test_a_server_is_idle_then_starts_then_runs_then_is_off(tmp_path):
    async with stand(tmp_path, own()) as setup:
        assert setup.servers.state("own", None).state == "idle"
        assert setup.servers.state("nobody", None).state == "off"
        state = await setup.servers.test("own", None)
        assert setup.states[:2] == ["starting", "running"]
        assert (state.state, state.reason) == ("running", None)
        assert state.protocol
        assert {"add", "never"} <= {tool.name for tool in state.tools}
        assert setup.servers.state("own", tmp_path).state == "idle"
        await setup.change(on=False)
        assert setup.states[-1] == "off"


async def test_one_that_cannot_be_started_has_failed_and_says_why(tmp_path):
    broken = McpServer(id="own", title="Broken", connection=StdioConnection(command="/nowhere/program"))
    async with stand(tmp_path, broken) as setup:
        state = await setup.servers.test("own", None)
        assert state.state == "failed"
        assert "There is no program" in str(state.reason)
        assert str(state.remedy) == "Install it, or give its whole path with Edit."
        second = await setup.servers.test("own", None)
        assert "There is no program" in str(second.reason)
        live = setup.servers.server("own", None)
        assert live is not None
        assert live.lifecycle.start_count == 2


async def test_one_that_starts_for_long_is_told_and_its_tools_come_later(tmp_path):
    async with stand(tmp_path, own()) as setup:
        await setup.servers.ready(None, seconds=0.0)
        assert [str(notice) for notice in setup.servers.notices] == [
            "The server “Own” is still starting; its tools come when it is there."
        ]
        await until(lambda: bool(setup.servers.tools(None)))
        # Said of a server that is there it would be wrong.
        await until(lambda: setup.servers.notices == [])


async def test_one_that_ends_by_itself_is_told_and_can_be_tested_again(tmp_path):
    async with stand(tmp_path, own()) as setup:
        await setup.servers.test("own", None)
        live = setup.servers.server("own", None)
        assert live is not None
        setup.states.clear()
        await setup.servers.test("own", None)
        assert "failed" not in setup.states
        await live.call("later_die", {})
        await until(lambda: setup.servers.state("own", None).state == "failed")
        assert "ended by itself" in str(setup.servers.state("own", None).reason)
        assert str(setup.servers.state("own", None).remedy) == "If it happens again, look at its log."
        assert setup.servers.state("own", None).tools
        assert (await setup.servers.test("own", None)).state == "running"


async def test_a_call_that_is_cancelled_changes_nothing_of_the_state(tmp_path):
    async with stand(tmp_path, own()) as setup:
        await setup.servers.test("own", None)
        live = setup.servers.server("own", None)
        assert live is not None
        setup.states.clear()
        lines: list[str] = []
        setup.servers.on_log(lambda _, line: lines.append(line.text))
        call = asyncio.create_task(live.call("never", {}))
        await until(lambda: "begun" in lines)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert "3" in str(await live.call("add", {"a": 1, "b": 2}))
        assert (setup.states, setup.servers.state("own", None).state, live.lifecycle.start_count) == ([], "running", 1)


async def test_the_persons_word_about_a_tool_wins_over_the_servers(tmp_path):
    async with stand(tmp_path, own("says")) as setup:
        state = await setup.servers.test("own", None)
        declared = {tool.name: tool.declared_class for tool in state.tools}
        assert (declared["look"], declared["wreck"], declared["add"]) == (READ, CHANGE, None)
        # An untrusted server is not believed.
        assert class_of(setup, "own__look") is CHANGE
        await setup.change(trusted=True)
        assert class_of(setup, "own__look") is READ
        assert class_of(setup, "own__add") is CHANGE
        digests = {tool.name: tool.digest for tool in state.tools}
        choices = {"classes": {"look": CHANGE, "add": READ}, "chosen_for": digests}
        await setup.change(**choices)
        assert class_of(setup, "own__look") is CHANGE
        assert class_of(setup, "own__add") is READ
        await setup.change(trusted=False)
        assert class_of(setup, "own__add") is READ


async def test_a_tool_that_is_off_is_not_offered_and_stays_listed(tmp_path):
    async with stand(tmp_path, own()) as setup:
        await setup.servers.test("own", None)
        await setup.change(off_tools=frozenset({"add"}))
        assert "own__add" not in {tool.name for tool in setup.servers.tools(None)}
        assert {tool.name: tool.is_enabled for tool in setup.servers.state("own", None).tools}["add"] is False
        await setup.change(off_tools=frozenset())
        assert "own__add" in {tool.name for tool in setup.servers.tools(None)}


async def test_what_is_no_connection_changes_without_a_restart(tmp_path):
    async with stand(tmp_path, own()) as setup:
        await setup.servers.test("own", None)
        live = setup.servers.server("own", None)
        assert live is not None
        identity = {tool.name: tool.identity for tool in setup.servers.tools(None)}["own__add"]
        changed = await setup.change(title="Other", trusted=True, timeout=30.0, off_tools=frozenset({"die"}))
        await setup.servers.ready(None, PATIENCE)
        tool = next(tool for tool in setup.servers.tools(None) if tool.name == "own__add")
        assert setup.servers.server("own", None) is live
        assert (live.lifecycle.start_count, live.lifecycle.is_running, live.lifecycle.server) == (1, True, changed)
        assert (tool.identity, tool.timeout) == (identity, 35.0)
        assert tool.brings is not None
        assert str(tool.brings({})).count("Other") == 1
        await setup.change(connection=own("chatty").connection)
        assert setup.servers.server("own", None) is not live
        await until(lambda: not live.lifecycle.is_running)


async def test_a_log_is_told_line_by_line_and_kept(tmp_path):
    async with stand(tmp_path, own("chatty")) as setup:
        lines: list[tuple[str, str]] = []
        setup.servers.on_log(lambda server_id, line: lines.append((server_id, line.text)))
        assert setup.servers.log("own", None) == ()
        await setup.servers.test("own", None)
        assert any(server_id == "own" and "Welcome" in text for server_id, text in lines)
        assert [line.text for line in setup.servers.log("own", None)] == [text for _, text in lines]


async def test_servers_of_one_title_are_two_that_bring_something(tmp_path):
    twins = own(server_id="one", title="Files"), own(server_id="two", title="Files")
    async with stand(tmp_path, *twins) as setup:
        for twin in twins:
            await setup.servers.test(twin.id, None)
        tools = {tool.name: tool for tool in setup.servers.tools(None)}
        brought = [tools[f"{twin.id}__add"].brings({}) for twin in twins]
        assert brought == [UntrustedSource("mcp", "Files", "one"), UntrustedSource("mcp", "Files", "two")]
