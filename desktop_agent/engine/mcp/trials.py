"""Servers that are off, started once to see what they offer, and ended again."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from desktop_agent.engine.mcp.place import ServerInstance, has_same_connection
from desktop_agent.storage.ending import wait_for_all
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.mcp.log import McpLogLine
from desktop_agent.vocabulary.mcp.servers import McpServer
from desktop_agent.vocabulary.mcp.states import McpServerState

_TURN_ON_REMEDY = Sentence("Turn it on, then sign in.")


class ServerTrials:
    """What came of the last trial of each, for the settings. Nobody else is offered its tools.

    `make` makes a server, `ask` asks it for its tools, and `tell` is called with the id of one that was tried.
    """

    def __init__(
        self,
        make: Callable[[McpServer, Path | None], ServerInstance],
        ask: Callable[[ServerInstance], asyncio.Task[None]],
        tell: Callable[[str], None],
    ) -> None:
        self._make_instance = make
        self._refresh = ask
        self._notify = tell
        self._instances: dict[tuple[str, Path | None], ServerInstance] = {}
        self._under_way: dict[tuple[str, Path | None], tuple[asyncio.Task[None], ServerInstance]] = {}
        self._ending: dict[tuple[str, Path | None], asyncio.Task[None]] = {}

    async def run(self, config: McpServer, workspace: Path | None) -> None:
        """Start it, ask it for its tools, end it. One that is being tried is waited for."""
        place = (config.id, workspace)
        if place not in self._under_way:
            running = self._instances[place] = self._make_instance(config, workspace)
            # A task of its own: it comes to its end also when nobody waits for it any more.
            self._under_way[place] = asyncio.create_task(self._try(place, running)), running
        await asyncio.wait([self._under_way[place][0]])

    async def _try(self, place: tuple[str, Path | None], running: ServerInstance) -> None:
        try:
            await asyncio.wait([self._refresh(running)])
        finally:
            await running.close()
            del self._under_way[place]
            self._ending.pop(place, None)
            self._notify(place[0])

    def state(self, config: McpServer, workspace: Path | None) -> McpServerState:
        """Off, and what was seen when it was tried, as long as it is reached in the same way."""
        running = self._instances.get((config.id, workspace))
        if running is None or not has_same_connection(config, running.client.server):
            return McpServerState(config.id, "off")
        if (config.id, workspace) in self._under_way:
            return McpServerState(config.id, "starting")
        offer, failure = running.offer.with_settings(config), running.failure
        remedy = failure.remedy if failure is not None else None
        if running.client.status.state == "signed_out":
            remedy = _TURN_ON_REMEDY
        why = failure.sentence if failure is not None else None
        return McpServerState(config.id, "off", "", why, offer.listed, offer.unusable, remedy)

    def log(self, server_id: str, workspace: Path | None) -> tuple[McpLogLine, ...]:
        """What it said when it was tried."""
        running = self._instances.get((server_id, workspace))
        return () if running is None else running.client.log.lines

    def forget(self, on: frozenset[str], known: frozenset[str]) -> None:
        """Those that are on now, or gone; what still runs of them is ended."""
        for place in [each for each in self._instances if each[0] in on or each[0] not in known]:
            del self._instances[place]
            if place in self._under_way and place not in self._ending:
                self._ending[place] = asyncio.create_task(self._under_way[place][1].close())

    async def close(self) -> None:
        """End those that run."""
        under_way = tuple(self._under_way.values())
        await wait_for_all(*(running.close() for _, running in under_way))
        if under_way:
            await asyncio.wait([task for task, _ in under_way])
