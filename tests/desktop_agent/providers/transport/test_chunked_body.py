"""The fast path for chunked bodies gives the same bytes and errors as the HTTP library."""

import asyncio
import contextlib
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Self

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desktop_agent.providers.transport import http_client, httpx_transport
from desktop_agent.providers.transport.http_client import HttpClient, HttpRequest
from desktop_agent.providers.transport.httpx_transport import ChunkedBody
from desktop_agent.types.errors import AgentError, TimedOut, Truncated
from desktop_agent.types.providers import Timeouts
from tests.fakes.http_server import Loopback, Reply
from tests.frame.examples import examples
from tests.frame.patience import PATIENCE

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
QUICK = Timeouts(connect=5, idle=5)


class Wire:
    """A server that writes given pieces for every request, then waits for the next one, or closes."""

    def __init__(self, *pieces: bytes, close: bool = False, tls: ssl.SSLContext | None = None) -> None:
        self.connections = 0
        self.disconnected = asyncio.Event()
        self._pieces, self._close, self._tls = pieces, close, tls
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._tls)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def port(self) -> int:
        return self._server.sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n{}")
                for piece in self._pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
                if self._close:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            self.disconnected.set()
        finally:
            if self._tls is not None:
                writer.transport.abort()  # else it waits half a minute for the other side's farewell
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()


