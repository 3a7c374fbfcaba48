import asyncio
import gzip
import logging
import socket
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from pydantic import SecretStr

from desktop_agent.network.decompression import MAX_PIECE
from desktop_agent.providers.dialects.response_stream import send_request
from desktop_agent.providers.transport import http_client
from desktop_agent.providers.transport.http_client import (
    ERROR_BODY_LIMIT,
    HttpClient,
    HttpRequest,
    SecretHeader,
    error_from_response,
)
from desktop_agent.types.errors import (
    ConnectionFailed,
    ProviderError,
    TimedOut,
    TooLarge,
    Truncated,
    UnreadableAnswer,
    WrongUse,
)
from desktop_agent.types.providers import ProviderState, Timeouts
from tests.fakes.http_server import Loopback, Reply
from tests.frame.patience import PATIENCE

KEY = "sk-very-secret-0123456789"
QUICK = Timeouts(connect=5, idle=5)


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()


def call(url: str, timeouts: Timeouts = QUICK, body: bytes | None = b"{}") -> HttpRequest:
    return HttpRequest(url, timeouts, body, SecretHeader.bearer(SecretStr(KEY)), accept="text/event-stream")


async def read_body(http: HttpClient, request: HttpRequest) -> bytes:
    answer = await http.open(request)
    async with answer.body() as chunks:
        return b"".join([chunk async for chunk in chunks])


