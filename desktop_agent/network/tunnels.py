"""Relay a client's bytes to a server it may reach: connections, TLS client hellos (SNI), and rewritten HTTP requests.

A tunnel passes on TLS that names no other host (RFC 8446, RFC 6066) and HTTP requests, nothing else. Answers are passed
on unchanged.
"""

import asyncio
import base64
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import h11

from desktop_agent.network.fetch import Resolver, resolve_checked
from desktop_agent.network.hosts import HostAndPort
from desktop_agent.network.system_proxy import proxy_for, proxy_refusal
from desktop_agent.network.tls import tls_context

if TYPE_CHECKING:
    import httpx


READ_SIZE = 256 * 1024
HEAD_LIMIT = 64 * 1024
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class TunnelConnection:
    """Both directions of a connection. `rest` was received already, and comes before what `reader` gives.

    `is_to_proxy`: the other end takes requests as a proxy does, with these headers.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    rest: bytes = b""
    is_to_proxy: bool = False
    headers: tuple[tuple[bytes, bytes], ...] = ()


async def open_connection(
    destination: HostAndPort, scheme: str, allowed: frozenset[str], resolve: Resolver, seconds: float
) -> TunnelConnection:
    """Connect as the person's own programs do. `allowed` hosts may have a private address.

    A configured proxy gets http requests as they are, and must open a tunnel for everything else; it finds the
    address. Each step may take `seconds`. Raises PrivateHost, FetchFailed, h11.RemoteProtocolError, and OSError.
    """
    proxy = proxy_for(scheme, destination.host)
    if proxy is None:
        return await _connect_directly(destination, allowed, resolve, seconds)
    async with asyncio.timeout(seconds):
        connection = await _connect_to_proxy(proxy)
        try:
            return connection if scheme == "http" else await _open_tunnel(connection, destination)
        except BaseException:
            connection.writer.transport.abort()
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


async def _open_tunnel(proxy: TunnelConnection, destination: HostAndPort) -> TunnelConnection:
    connection, authority = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_LIMIT), str(destination).encode()
    request = h11.Request(method=b"CONNECT", target=authority, headers=[(b"Host", authority), *proxy.headers])
    proxy.writer.write(connection.send(request) or b"")
    response = await next_event(connection, proxy.reader)
    while isinstance(response, h11.InformationalResponse):
        response = await next_event(connection, proxy.reader)
    status = response.status_code if isinstance(response, h11.Response) else 0
    if not 200 <= status < 300:
        raise proxy_refusal(str(destination), str(status))
    return TunnelConnection(proxy.reader, proxy.writer, bytes(connection.trailing_data[0]))


async def next_event(
    connection: h11.Connection, reader: asyncio.StreamReader
) -> "type[h11.NEED_DATA | h11.PAUSED] | h11.Event":
    """Return the next part of a message. Raises h11.RemoteProtocolError, and OSError."""
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(await reader.read(READ_SIZE))
    return event


HANDSHAKE_RECORD = 0x16
MAX_HELLO_SIZE = 64 * 1024
# From change_cipher_spec to heartbeat.
_RECORD_TYPES = range(0x14, 0x19)
_RECORD_HEADER_SIZE = 5
_MAJOR_VERSION = 3
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_HOST_NAME = 0
_RANDOM = 2 + 32
_SESSION_SIZE = 1 + 3 + _RANDOM


class IncompleteHello(Exception):
    """The client hello is not complete yet."""


def record_size(start: bytes | bytearray) -> int:
    """Return the size of the record that begins like this, with its header. While the header is incomplete, the size is
    larger than `start`.

    Raises ValueError for what is no record (RFC 8446, section 5.1).
    """
    if (start and start[0] not in _RECORD_TYPES) or (len(start) > 1 and start[1] != _MAJOR_VERSION):
        raise ValueError("this is no record of TLS")
    return _RECORD_HEADER_SIZE + int.from_bytes(start[3:_RECORD_HEADER_SIZE])


def may_start_hello(record: bytes) -> bool:
    """Whether a client hello may begin with this record; of encrypted records, one in 170,000 does."""
    if record[0] != HANDSHAKE_RECORD:
        return False
    message = record[_RECORD_HEADER_SIZE:]
    # Empty records must not hide the next one. Servers accept more than 2 ** 17 bytes and later versions.
    is_kind, is_length = message[:1] in (b"", b"\x01"), message[1:2] <= b"\x02"
    is_version = not message[4:5] or message[4] >= _MAJOR_VERSION
    return is_kind and is_length and is_version and message[_SESSION_SIZE : _SESSION_SIZE + 1] <= b"\x20"


def parse_server_name(data: bytes) -> str | None:
    """Return the host that the client names (SNI), in lower case; None if it names none.

    Raises IncompleteHello while the message is incomplete, and ValueError for what is no first message of a client.
    """
    message = _ByteReader(_handshake_message(data))
    message.take(_RANDOM)
    message.block(1)  # session
    message.block(2)  # ciphers
    message.block(1)  # compression
    if not message.remaining:
        return None
    extensions, names = _ByteReader(message.block(2)), list[bytes]()
    while extensions.remaining:
        kind, content = extensions.number(2), extensions.block(2)
        if kind == _SERVER_NAME:
            names.append(_host_name(content))
    if len(names) > 1:
        raise ValueError("the client names its server more than once")
    return names[0].decode("ascii").lower().removesuffix(".") if names else None


def _handshake_message(data: bytes) -> bytes:
    """Return the body of the handshake message, which may be spread over several records."""
    gathered, records = bytearray(), _ByteReader(data)
    while len(gathered) < 4 or len(gathered) < 4 + int.from_bytes(gathered[1:4]):
        if len(gathered) > MAX_HELLO_SIZE:
            raise ValueError("the first message of the client is too long")
        if records.remaining and records.number(1) != HANDSHAKE_RECORD:
            raise ValueError("the first record of the client is no handshake")
        if records.remaining < 4:
            raise IncompleteHello
        version = records.number(2)
        if version >> 8 != _MAJOR_VERSION:
            raise ValueError("the version of the first record is not known")
        length = records.number(2)
        if not length:
            raise ValueError("a record is empty")
        if records.remaining < length:
            raise IncompleteHello
        gathered += records.take(length)
    if gathered[0] != _CLIENT_HELLO:
        raise ValueError("the client does not begin with its hello")
    if len(gathered) > 4 + int.from_bytes(gathered[1:4]):
        raise ValueError("behind the hello of the client its record goes on")
    return bytes(gathered[4:])


def _host_name(extension: bytes) -> bytes:
    entries = _ByteReader(_ByteReader(extension).block(2))
    kind, name = entries.number(1), entries.block(2)
    if kind != _HOST_NAME or entries.remaining or not name:
        raise ValueError("the client names its server in a way that is not known")
    return name


class _ByteReader:
    """Reads from the front. Raises ValueError if too few bytes remain."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)

    @property
    def remaining(self) -> int:
        return len(self._data)

    def take(self, count: int) -> bytes:
        if count > len(self._data):
            raise ValueError("the first message of the client ends too early")
        first, self._data = self._data[:count], self._data[count:]
        return bytes(first)

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def block(self, size: int) -> bytes:
        return self.take(self.number(size))


