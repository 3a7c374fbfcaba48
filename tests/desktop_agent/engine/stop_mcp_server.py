"""A server of tools with one tool that takes its time and heeds being stopped. Run as a program: stdio, or a port."""

import asyncio
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("slow", version="1")


@server.tool()
async def work(folder: str, ctx: Context) -> str:
    """Does the first half, waits, and would do the second."""
    _note(folder, "first")
    await ctx.report_progress(1, 2, "half of it")
    try:
        await asyncio.sleep(3600)
    except BaseException:
        _note(folder, "heeded")
        raise
    return "all of it"


def _note(folder: str, name: str) -> None:
    Path(folder, name).touch()


if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run("stdio")
