"""Options, tools and scripts for tests of the public library."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from pydantic import BaseModel

from desktop_agent.tools.tool import AnyTool, ModelSchema, RunningCall, Tool
from desktop_agent.types.blocks import Text, ToolUse
from desktop_agent.types.options import AgentOptions
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import ToolClass
from tests.fakes.scripted_provider import ScriptedProvider, Turn, Wait
from tests.frame.patience import PATIENCE

LIMIT = PATIENCE
"""Seconds until a test that waits in vain fails."""


class Numbers(BaseModel):
    a: int
    b: int


def adder(
    before: Callable[[], Awaitable[object]] | None = None, tool_class: ToolClass = ToolClass.MUTATING, name: str = "add"
) -> AnyTool:
    async def run(numbers: Numbers, _: RunningCall) -> tuple[Text, ...]:
        if before is not None:
            await before()
        return (Text(text=str(numbers.a + numbers.b)),)

    return Tool(name, "Adds.", ModelSchema(Numbers), run, tool_class)


def call(call_id: str = "c1", a: int = 1, b: int = 2, name: str = "add") -> ToolUse:
    return ToolUse(id=call_id, name=name, input={"a": a, "b": b})


def says(text: str) -> ContentDelta:
    return ContentDelta(text)


def acting(*turns: Turn, **values: Any) -> tuple[AgentOptions, ScriptedProvider]:
    """Options whose model plays this script, and the provider with the requests."""
    provider = ScriptedProvider(*turns)
    return AgentOptions(model="m", provider=provider, **values), provider


class Gate:
    """A place where a script or a tool waits until the test opens it."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.arrived = asyncio.Event()

    @property
    def step(self) -> Wait:
        return Wait(self.opened, self.arrived)

    async def until_arrived(self) -> None:
        async with asyncio.timeout(LIMIT):
            await self.arrived.wait()


async def listed(items: AsyncIterator[Any]) -> list[Any]:
    async with asyncio.timeout(LIMIT):
        return [item async for item in items]


async def blocks_of(receive: Callable[[], Awaitable[Any]]) -> list[Any]:
    """All blocks that `receive` returns before None."""
    blocks: list[Any] = []
    async with asyncio.timeout(LIMIT):
        while (block := await receive()) is not None:
            blocks.append(block)
    return blocks


def sent(provider: ScriptedProvider, number: int = -1) -> list[tuple[str, str]]:
    """The roles and texts of the messages in a request."""
    return [(message.role.value, message.text) for message in provider.requests[number].messages]