_DEFAULT_PORT = 80
# Empty lines may precede a request (RFC 9112, section 2.2).
_EMPTY_LINE = b"\r\n"
# The first line of a request, and a beginning of one.
_REQUEST = re.compile(rb"[A-Za-z_-]{1,24} [!-~]{1,64000} HTTP/1\.[01]\r?\n")
_MAYBE_REQUEST = re.compile(rb"[A-Za-z_-]{0,24}|[A-Za-z_-]{1,24} [!-~]{0,64000}(?: [HTP/1.0]{0,8}\r?)?")
# The most reads of a beginning, and records of a hello: all of it is parsed again after each.
_MAX_READS = 64
# Headers for one connection only (RFC 9110, section 7.6.1), or rewritten.
_HOP_HEADERS = frozenset(
    b"connection keep-alive proxy-connection proxy-authenticate proxy-authorization te trailer upgrade host".split()
)
# These define where the body ends.
_FRAMING_HEADERS = frozenset({b"transfer-encoding", b"content-length"})


class UnexpectedHost(Exception):
    """A TLS client in a tunnel names this host, and not the one that the tunnel was opened for."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.host = host


class UnexpectedProtocol(Exception):
    """What a client sends through a tunnel is neither TLS nor HTTP, or is malformed."""


async def relay(
    client: TunnelConnection, upstream: TunnelConnection, outgoing: AsyncGenerator[bytes, None], idle: float
) -> None:
    """Pass on both directions until the server closes its own.

    Raises TimeoutError after `idle` seconds without a byte, what `outgoing` raises, and OSError.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(idle) as limit:

        async def send(pieces: AsyncGenerator[bytes, None], writer: asyncio.StreamWriter) -> None:
            async for piece in pieces:
                limit.reschedule(loop.time() + idle)
                writer.write(piece)
                await writer.drain()

        to_client = asyncio.create_task(send(_read_pieces(upstream), client.writer))
        to_server = asyncio.create_task(send(_with_eof(outgoing, upstream), upstream.writer))
        try:
            await asyncio.wait((to_client, to_server), return_when=asyncio.FIRST_COMPLETED)
            # A server may answer before it has read everything, and stop reading.
            if not to_client.done() and (error := to_server.exception()) is not None and not isinstance(error, OSError):
                raise error
            await to_client
        finally:
            for task in (to_client, to_server):
                task.cancel()
            await asyncio.gather(to_client, to_server, return_exceptions=True)
            await outgoing.aclose()


