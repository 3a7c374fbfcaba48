"""A server that is off is tried once: it says what it offers, and nobody is offered that."""

import asyncio
import contextlib

import psutil

from desktop_agent.types.mcp import McpServer, StdioConnection
from desktop_agent.types.tool_calls import ToolClass
from tests.fakes.mcp_client import OWN_SERVER
from tests.fakes.mcp_servers import at, own, stand
from tests.fakes.mcp_site import site
from tests.frame.patience import PATIENCE


def server_pids() -> list[int]:
    """Return the process ids of our test servers."""
    pids: list[int] = []
    for process in psutil.Process().children(recursive=True):
        # One that ends meanwhile has no command any more.
        with contextlib.suppress(psutil.NoSuchProcess):
            pids += [process.pid] if str(OWN_SERVER) in process.cmdline() else []
    return pids


async def test_it_starts_says_what_it_offers_and_ends(tmp_path):
    async with stand(tmp_path, own(on=False)) as setup:
        testing = asyncio.create_task(setup.servers.test("own", None))
        state, second = await asyncio.gather(testing, setup.servers.test("own", None))
        assert state == second
        assert (state.state, state.reason) == ("off", None)
        assert "add" in {tool.name for tool in state.tools}
        assert setup.states[0] == "starting"
        assert setup.states[-1] == "off"
        assert "running" not in setup.states
        assert setup.servers.tools(None) == ()
        assert setup.servers.server("own", None) is None
        assert server_pids() == []
        (tool,) = (tool for tool in state.tools if tool.name == "add")
        await setup.keep((setup.configured[0].with_tool_class_override("add", tool.digest, ToolClass.READ_ONLY),))
        (tool,) = (tool for tool in setup.servers.state("own", None).tools if tool.name == "add")
        assert tool.tool_class is ToolClass.READ_ONLY


async def test_what_was_seen_is_forgotten_when_it_is_on_or_reached_otherwise(tmp_path):
    async with stand(tmp_path, own(on=False)) as setup:
        await setup.servers.test("own", None)
        connection = setup.configured[0].connection
        await setup.change(connection=own("says").connection)
        assert setup.servers.state("own", None).tools == ()
        await setup.change(connection=connection)
        await setup.change(on=True)
        assert setup.servers.state("own", None).state == "idle"
        await setup.change(on=False)
        assert setup.servers.state("own", None).tools == ()


async def test_one_that_fails_says_why_and_its_log_is_there(tmp_path):
    missing = McpServer(id="gone", title="Gone", on=False, connection=StdioConnection(command="/nowhere/program"))
    async with stand(tmp_path, own("refuses", on=False), missing) as setup:
        state = await setup.servers.test("own", None)
        assert state.state == "off"
        assert "the configuration is missing" in str(state.reason)
        assert "press Test" in str(state.remedy)
        assert any("the configuration" in line.text for line in setup.servers.log("own", None))
        assert "Install it" in str((await setup.servers.test("gone", None)).remedy)


async def test_one_that_wants_a_sign_in_says_what_comes_first(tmp_path):
    async with site() as there, stand(tmp_path, at(there.url, sign_in=True)) as setup:
        await setup.change(on=False)
        state = await setup.servers.test("web", None)
        assert "Nobody is signed in" in str(state.reason)
        assert str(state.remedy) == "Turn it on, then sign in."


async def test_one_that_is_being_tried_ends_with_the_engine(tmp_path):
    async with stand(tmp_path, own("silent", on=False)) as setup:
        testing = asyncio.create_task(setup.servers.test("own", None))
        while not server_pids():
            await asyncio.sleep(0.01)
        await setup.servers.close()
        await testing
        assert server_pids() == []


async def test_one_that_is_removed_while_it_is_tried_ends(tmp_path):
    async with stand(tmp_path, own("silent", on=False)) as setup:
        testing = asyncio.create_task(setup.servers.test("own", None))
        while not server_pids():
            await asyncio.sleep(0.01)
        await setup.servers.remove("own", setup.keep)
        setup.servers.apply_settings()
        setup.servers.apply_settings()
        async with asyncio.timeout(PATIENCE):
            await testing
        assert server_pids() == []
