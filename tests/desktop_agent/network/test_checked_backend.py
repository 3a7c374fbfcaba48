"""Nobody is connected to whose address was not looked at."""

import asyncio

import httpcore
import pytest

from desktop_agent.network.fetch import CheckedBackend, resolve_host
from desktop_agent.network.hosts import PrivateHost

PUBLIC = ["93.184.216.34", "93.184.216.35"]


class Doors(httpcore.AsyncNetworkBackend):
    """Connects to a real socket of loopback, but not for addresses that are shut."""

    def __init__(self, port: int, shut: tuple[str, ...] = ()) -> None:
        self.tried: list[str] = []
        self._port, self._close_bar, self._inner = port, shut, httpcore.AnyIOBackend()

    async def connect_tcp(self, host, port, timeout=None, local_address=None, socket_options=None):  # noqa: ASYNC109
        self.tried.append(host)
        if host in self._close_bar:
            raise httpcore.ConnectError("shut")
        return await self._inner.connect_tcp("127.0.0.1", self._port, timeout, local_address, socket_options)

    async def sleep(self, seconds):
        await asyncio.sleep(seconds)


@pytest.fixture
async def port():
    async def hear(reader, writer):
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()


def resolver(*addresses: str):
    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    return resolve


async def test_the_next_address_is_tried_when_one_is_shut(port):
    doors = Doors(port, shut=(PUBLIC[0],))
    stream = await CheckedBackend(doors, frozenset(), resolver(*PUBLIC)).connect_tcp("site.example", 80)
    await stream.aclose()
    assert doors.tried == PUBLIC


async def test_when_all_are_shut_it_is_said(port):
    doors = Doors(port, shut=tuple(PUBLIC))
    with pytest.raises(httpcore.ConnectError, match="shut"):
        await CheckedBackend(doors, frozenset(), resolver(*PUBLIC)).connect_tcp("site.example", 80)


async def test_no_address_is_tried_before_all_were_looked_at(port):
    doors = Doors(port)
    with pytest.raises(PrivateHost) as caught:
        await CheckedBackend(doors, frozenset({"other.example"}), resolver(PUBLIC[0], "10.0.0.1")).connect_tcp(
            "a.example", 80
        )
    assert (caught.value.host, caught.value.address) == ("a.example", "10.0.0.1")
    assert doors.tried == []


async def test_an_allowed_host_may_be_private(port):
    doors = Doors(port)
    stream = await CheckedBackend(doors, frozenset({"nas.lan"}), resolver("10.0.0.1")).connect_tcp("nas.lan", 80)
    await stream.aclose()
    assert doors.tried == ["10.0.0.1"]


async def test_the_system_knows_numbers_in_all_forms():
    assert await resolve_host("0x7f.1", 80) == ["127.0.0.1"]
