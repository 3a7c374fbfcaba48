"""Send requests through httpx, directly or by a proxy, and read chunked bodies quickly. Imported late: it loads httpx.

The only module that knows private names of httpx, httpcore and h11. If one is missing or behaves differently,
`fast_body` returns None and the library reads the body itself.
"""

import asyncio
import logging
import re
import socket
import ssl
from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, cast

import h11
import httpcore
import httpx

from desktop_agent.network.fetch import close_failed_handshakes
from desktop_agent.network.system_proxy import is_exempt, proxy_setting
from desktop_agent.network.tls import tls_context
from desktop_agent.providers.transport.socket_stream import SocketBackend, SocketStream
from desktop_agent.types.errors import ConnectionFailed, Sentence
from desktop_agent.types.providers import Timeouts

_READ_SIZE = 64 * 1024
# Without extensions and spaces: the library reads other forms.
_HEADER = re.compile(rb"([0-9A-Fa-f]{1,16})\r\n")
_MAX_HEADER = 18
_INVALID_HEADER = b"!\r\n"  # makes the library report a chunk that is longer than announced
_SMALL = 16
_FIRST_RUN = 8


@dataclass(slots=True)
class ReadLimits:
    """How long to wait for the next piece of a body; the reader may change it between two pieces.

    `silence`: seconds between two pieces. `until`: when waiting ends in any case, on the loop's clock.
    """

    silence: float = Timeouts().idle
    until: float | None = None

    @property
    def seconds(self) -> float:
        return self.silence if self.until is None else max(0.0, min(self.silence, self._seconds_until(self.until)))

    @property
    def is_over(self) -> bool:
        """Whether `until` has passed."""
        return self.until is not None and self._seconds_until(self.until) <= 0

    def _seconds_until(self, until: float) -> float:
        return until - asyncio.get_running_loop().time()


def fast_body(response: httpx.Response) -> "ChunkedBody | None":
    """Return a reader for the body of an answer whose head was just read; None if the library must read the body."""
    network = response.extensions.get("network_stream")
    ordinary = response.stream
    machine = _h11_machine(response)
    if (
        machine is None
        or not isinstance(ordinary, httpx.AsyncByteStream)
        or not isinstance(network, httpcore.AsyncNetworkStream)
        or not _is_h11_supported()
        or not _expects_chunk(machine)
    ):
        return None
    return ChunkedBody(machine, network, HttpxBody(ordinary), _take_buffered(machine))


def _h11_machine(response: httpx.Response) -> h11.Connection | None:
    machine = _nested_attribute(response.stream, "_httpcore_stream", "_stream", "_connection", "_h11_state")
    return machine if isinstance(machine, h11.Connection) else None


def _watch_for_extra_bytes(response: httpx.Response) -> None:
    """Prevent that bytes after the end of an answer count as the answer to the connection's next request."""
    machine, network = _h11_machine(response), response.extensions.get("network_stream")
    if machine is not None and isinstance(network, SocketStream):
        network.has_left_over = lambda: bool(machine.trailing_data[0])


class HttpxBody:
    """A body that the library reads."""

    def __init__(self, source: AsyncIterable[bytes]) -> None:
        self.limits = ReadLimits()
        self._source = aiter(source)

    def __aiter__(self) -> "HttpxBody":
        return self

    async def __anext__(self) -> bytes:
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await anext(self._source)
        except TimeoutError:
            raise httpx.ReadTimeout("nothing came") from None


