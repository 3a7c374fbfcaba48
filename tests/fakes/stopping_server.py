"""A model server that stops sending at a chosen place, and counts its open connections."""

import asyncio
import contextlib
import datetime
import ipaddress
import json
import socket
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.fakes.http_server import chunk, sse


@dataclass(frozen=True)
class Answer:
    """The answer to one request. `holds`: after the body nothing more is sent, and the connection stays open.

    With None as the body not even the head is sent.
    """

    body: bytes | None
    status: int = 200
    holds: bool = False
    headers: tuple[str, ...] = ("content-type: text/event-stream",)


def says(text: str) -> Answer:
    """A whole answer."""
    return Answer(sse(chunk({"role": "assistant", "content": text}), chunk(finish="stop")))


def calls(*wanted: tuple[str, str, dict[str, Any]]) -> Answer:
    """A whole answer with calls: id, name, arguments."""
    pieces = [chunk(_call(index, *call)) for index, call in enumerate(wanted)]
    return Answer(sse(*pieces, chunk(finish="tool_calls")))


def breaks_off(*deltas: dict[str, Any]) -> Answer:
    """The beginning of an answer, and then silence."""
    return Answer(sse(*(chunk(delta) for delta in deltas), done=False), holds=True)


def half_a_call(id_: str, name: str) -> dict[str, Any]:
    """A delta whose arguments end in the middle."""
    function = {"name": name, "arguments": '{"word": "half of'}
    return {"tool_calls": [{"index": 0, "id": id_, "type": "function", "function": function}]}


def refuses(status: int, code: str = "", *headers: str) -> Answer:
    """An error."""
    body = json.dumps({"error": {"message": "no", "type": code, "code": code}}).encode()
    return Answer(body, status, headers=("content-type: application/json", *headers))


def _call(index: int, id_: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"index": index, "id": id_, "type": "function", "function": function}]}


SILENCE = Answer(None, holds=True)
FINE = says("fine")


class Server:
    """Speaks Chat Completions. Answers go out in order, and after the last one FINE again and again.

    Each whole answer ends its connection, so that every open connection is in use. With `mute` it accepts connections,
    and never sends a byte.
    """

    def __init__(self, answers: Iterable[Answer] = (), *, mute: bool = False) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.heard = 0
        self.is_holding = 0
        self.open = 0
        self.port = 0
        self._mute = mute
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(
        self, *, listener: socket.socket | None = None, port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        if listener is None:
            self._server = await asyncio.start_server(self._connected, "127.0.0.1", port, ssl=tls)
        else:
            self._server = await asyncio.start_server(self._connected, sock=listener, ssl=tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def aclose(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    @property
    def tasks(self) -> frozenset[asyncio.Task[None]]:
        return frozenset(self._tasks)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            await (self._ignore(reader) if self._mute else self._answer(reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            self.open -= 1
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    async def _ignore(self, reader: asyncio.StreamReader) -> None:
        while piece := await reader.read(4096):
            self.heard += len(piece)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = head.partition("content-length:")[2].split("\r\n")[0]
        self.asked.append(json.loads(await reader.readexactly(int(length or 0)) or b"null"))
        answer = self.answers.pop(0) if self.answers else FINE
        if answer.body is not None:
            lines = [f"HTTP/1.1 {answer.status} X", *answer.headers, "connection: close", "transfer-encoding: chunked"]
            writer.write("\r\n".join([*lines, "", ""]).encode())
            writer.write(b"%x\r\n%s\r\n" % (len(answer.body), answer.body))
            await writer.drain()
        if answer.holds:
            self.is_holding += 1
            try:
                # The client sends nothing more, so only its disconnecting ends this.
                assert await reader.read(1) == b""
            finally:
                self.is_holding -= 1
        else:
            writer.write(b"0\r\n\r\n")
            await writer.drain()


class FullListener:
    """A listener that never accepts, with a full backlog: a client that connects to it waits."""

    def __init__(self) -> None:
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(0)
        self.port: int = self.socket.getsockname()[1]
        self._before: list[socket.socket] = []
        while True:
            one = socket.socket()
            one.settimeout(0.2)
            self._before.append(one)
            try:
                one.connect(("127.0.0.1", self.port))
            except TimeoutError:
                one.close()
                return

    def make_room(self) -> None:
        for one in self._before:
            one.close()


def certificate(folder: Path) -> Path:
    """Write a self-signed certificate for 127.0.0.1, in one file with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "models.example")])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + day)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    file = folder / "certificate.pem"
    file.write_bytes(secret + signed.public_bytes(serialization.Encoding.PEM))
    return file


def server_side(certificate_file: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_file)
    return context
