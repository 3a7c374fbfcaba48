"""What the tests of the contract share: two tools, and a person who decides."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from desktop_agent.conversation.items import AnswerItem, Item, ThinkingItem, ToolCallItem, UserItem
from desktop_agent.tools.builtin_tools import builtin_tools
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import ToolResult, ToolUse
from desktop_agent.types.engine_events import RunEnd
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import Decision
from tests.fakes.agent_run import Desk, tool
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import LIMIT, Stage, shaky_store

LOOK = tool("look", read_only=True)
ACT = tool("act")
DONE = Turn(ContentDelta("Done."))
Thing = TypeVar("Thing")


def only(items: Iterable[Any], *kinds: type) -> list[Any]:
    """Return the items of these kinds, in order."""
    return [item for item in items if isinstance(item, kinds)]


def one(items: Iterable[Thing]) -> Thing:
    (item,) = items
    return item


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(LIMIT):
        while not true():
            await asyncio.sleep(0.001)


async def decided(desk: Desk, *decisions: Decision) -> RunEnd:
    """Run to the end; decide each approval request as soon as it is there."""
    running = desk.start()
    for decision in decisions:
        await until(lambda: desk.approvals.open_approvals or running.done())
        desk.decide(decision)
    return await running


@asynccontextmanager
async def on_disk(folder: Path, *turns: Turn, tools: tuple[Any, ...] = (), **setup: Any) -> AsyncIterator[Stage]:
    """A session over a real store."""
    async with shaky_store(folder / "data") as shaky:
        yield Stage(shaky, *turns, tools=tools, setup=setup)


@asynccontextmanager
async def in_folder(folder: Path, *turns: Turn, **setup: Any) -> AsyncIterator[Stage]:
    """A session that works in a folder, with the file tools and with checkpoints."""
    work = folder / "work"
    await asyncio.to_thread(work.mkdir)
    async with shaky_store(folder / "data") as shaky:
        tools = builtin_tools(Workspace(work), "all")
        yield Stage(shaky, *turns, tools=tools, setup={"store": shaky.store, **setup}, workspace=str(work))


def write(call_id: str, path: str, text: str) -> ToolUse:
    return ToolUse(id=call_id, name="write_file", input={"path": path, "content": text})


async def answer_all(stage: Stage, decision: Decision, count: int = 1) -> None:
    """Decide so many approval requests, as they come."""
    approvals = stage.session.approvals
    for _ in range(count):
        await stage.until(lambda: approvals.open_approvals)
        approvals.answer(approvals.open_approvals[0].approval_id, decision)


def results_follow_calls(messages: Iterable[Message]) -> None:
    """Check that the results of each message are in the next one, in call order, and that no result is elsewhere."""
    waiting: list[str] = []
    for message in messages:
        if message.role is Role.TOOL:
            assert [block.tool_use_id for block in only(message.blocks, ToolResult)] == waiting
            waiting = []
        assert not waiting
        waiting = [use.id for use in message.tool_uses]
    assert not waiting


def shown(items: Iterable[Item]) -> list[tuple[str, ...]]:
    """Return what a person reads of the items, without what is shown only while it happens."""
    rows: list[tuple[str, ...]] = []
    for item in items:
        if isinstance(item, UserItem | AnswerItem | ThinkingItem):
            rows.append((type(item).__name__, str(item.text)))
        elif isinstance(item, ToolCallItem):
            rows.append((item.name, item.tool_use_id, repr(item.input), str(item.outcome)))
    return rows
