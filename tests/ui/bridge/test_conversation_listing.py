import asyncio

import pytest

from tests.fakes.qt_loop import Bridge, Heard, until
from ui.bridge import conversation_listing


@pytest.fixture(autouse=True)
def short_pages(monkeypatch):
    monkeypatch.setattr(conversation_listing, "PAGE", 3)


async def with_conversations(folder, count):
    bridge = await Bridge.open(folder)
    for number in range(count):
        await bridge.engine.store.create_conversation(title=str(number))
    return bridge


def test_every_conversation_is_reached_page_by_page(in_loop, tmp_path):
    async def work():
        bridge = await with_conversations(tmp_path, 7)
        listing = bridge.library.listing
        listed = Heard(listing.listed)
        bridge.library.refresh()
        await listed.next()
        for _ in range(5):
            listing.read_on()
            listing.read_on()
            await bridge.idle()
        assert [[row.title for row in rows] for rows in listed] == [
            ["6", "5", "4"],
            ["6", "5", "4", "3", "2", "1"],
            ["6", "5", "4", "3", "2", "1", "0"],
        ]
        assert listing.has(listed[-1][-1].id)
        await bridge.close()

    in_loop(work())


def test_what_was_read_is_read_again_as_it_is_by_now(in_loop, tmp_path):
    async def work():
        bridge = await with_conversations(tmp_path, 8)
        listing = bridge.library.listing
        listed = Heard(listing.listed)
        await listing.refresh()
        listing.read_on()
        await bridge.idle()
        bridge.library.rename(listed[-1][4].id, "Renamed")
        await until(lambda: "Renamed" in [row.title for row in listed[-1]])
        assert len(listed[-1]) == 6
        await bridge.idle()
        await bridge.close()

    in_loop(work())


def test_a_page_that_comes_after_a_new_reading_is_left_out(in_loop, tmp_path):
    async def work():
        bridge = await with_conversations(tmp_path, 8)
        listing = bridge.library.listing
        listed = Heard(listing.listed)
        await listing.refresh()
        reading = asyncio.create_task(listing.refresh())
        listing.read_on()
        await reading
        await bridge.idle()
        titles = [row.title for row in listed[-1]]
        assert len(titles) == len(set(titles))
        await bridge.close()

    in_loop(work())