@pytest.fixture
def library_only(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(httpx_transport, "fast_body", lambda *_: None)


def call(url: str, timeouts: Timeouts = QUICK) -> HttpRequest:
    return HttpRequest(url, timeouts, b"{}")


async def outcome(http: HttpClient, request: HttpRequest) -> tuple[bytes, str]:
    """Return the bytes that arrived, and how the body ended."""
    received = b""
    answer = await http.open(request)
    try:
        async with answer.body() as chunks:
            async for chunk in chunks:
                received += chunk
    except AgentError as error:
        return received, f"{error.kind}: {error}"
    return received, "ended"


async def is_quick(http: HttpClient, url: str) -> bool:
    answer = await http.open(call(url))
    try:
        return isinstance(answer._response.extensions[httpx_transport.STREAM_EXTENSION], ChunkedBody)
    finally:
        await answer.aclose()


def framed(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)


async def test_the_pinned_versions_take_the_quick_way(http: HttpClient) -> None:
    async with Loopback(Reply(b"x")) as server:
        assert await is_quick(http, server.url)


@pytest.mark.parametrize("framing", ["length", "close"])
async def test_other_framings_are_the_library_s(http: HttpClient, framing: str) -> None:
    async with Loopback(Reply([b"one", b"two"], framing=framing)) as server:  # type: ignore[arg-type]
        assert not await is_quick(http, server.url)
        assert await outcome(http, call(server.url)) == (b"onetwo", "ended")


async def test_bodies_without_content_are_the_library_s(http: HttpClient) -> None:
    async with Wire(HEAD.replace(b"200 OK", b"204 No Content")) as server:
        assert not await is_quick(http, server.url)
        assert await outcome(http, call(server.url)) == (b"", "ended")


@pytest.mark.parametrize("name", ["_httpcore_stream", "_connection", "_h11_state", "_reader", "_receive_buffer"])
async def test_without_a_private_name_the_library_reads(
    http: HttpClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    behind = httpx_transport._nested_attribute

    def lacking(start: Any, *names: str) -> Any:
        return None if name in names else behind(start, *names)

    monkeypatch.setattr(httpx_transport, "_nested_attribute", lacking)
    httpx_transport._is_h11_supported.cache_clear()
    try:
        async with Loopback(Reply([b"one", b"two"])) as server:
            assert not await is_quick(http, server.url)
            assert await outcome(http, call(server.url)) == (b"onetwo", "ended")
    finally:
        httpx_transport._is_h11_supported.cache_clear()


def test_a_machine_that_keeps_its_bytes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(httpx_transport, "_take_buffered", lambda machine: machine.trailing_data[0])
    httpx_transport._is_h11_supported.cache_clear()
    try:
        assert not httpx_transport._is_h11_supported()
    finally:
        httpx_transport._is_h11_supported.cache_clear()


chunk_lists = st.lists(
    st.one_of(st.binary(min_size=1, max_size=3), st.binary(min_size=1, max_size=40), st.just(b"\r\n"), st.just(b"1\r"))
    | st.tuples(st.binary(min_size=1, max_size=1), st.integers(1, 60)).map(lambda pair: pair[0]),
    max_size=40,
)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chunks=chunk_lists, repeat=st.integers(1, 40), data=st.data())
async def test_any_cutting_gives_the_payload_and_the_connection_back(
    http: HttpClient, chunks: list[bytes], repeat: int, data: st.DataObject
) -> None:
    chunks = [chunk for chunk in chunks for _ in range(repeat)]
    wire = HEAD + framed(*chunks) + b"0\r\n\r\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=12)))
    pieces = [wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    async with Wire(*pieces) as server:
        for _ in range(2):
            assert await outcome(http, call(server.url)) == (b"".join(chunks), "ended")
        assert server.connections == 1


@pytest.mark.parametrize("size", [1, 2, 3, 16, 17])
@pytest.mark.parametrize("step", [1, 7, 1000])
async def test_small_chunks_in_a_row(http: HttpClient, size: int, step: int) -> None:
    payload = bytes(range(256)) * (size if step > 1 else 1)
    chunks = [payload[start : start + size] for start in range(0, len(payload), size)]
    wire = HEAD + framed(*chunks, b"a long one between them", *chunks) + b"0\r\n\r\n"
    async with Wire(*(wire[start : start + step] for start in range(0, len(wire), step))) as server:
        assert await outcome(http, call(server.url)) == (payload + b"a long one between them" + payload, "ended")


REST = [
    b"0\r\nx-trailer: 1\r\n\r\n",  # trailers
    b"5;a=b\r\nhello\r\n0;c\r\n\r\n",  # extensions
    b"5  \r\nhello\r\n0\r\n\r\n",  # spaces
    b"0005\r\nhello\r\n000\r\n\r\n",  # leading zeros
    b"A\r\n0123456789\r\n0\r\n\r\n",
    b"0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",  # more than was asked for
    b"0\r\nbroken trailer\r\n\r\n",
    b"5\r\nhello!\r\n0\r\n\r\n",  # longer than it said
    b"5\r\nhelloXX0\r\n\r\n",
    b"5\r\nhelloXX3\r\nabc\r\n0\r\n\r\n",
    b"5\r\nhel\r\n0\r\n\r\n",  # shorter
    b"1\r\na\r\n" * 12 + b"1\r\nab\r\n0\r\n\r\n",
    b"zz\r\nhello\r\n",
    b" 5\r\nhello\r\n0\r\n\r\n",
    b"-5\r\nhello\r\n",
    b"0x5\r\nhello\r\n0\r\n\r\n",
    b"1_0\r\nhello\r\n",
    b"5\nhello\n0\n\n",
    b"\r\n5\r\nhello\r\n",
    b"fffffffffffffffffffffffff\r\nhello",
    b"ffffffffffffffff\r\nhello",
    b"f" * 200_000,  # a header without end
    b"5\r\nhe",  # cut everywhere
    b"5\r\nhello",
    b"5\r\nhello\r",
    b"5\r\nhello\r\n",
    b"5\r\nhello\r\n3",
    b"5\r\nhello\r\n3\r",
    b"5\r\nhello\r\n0\r\n",
    b"",
]


@pytest.mark.parametrize("rest", REST, ids=[repr(each[:30]) for each in REST])
@pytest.mark.parametrize("step", [1, 0])
async def test_what_is_unusual_or_wrong_ends_as_in_the_library(
    http: HttpClient, rest: bytes, step: int, library_only: Callable[[], None]
) -> None:
    wire = framed(b"first", b"second") + rest
    pieces: Sequence[bytes] = [HEAD + wire]
    if step:
        pieces = [HEAD, *(wire[start : start + 1] for start in range(min(len(wire), 200))), wire[200:]]
    async with Wire(*pieces, close=True) as server:
        result = await outcome(http, call(server.url))
        library_only()
        assert result == await outcome(http, call(server.url))
    assert result[0].startswith(b"firstsecond")


async def test_a_header_without_end_is_not_collected_for_ever(http: HttpClient) -> None:
    async with Wire(HEAD, framed(b"hello"), b"f" * 200_000) as server:
        assert (await outcome(http, call(server.url)))[1].startswith(Truncated.kind)


async def test_trailers_and_extensions_give_the_connection_back(http: HttpClient) -> None:
    async with Wire(HEAD, b"5;a=b\r\nhello\r\n", b"0\r\nx-trailer: 1\r\n\r\n") as server:
        for _ in range(3):
            assert await outcome(http, call(server.url)) == (b"hello", "ended")
        assert server.connections == 1


async def test_an_answer_that_says_close_is_not_used_again(http: HttpClient) -> None:
    head = HEAD.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
    async with Wire(head, framed(b"hello"), b"0\r\n\r\n") as server:
        assert await outcome(http, call(server.url)) == (b"hello", "ended")
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)
        assert await outcome(http, call(server.url)) == (b"hello", "ended")
        assert server.connections == 2


async def test_the_end_mark_unread_does_not_give_the_connection_back(http: HttpClient) -> None:
    async with Wire(HEAD, framed(b"hello", b"more")) as server:
        answer = await http.open(call(server.url))
        async with answer.body() as chunks:
            assert await anext(chunks)
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)


