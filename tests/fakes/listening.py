"""Helps tests that cancel a server while it starts."""

import asyncio
import socket
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any


def record_bound_sockets(monkeypatch) -> list[socket.socket]:
    """Return a list to which every socket is added that is bound from now on."""
    bound: list[socket.socket] = []

    class Recorded(socket.socket):
        def bind(self, address: Any) -> None:
            super().bind(address)
            bound.append(self)

    monkeypatch.setattr(socket, "socket", Recorded)
    return bound


async def cancel_after(turns: int, work: Coroutine[Any, Any, Any]) -> None:
    """Cancel the work after so many turns of the loop, and wait for its end."""
    task = asyncio.ensure_future(work)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
