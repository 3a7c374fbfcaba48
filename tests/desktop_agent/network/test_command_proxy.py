"""The proxy of a command, spoken with as hostile clients do, before real servers of loopback."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.network.command_proxy import CommandProxy, ProxyLimits
from desktop_agent.network.hosts import parse_granted_host
from tests.desktop_agent.mcp.certificates import certificate, served
from tests.desktop_agent.network.test_client_hello import hello as client_hello
from tests.frame.patience import PATIENCE

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
OPEN = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Server:
    """Keeps what it was sent, and answers requests until its client leaves."""

    def __init__(self) -> None:
        self.heard = b""
        self.connections = 0
        self.disconnected = asyncio.Event()
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(OSError):
            while piece := await reader.read(65_536):
                self.heard += piece
                if b"\r\n\r\n" in piece:
                    writer.write(ANSWER)
        self.disconnected.set()
        writer.close()


@contextlib.asynccontextmanager
async def open_server(
    server: Server, host: str = "127.0.0.1", context: ssl.SSLContext | None = None
) -> AsyncGenerator[Server, None]:
    async with await asyncio.start_server(server.answer, host, 0, ssl=context) as listening:
        server.port = listening.sockets[0].getsockname()[1]
        yield server


class Names:
    def __init__(self, table: Mapping[str, list[str]]) -> None:
        self.table, self.destination = table, list[str]()

    async def __call__(self, host: str, port: int) -> list[str]:
        self.destination.append(host)
        if host not in self.table:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self.table[host]


class Desk:
    def __init__(self, proxy: CommandProxy, place: tuple[str, int]) -> None:
        self.proxy, self.place = proxy, place

    async def say(self, *pieces: bytes, until: bytes = b"\0never") -> bytes:
        """What came back, up to these bytes or to the end; before each further piece something has to come back."""
        heard = b""
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(*self.place)
            writer.write(pieces[0])
            with contextlib.suppress(ConnectionError):
                for piece in pieces[1:]:
                    heard += await reader.read(65_536)
                    writer.write(piece)
                while until not in heard and (more := await reader.read(65_536)):
                    heard += more
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        return heard


@contextlib.asynccontextmanager
async def open_proxy(
    *hosts: str, names: Names | None = None, private: frozenset[str] = frozenset(), limits: ProxyLimits | None = None
) -> AsyncGenerator[Desk, None]:
    more = {} if names is None else {"resolve": names}
    proxy = CommandProxy([parse_granted_host(each) for each in hosts], private, limits=limits, **more)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        task = asyncio.create_task(proxy.serve(listening))
        try:
            yield Desk(proxy, listening.getsockname())
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.fixture(autouse=True)
def no_proxy_of_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
async def site() -> AsyncIterator[Server]:
    async with open_server(Server()) as server:
        yield server


def at_home(*hosts: str) -> Mapping[str, Any]:
    """For names that stand for public ones: they lead to loopback, and may."""
    return {"names": Names({host: ["127.0.0.1"] for host in hosts}), "private": frozenset(hosts)}


def get(host: str, port: int, *lines: str, path: str = "/", body: str = "") -> bytes:
    head = "\r\n".join((f"GET http://{host}:{port}{path} HTTP/1.1", *lines))
    return f"{head}\r\n\r\n{body}".encode()


def tunnel(host: str, port: int) -> bytes:
    return f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()


async def test_a_request_is_written_anew_and_is_the_only_one(site: Server) -> None:
    own = (
        *("Host: evil.test", "X-Own: 1", "Proxy-Connection: x", "Proxy-Authorization: Basic eA==", "X-Hop: 1"),
        *("Connection: X-Hop, keep-alive", "Upgrade: h2c", "Content-Length: 3"),
    )
    second = "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    async with open_proxy("site.test", **at_home("site.test")) as desk:
        sent = get("SITE.test", site.port, *own, path="/a?b", body=f"abc{second}")
        assert await desk.say(sent, until=ANSWER) == ANSWER
        await asyncio.wait_for(site.disconnected.wait(), PATIENCE)
    head = f"GET /a?b HTTP/1.1\r\nHost: site.test:{site.port}\r\nX-Own: 1\r\nContent-Length: 3\r\n"
    assert site.heard.decode().lower() == f"{head}Connection: close\r\n\r\nabc".lower()


async def test_a_body_in_pieces_ends_where_it_says(site: Server) -> None:
    lines = ("Host: x", "Content-Length: 99", "Transfer-Encoding: chunked")
    body = "3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    async with open_proxy("site.test", **at_home("site.test")) as desk:
        assert await desk.say(get("site.test", site.port, *lines, body=body), until=ANSWER) == ANSWER
        await asyncio.wait_for(site.disconnected.wait(), PATIENCE)
    assert b"abc" in site.heard
    assert b"evil" not in site.heard
    assert b"content-length" not in site.heard.lower()


@pytest.mark.parametrize(
    "start",
    [
        "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "get / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "Get http://evil.test HTTP/1.0\nHost: evil.test\n\n",
        "GET x1://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "GET h+t.t-p://evil.test?/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        "\n\r\n\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
    ],
)
@pytest.mark.parametrize("size", [1_000, 5])
async def test_so_is_a_request_in_a_tunnel(site: Server, start: str, size: int) -> None:
    async with open_proxy("site.test", **at_home("site.test")) as desk:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(*desk.place)
            writer.write(tunnel("site.test", site.port))
            assert await reader.readexactly(len(OPEN)) == OPEN
            for at in range(0, len(start), size):
                writer.write(start[at : at + size].encode())
                await asyncio.sleep(0)
            assert await reader.readexactly(len(ANSWER)) == ANSWER
            writer.close()
            await site.disconnected.wait()
    assert b"evil" not in site.heard
    assert site.heard.count(b"HTTP/1.1") == 1
    assert f"host: site.test:{site.port}".encode() in site.heard.lower()


OF_EVIL = b"Host: evil.test\r\n\r\n"


@pytest.mark.parametrize(
    "said",
    [
        b" GET / HTTP/1.1\r\n" + OF_EVIL,
        b"\tGET / HTTP/1.1\r\n" + OF_EVIL,
        b"\r\n GET / HTTP/1.1\r\n" + OF_EVIL,
        b"\0GET / HTTP/1.1\r\n" + OF_EVIL,
        b"\xef\xbb\xbfGET / HTTP/1.1\r\n" + OF_EVIL,
        b"GET\t/ HTTP/1.1\r\n" + OF_EVIL,
        b"GET  / HTTP/1.1\r\n" + OF_EVIL,
        b"GET / HTTP/1.1 \r\n" + OF_EVIL,
        b"GET /\tHTTP/1.1\r\n" + OF_EVIL,
        b"GET /\x0bHTTP/1.1\r\n" + OF_EVIL,
        b"GET / http/1.1\r\n" + OF_EVIL,
        b"GET / HTTP/1.2\r\n" + OF_EVIL,
        b"GET / HTTP/1.1\r" + OF_EVIL,
        b"GET /\r\n" + OF_EVIL,
        b"GET evil.test:80 HTTP/1.1\r\n" + OF_EVIL,
        b"CONNECT evil.test:80 HTTP/1.1\r\n" + OF_EVIL,
        b"GET1 / HTTP/1.1\r\n" + OF_EVIL,
        b"G(T / HTTP/1.1\r\n" + OF_EVIL,
        b"GET / HTTP/1.1\r\nHost: site.test\r\n" + OF_EVIL,
        b"GET / HTTP/1.1\r\nHost : site.test\r\n" + OF_EVIL,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"SSH-2.0-x / HTTP/1.1\r\n" + OF_EVIL,
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
        b"EHLO me\r\n",
        b"\x00\x01binary\r\n\r\n",
        b"\x16GET / HTTP/1.1\r\n" + OF_EVIL,
        b"\x80\x2e\x01\x03\x01",
    ],
)
async def test_a_tunnel_takes_tls_and_http_alone(site: Server, said: bytes) -> None:
    async with open_proxy("site.test", **at_home("site.test")) as desk:
        told = await desk.say(tunnel("site.test", site.port), said)
        assert told.startswith(OPEN + b"HTTP/1.1 400 ")
        (note,) = desk.proxy.notes
        assert note.startswith(f"What was sent to site.test:{site.port} is neither TLS nor a request of HTTP")
        assert note.encode() in told
    assert site.heard == b""


async def test_tls_names_the_host_that_was_asked_for(tmp_path: Path) -> None:
    context = served(certificate(tmp_path, "site.test"))
    hosts = ("site.test", "other.test")
    async with open_server(Server(), context=context) as site, open_proxy(*hosts, **at_home(*hosts)) as desk:

        async def shake(name: str | None) -> str:
            client = ssl.create_default_context()
            client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
            reader, writer = await asyncio.open_connection(*desk.place)
            writer.write(tunnel("site.test", site.port))
            assert await reader.readexactly(len(OPEN)) == OPEN
            try:
                await writer.start_tls(client, server_hostname=name)
                writer.write(b"GET / HTTP/1.1\r\n\r\n")
                return (await reader.readexactly(len(ANSWER))).decode()
            except ssl.SSLError as error:
                return str(error)
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

        async with asyncio.timeout(PATIENCE):
            for name in ("site.test", "SITE.test", "other.test", ""):
                assert await shake(name) == ANSWER.decode(), name
            heard = site.heard
            assert "UNRECOGNIZED_NAME" in await shake("evil.test")
        assert site.heard == heard
        assert "evil.test" in str(desk.proxy.notes)


def record(kind: int, body: bytes) -> bytes:
    return bytes((kind, 3, 3)) + len(body).to_bytes(2) + body


def cut(hello: bytes, *places: int) -> bytes:
    body = hello[5:]
    ends = zip((0, *places), (*places, len(body)), strict=True)
    return b"".join(record(0x16, body[start:end]) for start, end in ends)


FIRST, SECOND = client_hello("site.test"), client_hello("evil.test")
# What a server passes over before it has its second hello: a change of ciphers, early data, a warning.
BETWEEN = record(0x14, b"\x01"), record(0x17, bytes(40)), record(0x15, b"\x01\x5a")


@pytest.mark.parametrize(
    ("passed", "second"),
    [
        (FIRST, SECOND),
        *((FIRST + each, SECOND) for each in (*BETWEEN, b"".join(BETWEEN))),
        *((FIRST, cut(SECOND, *places)) for places in ([1], [2, 4], [5], range(10, 100, 10))),
        (FIRST + FIRST, SECOND),
        # Servers take any later version.
        (FIRST, SECOND[:9] + b"\x04" + SECOND[10:]),
        (client_hello(None), SECOND),
    ],
)
async def test_no_later_hello_names_another_host(site: Server, passed: bytes, second: bytes) -> None:
    for sent in ((passed, second), (passed + second,)):
        site.heard = b""
        async with open_proxy("site.test", **at_home("site.test")) as desk:
            assert (await desk.say(tunnel("site.test", site.port), b"".join(sent))).endswith(b"\x02\x70")
            assert "evil.test" in str(desk.proxy.notes)
        assert passed.startswith(site.heard)


@pytest.mark.parametrize(
    "more",
    [
        record(0x16, b"") + SECOND,
        record(0x16, SECOND[5:20]) + record(0x17, b"x") + record(0x16, SECOND[20:]),
        cut(SECOND, *range(1, 100)),
        b"\x80" + SECOND,
        b"\x16\x02" + SECOND[2:],
        record(0x16, SECOND[5:9] + SECOND[9:] + b"\x01"),
        record(0x16, b"\x01\x01" + SECOND[7:] + bytes(16_000)) + record(0x16, bytes(16_000)) * 4,
    ],
)
async def test_what_cannot_be_read_as_a_later_hello_ends_the_connection(site: Server, more: bytes) -> None:
    async with open_proxy("site.test", **at_home("site.test")) as desk:
        assert b"HTTP/1.1 400 " in await desk.say(tunnel("site.test", site.port), FIRST + more)
        assert "neither TLS" in desk.proxy.notes[0]
    assert b"evil" not in site.heard


async def test_two_hellos_in_one_record_are_none(site: Server) -> None:
    async with open_proxy("site.test", **at_home("site.test")) as desk:
        both = record(0x16, FIRST[5:] + SECOND[5:])
        assert b"HTTP/1.1 400 " in await desk.say(tunnel("site.test", site.port), both)
    assert site.heard == b""


async def test_what_is_encrypted_goes_on(site: Server) -> None:
    finished = record(0x16, b"\x01\x00" + b"\xa7" * 38)
    sent = [FIRST, FIRST, BETWEEN[0], finished, *(record(0x17, bytes([at]) * 16_000) for at in range(30))]
    sent.append(record(0x17, b"\r\n\r\n"))
    async with open_proxy("site.test", **at_home("site.test")) as desk:
        assert (await desk.say(tunnel("site.test", site.port), b"".join(sent), until=ANSWER)).endswith(ANSWER)
        assert desk.proxy.notes == ()
    assert site.heard == b"".join(sent)


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_connection_is_resumed_and_says_hello_again(tmp_path: Path, newest: ssl.TLSVersion) -> None:
    context = served(certificate(tmp_path, "site.test"))
    # No client begins with a key for it: TLS 1.3 asks for another hello.
    context.set_ecdh_curve("secp384r1")
    client = ssl.create_default_context()
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.maximum_version = newest
    async with open_server(Server(), context=context) as site, open_proxy("site.test", **at_home("site.test")) as desk:

        def shake(session: ssl.SSLSession | None) -> ssl.SSLSession | None:
            with socket.create_connection(desk.place, PATIENCE) as plain:
                plain.sendall(tunnel("site.test", site.port))
                assert plain.recv(len(OPEN)) == OPEN
                with client.wrap_socket(plain, server_hostname="site.test", session=session) as secure:
                    secure.sendall(b"x" * 100_000 + b"\r\n\r\n")
                    assert secure.recv(99) == ANSWER
                    assert secure.session_reused == (session is not None)
                    return secure.session

        assert await asyncio.to_thread(shake, await asyncio.to_thread(shake, None)) is not None
        assert desk.proxy.notes == ()


@pytest.mark.parametrize("host", ["evil.test", "127.0.0.1", "[::1]", "localhost", "www.site.test", "2130706433", "0"])
async def test_nobody_else_is_connected_to_nor_looked_up(site: Server, host: str) -> None:
    async with open_proxy("site.test", **at_home("site.test", "evil.test", "www.site.test", "localhost")) as desk:
        for sent in (get(host, site.port, "Host: site.test"), tunnel(host, site.port)):
            told = await desk.say(sent)
            assert told.startswith(b"HTTP/1.1 403 ")
            assert b"It may reach site.test." in told
        assert desk.proxy.notes[0].startswith("It was kept from hosts that it had not named: ")
        assert desk.proxy._resolve.destination == []
    assert site.connections == 0


async def test_a_port_that_is_named_is_the_only_one(site: Server) -> None:
    async with open_proxy(f"site.test:{site.port}", **at_home("site.test")) as desk:
        assert await desk.say(get("site.test", site.port, "Host: x"), until=ANSWER) == ANSWER
        assert (await desk.say(tunnel("site.test", site.port + 1))).startswith(b"HTTP/1.1 403 ")
        assert f"site.test:{site.port + 1}" in desk.proxy.notes[0]


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fd00::1", "0.0.0.0"]
)
async def test_a_public_name_does_not_lead_into_a_private_network(site: Server, address: str) -> None:
    for addresses in ([address], ["93.184.216.34", address]):
        async with open_proxy("site.test", names=Names({"site.test": addresses})) as desk:
            for sent in (get("site.test", site.port, "Host: x"), tunnel("site.test", site.port)):
                assert (await desk.say(sent)).startswith(b"HTTP/1.1 403 ")
            (note,) = desk.proxy.notes
            assert note.startswith(f"“site.test” leads to the private address {address}.")
    assert site.connections == 0


@pytest.mark.parametrize(
    ("granted", "destination"), [("localhost", "localhost"), ("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "127.1")]
)
async def test_what_a_person_sees_to_be_private_is_reached(site: Server, granted: str, destination: str) -> None:
    async with open_proxy(granted) as desk:
        assert await desk.say(get(destination, site.port, "Host: x"), until=ANSWER) == ANSWER


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: site.test\r\n\r\n",
        b"GET https://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n",
        b"GET http:///x HTTP/1.1\r\nHost: site.test\r\n\r\n",
        b"GET http://site.test@evil.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n",
        b"GET http://site.test\\@evil.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n",
        b"GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nHost: evil.test\r\n\r\n",
        b"GET http://site.test/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"CONNECT site.test HTTP/1.1\r\nHost: site.test\r\n\r\n",
        b"CONNECT site.test:0 HTTP/1.1\r\nHost: site.test\r\n\r\n",
        b"\x16\x03\x01 hello\r\n\r\n",
        b"GET http://site.test/ HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 300_000,
    ],
)
async def test_what_is_no_request_for_a_proxy_goes_nowhere(sent: bytes) -> None:
    async with open_proxy("site.test", **at_home("site.test")) as desk:
        told = await desk.say(sent)
        assert told[:10] in {b"HTTP/1.1 4", b""}
        assert desk.proxy._resolve.destination == []


async def test_what_cannot_be_reached_is_said(unused_tcp_port: int) -> None:
    names = Names({"site.test": ["127.0.0.1"]})
    async with open_proxy("site.test", "none.test", names=names, private=frozenset({"site.test"})) as desk:
        assert (await desk.say(tunnel("site.test", unused_tcp_port))).startswith(b"HTTP/1.1 502 ")
        assert (await desk.say(tunnel("none.test", 443))).startswith(b"HTTP/1.1 502 ")
        assert desk.proxy.notes == (
            f"site.test:{unused_tcp_port} could not be reached: Connection refused.",
            "none.test:443 could not be reached: Name or service not known.",
        )


async def test_only_so_many_connections_at_a_time_and_each_gets_its_turn(site: Server) -> None:
    async with open_proxy("site.test", limits=ProxyLimits(connections=2), **at_home("site.test")) as desk:
        async with asyncio.timeout(PATIENCE):
            first = [await asyncio.open_connection(*desk.place) for _ in range(2)]
            for reader, writer in first:
                writer.write(tunnel("site.test", site.port))
                assert await reader.readexactly(len(OPEN)) == OPEN
            waiting = asyncio.create_task(desk.say(get("site.test", site.port, "Host: x"), until=ANSWER))
            await asyncio.wait([waiting], timeout=0.2)
            assert (waiting.done(), site.connections) == (False, 2)
            for _, writer in first:
                writer.close()
                await writer.wait_closed()
            assert await waiting == ANSWER


async def test_silence_ends_a_connection(site: Server) -> None:
    async with open_proxy("site.test", limits=ProxyLimits(head=0.1, idle=0.1), **at_home("site.test")) as desk:
        assert await desk.say(b"GET ") == b""
        assert await desk.say(tunnel("site.test", site.port)) == OPEN


async def test_it_ends_with_all_its_connections(site: Server) -> None:
    async with open_proxy("site.test", **at_home("site.test")) as desk:
        reader, writer = await asyncio.open_connection(*desk.place)
        writer.write(tunnel("site.test", site.port))
        assert await reader.readexactly(len(OPEN)) == OPEN
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        await site.disconnected.wait()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


class OtherProxy(Server):
    """The one that the person's system goes through."""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heard += head
        if head.startswith(b"CONNECT shut.test"):
            writer.write(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
        elif head.startswith(b"CONNECT"):
            writer.write(b"HTTP/1.1 200 Yes\r\n\r\nfirst ")
            writer.write(b"got " + await reader.readexactly(5))
        else:
            writer.write(ANSWER)
        await writer.drain()
        writer.close()


async def test_it_goes_through_the_proxy_of_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names({})
    async with open_server(OtherProxy()) as other, open_proxy("site.test", "shut.test", names=names) as desk:
        for name in ("http_proxy", "https_proxy"):
            monkeypatch.setenv(name, f"http://me:secret@127.0.0.1:{other.port}")
        assert await desk.say(tunnel("site.test", 443), b"GET / HTTP/1.0\r\n\r\n") == OPEN + b"first got GET /"
        assert await desk.say(get("site.test", 8080, "Host: evil.test", path="/a"), until=ANSWER) == ANSWER
        assert (await desk.say(tunnel("shut.test", 443))).startswith(b"HTTP/1.1 502 ")
        assert (await desk.say(tunnel("evil.test", 443))).startswith(b"HTTP/1.1 403 ")
        assert "secret" not in str(desk.proxy.notes)
        assert names.destination == []
    first, second, third = other.heard.decode().lower().split("\r\n\r\n")[:3]
    secret = "proxy-authorization: basic bwu6c2vjcmv0"
    assert first == f"connect site.test:443 http/1.1\r\nhost: site.test:443\r\n{secret}"
    assert second.startswith("get http://site.test:8080/a http/1.1\r\nhost: site.test:8080\r\n")
    assert secret in second
    assert third.startswith("connect shut.test:443 ")


async def test_a_beginning_is_waited_for_and_what_the_server_says_is_not_held_back() -> None:
    class Greeting(Server):
        async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hello")
            await super().answer(reader, writer)

    async with open_server(Greeting()) as site, open_proxy("site.test", **at_home("site.test")) as desk:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(*desk.place)
            writer.write(tunnel("site.test", site.port) + b"GE")
            assert await reader.readexactly(len(OPEN) + 5) == OPEN + b"hello"
            writer.close()
            await site.disconnected.wait()
    assert site.heard == b""