async def test_silence_counts_from_the_last_bytes(http: HttpClient) -> None:
    async with Wire(HEAD, framed(b"hello") + b"5\r\nwor") as server:
        result = await outcome(http, call(server.url, Timeouts(idle=0.1)))
        assert result[0] == b"hellowor"
        assert result[1].startswith(TimedOut.kind)


async def test_a_reset_in_the_middle_is_a_cut(http: HttpClient) -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n{}")
        writer.write(HEAD + framed(b"hello"))
        await writer.drain()
        await received.wait()
        writer.transport.abort()

    received = asyncio.Event()
    server = await asyncio.start_server(reset, "127.0.0.1", 0)
    async with server:
        answer = await http.open(call(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))
        with pytest.raises(Truncated, match="closed the connection"):  # noqa: PT012
            async with answer.body() as chunks:
                assert await anext(chunks) == b"hello"
                received.set()
                await anext(chunks)


async def test_a_refusal_is_read_the_quick_way_too(http: HttpClient) -> None:
    async with Loopback(Reply(b'{"error":{"message":"slow down"}}', 429)) as server:
        request = call(server.url)
        assert "slow down" in str(await http_client.error_from_response(await http.open(request), request))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for models.example and 127.0.0.1; key and certificate are in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "models.example")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("models.example"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    plain = serialization.NoEncryption()
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    return file


@pytest.fixture
def tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


LONG = [b"x" * 20_000, b"y", b"z"] * 5


async def test_through_tls(http: HttpClient, tls: ssl.SSLContext) -> None:
    async with Wire(HEAD, framed(*LONG), b"0\r\n\r\n", tls=tls) as server:
        url = server.url.replace("http:", "https:")
        assert await is_quick(http, url)
        for _ in range(2):
            assert await outcome(http, call(url)) == (b"".join(LONG), "ended")
        assert server.connections == 2  # one was given up by `is_quick`
        answer = await http.open(call(url))
        async with answer.body() as chunks:
            assert await anext(chunks)
        assert await outcome(http, call(url)) == (b"".join(LONG), "ended")


async def test_through_a_proxy_and_tls(tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[bytes] = []
    tasks: list[asyncio.Task[None] | None] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.current_task())
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        await asyncio.gather(_pump(reader, upstream_writer), _pump(upstream_reader, writer))

    async with Wire(HEAD, framed(*LONG), b"0\r\n\r\n", tls=tls) as server:
        proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
        async with proxy:
            monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
            monkeypatch.setenv("no_proxy", "")
            http = HttpClient()
            url = "https://models.example/v1"
            assert await is_quick(http, url)
            assert await outcome(http, call(url)) == (b"".join(LONG), "ended")
            await http.aclose()
            await asyncio.gather(*(task for task in tasks if task is not None))
    assert all(head.startswith(b"CONNECT models.example:443") for head in heads)
    assert heads


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    target.close()
    with contextlib.suppress(ConnectionError):
        await target.wait_closed()
