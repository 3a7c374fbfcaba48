"""Connections on asyncio's transports: silence, read intervals, back-pressure and endings."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpcore
import pytest

from desktop_agent.providers.transport.socket_stream import SocketBackend
from tests.fakes.stopping_server import certificate, server_side
from tests.frame.patience import PATIENCE

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def connected(handler: Handler, interval: float = 0.0) -> AsyncIterator[httpcore.AsyncNetworkStream]:
    handled = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await handler(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        handled.set()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        stream = await SocketBackend(interval).connect_tcp("127.0.0.1", port, timeout=PATIENCE)
        try:
            yield stream
        finally:
            await stream.aclose()
            await handled.wait()


async def _read_all(stream: httpcore.AsyncNetworkStream, pause: float = 0.0) -> list[bytes]:
    pieces: list[bytes] = []
    while piece := await stream.read(65536, PATIENCE):
        pieces.append(piece)
        await asyncio.sleep(pause)
    return pieces


async def test_what_comes_is_read_until_the_end() -> None:
    async def write(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")

    async with connected(write) as stream:
        assert b"".join(await _read_all(stream)) == b"hello"
        assert await stream.read(10, 1) == b""
        assert stream.get_extra_info("is_readable") is True


async def test_no_more_is_read_than_was_asked_for() -> None:
    async def write(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")

    async with connected(write) as stream:
        assert await stream.read(2, PATIENCE) == b"he"
        assert await stream.read(9, PATIENCE) == b"llo"


async def test_silence_counts_from_each_read() -> None:
    async def write(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(4):
            writer.write(b".")
            await asyncio.sleep(0.15)
        await reader.read()

    async with connected(write) as stream:
        for _ in range(4):
            assert await stream.read(10, 0.3) == b"."
        with pytest.raises(httpcore.ReadTimeout):
            await stream.read(10, 0.3)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(stream.read(10), 0.5)  # without a limit of its own
        # A shorter limit than the one before counts at once.
        with pytest.raises(httpcore.ReadTimeout):
            await asyncio.wait_for(stream.read(10, 0.01), PATIENCE)


async def test_small_pieces_within_an_interval_are_read_together() -> None:
    async def write(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(40):
            writer.write(b".")
            await asyncio.sleep(0.005)

    async with connected(write, interval=0.1) as stream:
        pieces = await _read_all(stream)
        assert b"".join(pieces) == b"." * 40
        assert pieces[0] == b"."
        assert len(pieces) < 20


async def test_much_is_read_at_once_whatever_the_interval() -> None:
    async def write(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(100):
            writer.write(b"x" * 8192)
            await writer.drain()

    async with connected(write, interval=PATIENCE) as stream:
        async with asyncio.timeout(PATIENCE / 2):
            assert sum(map(len, await _read_all(stream))) == 819_200


async def test_a_server_waits_while_nobody_reads() -> None:
    byte_count = 0

    async def write(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal byte_count
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        for _ in range(1000):
            writer.write(b"x" * 65536)
            await writer.drain()
            byte_count += 65536

    async with connected(write) as stream:
        before = -1
        while byte_count != before:
            before = byte_count
            await asyncio.sleep(0.2)
        assert byte_count < 32 * 1024 * 1024
        assert sum(map(len, await _read_all(stream))) == 1000 * 65536


async def test_a_break_is_an_error_and_not_an_end() -> None:
    async def reset(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"half")
        await writer.drain()
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.transport.abort()

    async with connected(reset) as stream:
        with pytest.raises(httpcore.ReadError):
            await _read_all(stream)


async def test_closing_ends_the_connection_at_once() -> None:
    closed = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read()
        closed.set()

    async with connected(wait) as stream:
        await stream.aclose()
        async with asyncio.timeout(PATIENCE):
            await closed.wait()
        with pytest.raises(httpcore.ReadError):
            await stream.read(10, 1)


async def test_where_nobody_listens_the_cause_is_told() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(httpcore.ConnectError) as caught:
            await SocketBackend().connect_tcp("localhost", unused.getsockname()[1], timeout=PATIENCE)
    causes = getattr(caught.value.__cause__, "exceptions", (caught.value.__cause__,))
    assert all(isinstance(cause, ConnectionRefusedError) for cause in causes)


async def test_what_came_unencrypted_does_not_pass_for_encrypted() -> None:
    async def forge(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + b"forged")
        await reader.read()

    async with connected(forge) as stream:
        assert await stream.read(19, PATIENCE) == b"HTTP/1.1 200 OK\r\n\r\n"
        with pytest.raises(httpcore.ConnectError):
            await stream.start_tls(ssl.create_default_context(), "localhost", PATIENCE)


async def test_silence_before_tls_does_not_count_behind_it(tmp_path: Path) -> None:
    file = certificate(tmp_path)

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        writer.write(b"open")
        await writer.drain()
        await writer.start_tls(server_side(file))
        for _ in range(8):
            await asyncio.sleep(0.1)
            writer.write(b".")
        await reader.read()

    async with connected(tunnel) as stream:
        assert await stream.read(4, 0.4) == b"open"
        encrypted = await stream.start_tls(ssl.create_default_context(cafile=str(file)), "127.0.0.1", PATIENCE)
        for _ in range(8):
            assert await encrypted.read(1, PATIENCE) == b"."


async def test_a_cancel_between_two_addresses_leaves_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    open_now = 0

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now
        open_now += 1
        with contextlib.suppress(ConnectionError):
            await reader.read()
        open_now -= 1
        writer.close()

    async def both(_host: str, port: int, **_options: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in ("127.0.0.1", "127.0.0.2")]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", both)
    async with await asyncio.start_server(wait, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        for turns in range(30):
            connecting = asyncio.create_task(SocketBackend().connect_tcp("two.example", port, PATIENCE))
            for _ in range(turns):
                await asyncio.sleep(0)
            connecting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await (await connecting).aclose()
        await asyncio.sleep(0.2)
        assert open_now == 0


@pytest.mark.parametrize("host", ["a..example", "x" * 70 + ".example"])
async def test_a_name_that_cannot_be_looked_up_is_not_known(host: str) -> None:
    with pytest.raises(httpcore.ConnectError):
        await SocketBackend().connect_tcp(host, 80, PATIENCE)


async def test_a_server_that_never_pauses_leaves_turns_to_others() -> None:
    async def write(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x" * 1000)
        await writer.drain()

    async with connected(write) as stream:
        await stream.read(1, PATIENCE)
        turns: list[int] = []
        asyncio.get_running_loop().call_soon(turns.append, 1)
        # All of it has arrived: without a turn of the loop in between, no other task would run.
        await stream.read(1, PATIENCE)
        assert turns == [1]
