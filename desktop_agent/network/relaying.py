"""What goes on from a client to a server that it may reach, and what comes back.

What goes on is looked at as far as it says which host is meant. A tunnel takes TLS that names no other host (SNI) and
requests of HTTP; servers are lenient in what they take for one, so nothing else is passed on. A request of HTTP, in a
tunnel too, is written anew with the host that was asked for, and is the only one on its connection. What comes back is
passed on as it is.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable

import h11

from desktop_agent.network.client_hello import (
    HANDSHAKE_RECORD,
    IncompleteHello,
    may_start_hello,
    parse_server_name,
    record_size,
)
from desktop_agent.network.granted_hosts import HostAndPort
from desktop_agent.network.tunnels import HEAD_LIMIT, READ_SIZE, TunnelConnection, next_event

_DEFAULT_PORT = 80
# Empty lines may stand before a request (RFC 9112, section 2.2).
_EMPTY_LINE = b"\r\n"
# The first line of a request, and what may become one.
_REQUEST = re.compile(rb"[A-Za-z_-]{1,24} [!-~]{1,64000} HTTP/1\.[01]\r?\n")
_MAYBE_REQUEST = re.compile(rb"[A-Za-z_-]{0,24}|[A-Za-z_-]{1,24} [!-~]{0,64000}(?: [HTP/1.0]{0,8}\r?)?")
# In so many pieces a beginning may come, and in so many records a hello: each time all of it is read anew.
_MAX_READS = 64
# They concern one connection (RFC 9110, section 7.6.1), or are written anew.
_HOP_HEADERS = frozenset(
    b"connection keep-alive proxy-connection proxy-authenticate proxy-authorization te trailer upgrade host".split()
)
# They say where the body ends.
_FRAMING_HEADERS = frozenset({b"transfer-encoding", b"content-length"})


class UnexpectedHost(Exception):
    """A TLS client in a tunnel means this host, and not the one that it asked for."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.host = host


class UnexpectedProtocol(Exception):
    """What a client sends through a tunnel is neither TLS nor HTTP, or not as either is written."""


