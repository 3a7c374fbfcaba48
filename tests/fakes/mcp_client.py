"""A client with its MCP server in a test, started as the engine starts it, and closed at the end."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from desktop_agent.engine.mcp_tools import load_tool_offer
from desktop_agent.mcp.client import McpClient
from desktop_agent.mcp.diagnostics import ServerLog
from desktop_agent.mcp.host_policy import HttpTarget, allowed_private_hosts
from desktop_agent.mcp.http import http_streams
from desktop_agent.mcp.lifecycle import OnSignInRequired, ServerContext, Transport
from desktop_agent.mcp.stdio import ServerCommand, stdio_streams
from desktop_agent.tools.tool import RunningCall
from desktop_agent.types.blocks import JsonObject, ResultPart
from desktop_agent.types.mcp import HttpConnection, McpServer, StdioConnection
from tests.frame.patience import PATIENCE

OWN_SERVER = Path(__file__).with_name("own_mcp_server.py")
LIMIT = PATIENCE
"""Seconds until a test that waits in vain fails."""


def own_server(*words: str) -> list[str]:
    """The command of the server that misbehaves on request."""
    return [sys.executable, "-B", str(OWN_SERVER), *words]


@asynccontextmanager
async def program(
    argv: Sequence[str], folder: Path, env: dict[str, str] | None = None, **named: Any
) -> AsyncIterator[McpClient]:
    """A client of a server that is a program. `named` are fields of its ServerContext, and `trusted`."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **(env or {})}

    async def transport(log: ServerLog, refuse: OnSignInRequired) -> Transport:
        return lambda: stdio_streams(ServerCommand(argv, folder, environment), log)

    config = McpServer(
        id="srv", title="Server", trusted=named.pop("trusted", False), connection=StdioConnection(command=argv[0])
    )
    async with closing(McpClient(config, ServerContext(transport, folder, **named))) as live:
        yield live


@asynccontextmanager
async def address(url: str, headers: dict[str, str] | None = None, **named: Any) -> AsyncIterator[McpClient]:
    """A client of a server at an address."""

    async def transport(log: ServerLog, refuse: OnSignInRequired) -> Transport:
        return lambda: http_streams(HttpTarget(url, allowed_private_hosts(url), headers or {}), log)

    config = McpServer(id="web", title="Web", connection=HttpConnection(url=url))
    async with closing(McpClient(config, ServerContext(transport, **named))) as live:
        yield live


@asynccontextmanager
async def closing(live: McpClient) -> AsyncIterator[McpClient]:
    try:
        async with asyncio.timeout(LIMIT):
            yield live
    finally:
        await live.lifecycle.close()


async def called(
    live: McpClient, tool: str, arguments: JsonObject, told: Callable[[str], None] = lambda _: None
) -> tuple[ResultPart, ...]:
    """Call a tool as a run does it."""
    offer = await load_tool_offer(live)
    offered = next(candidate for candidate in offer.tools if candidate.name == tool)
    return await offered.run(offered.checked(arguments), RunningCall("call", told))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT):
        while not condition():
            await asyncio.sleep(0.01)


def children_of(pid: int) -> list[int]:
    import psutil

    return [child.pid for child in psutil.Process(pid).children(recursive=True)]
