"""Servers of tools behind the settings: real ones, in a real engine."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from pydantic import SecretStr

from desktop_agent.types.mcp import HttpConnection, McpServer, StdioConnection
from tests.fakes.mcp_client import own_server
from tests.fakes.qt_loop import Bridge, Heard, until
from ui.bridge.mcp.servers import McpServerSettings


def own(*words, **changes):
    command, *args = own_server(*words)
    return McpServer(id="own", title="Own", connection=StdioConnection(command=command, args=tuple(args), **changes))


@asynccontextmanager
async def open_servers(folder, *servers):
    bridge = await Bridge.open(folder, connected=False)
    tools = McpServerSettings(bridge.engine, bridge.clock, bridge.tasks)
    try:
        await tools.imports.save(servers)
        yield bridge, tools
        assert bridge.errors == []
    finally:
        await bridge.close()
        # Here and not by the garbage collector, which may run in another thread.
        for item in (tools, bridge.library, bridge.servers, bridge.settings, bridge.clock):
            item.deleteLater()
        await asyncio.sleep(0)


def test_one_that_is_tested_says_what_it_offers(in_loop, tmp_path):
    async def work():
        async with open_servers(tmp_path, own()) as (_, tools):
            tested, states = Heard(tools.tested), Heard(tools.state_changed)
            assert tools.state("own").state == "idle"
            tools.test("own")
            server_id, state = await tested.next()
            assert (server_id, state.state) == ("own", "running")
            assert {"add", "die"} <= {tool.name for tool in state.tools}
            await until(lambda: states and states[-1] == ("own", state))

    in_loop(work())


def test_one_that_cannot_be_started_says_why(in_loop, tmp_path):
    async def work():
        async with open_servers(tmp_path, own("refuses")) as (_, tools):
            tested = Heard(tools.tested)
            tools.test("own")
            _, state = await tested.next()
            assert state.state == "failed"
            assert "the configuration is missing" in str(state.reason)

    in_loop(work())


def test_secrets_lie_in_the_keyring_until_the_server_goes(in_loop, tmp_path, kept):
    async def work():
        async with open_servers(tmp_path) as (_, tools):
            saved, changes = Heard(tools.saved), Heard(tools.servers_changed)
            server = own(secret_env=("TOKEN",))
            tools.save(server, {"TOKEN": SecretStr("t0ken-value")})
            assert await saved.next() == "own"
            assert changes[-1] == (server,) == tools.servers
            assert kept == {"mcp/own/TOKEN": "t0ken-value"}
            assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"t0ken-value" in path.read_bytes()]
            tools.save(server.model_copy(update={"title": "Renamed"}), {})
            await saved.next()
            assert kept == {"mcp/own/TOKEN": "t0ken-value"}
            tools.remove("own")
            await until(lambda: tools.servers == ())
            assert kept == {}

    in_loop(work())


def test_it_is_said_which_secrets_have_a_value(in_loop, tmp_path, kept):
    async def work():
        async with open_servers(tmp_path, own(secret_env=("TOKEN", "OTHER"))) as (_, tools):
            found = Heard(tools.secrets_found)
            tools.find_secrets("own")
            assert await found.next() == ("own", frozenset())
            kept["mcp/own/OTHER"] = "value"
            tools.find_secrets("own")
            assert await found.next() == ("own", frozenset({"OTHER"}))

    in_loop(work())


def test_without_a_keyring_nothing_is_saved_and_it_is_said(in_loop, tmp_path):
    async def work():
        async with open_servers(tmp_path) as (_, tools):
            failed, saved = Heard(tools.failed), Heard(tools.saved)
            tools.save(own(secret_env=("TOKEN",)), {"TOKEN": SecretStr("t0ken-value")})
            server_id, sentence = await failed.next()
            assert server_id == "own"
            assert "keyring" in str(sentence)
            assert (tools.servers, saved) == ((), [])

    in_loop(work())


def test_a_flood_of_lines_comes_at_most_once_a_frame_and_whole(in_loop, tmp_path):
    async def work():
        async with open_servers(tmp_path, own()) as (bridge, tools):
            tested = Heard(tools.tested)
            tools.test("own")
            await tested.next()
            tools.watch_log("own")
            batches, ticks = Heard(tools.log_lines_added), Heard(bridge.clock.tick)
            live = bridge.engine.mcp.server("own", None)
            await live.call("flood", {"lines": 3_000})
            log = await until(lambda: ends_with(bridge.engine.mcp.log("own", None), "line 2999"))
            await until(lambda: batches and batches[-1][1] and batches[-1][1][-1] is log[-1])
            assert len(batches) <= len(ticks)
            shown = []
            for _, lines, is_all in batches:
                shown = list(lines) if is_all else [*shown, *lines]
            assert shown[-len(log) :] == list(log)

    def ends_with(log, words):
        return log if any(words in line.text for line in log[-3:]) else ()

    in_loop(work())


def test_a_log_that_nobody_looks_at_is_not_told(in_loop, tmp_path):
    async def work():
        async with open_servers(tmp_path, own()) as (bridge, tools):
            came, tested = Heard(tools.log_lines_added), Heard(tools.tested)
            tools.watch_log("own")
            tools.watch_log("")
            came.clear()
            tools.test("own")
            await tested.next()
            await bridge.engine.mcp.server("own", None).call("flood", {"lines": 3})
            await until(lambda: bridge.engine.mcp.log("own", None))
            assert came == []

    in_loop(work())


@pytest.fixture
def silent_address():
    """Return a function that opens a server which takes requests and never answers."""

    @asynccontextmanager
    async def listen():
        async def on_event(reader, writer):
            while await reader.read(1_000):
                pass
            writer.close()

        server = await asyncio.start_server(on_event, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            connection = HttpConnection(url=f"http://127.0.0.1:{port}/mcp", sign_in=True)
            yield McpServer(id="web", title="Web", connection=connection)

    return listen


def test_waiting_for_a_sign_in_can_be_ended(in_loop, tmp_path, silent_address, kept):
    async def work():
        async with silent_address() as server, open_servers(tmp_path, server) as (_, tools):
            endings = Heard(tools.sign_in_ended)
            tools.sign_in("web", lambda _: None)
            await until(lambda: tools._sign_ins)
            tools.sign_in("web", lambda _: None)
            assert len(tools._sign_ins) == 1
            tools.cancel_sign_in("web")
            assert await endings.next() == ("web", None)
            assert tools._sign_ins == {}

    in_loop(work())


def test_a_sign_in_that_fails_says_why(in_loop, tmp_path, kept):
    async def work():
        connection = HttpConnection(url="http://127.0.0.1:9/mcp", sign_in=True)
        async with open_servers(tmp_path, McpServer(id="web", title="Web", connection=connection)) as (_, tools):
            endings = Heard(tools.sign_in_ended)
            tools.sign_in("web", lambda _: None)
            server_id, reason = await endings.next()
            assert server_id == "web"
            assert str(reason)

    in_loop(work())


def test_two_changes_at_once_are_both_kept(in_loop, tmp_path):
    def without(name):
        return lambda server: server.model_copy(update={"off_tools": server.off_tools | {name}})

    async def work():
        async with open_servers(tmp_path, own()) as (_, tools):
            tools.change("gone", without("add"))
            tools.change("own", without("add"))
            tools.change("own", without("die"))
            tools.change("own", lambda server: server.model_copy(update={"on": False}))
            await until(lambda: not tools.servers[0].on)
            assert tools.servers[0].off_tools == {"add", "die"}

    in_loop(work())
