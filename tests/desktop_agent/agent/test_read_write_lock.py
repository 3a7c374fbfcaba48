"""Which specialists work at the same time."""

import asyncio

import pytest

from desktop_agent.agent.specialists import ReadWriteLock


class Site:
    """Workers that note who is at work when they begin, and work until they are released."""

    def __init__(self) -> None:
        self.lock = ReadWriteLock()
        self.at_work: list[str] = []
        self.seen: dict[str, list[str]] = {}
        self.go: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def start(self, *workers: str) -> None:
        """Names in upper case change something."""
        for name in workers:
            self.go[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._work(name))
        await self.rest()

    async def _work(self, name: str) -> None:
        async with self.lock.hold(is_writer=name.isupper()):
            self.at_work.append(name)
            self.seen[name] = list(self.at_work)
            await self.go[name].wait()
            self.at_work.remove(name)

    async def end(self, *names: str) -> None:
        for name in names:
            self.go[name].set()
        await self.rest()

    async def rest(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)


async def test_those_that_look_work_together_and_one_that_changes_works_alone() -> None:
    site = Site()
    await site.start("a", "b", "C", "d", "E")
    assert site.at_work == ["a", "b"]
    await site.end("a")
    assert site.at_work == ["b"]
    await site.end("b")
    assert site.at_work == ["C"]
    await site.end("C")
    assert site.at_work == ["d"]
    await site.end("d")
    assert site.at_work == ["E"]
    await site.end("E")
    assert all(task.done() for task in site.tasks.values())


async def test_one_that_gives_up_waiting_holds_up_nobody() -> None:
    site = Site()
    await site.start("A", "B", "C")
    site.tasks["B"].cancel()
    await site.rest()
    await site.end("A")
    assert site.at_work == ["C"]
    await site.end("C")
    with pytest.raises(asyncio.CancelledError):
        await site.tasks["B"]