async def relay(
    client: TunnelConnection, upstream: TunnelConnection, outgoing: AsyncGenerator[bytes, None], idle: float
) -> None:
    """Pass both directions on until the server has ended its own.

    Raises TimeoutError after so many seconds without a byte, what `outgoing` raises, and OSError.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(idle) as limit:

        async def send(pieces: AsyncGenerator[bytes, None], writer: asyncio.StreamWriter) -> None:
            async for piece in pieces:
                limit.reschedule(loop.time() + idle)
                writer.write(piece)
                await writer.drain()

        back = asyncio.create_task(send(_read_pieces(upstream), client.writer))
        forth = asyncio.create_task(send(_with_eof(outgoing, upstream), upstream.writer))
        try:
            await asyncio.wait((back, forth), return_when=asyncio.FIRST_COMPLETED)
            # A server may answer before it has read everything, and read no more.
            if not back.done() and (error := forth.exception()) is not None and not isinstance(error, OSError):
                raise error
            await back
        finally:
            for task in (back, forth):
                task.cancel()
            await asyncio.gather(back, forth, return_exceptions=True)
            await outgoing.aclose()


async def _read_pieces(connection: TunnelConnection) -> AsyncGenerator[bytes, None]:
    if connection.rest:
        yield connection.rest
    while piece := await connection.reader.read(READ_SIZE):
        yield piece


async def _with_eof(outgoing: AsyncGenerator[bytes, None], upstream: TunnelConnection) -> AsyncGenerator[bytes, None]:
    """The same; then the server learns that no more comes."""
    async for piece in outgoing:
        yield piece
    if upstream.writer.can_write_eof():
        upstream.writer.write_eof()


async def tunnel_bytes(
    destination: HostAndPort, is_allowed: Callable[[str], bool], client: TunnelConnection, upstream: TunnelConnection
) -> AsyncGenerator[bytes, None]:
    """What goes through a tunnel. `is_allowed` says whether a name in its beginning is one that may be reached.

    Raises UnexpectedHost, UnexpectedProtocol, and h11.ProtocolError in the body of a request.
    """
    start, is_request = await _read_start(client)
    if is_request:
        request, head = await _read_head(start, client)
        async for piece in rewrite_request(destination, request, head, client, upstream):
            yield piece
        return
    async for piece in _forward_tls(is_allowed, start, client.reader):
        yield piece


async def _read_start(client: TunnelConnection) -> tuple[bytes, bool]:
    """As much of it as tells what it is, and whether that is a request of HTTP."""
    start = client.rest
    for _ in range(_MAX_READS):
        request = start.lstrip(_EMPTY_LINE)
        if _REQUEST.match(request):
            return request, True
        if start[:1] == bytes((HANDSHAKE_RECORD,)):
            return start, False
        if not _MAYBE_REQUEST.fullmatch(request):
            break
        piece = await client.reader.read(READ_SIZE)
        if not piece:
            return b"", False
        start += piece
    raise UnexpectedProtocol


async def _forward_tls(
    is_allowed: Callable[[str], bool], start: bytes, reader: asyncio.StreamReader
) -> AsyncGenerator[bytes, None]:
    """TLS, record by record.

    A server may ask for another hello (RFC 8446, section 4.1.4). Until that comes it passes over early data, and then
    it goes by the name in it: so no hello goes on unread, however late.
    """
    hello: list[bytes] = []
    is_first = True
    async for record in _tls_records(start, reader):
        if not (is_first or hello or may_start_hello(record)):
            yield record
            continue
        hello.append(record)
        if _is_complete_hello(b"".join(hello), is_allowed):
            yield b"".join(hello)
            hello, is_first = [], False
        elif len(hello) == _MAX_READS:
            raise UnexpectedProtocol


async def _tls_records(start: bytes, reader: asyncio.StreamReader) -> AsyncGenerator[bytes, None]:
    came = bytearray(start)
    while True:
        try:
            size = record_size(came)
        except ValueError:
            raise UnexpectedProtocol from None
        if len(came) >= size:
            yield bytes(came[:size])
            del came[:size]
        elif piece := await reader.read(READ_SIZE):
            came += piece
        else:
            return


def _is_complete_hello(start: bytes, is_allowed: Callable[[str], bool]) -> bool:
    try:
        name = parse_server_name(start)
    except IncompleteHello:
        return False
    except ValueError:
        raise UnexpectedProtocol from None
    if name is not None and not is_allowed(name):
        raise UnexpectedHost(name)
    return True


async def _read_head(start: bytes, client: TunnelConnection) -> tuple[h11.Request, h11.Connection]:
    head = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT)
    head.receive_data(start)
    try:
        request = await next_event(head, client.reader)
        if isinstance(request, h11.Request) and request.method != b"CONNECT":
            _request_path(request.target)
            return request, head
    except h11.RemoteProtocolError:
        pass
    raise UnexpectedProtocol


async def rewrite_request(
    destination: HostAndPort,
    request: h11.Request,
    head: h11.Connection,
    client: TunnelConnection,
    upstream: TunnelConnection,
) -> AsyncGenerator[bytes, None]:
    """One request, written anew; what the client sends after it goes nowhere. Raises h11.ProtocolError."""
    ours, path = h11.Connection(h11.CLIENT), _request_path(request.target)
    place = (destination.bracketed if destination.port == _DEFAULT_PORT else str(destination)).encode()
    target = b"http://" + place + path if upstream.is_to_proxy else path
    headers = [(b"Host", place), *_forwarded_headers(request), *upstream.headers, (b"Connection", b"close")]
    yield ours.send(h11.Request(method=request.method, target=target, headers=headers)) or b""
    while not isinstance(event := await next_event(head, client.reader), h11.EndOfMessage):
        if not isinstance(event, h11.Data):
            return
        yield ours.send(h11.Data(data=event.data)) or b""
    yield ours.send(h11.EndOfMessage()) or b""
    while await client.reader.read(READ_SIZE):
        pass


def _forwarded_headers(request: h11.Request) -> list[tuple[bytes, bytes]]:
    named = b",".join(value for name, value in request.headers if name == b"connection").lower().split(b",")
    dropped = {*_HOP_HEADERS, *(each.strip() for each in named)} - _FRAMING_HEADERS
    if any(name == b"transfer-encoding" for name, _ in request.headers):
        dropped.add(b"content-length")
    return [(name, value) for name, value in request.headers if name not in dropped]


def _request_path(target: bytes) -> bytes:
    """Of a target that may have a host of its own: a server goes by that, whatever the header says."""
    if target == b"*" or target.startswith(b"/"):
        return target
    rest = target.partition(b"://")[2]
    if not rest:
        raise h11.RemoteProtocolError("the target is no path and no address")
    path = re.sub(rb"^[^/?#]*", b"", rest)
    return path if path.startswith(b"/") else b"/" + path
