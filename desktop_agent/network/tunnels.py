"""Connections to a host and port, for bytes of somebody else: to an address that was looked at, or through a proxy."""

import asyncio
import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

import h11

from desktop_agent.network.checked_backend import Resolver, resolve_checked
from desktop_agent.network.failures import FetchFailed
from desktop_agent.network.fetching import proxy_for, tls_context
from desktop_agent.network.granted_hosts import HostAndPort
from desktop_agent.vocabulary.errors import Sentence

if TYPE_CHECKING:
    import httpx

READ_SIZE = 256 * 1024
HEAD_LIMIT = 64 * 1024
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class TunnelConnection:
    """Both directions of a connection. `rest` came already, and stands before what `reader` gives.

    `is_to_proxy`: it wants requests as a proxy takes them, with these headers.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    rest: bytes = b""
    is_to_proxy: bool = False
    headers: tuple[tuple[bytes, bytes], ...] = ()


async def open_connection(
    destination: HostAndPort, scheme: str, allowed: frozenset[str], resolve: Resolver, seconds: float
) -> TunnelConnection:
    """Connect as the person's own programs do. `allowed` are hosts that may have a private address.

    A proxy that is set is sent what is http, and asked for a tunnel for everything else; it finds the address. Each
    step may take so many seconds. Raises PrivateHost, FetchFailed, h11.RemoteProtocolError, and OSError.
    """
    proxy = proxy_for(scheme, destination.host)
    if proxy is None:
        return await _connect_directly(destination, allowed, resolve, seconds)
    async with asyncio.timeout(seconds):
        made = await _connect_to_proxy(proxy)
        try:
            return made if scheme == "http" else await _open_tunnel(made, destination)
        except BaseException:
            made.writer.transport.abort()
            raise


async def _connect_directly(
    destination: HostAndPort, allowed: frozenset[str], resolve: Resolver, seconds: float
) -> TunnelConnection:
    failure = OSError("it has no address")
    async with asyncio.timeout(seconds):
        addresses = await resolve_checked(destination.host, destination.port, allowed, resolve)
    for address in addresses:
        try:
            async with asyncio.timeout(seconds):
                return TunnelConnection(*await asyncio.open_connection(address, destination.port, limit=READ_SIZE))
        except OSError as error:  # of which a time-out is one
            failure = error
    raise failure


async def _connect_to_proxy(proxy: "httpx.URL") -> TunnelConnection:
    context = await asyncio.to_thread(tls_context) if proxy.scheme == "https" else None
    port = proxy.port or _DEFAULT_PORTS[proxy.scheme]
    reader, writer = await asyncio.open_connection(proxy.host, port, ssl=context, limit=READ_SIZE)
    secret = base64.b64encode(f"{proxy.username}:{proxy.password}".encode())
    headers = ((b"Proxy-Authorization", b"Basic " + secret),) if proxy.username else ()
    return TunnelConnection(reader, writer, is_to_proxy=True, headers=headers)


async def _open_tunnel(made: TunnelConnection, destination: HostAndPort) -> TunnelConnection:
    """Ask for a tunnel (RFC 9110, section 9.3.6)."""
    connection, place = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_LIMIT), str(destination).encode()
    request = h11.Request(method=b"CONNECT", target=place, headers=[(b"Host", place), *made.headers])
    made.writer.write(connection.send(request) or b"")
    answer = await next_event(connection, made.reader)
    while isinstance(answer, h11.InformationalResponse):
        answer = await next_event(connection, made.reader)
    status = answer.status_code if isinstance(answer, h11.Response) else 0
    if not 200 <= status < 300:
        values = {"host": str(destination), "status": f"{status}"}
        raise FetchFailed(Sentence("The proxy of this system does not connect to “{host}” ({status}).", values))
    return TunnelConnection(made.reader, made.writer, bytes(connection.trailing_data[0]))


async def next_event(
    connection: h11.Connection, reader: asyncio.StreamReader
) -> "type[h11.NEED_DATA | h11.PAUSED] | h11.Event":
    """The next part of a message. Raises h11.RemoteProtocolError, and OSError."""
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(await reader.read(READ_SIZE))
    return event
