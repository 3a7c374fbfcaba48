"""Processes that die in the middle of a run, and the next one that opens what they left."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from desktop_agent.engine.session import Session
from desktop_agent.engine.session_opening import reopen_session
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.messages import Message
from tests.fakes.agent_run import tool
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import Shaky, Stage, shaky_store


class Machine:
    """A folder in which a process dies, and which the next ones open. `ran`, `ran_again`: the calls of their tools."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ran: list[str] = []
        self.ran_again: list[str] = []
        self.hold = asyncio.Event()

    @asynccontextmanager
    async def dying(self, *uses: ToolUse) -> AsyncIterator[Stage]:
        async def work(word: str) -> str:
            self.ran.append(word)
            await self.hold.wait()
            return word

        async with shaky_store(self.folder / "first") as shaky:
            stage = Stage(shaky, Turn(*uses), tools=(tool("act", work), tool("look", work, read_only=True)))
            stage.session.send(Message.user("go"))
            yield stage
            stage.session.interrupt()
            self.hold.set()
            await stage.idle()
            await stage.session.close()

    @asynccontextmanager
    async def after(
        self, dead: Stage, *turns: Turn, scope: str = "", dies: bool = False
    ) -> AsyncIterator[tuple[Stage, Session]]:
        """Open what the dead process left. `dies`: this process dies too, and another comes after it."""

        async def work(word: str) -> str:
            self.ran_again.append(word)
            if dies:
                await self.hold.wait()
            return word

        await dead.session._writer.flush()
        folder = self.folder / f"after {len(list(self.folder.iterdir()))}"
        await asyncio.to_thread(folder.mkdir)
        await dead.shaky.store.snapshot(folder / DATABASE_NAME)
        store = await Store.open(folder)
        try:
            tools = replace(tool("act", work), scope=scope), tool("look", work, read_only=True)
            stage = Stage(Shaky(store), *turns, tools=tools)
            stage.session = session = await reopen_session(store, dead.session.record.id, stage.session._runs._setup)
            session.subscribe(on_event=stage.events.append)
            yield stage, session
            if dies:
                session.interrupt()
                self.hold.set()
                await stage.idle()
            await session.close()
            assert (await store.load(session.record.id)).messages == session.history
        finally:
            await store.close()
