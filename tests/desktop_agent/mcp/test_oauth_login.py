"""The local listener to which the browser is redirected after a sign-in."""

import asyncio

import pytest

from desktop_agent.mcp.oauth_login import CallbackListener
from tests.fakes.listening import cancel_after, record_bound_sockets
from tests.fakes.mcp_client import until


async def test_who_only_holds_connections_open_keeps_the_answer_from_none():
    listener = CallbackListener()
    async with listener.listen(0):
        listener.state = "state"
        port = int(listener.address.split(":")[2].split("/")[0])
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(30)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /callback?code=c&state=state HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert (await listener.answer()).code == "c"
        for _, connection_writer in [*idle, (reader, writer)]:
            connection_writer.transport.abort()
        await until(lambda: not listener._open)


@pytest.mark.parametrize("turns", range(1, 9))
async def test_a_sign_in_that_is_cancelled_at_any_moment_stops_listening(monkeypatch, turns):
    bound = record_bound_sockets(monkeypatch)

    async def listen():
        async with CallbackListener().listen(0):
            await asyncio.Event().wait()

    await cancel_after(turns, listen())
    assert [listener for listener in bound if listener.fileno() != -1] == []