async def _read_pieces(connection: TunnelConnection) -> AsyncGenerator[bytes, None]:
    if connection.rest:
        yield connection.rest
    while piece := await connection.reader.read(READ_SIZE):
        yield piece


async def _with_eof(outgoing: AsyncGenerator[bytes, None], upstream: TunnelConnection) -> AsyncGenerator[bytes, None]:
    """Pass the pieces on, then close the server's direction."""
    async for piece in outgoing:
        yield piece
    if upstream.writer.can_write_eof():
        upstream.writer.write_eof()


async def tunnel_bytes(
    destination: HostAndPort, is_allowed: Callable[[str], bool], client: TunnelConnection, upstream: TunnelConnection
) -> AsyncGenerator[bytes, None]:
    """Return what is sent through a tunnel. `is_allowed` decides about a host name in its beginning.

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
    """Read until the protocol is known; return the bytes, and whether they are an HTTP request."""
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
    """Pass TLS on, record by record.

    A server may ask for another hello (RFC 8446, section 4.1.4). Until that comes it skips early data, and then it uses
    the name in it: so every hello is read, however late.
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
    received = bytearray(start)
    while True:
        try:
            size = record_size(received)
        except ValueError:
            raise UnexpectedProtocol from None
        if len(received) >= size:
            yield bytes(received[:size])
            del received[:size]
        elif piece := await reader.read(READ_SIZE):
            received += piece
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
    """Return one request, rewritten; what the client sends after it is dropped. Raises h11.ProtocolError."""
    connection, path = h11.Connection(h11.CLIENT), _request_path(request.target)
    authority = (destination.bracketed if destination.port == _DEFAULT_PORT else str(destination)).encode()
    target = b"http://" + authority + path if upstream.is_to_proxy else path
    headers = [(b"Host", authority), *_forwarded_headers(request), *upstream.headers, (b"Connection", b"close")]
    yield connection.send(h11.Request(method=request.method, target=target, headers=headers)) or b""
    while not isinstance(event := await next_event(head, client.reader), h11.EndOfMessage):
        if not isinstance(event, h11.Data):
            return
        yield connection.send(h11.Data(data=event.data)) or b""
    yield connection.send(h11.EndOfMessage()) or b""
    while await client.reader.read(READ_SIZE):
        pass


def _forwarded_headers(request: h11.Request) -> list[tuple[bytes, bytes]]:
    named = b",".join(value for name, value in request.headers if name == b"connection").lower().split(b",")
    dropped = {*_HOP_HEADERS, *(name.strip() for name in named)} - _FRAMING_HEADERS
    if any(name == b"transfer-encoding" for name, _ in request.headers):
        dropped.add(b"content-length")
    return [(name, value) for name, value in request.headers if name not in dropped]


def _request_path(target: bytes) -> bytes:
    """Return the path of a target that may name a host: a server would use that host, whatever the header says."""
    if target == b"*" or target.startswith(b"/"):
        return target
    rest = target.partition(b"://")[2]
    if not rest:
        raise h11.RemoteProtocolError("the target is no path and no address")
    path = re.sub(rb"^[^/?#]*", b"", rest)
    return path if path.startswith(b"/") else b"/" + path
