"""The server of the demo in a test, with all four dialects, on real sockets."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from desktop_agent.types.options import AgentOptions
from desktop_agent.types.providers import Dialect
from tests.fakes.library import LIMIT
from tests.fakes.recording_server import RecordingServer
from tests.fakes.strict_server import demo_endpoint, strict_server

DIALECTS: tuple[Dialect, ...] = ("openai-chat", "openai-responses", "anthropic", "gemini")
KEY = "demo-key-of-nobody-0123456789"


class Served:
    """A server, and the options of an agent that uses it."""

    def __init__(self, server: RecordingServer, base_url: str) -> None:
        self.server = server
        self.base_url = base_url

    def options(self, dialect: Dialect = "openai-chat", **values: Any) -> AgentOptions:
        address = demo_endpoint(self.base_url, dialect).base_url
        return AgentOptions(model="demo", dialect=dialect, base_url=address, **values)

    @property
    def states(self) -> list[str]:
        return [record.state for record in self.server.connections if record.method == "POST"]

    async def until_disconnected(self) -> None:
        async with asyncio.timeout(LIMIT):
            while "disconnected" not in self.states:
                await asyncio.sleep(0.001)


@asynccontextmanager
async def demo(speed: float = math.inf) -> AsyncIterator[Served]:
    server = strict_server(speed)
    try:
        yield Served(server, await server.start())
    finally:
        await server.aclose()
