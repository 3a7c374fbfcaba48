"""Listings: remembered, saved, asked for again when old, and never waited for when something is known."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from desktop_agent.engine.model_listings import ModelInfos, ModelListings, ModelListingsFile
from desktop_agent.types.errors import AuthenticationFailed, ConnectionFailed, WrongUse
from desktop_agent.types.messages import now
from desktop_agent.types.providers import Endpoint, ModelInfo, Price

MINE = Endpoint(id="mine", title="Mine", base_url="http://127.0.0.1:1/v1?token=hidden")
OTHER = Endpoint(id="other", title="Other", base_url="http://127.0.0.1:2/v1")
A, B = ModelInfo("a", price=Price(input=1)), ModelInfo("b")


class Desk:
    """A server that answers as told, and a clock."""

    def __init__(self, folder: Path) -> None:
        self.answer: ModelInfos | Exception = (A,)
        self.asked: list[str] = []
        self.gate: asyncio.Event | None = None
        self.time = now()
        self.irreversible: tuple[Endpoint, ...] = (MINE, OTHER)
        self.file = ModelListingsFile(folder)
        self.listings = self.next_start()

    def next_start(self) -> ModelListings:
        self.listings = ModelListings(self.file, self.ask, lambda: self.irreversible, self.clock)
        return self.listings

    def clock(self) -> datetime:
        return self.time

    async def ask(self, endpoint: Endpoint) -> ModelInfos:
        self.asked.append(endpoint.id)
        answer = self.answer
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def settle(self) -> None:
        """Wait for what was started in the background."""
        while self.listings._tasks:
            await asyncio.wait(set(self.listings._tasks))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_the_next_start_knows_them_without_asking(desk: Desk) -> None:
    assert await desk.listings.models(MINE) == (A,)
    desk.next_start()
    desk.answer = ConnectionFailed("offline")
    assert desk.listings.known(MINE) == ()
    models = await desk.listings.models(MINE)
    assert [model.id for model in models] == ["a"]
    assert desk.asked == ["mine"]


async def test_a_refresh_reports_what_went_wrong_and_keeps_what_is_known(desk: Desk) -> None:
    await desk.listings.models(MINE)
    desk.answer = ConnectionFailed("offline")
    with pytest.raises(ConnectionFailed):
        await desk.listings.models(MINE, refresh=True)
    assert await desk.listings.models(MINE) == (A,)


async def test_nothing_known_and_nobody_there(desk: Desk) -> None:
    desk.answer = ConnectionFailed("offline")
    with pytest.raises(ConnectionFailed):
        await desk.listings.models(MINE)


async def test_what_was_saved_is_refreshed_at_the_start(desk: Desk) -> None:
    await desk.listings.models(MINE)
    desk.next_start()
    changes: list[str] = []
    desk.listings.on_change(changes.append)
    await desk.listings.warm_up()
    desk.answer = (A, B)
    desk.listings.refresh(MINE)
    desk.listings.refresh(MINE)
    await desk.settle()
    assert desk.asked == ["mine", "mine"]
    assert await desk.listings.models(MINE) == (A, B)
    assert changes == ["mine"]
    desk.listings.refresh(MINE)  # asked in this run, and not old
    await desk.settle()
    assert desk.asked == ["mine", "mine"]


async def test_what_is_old_is_refreshed_without_waiting(desk: Desk) -> None:
    await desk.listings.models(MINE)
    desk.time += timedelta(hours=23)
    await desk.listings.models(MINE)
    assert desk.asked == ["mine"]
    desk.time += timedelta(hours=2)
    desk.answer, desk.gate = (B,), asyncio.Event()
    assert await desk.listings.models(MINE) == (A,)
    desk.gate.set()
    await desk.settle()
    assert await desk.listings.models(MINE) == (B,)


async def test_a_refresh_that_fails_in_the_background_disturbs_nobody(desk: Desk) -> None:
    await desk.listings.models(MINE)
    desk.time += timedelta(days=2)
    desk.answer = AuthenticationFailed("no")
    assert await desk.listings.models(MINE) == (A,)
    await desk.settle()
    assert await desk.listings.models(MINE) == (A,)
    await desk.settle()


async def test_who_asks_together_asks_once(desk: Desk) -> None:
    desk.gate = asyncio.Event()
    asking = [asyncio.create_task(desk.listings.models(MINE, refresh=True)) for _ in range(3)]
    while not desk.asked:
        await asyncio.sleep(0)
    asking[0].cancel()  # its waiter goes, the others get their answer
    desk.gate.set()
    assert await asyncio.gather(*asking[1:]) == [(A,), (A,)]
    assert desk.asked == ["mine"]


async def test_an_answer_to_a_forgotten_question_is_not_kept(desk: Desk) -> None:
    slow = desk.gate = asyncio.Event()
    asking = asyncio.create_task(desk.listings.models(MINE))
    while not desk.asked:
        await asyncio.sleep(0)
    desk.listings.forget("mine")  # another key
    desk.answer, desk.gate = (B,), None
    assert await desk.listings.models(MINE) == (B,)
    slow.set()
    assert await asking == (A,)
    assert desk.listings.known(MINE) == (B,)
    desk.next_start()
    assert [model.id for model in await desk.listings.models(MINE)] == ["b"]


async def test_another_address_is_another_server(desk: Desk) -> None:
    await desk.listings.models(MINE)
    moved = MINE.model_copy(update={"base_url": OTHER.base_url})
    assert desk.listings.known(moved) == ()
    desk.answer = (B,)
    assert await desk.listings.models(moved) == (B,)


async def test_only_what_the_person_set_up_is_saved(desk: Desk) -> None:
    endpoint = Endpoint(id="command-line", title="Given", base_url="http://127.0.0.1:3/v1")
    await desk.listings.models(endpoint)
    await desk.listings.models(OTHER)
    desk.irreversible = (MINE,)
    await desk.listings.models(MINE)
    assert set(await desk.file.load()) == {"mine"}


async def test_the_file_holds_neither_address_nor_price(desk: Desk) -> None:
    await desk.listings.models(MINE)
    content = desk.file.path.read_text()
    assert "hidden" not in content
    assert "127.0.0.1" not in content
    assert "price" not in content
    assert '"a"' in content


async def test_a_disk_that_refuses_costs_only_the_saving(desk: Desk, tmp_path: Path) -> None:
    desk.file.path = tmp_path / "missing" / "deep" / "x"
    (tmp_path / "missing").write_text("")
    desk.listings._is_loaded = True
    assert await desk.listings.models(MINE) == (A,)


async def test_closing_stops_asking(desk: Desk) -> None:
    desk.gate = asyncio.Event()
    await desk.listings.warm_up()
    desk.listings.refresh(MINE)
    await asyncio.sleep(0)
    await desk.listings.close()
    assert not desk.listings._tasks


@pytest.mark.parametrize("has_begun", [True, False])
async def test_who_waits_while_it_is_closed_is_told_and_not_cancelled(desk: Desk, *, has_begun: bool) -> None:
    desk.gate = asyncio.Event()
    await desk.listings.warm_up()
    asking = asyncio.create_task(desk.listings.models(MINE))
    while not (desk.asked if has_begun else desk.listings._tasks):
        await asyncio.sleep(0)
    await desk.listings.close()
    with pytest.raises(WrongUse):
        await asking
    assert not asking.cancelled()


async def test_who_is_cancelled_while_it_is_closed_is_cancelled(desk: Desk) -> None:
    desk.gate = asyncio.Event()
    asking = asyncio.create_task(desk.listings.models(MINE))
    while not desk.asked:
        await asyncio.sleep(0)
    closing = asyncio.create_task(desk.listings.close())
    asking.cancel()
    await closing
    with pytest.raises(asyncio.CancelledError):
        await asking
