"""Connections to hosts that were looked at."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable

import httpcore

from desktop_agent.network.failures import PrivateHost
from desktop_agent.network.public_addresses import is_public_address

Resolver = Callable[[str, int], Awaitable[list[str]]]
"""All addresses of a host, in the order in which they are tried. Raises OSError."""


async def resolve_host(host: str, port: int) -> list[str]:
    """As the system finds them. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


async def resolve_checked(host: str, port: int, allowed: frozenset[str], resolve: Resolver) -> list[str]:
    """All addresses of a host. Raises OSError, and PrivateHost when one is private; `allowed` hosts may have such."""
    addresses = await resolve(host, port)
    for address in addresses:
        _require_public(host, address, allowed)
    return addresses


def _require_public(host: str, address: str, allowed: frozenset[str]) -> None:
    if host not in allowed and not is_public_address(address):
        raise PrivateHost(host, address)


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects to an address only after looking at it, and to no other than the one that it looked at.

    `allowed` are hosts that may have a private address.
    """

    def __init__(
        self, inner: httpcore.AsyncNetworkBackend, allowed: frozenset[str], resolve: Resolver = resolve_host
    ) -> None:
        self.inner = inner
        self._allowed = allowed
        self._resolve = resolve

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the library's own interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """The first of its addresses that answers. Raises PrivateHost when one of them is private."""
        failure: Exception = httpcore.ConnectError(f"no address of {host}")
        for address in await resolve_checked(host, port, self._allowed, self._resolve):
            try:
                return await self.inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def check_literal(self, host: str) -> None:
        """For a host that is itself an address, however it is written; a name is not looked up. Raises PrivateHost."""
        ask = asyncio.get_running_loop().getaddrinfo
        try:
            found = await ask(host.rstrip("."), None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except OSError:
            return
        _require_public(host, str(found[0][4][0]), self._allowed)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002
    ) -> httpcore.AsyncNetworkStream:
        """Never: the web does not lie behind sockets of this machine."""
        raise httpcore.ConnectError(path)

    async def sleep(self, seconds: float) -> None:
        """As the library does it."""
        await self.inner.sleep(seconds)
