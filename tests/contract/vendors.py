"""Recorded answers of the vendors, in each dialect, and conversations that hold them."""

from pathlib import Path
from typing import Any

from desktop_agent.api.client import Client
from desktop_agent.types.blocks import Text, ToolResult, ToolUse
from desktop_agent.types.messages import Message
from desktop_agent.types.providers import Dialect
from tests.fakes.http_server import Loopback, Reply, Request

RECORDINGS = Path(__file__).parents[1] / "recordings"
MODELS = {"anthropic": "claude-opus-5", "openai-responses": "gpt-6.1", "gemini": "gemini-4-argon", "openai-chat": "m"}


PATHS = {
    "anthropic": "/messages", "openai-responses": "/responses", "gemini": ":stream", "openai-chat": "/chat/completions"
}  # fmt: skip


def recorded(dialect: str, name: str) -> bytes:
    return (RECORDINGS / dialect / f"{name}.sse").read_bytes()


def result_of(use: ToolUse) -> Any:
    return ToolResult(tool_use_id=use.id, content=(Text(text="ok"),))


def answers_like(dialect: str, name: str) -> Any:
    def choose(request: Request) -> Reply:
        own = next(dialect for dialect, path in PATHS.items() if path in request.path)
        return Reply(recorded(dialect, name) if own == dialect else recorded(own, "text"))

    return choose


async def history_of(dialect: Dialect, name: str, server: Loopback) -> tuple[Message, ...]:
    """One answer of this recording, its calls answered."""
    async with Client(model=MODELS[dialect], dialect=dialect, base_url=server.root, api_key="k") as client:
        response = await client.complete("hi")
        for use in response.tool_uses:
            client.add_tool_result(use.id, "ok")
        return client.history
