"""The network of a command that is alone in one: a proxy, in a thread of its own, to the hosts that the call names."""

import asyncio
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from desktop_agent.network.granted_hosts import parse_granted_host
from desktop_agent.network.web_addresses import canonical_hosts
from desktop_agent.tools.in_thread import run_in_thread

if TYPE_CHECKING:
    from desktop_agent.network.checked_backend import Resolver
    from desktop_agent.network.host_proxy import HostProxy


class CommandNetwork:
    """`channel` is passed on to the command's launcher, which sends a socket over it that listens in there."""

    def __init__(self, proxy: "HostProxy") -> None:
        self._proxy = proxy
        self._here, self._there = socket.socketpair()
        self._loop = asyncio.SelectorEventLoop()
        self._serving: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="network of a command", daemon=True)
        self._thread.start()

    @property
    def channel(self) -> int:
        """The number of a descriptor."""
        return self._there.fileno()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what could not be reached."""
        return self._proxy.notes

    def close(self) -> None:
        """End every connection. Waits for the thread."""
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._stop)
        self._thread.join()
        for each in (self._here, self._there):
            each.close()

    def _stop(self) -> None:
        if self._serving is not None:
            self._serving.cancel()

    def _run(self) -> None:
        try:
            self._serving = self._loop.create_task(self._serve())
            with suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._serving)
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        listening = await self._listener()
        if listening is not None:
            with listening:
                await self._proxy.serve(listening)

    async def _listener(self) -> socket.socket | None:
        """What the launcher sends; None where it ends without."""
        self._here.settimeout(0)
        is_readable = asyncio.Event()
        self._loop.add_reader(self._here, is_readable.set)
        try:
            await is_readable.wait()
        finally:
            self._loop.remove_reader(self._here)
        _, descriptors, _, _ = socket.recv_fds(self._here, 1, 1)
        return socket.socket(fileno=descriptors[0]) if descriptors else None


@asynccontextmanager
async def open_command_network(
    hosts: Sequence[str], private_hosts: Callable[[], frozenset[str]], resolve: "Resolver | None"
) -> AsyncGenerator[CommandNetwork | None, None]:
    """For as long as a command runs; None for one that names no hosts."""
    if not hosts:
        yield None
        return
    made: list[CommandNetwork] = []
    try:
        await run_in_thread(lambda _token: made.append(CommandNetwork(_build_proxy(hosts, private_hosts(), resolve))))
        yield made[0]
    finally:
        await run_in_thread(lambda _token: _close_all(made))


def _build_proxy(hosts: Sequence[str], private: frozenset[str], resolve: "Resolver | None") -> "HostProxy":
    # What speaks HTTP takes a tenth of a second to load, and most commands never need it.
    from desktop_agent.network.checked_backend import resolve_host
    from desktop_agent.network.host_proxy import HostProxy

    granted = [parse_granted_host(each) for each in hosts]
    return HostProxy(granted, canonical_hosts(private), resolve=resolve or resolve_host)


def _close_all(networks: Sequence[CommandNetwork]) -> None:
    for each in networks:
        each.close()