async def test_the_head_of_a_request(http: HttpClient) -> None:
    async with Loopback(Reply(b"x")) as server:
        assert await read_body(http, call(server.url + "/a?b=c")) == b"x"
        (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/v1/a?b=c", b"{}")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["accept"] == "text/event-stream"
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["connection"] == "keep-alive"


async def test_no_key_no_header_not_even_from_a_netrc_file(
    http: HttpClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("default login a password b\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with Loopback(Reply(b"x")) as server:
        await read_body(http, HttpRequest(server.url, QUICK))
        assert server.requests[0].method == "GET"
        assert "authorization" not in server.requests[0].headers


async def test_a_body_read_to_its_end_gives_the_connection_back(http: HttpClient) -> None:
    async with Loopback(Reply(b"x")) as server:
        for _ in range(3):
            await read_body(http, call(server.url))
        assert server.connections == 1


async def test_a_half_read_body_closes_its_connection(http: HttpClient) -> None:
    async with Loopback(Reply([b"one", b"two"], hold=asyncio.Event())) as server:
        answer = await http.open(call(server.url))
        async with answer.body() as chunks:
            assert (await anext(chunks)).startswith(b"one")
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)
        answer = await http.open(call(server.url))
        await answer.aclose()
        assert server.connections == 2


async def test_a_cancelled_task_closes_its_connection(http: HttpClient) -> None:
    async with Loopback(Reply(b"one", hold=asyncio.Event())) as server:
        received = asyncio.Event()

        async def reading() -> None:
            answer = await http.open(call(server.url))
            async with answer.body() as chunks:
                async for _ in chunks:
                    received.set()

        task = asyncio.create_task(reading())
        await asyncio.wait_for(received.wait(), PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)


async def test_silence(http: HttpClient) -> None:
    async with Loopback(Reply(b"one", hold=asyncio.Event())) as server:
        with pytest.raises(TimedOut, match=r"said nothing for 0\.1 seconds"):
            await read_body(http, call(server.url, Timeouts(idle=0.1)))


async def test_bytes_are_signs_of_life_and_the_total_counts_all_the_same(http: HttpClient) -> None:
    async with Loopback(Reply(b"one", hold=asyncio.Event())) as server:
        with pytest.raises(TimedOut, match=r"not finished within 0\.2 seconds"):
            await read_body(http, call(server.url, Timeouts(idle=30, total=0.2)))
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)


async def test_total_before_the_head(http: HttpClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(TimedOut, match="not finished"):
            await http.open(call(url, Timeouts(total=0.1)))
        with pytest.raises(TimedOut, match=r"did not begin to answer within 0\.1 seconds"):
            await http.open(call(url, Timeouts(headers=0.1)))


async def test_nobody_listens(http: HttpClient) -> None:
    with pytest.raises(ConnectionFailed) as caught:
        await http.open(call("http://127.0.0.1:9/v1"))
    assert caught.value.message == "nothing listens at 127.0.0.1:9"
    assert caught.value.retryable
    with pytest.raises(ConnectionFailed, match="nothing listens at localhost:9"):
        await http.open(call("http://localhost:9/v1"))


async def test_unknown_name(http: HttpClient) -> None:
    with pytest.raises(ConnectionFailed, match=r"the name no-such-host\.invalid is not known"):
        await http.open(call("http://no-such-host.invalid/v1"))


@pytest.mark.parametrize("reply", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
async def test_tls_where_none_is_spoken(http: HttpClient, reply: bytes) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(reply)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    async with server:
        with pytest.raises(ConnectionFailed, match="does not speak TLS") as caught:
            await http.open(call(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))
    assert "http://" in str(caught.value.remedy)
    assert not caught.value.retryable


async def test_closed_without_an_answer(http: HttpClient) -> None:
    async def slam(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(slam, "127.0.0.1", 0)
    async with server:
        with pytest.raises(ConnectionFailed, match="closed the connection"):
            await http.open(call(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))


@pytest.mark.parametrize("framing", ["chunked", "length"])
async def test_a_body_that_is_cut(http: HttpClient, framing: str) -> None:
    async with Loopback(Reply(b"half", framing=framing, cut=True)) as server:  # type: ignore[arg-type]
        with pytest.raises(Truncated, match="closed the connection"):
            await read_body(http, call(server.url))


async def test_redirects_are_not_followed(http: HttpClient) -> None:
    async with Loopback(Reply(b"secret asked")) as target:
        redirect = Reply(b"", 307, {"location": f"http://localhost:{target.port}/v1"}, "length")
        async with Loopback(redirect) as server:
            with pytest.raises(UnreadableAnswer, match="at localhost") as caught:
                await http.open(call(server.url))
        assert target.requests == []
        assert not caught.value.retryable


async def test_compressed_all_the_same(http: HttpClient) -> None:
    packed = gzip.compress(b"hello" * 100)
    async with Loopback(Reply([packed[:20], packed[20:]], headers={"content-encoding": "gzip"})) as server:
        assert await read_body(http, call(server.url)) == b"hello" * 100
    async with Loopback(Reply(b"not gzip", headers={"content-encoding": "gzip"})) as server:
        with pytest.raises(UnreadableAnswer, match="damaged"):
            await read_body(http, call(server.url))


async def test_a_small_answer_that_inflates_to_much_comes_in_bounded_pieces(http: HttpClient) -> None:
    packed = gzip.compress(bytes(20_000_000))
    async with Loopback(Reply(packed, headers={"content-encoding": "gzip"})) as server:
        answer = await http.open(call(server.url))
        async with answer.body() as chunks:
            sizes = [len(chunk) async for chunk in chunks]
    assert sum(sizes) == 20_000_000
    assert max(sizes) <= MAX_PIECE


async def test_layers_of_compression_are_not_opened(http: HttpClient) -> None:
    packed = gzip.compress(gzip.compress(bytes(1000)))
    layered = {"content-encoding": "gzip, gzip"}
    async with Loopback(Reply(packed, headers=layered), Reply(packed, 503, headers=layered)) as server:
        with pytest.raises(UnreadableAnswer, match="not asked for"):
            await read_body(http, call(server.url))
        answer = await http.open(call(server.url))
        assert "HTTP 503" in str(await error_from_response(answer, call(server.url)))


async def test_error_bodies_are_bounded_and_lose_the_key(http: HttpClient) -> None:
    body = f'{{"error":{{"message":"Incorrect API key: {KEY}"}}}}'.encode()
    async with Loopback(Reply(body, 401), Reply([b"x" * 50_000] * 20, 500, hold=asyncio.Event())) as server:
        request = call(server.url)
        error = await error_from_response(await http.open(request), request)
        assert str(error) == "The API key was not accepted: Incorrect API key: [key]."
        assert KEY not in error.detail
        answer = await http.open(request)
        assert len(await answer.read(ERROR_BODY_LIMIT)) == ERROR_BODY_LIMIT


@pytest.mark.parametrize("ending", ["cut", "held"])
async def test_an_error_body_that_never_ends_says_what_it_says(
    http: HttpClient, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "ERROR_BODY_TIMEOUT", 0.1)
    body = b'{"error":{"message":"slow down"}}'
    reply = Reply(body, 429, cut=True) if ending == "cut" else Reply(body, 429, hold=asyncio.Event())
    async with Loopback(reply) as server:
        request = call(server.url)
        assert "slow down" in str(await error_from_response(await http.open(request), request))


async def test_exchange(http: HttpClient) -> None:
    async with Loopback(Reply(b"[]"), Reply(b"", 404), Reply(b"x" * 100)) as server:
        assert await http.exchange(call(server.url)) == b"[]"
        with pytest.raises(ProviderError, match="HTTP 404"):
            await http.exchange(call(server.url))
        with pytest.raises(TooLarge):
            await http.exchange(call(server.url), limit=10)


@pytest.mark.parametrize("status", [200, 401, 503])
async def test_what_an_exchange_gives_back_lacks_the_key(http: HttpClient, status: int) -> None:
    escaped = "".join(f"\\u{ord(letter):04X}" for letter in KEY)
    body = f'{{"error":{{"message":"bad key {KEY}","data":"{escaped}"}}}}'.encode()
    async with Loopback(Reply(body, status, {"request-id": f"r-{KEY}", "x-other": KEY})) as server:
        try:
            text = (await http.exchange(call(server.url))).decode()
        except ProviderError as error:
            text = f"{error!r} {error.message} {error.detail} {error.request_id}"
            request_id = error.request_id
        else:
            request_id = "r-[key]"
    assert request_id == "r-[key]"
    assert "bad key [key]" in text
    assert KEY not in text
    assert escaped not in text


@pytest.mark.parametrize("key", ["sk-\nsecret", "sk-ключ", "", "sk-\x00secret"])
def test_keys_that_no_header_carries_are_refused_without_repeating_them(key: str) -> None:
    with pytest.raises(WrongUse) as caught:
        SecretHeader.bearer(SecretStr(key))
    # This function's own frame holds the key; the code's frames must not.
    inner = caught.value.with_traceback(caught.tb.tb_next)
    trace = "".join(traceback.TracebackException.from_exception(inner, capture_locals=True).format())
    assert "bearer" in trace
    assert not key or (key not in trace and repr(key)[1:-1] not in trace)


async def test_the_key_is_in_no_repr_log_or_traceback(http: HttpClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    texts = [repr(call("http://127.0.0.1:9/v1")), str(call("http://127.0.0.1:9/v1"))]
    async with Loopback(Reply(b"", 401), Reply(b"half", cut=True), Reply(b"x", 302), Reply(b"", 200)) as server:
        urls = ["http://127.0.0.1:9/v1", server.url, server.url, server.url]
        for url in urls:
            request = call(url)
            try:
                answer = await http.open(request)
                texts.append(repr(answer))
                if answer.status >= 400:
                    raise await error_from_response(answer, request)
                async with answer.body() as chunks:
                    async for _ in chunks:
                        pass
            except ProviderError as error:
                trace = traceback.TracebackException.from_exception(error, capture_locals=True)
                texts += trace.format()
                texts += [error.detail, repr(error), str(error)]
    assert len(texts) > 10
    assert KEY not in "".join(texts)
    assert caplog.records
    assert KEY not in caplog.text


@pytest.fixture
def behind(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that sets the proxy."""

    def set_proxy(root: str) -> None:
        for name in ("http_proxy", "https_proxy"):
            monkeypatch.setenv(name, root)
        for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.delenv(name, raising=False)

    return set_proxy


@pytest.mark.parametrize(("status", "is_retryable"), [(403, False), (502, True)])
async def test_what_a_proxy_refuses_is_no_fault_of_the_server(
    status: int, is_retryable: bool, behind: Callable[[str], None]
) -> None:
    async with Loopback(Reply(b"<html>No.", status=status)) as proxy:
        behind(proxy.root)
        proxy_address = f"127.0.0.1:{proxy.port}"
        http = HttpClient()
        with pytest.raises(ConnectionFailed) as caught:
            await send_request(http, call("https://models.example/v1/x"), ProviderState())
        await http.aclose()
    error = caught.value
    assert error.message == f"the proxy {proxy_address} does not connect to models.example:443 ({status})"
    assert "Ask the operator of the proxy" in str(error.remedy)
    assert (error.status, error.retryable) == (status, is_retryable)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_is_not_there_is_named(scheme: str, behind: Callable[[str], None]) -> None:
    behind("http://me:pa55word@127.0.0.1:1")
    http = HttpClient()
    with pytest.raises(ConnectionFailed) as caught:
        await send_request(http, call(f"{scheme}://models.example/v1/x"), ProviderState())
    await http.aclose()
    assert caught.value.message == "the proxy 127.0.0.1:1 cannot be reached"
    trace = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert KEY not in trace
    assert "pa55word" not in trace


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_wants_a_sign_in_is_told_as_that(scheme: str, behind: Callable[[str], None]) -> None:
    async with Loopback(Reply(b"<html>Who are you?", status=407)) as proxy:
        behind(proxy.root)
        http = HttpClient()
        with pytest.raises(ConnectionFailed) as caught:
            await send_request(http, call(f"{scheme}://models.example/v1/x"), ProviderState())
        await http.aclose()
    error = caught.value
    assert (error.message, error.status) == ("the proxy on the way wants a name and a password", 407)
    assert "http://name:password@host:port" in str(error.remedy)
    assert not error.retryable


@pytest.mark.parametrize(
    "framing", ["Content-Length: 2\r\n\r\nok", "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"]
)
async def test_a_second_answer_that_came_with_the_first_answers_nothing(framing: str, http: HttpClient) -> None:
    connections: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        right = f"HTTP/1.1 200 OK\r\n{framing}".encode()
        with suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"{}"):
                writer.write(right + right.replace(b"ok", b"no"))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        assert [await read_body(http, call(url)) for _ in range(3)] == [b"ok"] * 3
    assert len(connections) == 3


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("framing", ["chunked", "length"])
async def test_a_server_that_never_pauses_leaves_room_for_others(
    framing: str, compressed: bool, http: HttpClient
) -> None:
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    body = b"data: {}\n\n" * 100_000
    headers = {"content-encoding": "gzip"} if compressed else {}
    data = gzip.compress(body, 1) if compressed else body
    async with Loopback(Reply(data, headers=headers, framing=framing)) as server:
        answer = await http.open(call(server.url))
        other_task = asyncio.create_task(take_turns())
        async with answer.body() as chunks:
            sizes = [len(chunk) async for chunk in chunks]
        other_task.cancel()
    assert sum(sizes) == len(body)
    # Longer chunks block the loop for up to a tenth of a second.
    assert max(sizes) <= 8 * 1024
    assert turns >= len(sizes)


async def test_a_proxy_never_sees_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Loopback(Reply(b"proxied")) as proxy, Loopback(Reply(b"direct")) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"):
            monkeypatch.setenv(name, proxy.root)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        http = HttpClient()
        assert await read_body(http, call(server.url)) == b"direct"
        assert await read_body(http, call(f"http://localhost:{server.port}/")) == b"direct"
        assert proxy.requests == []
        assert await read_body(http, call("http://models.example/v1/x")) == b"proxied"
        assert proxy.requests[0].path == "http://models.example/v1/x"
        monkeypatch.setenv("no_proxy", "other.invalid")
        with pytest.raises(ConnectionFailed, match="not known"):
            await read_body(http, call("http://other.invalid/v1/x"))
        await http.aclose()


async def test_an_unusable_proxy_is_not_gone_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:1")
    http = HttpClient()
    async with Loopback(Reply(b"direct")) as server:
        assert await read_body(http, call(server.url)) == b"direct"
        with pytest.raises(ConnectionFailed, match="socks5"):
            await http.open(call("http://models.example/"))
    await http.aclose()


async def test_two_first_uses_at_once_open_one_pool(http: HttpClient) -> None:
    async with Loopback(Reply(b"x")) as server:
        assert await asyncio.gather(*(read_body(http, call(server.url)) for _ in range(5))) == [b"x"] * 5


def test_importing_a_dialect_does_not_import_the_http_library() -> None:
    code = "import sys, desktop_agent.providers.provider; sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_http_library_comes_without_its_command_line() -> None:
    code = (
        "import sys, desktop_agent.providers.transport.http_client, desktop_agent.providers.transport.httpx_transport; "
        "sys.exit('httpx' not in sys.modules or bool({'click', 'pygments', 'rich'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
