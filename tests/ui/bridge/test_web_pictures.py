"""A private machine is asked only after the person insisted on that very one."""

import pytest

from desktop_agent.types.errors import ImageRefused
from tests.fakes.http_server import Loopback, Reply
from tests.ui.transcript.test_pictures import png
from ui.bridge.storage import WebPictures


async def refused(web, address, **options):
    with pytest.raises(ImageRefused) as error_info:
        await web.load(address, **options)
    assert error_info.value.kind == "private_address"
    return error_info.value


async def test_insisting_counts_for_what_was_refused(qapp):
    async with Loopback(Reply(png(3, 2)), judged=False) as server:
        web, address = WebPictures(), f"{server.root}/a.png"
        await refused(web, address, insists=True)
        await refused(web, address)
        assert server.connections == 0
        assert await web.load(address, insists=True) == png(3, 2)
        await refused(web, f"{server.root}/b.png")


async def test_a_redirect_to_another_private_machine_asks_again(qapp):
    inner = Loopback(Reply(png(3, 2)), judged=False)
    async with inner:
        moved = Reply(b"", 302, {"location": f"http://localhost:{inner.port}/"}, "length")
        async with Loopback(moved, judged=False) as server:
            web, address = WebPictures(), f"{server.root}/a.png"
            await refused(web, address)
            assert "localhost" in str(await refused(web, address, insists=True))
            assert inner.connections == 0
            assert await web.load(address, insists=True) == png(3, 2)
