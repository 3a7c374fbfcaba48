"""The first moments of a connection, where httpcore 1.0 is not strict enough.

A TLS handshake that is given up closes its connection. The library does so after an error, but not after a cancel: Stop
in the middle of a handshake would leave the connection open until the server gives up. And what does not begin like
HTTP is refused at its first bytes: the library waits for the end of a head that never comes.
"""

import ssl
from collections.abc import Iterable
from typing import TYPE_CHECKING

import httpcore

if TYPE_CHECKING:
    import httpx

_HTTP = b"HTTP/"
_TLS_RECORDS = (0x15, 0x16)  # an alert, a handshake


def close_failed_handshakes(transport: "httpx.AsyncHTTPTransport") -> "httpx.AsyncHTTPTransport":
    """The same transport. With a version of the libraries that is built otherwise, it is left as it is."""
    pool = getattr(transport, "_pool", None)
    inner = getattr(pool, "_network_backend", None)
    if isinstance(pool, httpcore.AsyncConnectionPool) and isinstance(inner, httpcore.AsyncNetworkBackend):
        # The pool takes one only when it is made, and httpx makes it.
        pool._network_backend = ClosingBackend(inner)  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001
    return transport


class NotHttp(httpcore.RemoteProtocolError):
    """The first bytes of an answer are no HTTP. `is_tls`: they are TLS."""

    is_tls = False


def _check_first_bytes(stream: httpcore.AsyncNetworkStream) -> httpcore.AsyncNetworkStream:
    """The same stream. Its first read raises NotHttp for other bytes; from then on nothing is paid for it."""
    read, start = stream.read, bytearray()

    async def checking(max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        data = await read(max_bytes, timeout)
        start.extend(data[: len(_HTTP)])
        if not _HTTP.startswith(start[: len(_HTTP)]):
            error = NotHttp("the answer does not begin with a status line")
            error.is_tls = start[0] in _TLS_RECORDS
            raise error
        if len(start) >= len(_HTTP) or not data:
            stream.read = read
        return data

    stream.read = checking
    return stream


class ClosingBackend(httpcore.AsyncNetworkBackend):
    """Opens connections as `inner` does, and closes those whose handshake is given up."""

    def __init__(self, inner: httpcore.AsyncNetworkBackend) -> None:
        self._inner = inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the library's own interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """The stream stays the library's own: what reads beside it knows its kind."""
        stream = _check_first_bytes(await self._inner.connect_tcp(host, port, timeout, local_address, socket_options))
        start = stream.start_tls

        async def closing(
            ssl_context: ssl.SSLContext,
            server_hostname: str | None = None,
            timeout: float | None = None,  # noqa: ASYNC109
        ) -> httpcore.AsyncNetworkStream:
            try:
                return _check_first_bytes(await start(ssl_context, server_hostname, timeout))
            except BaseException:
                await stream.aclose()
                raise

        stream.start_tls = closing
        return stream

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """As the library does it."""
        return await self._inner.connect_unix_socket(path, timeout, socket_options)

    async def sleep(self, seconds: float) -> None:
        """As the library does it."""
        await self._inner.sleep(seconds)