class ChunkedBody:
    """The payload, with all that was received at once joined. Raises what the library raises.

    The library's machine waits before the first chunk. It gets the last chunk, or whatever is no plain chunk, and reads
    on from there: so trailers, extensions, faults and the return to the pool are exactly those of the library.
    """

    def __init__(
        self,
        machine: h11.Connection,
        network: httpcore.AsyncNetworkStream,
        ordinary: HttpxBody,
        early: bytes,
    ) -> None:
        self._machine = machine
        self._network = network
        self._ordinary = ordinary
        self.limits = ordinary.limits
        self._early = early  # received together with the head
        self._kept = b""  # an incomplete header or end of a chunk
        self._missing = -1  # bytes of the open chunk's payload; -1: none is open
        self._is_handed_over = False

    def __aiter__(self) -> "ChunkedBody":
        return self

    async def __anext__(self) -> bytes:
        while not self._is_handed_over:
            data = await self._received()
            if not data:
                self._hand_to_library(b"")  # the connection ended in the middle of the body
            elif payload := self._read_payload(data):
                return payload
        return await anext(self._ordinary)

    async def _received(self) -> bytes:
        if self._early:
            early, self._early = self._early, b""
            return early
        try:
            return await self._network.read(_READ_SIZE, self.limits.seconds)
        except httpcore.TimeoutException:
            raise httpx.ReadTimeout("nothing came") from None
        except httpcore.NetworkError:
            raise httpx.ReadError("the connection broke") from None

    def _read_payload(self, data: bytes) -> bytes:
        if self._kept:
            data = self._kept + data
            self._kept = b""
        pieces: list[bytes] = []
        position = 0 if self._missing < 0 else self._read_rest_of_chunk(data, pieces)
        self._read_chunks(data, position, pieces)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _read_rest_of_chunk(self, data: bytes, pieces: list[bytes]) -> int:
        """Read the rest of the open chunk. Returns where the next one begins."""
        missing = self._missing
        pieces.append(data[:missing])
        if missing + 2 > len(data):
            self._stay_open(data, missing)
            return len(data)
        self._missing = -1
        if data[missing : missing + 2] != b"\r\n":
            self._hand_to_library(_INVALID_HEADER)
            return len(data)
        return missing + 2

    def _read_chunks(self, data: bytes, position: int, pieces: list[bytes]) -> None:
        """Read chunk after chunk; the last one may stay open."""
        length = len(data)
        header = _HEADER.match
        before = 0
        while position < length:
            match = header(data, position)
            size = 0 if match is None else int(match[1], 16)
            if match is None or not size:
                self._handle_unusual_header(data[position:], is_header=match is not None)
                return
            start = match.end()
            end = start + size
            if end + 2 > length:
                pieces.append(data[start:end])
                self._stay_open(data, end)
                return
            if (
                before == size <= _SMALL
                and (after := _read_equal_chunks(data, position, start - position, size, pieces)) > position
            ):
                position = after
                continue
            pieces.append(data[start:end])
            if data[end : end + 2] != b"\r\n":
                self._hand_to_library(_INVALID_HEADER)
                return
            before = size
            position = end + 2

    def _stay_open(self, data: bytes, end: int) -> None:
        self._missing = max(0, end - len(data))
        self._kept = data[end:]

    def _handle_unusual_header(self, rest: bytes, *, is_header: bool) -> None:
        if is_header or len(rest) >= _MAX_HEADER or b"\n" in rest:
            self._hand_to_library(rest)
        else:
            self._kept = rest

    def _hand_to_library(self, rest: bytes) -> None:
        self._machine.receive_data(rest)
        self._is_handed_over = True


ResponseBody: TypeAlias = HttpxBody | ChunkedBody


