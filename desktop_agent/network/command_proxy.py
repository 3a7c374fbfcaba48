"""A proxy for a command that may reach some hosts: it connects to no others, and resolves their names itself.

It speaks HTTP/1.1 as a proxy does (RFC 9110, sections 7.6 and 9.3.6): CONNECT, and requests with a whole http address.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass

import h11

from desktop_agent.network.fetch import Resolver, resolve_host
from desktop_agent.network.hosts import FetchFailed, GrantedHost, HostAndPort, PrivateHost, parse_host_and_port
from desktop_agent.network.tunnels import (
    HEAD_LIMIT,
    READ_SIZE,
    TunnelConnection,
    UnexpectedHost,
    UnexpectedProtocol,
    next_event,
    open_connection,
    relay,
    rewrite_request,
    tunnel_bytes,
)
from desktop_agent.types.errors import Sentence

_log = logging.getLogger(__name__)

_DEFAULT_PORT = 80
_CONNECT = b"CONNECT"
_FORBIDDEN = 403
_ACCEPT_RETRY_SECONDS = 0.05
_MAX_NOTES = 20
# A fatal alert of TLS (RFC 8446, section 6.2: unrecognized_name).
_UNKNOWN_NAME = b"\x15\x03\x03\x00\x02\x02\x70"
_PRIVATE_HOST = (
    "“{host}” leads to the private address {address}. Only the person can allow that host, in Settings → Network."
)
_OTHER_PROTOCOL = (
    "What was sent to {host} is neither TLS nor a request of HTTP as it has to be written, so it was not passed on. "
    "Other protocols, ssh among them, do not go through the proxy of this command."
)


@dataclass(frozen=True, slots=True)
class ProxyLimits:
    """Limits of one command: connections at a time; seconds for a head, for connecting, and without a byte."""

    connections: int = 64
    head: float = 60.0
    connect: float = 15.0
    idle: float = 600.0


class _ProxyRefusal(Exception):
    def __init__(self, status: int, sentence: Sentence) -> None:
        super().__init__(str(sentence))
        self.status = status


class CommandProxy:
    """Connects clients to hosts that are granted. `private` hosts may have a private address.

    So may hosts that are granted as an address or as a local name: the person who grants them sees that they are not
    public.
    """

    def __init__(
        self,
        granted: Sequence[GrantedHost],
        private: frozenset[str] = frozenset(),
        *,
        resolve: Resolver = resolve_host,
        limits: ProxyLimits | None = None,
    ) -> None:
        self._granted = tuple(granted)
        self._private = private
        self._resolve = resolve
        self._limits = limits or ProxyLimits()
        self._not_granted: dict[str, None] = {}
        self._failures: dict[str, Sentence] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Return sentences about what could not be reached, and what helps."""
        hosts = ", ".join(self._not_granted)
        refusal = f"It was kept from hosts that it had not named: {hosts}. Name with hosts each one that it must reach."
        return (*([refusal] if hosts else ()), *map(str, self._failures.values()))

    async def serve(self, listening: socket.socket) -> None:
        """Answer clients until this is cancelled."""
        listening.settimeout(0)
        slots, loop = asyncio.Semaphore(self._limits.connections), asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            while True:
                # A command may open any number: accept only as many as can be answered.
                await slots.acquire()
                try:
                    client, _ = await loop.sock_accept(listening)
                except OSError:
                    slots.release()
                    await asyncio.sleep(_ACCEPT_RETRY_SECONDS)
                    continue
                group.create_task(self._handle(client)).add_done_callback(lambda _: slots.release())

    async def _handle(self, client: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=client, limit=READ_SIZE)
        try:
            await self._answer(reader, writer)
            writer.close()
            await writer.wait_closed()
        except (OSError, h11.ProtocolError):
            pass  # one side disconnected, timed out, or broke the protocol
        except Exception:  # noqa: BLE001 - the others go on
            _log.exception("a connection of a command was not answered")
        finally:
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT)
        try:
            async with asyncio.timeout(self._limits.head):
                request = await next_event(head, reader)
            if not isinstance(request, h11.Request):
                return
            destination = self._require_granted(_requested_host(request))
            upstream = await self._connect(destination, "https" if request.method == _CONNECT else "http")
        except h11.RemoteProtocolError as error:
            _reply(writer, error.error_status_hint, "This is no request that a proxy understands.")
        except _ProxyRefusal as refusal:
            _reply(writer, refusal.status, str(refusal))
        else:
            try:
                await self._forward(
                    destination, request, head, TunnelConnection(reader, writer, bytes(head.trailing_data[0])), upstream
                )
            finally:
                upstream.writer.transport.abort()

    async def _forward(
        self,
        destination: HostAndPort,
        request: h11.Request,
        head: h11.Connection,
        client: TunnelConnection,
        upstream: TunnelConnection,
    ) -> None:
        def is_allowed(name: str) -> bool:
            target = parse_host_and_port(name, destination.port)
            return target is not None and self._is_granted(target)

        if request.method != _CONNECT:
            await relay(
                client, upstream, rewrite_request(destination, request, head, client, upstream), self._limits.idle
            )
            return
        client.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await relay(client, upstream, tunnel_bytes(destination, is_allowed, client, upstream), self._limits.idle)
        except UnexpectedHost as unexpected:
            self._note_not_granted(unexpected.host)
            client.writer.write(_UNKNOWN_NAME)
        except UnexpectedProtocol:
            refusal = self._record_failure(destination, 400, Sentence(_OTHER_PROTOCOL, {"host": str(destination)}))
            _reply(client.writer, refusal.status, str(refusal))

    def _is_granted(self, destination: HostAndPort) -> bool:
        return any(grant.covers(destination) for grant in self._granted)

    def _require_granted(self, destination: HostAndPort | None) -> HostAndPort:
        if destination is None:
            raise _ProxyRefusal(400, Sentence("The request names no host that can exist."))
        if self._is_granted(destination):
            return destination
        is_named = any(grant.covers_name(destination.host) for grant in self._granted)
        self._note_not_granted(str(destination) if is_named else destination.host)
        values = {"host": str(destination), "hosts": ", ".join(map(str, self._granted))}
        raise _ProxyRefusal(_FORBIDDEN, Sentence("This command may not reach {host}. It may reach {hosts}.", values))

    async def _connect(self, destination: HostAndPort, scheme: str) -> TunnelConnection:
        is_local = any(grant.is_plainly_private(destination.host) for grant in self._granted)
        allowed = self._private | {destination.host} if is_local else self._private
        try:
            return await open_connection(destination, scheme, allowed, self._resolve, self._limits.connect)
        except PrivateHost as error:
            sentence = Sentence(_PRIVATE_HOST, {"host": destination.host, "address": error.address})
            raise self._record_failure(destination, _FORBIDDEN, sentence) from None
        except FetchFailed as error:
            raise self._record_failure(destination, 502, error.sentence) from None
        except (OSError, h11.ProtocolError) as error:
            values = {"host": str(destination), "why": _error_reason(error)}
            raise self._record_failure(
                destination, 502, Sentence("{host} could not be reached: {why}.", values)
            ) from None

    def _note_not_granted(self, host: str) -> None:
        if len(self._not_granted) < _MAX_NOTES:
            self._not_granted[host] = None

    def _record_failure(self, destination: HostAndPort, status: int, sentence: Sentence) -> _ProxyRefusal:
        if len(self._failures) < _MAX_NOTES:
            self._failures[str(destination)] = sentence
        return _ProxyRefusal(status, sentence)


def _requested_host(request: h11.Request) -> HostAndPort | None:
    """Return the host that a request is for. Raises _ProxyRefusal for a request that is not for a proxy."""
    target = request.target.decode("ascii")
    if request.method == _CONNECT:
        return parse_host_and_port(target)
    scheme, _, rest = target.partition("://")
    authority = rest.replace("?", "/").replace("#", "/").partition("/")[0]
    if scheme.lower() != "http" or not authority:
        raise _ProxyRefusal(400, Sentence("This is a proxy: it takes CONNECT, and requests with a whole http address."))
    return parse_host_and_port(authority, _DEFAULT_PORT)


def _error_reason(error: OSError | h11.ProtocolError) -> str | Sentence:
    if isinstance(error, TimeoutError):
        return Sentence("it does not answer")
    if isinstance(error, OSError) and error.errno and not isinstance(error, socket.gaierror):
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error)


def _reply(writer: asyncio.StreamWriter, status: int, words: str) -> None:
    body = f"{words}\n".encode()
    reason = "Forbidden" if status == _FORBIDDEN else "Failed"
    head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