def _read_equal_chunks(data: bytes, position: int, header: int, size: int, pieces: list[bytes]) -> int:
    """Read neighbouring chunks of one small size, many in one step. Returns where the first different one begins.

    `header` is the length of their header. Without this, a server that writes character by character would cost per
    byte what others cost per event.
    """
    stride = header + size + 2
    pattern = data[position : position + header] + bytes(size) + b"\r\n"
    fixed = [*range(header), header + size, header + size + 1]
    count = _FIRST_RUN
    while count := min(count, (len(data) - position) // stride):
        part = data[position : position + count * stride]
        if any(part[offset::stride] != pattern[offset : offset + 1] * count for offset in fixed):
            break
        payload = bytearray(count * size)
        for offset in range(size):
            payload[offset::size] = part[header + offset :: stride]
        pieces.append(bytes(payload))
        position += len(part)
        count *= 16
    return position


def _expects_chunk(machine: h11.Connection) -> bool:
    """Whether a head was read, and chunks follow."""
    return type(_nested_attribute(machine, "_reader")).__name__ == "ChunkedReader"


def _take_buffered(machine: h11.Connection) -> bytes:
    """Remove the bytes that the machine received and has not parsed, and return them."""
    received, _ = machine.trailing_data
    _nested_attribute(machine, "_receive_buffer", "maybe_extract_at_most")(len(received))
    return received


@cache
def _is_h11_supported() -> bool:
    """Whether h11 still works as this module expects: tried once, on an answer in memory."""
    machine = h11.Connection(h11.CLIENT)
    machine.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    machine.send(h11.EndOfMessage())
    machine.receive_data(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel")
    machine.next_event()
    if not _expects_chunk(machine) or not callable(
        _nested_attribute(machine, "_receive_buffer", "maybe_extract_at_most")
    ):
        return False
    received = _take_buffered(machine)
    machine.receive_data(b"0\r\n\r\n")
    end = machine.next_event()
    return received == b"5\r\nhel" and isinstance(end, h11.EndOfMessage) and machine.their_state is h11.DONE


def _nested_attribute(start: Any, *names: str) -> Any:
    for name in names:
        start = getattr(start, name, None)
    return start


_NOISY_LOGGERS = ("httpcore", "httpx")
STREAM_EXTENSION = "desktop_agent.stream"
_POOL_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=60.0)


class _ProxyBackend(SocketBackend):
    async def connect_tcp(self, host: str, port: int, *arguments: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        try:
            return await super().connect_tcp(host, port, *arguments, **options)
        except httpcore.ConnectError as error:
            raise httpcore.ProxyError from error


class _ProxiedTransport(httpx.AsyncHTTPTransport):
    """Sends everything to one proxy. Raises ProxyError with its name, and its answer, if there is one."""

    def __init__(self, proxy: str, context: ssl.SSLContext) -> None:
        url = httpx.URL(proxy)
        # Otherwise the library trusts a proxy by its own list of certificates.
        proxy_context = context if url.scheme == "https" else None
        super().__init__(verify=context, limits=_POOL_LIMITS, proxy=httpx.Proxy(url, ssl_context=proxy_context))
        self._proxy = url.netloc.decode()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        try:
            return await super().handle_async_request(request)
        except httpx.ProxyError as error:
            raise httpx.ProxyError(f"{self._proxy} {error}") from error


class ProxyTransport(httpx.AsyncBaseTransport):
    """Direct for loopback and for hosts that the proxy settings exempt; otherwise through the proxy of the scheme.

    Proxies come from the environment, or from the system's settings on macOS and Windows. `read_interval`: see
    SocketBackend.
    """

    def __init__(self, read_interval: float = 0.0) -> None:
        backend, proxy_backend = SocketBackend(read_interval), _ProxyBackend(read_interval)
        context = tls_context()
        self._direct = close_failed_handshakes(
            httpx.AsyncHTTPTransport(verify=context, limits=_POOL_LIMITS, socket_options=_keep_alive_options()),
            backend,
        )
        self._proxied: dict[str, httpx.AsyncHTTPTransport] = {}
        self._unusable: dict[str, str] = {}
        for scheme in ("http", "https"):
            address = proxy_setting(scheme)
            if address is None:
                continue
            kind = address.partition("://")[0].lower()
            if kind not in ("http", "https"):
                self._unusable[scheme] = kind
                continue
            self._proxied[scheme] = close_failed_handshakes(_ProxiedTransport(address, context), proxy_backend)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send through the right proxy. Raises ConnectionFailed for a kind of proxy that is not supported."""
        response = await self._transport_for(request.url).handle_async_request(request)
        _watch_for_extra_bytes(response)
        # The client wraps this stream once more, only to count time; readers may skip that layer.
        response.extensions[STREAM_EXTENSION] = fast_body(response) or HttpxBody(
            cast("httpx.AsyncByteStream", response.stream)
        )
        return response

    async def aclose(self) -> None:
        """Close every pool."""
        for transport in (self._direct, *self._proxied.values()):
            await transport.aclose()

    def _transport_for(self, url: httpx.URL) -> httpx.AsyncHTTPTransport:
        proxied, unusable = self._proxied.get(url.scheme), self._unusable.get(url.scheme)
        if proxied is unusable is None or is_exempt(url.host):
            return self._direct
        if proxied is None:
            # Bypassing a proxy that is set would be wrong, so this fails instead.
            template = "the proxy set for it is of a kind that is not supported ({kind})"
            raise ConnectionFailed(Sentence(template, {"kind": str(unusable)}))
        return proxied


class UploadStream(httpx.AsyncByteStream):
    """The body of a request, once; `on_sent` is called when the library has written all of it."""

    def __init__(self, body: bytes, on_sent: Callable[[], None]) -> None:
        self._body: bytes | None = body
        self._on_sent = on_sent

    # Not a generator: an unfinished one is closed by the loop's hooks, and not every loop has them.
    def __aiter__(self) -> "UploadStream":
        return self

    async def __anext__(self) -> bytes:
        body, self._body = self._body, None
        if body is None:
            self._on_sent()
            raise StopAsyncIteration
        return body


def create_client(read_interval: float = 0.0) -> httpx.AsyncClient:
    """Create the client with one pool. Slow the first time (certificates): call it in a thread."""
    for name in _NOISY_LOGGERS:
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            # At debug level they log response heads, in which a server may echo the key.
            logger.setLevel(logging.INFO)
    return httpx.AsyncClient(transport=ProxyTransport(read_interval), follow_redirects=False, trust_env=False)


def _keep_alive_options() -> list[tuple[int, int, int]]:
    """Return options for probes on silent connections, so that no NAT forgets a model that thinks for minutes.

    Idle 60 s, interval 60 s, 5 probes, where the platform has such options.
    """
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPALIVE", 60), ("TCP_KEEPINTVL", 60), ("TCP_KEEPCNT", 5)):
        number = getattr(socket, name, None)
        if isinstance(number, int):
            options.append((socket.IPPROTO_TCP, number, value))
    return options
