"""Responses that no model server should send are read by content, or reported as what they are. Raw sockets."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from pydantic import SecretStr

from desktop_agent.providers.provider import make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.errors import (
    ConnectionFailed,
    Overloaded,
    ProviderError,
    RateLimited,
    ServerFailed,
    Truncated,
    UnreadableAnswer,
    WrongUse,
)
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import ModelRequest
from tests.fakes.http_server import chunk, sse
from tests.fakes.vendor_streams import DIALECTS, ROOTS, dialect_of, events
from tests.frame.patience import PATIENCE

HELLO = sse(chunk({"content": "Hel"}), chunk({"content": "lo"}), chunk(finish="stop"))
PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>Welcome</body></html>"


def head(status: str = "200 OK", content_type: str = "text/event-stream", *more: str, version: str = "1.1") -> bytes:
    lines = [f"HTTP/{version} {status}", f"content-type: {content_type}", *more, "", ""]
    return "\r\n".join(lines).encode()


@asynccontextmanager
async def raw(*pieces: bytes, hold: bool = False) -> AsyncIterator[str]:
    """Run a server that writes these bytes for any request and then closes, unless `hold`; yield its address."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
            for piece in pieces or (head() + b"".join(events(dialect_of(first), 2)),):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if hold:
                await reader.read()
                await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(serve(reader, writer))
        tasks.add(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def answer_of(address: str, dialect: str = "openai-chat", key: str | None = None) -> str:
    http = HttpClient()
    secret = None if key is None else SecretStr(key)
    provider = make_provider(dialect, f"{address}/{ROOTS[dialect]}", secret, http)
    stream = provider.stream(ModelRequest("m", (Message.user("hi"),)))
    try:
        async with asyncio.timeout(PATIENCE):
            return "".join([event.text async for event in stream if isinstance(event, ContentDelta)])
    finally:
        await stream.aclose()
        await http.aclose()


async def failure_of(address: str, dialect: str = "openai-chat", key: str | None = None) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await answer_of(address, dialect, key)
    return caught.value


@pytest.mark.parametrize(
    "content_type", ["text/html; charset=utf-8", "application/json", "text/plain", "application/x-ndjson"]
)
@pytest.mark.parametrize("status", ["200 OK", "500 Internal Server Error", "404 Not Found"])
async def test_a_stream_of_events_is_read_whatever_it_is_labelled(content_type: str, status: str) -> None:
    async with raw(head(status, content_type), HELLO[:7], HELLO[7:]) as address:
        assert await answer_of(address) == "Hello"


@pytest.mark.parametrize("before", [b"", b"\n", b"\xef\xbb\xbf", b": one moment\n\n", b"event: message\n"])
@pytest.mark.parametrize("status", ["200 OK", "500 Internal Server Error"])
async def test_a_stream_of_events_is_read_whatever_its_first_piece_is(status: str, before: bytes) -> None:
    body = before + HELLO
    head_of_chunks = head(status, "text/event-stream", "transfer-encoding: chunked")
    for size in range(1, len(before) + 6):
        pieces = [body[index : index + 1] for index in range(size)] + [body[size:]]
        # HTTP chunks keep their boundaries, however the network joins them.
        async with raw(head_of_chunks, *(b"%x\r\n%s\r\n" % (len(data), data) for data in pieces), b"0\r\n\r\n") as url:
            assert await answer_of(url) == "Hello"


@pytest.mark.parametrize("status", ["400 Bad Request", "500 Internal Server Error"])
@pytest.mark.parametrize("key", ["x", "test", "sk-no-key"])
async def test_a_dummy_key_is_a_word_that_an_error_may_say(status: str, key: str) -> None:
    message = f"The index {key} of the test context is wrong."
    body = json.dumps({"error": {"message": message}}).encode()
    async with raw(head(status, "application/json"), body) as address:
        error = await failure_of(address, key=key)
    assert error.message == message
    assert message in error.detail


async def test_a_short_key_of_somebody_s_own_is_hidden_where_an_error_says_it() -> None:
    body = json.dumps({"error": {"message": "There is no key hunter2-pw."}}).encode()
    async with raw(head("400 Bad Request", "application/json"), body) as address:
        error = await failure_of(address, key="hunter2-pw")
    assert "hunter2-pw" not in f"{error.message}{error.detail}{error!r}"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_a_body_without_framing_ends_with_its_connection(dialect: str, version: str) -> None:
    parts = events(dialect, 3)
    async with raw(head(version=version), *parts) as address:
        assert await answer_of(address, dialect) == "tok0 tok1 tok2 "


async def test_a_body_of_http_1_0_that_is_cut_is_no_whole_answer() -> None:
    async with raw(head(version="1.0"), sse(chunk({"content": "Hel"}), done=False)) as address:
        assert isinstance(await failure_of(address), Truncated)


@pytest.mark.parametrize(
    ("status", "error_type", "error_class"),
    [
        ("429 Too Many", "", RateLimited),
        ("500 Oops", "", ServerFailed),
        ("500 Oops", "overloaded_error", Overloaded),
        ("503 Busy", "", Overloaded),
    ],
)
@pytest.mark.parametrize("shape", ["event: error\n", ""])
async def test_an_error_written_as_an_event_under_a_status_of_failure(
    status: str, error_type: str, error_class: type[ProviderError], shape: str
) -> None:
    error = {"error": {"message": "Not now.", **({"type": error_type} if error_type else {})}}
    body = f"{shape}data: {json.dumps(error)}\n\n".encode()
    async with raw(head(status), body) as address:
        failure = await failure_of(address)
    assert (type(failure), failure.message) == (error_class, "Not now.")
    assert failure.status == int(status[:3])


@pytest.mark.parametrize("hold", [False, True], ids=["closed", "held open"])
@pytest.mark.parametrize(
    "garbage",
    [b"SSH-2.0-x\r\n", b"220 mail.example.org ESMTP\r\n", b"\x00\x01\x02\x03", b"hello", b"<html>no head</html>"],
    ids=["ssh", "mail", "binary", "a word", "a bare page"],
)
async def test_what_is_no_http_is_told_as_that(garbage: bytes, hold: bool) -> None:
    async with raw(garbage, hold=hold) as address:
        error = await failure_of(address)
    assert isinstance(error, UnreadableAnswer)
    assert error.message == "it did not answer in HTTP"
    assert not error.retryable


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 two hundred\r\n\r\n", b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", b"HTTP/9\x00\r\n\r\n"]
)
async def test_a_damaged_head_is_told_as_that(answer: bytes) -> None:
    async with raw(answer) as address:
        assert (await failure_of(address)).message == "it did not answer in HTTP"


async def test_tls_behind_an_address_without_it() -> None:
    async with raw(b"\x15\x03\x01\x00\x02\x02\x46") as address:
        error = await failure_of(address)
    assert error.message == "it did not answer in HTTP"
    assert "https://" in str(error.remedy)


async def test_headers_without_end_are_told_as_that() -> None:
    more = b"".join(b"x-%d: %s\r\n" % (number, b"a" * 1000) for number in range(200))
    async with raw(b"HTTP/1.1 200 OK\r\n" + more, hold=True) as address:
        error = await failure_of(address)
    assert isinstance(error, UnreadableAnswer)
    assert error.message == "its headers are too long"


async def test_a_server_that_only_closes_is_told_as_that() -> None:
    async with raw(b"") as address:
        error = await failure_of(address)
    assert isinstance(error, ConnectionFailed)
    assert "closed the connection without an answer" in error.message


async def test_chunks_that_are_none_are_not_a_closed_connection() -> None:
    first = sse(chunk({"content": "Hel"}), done=False)
    body = b"%x\r\n%s\r\n" % (len(first), first)
    async with raw(head("200 OK", "text/event-stream", "transfer-encoding: chunked"), body, b"no chunk\r\n") as address:
        error = await failure_of(address)
    assert isinstance(error, Truncated)
    assert "broke the rules of HTTP" in error.message


@pytest.mark.parametrize("hold", [False, True], ids=["whole", "held open"])
@pytest.mark.parametrize("content_type", ["text/html", "text/event-stream", "application/json"])
async def test_a_page_is_told_as_a_page_at_once(content_type: str, hold: bool) -> None:
    async with raw(head("200 OK", content_type), PAGE + b"\n", hold=hold) as address:
        error = await failure_of(address)
    assert isinstance(error, UnreadableAnswer)
    assert error.message == "it sent a web page"


async def test_a_network_that_wants_a_sign_in() -> None:
    async with raw(head("511 Network Authentication Required", "text/html"), PAGE) as address:
        error = await failure_of(address)
    assert isinstance(error, UnreadableAnswer)
    assert not error.retryable


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
async def test_an_error_in_json_in_place_of_a_stream(content_type: str) -> None:
    body = json.dumps({"error": {"message": "Slow down.", "type": "rate_limit_error"}}, indent=2).encode()
    async with raw(head("200 OK", content_type), body) as address:
        error = await failure_of(address)
    assert (type(error), error.message) == (RateLimited, "Slow down.")


@pytest.mark.parametrize(
    "body", [b"", b"\r\n\r\n", b": keep-alive\n\n"], ids=["nothing", "blank", "kept the connection open"]
)
async def test_an_empty_answer_is_told_as_that(body: bytes) -> None:
    async with raw(head(), body) as address:
        error = await failure_of(address)
    assert isinstance(error, Truncated)
    assert error.message == "it was empty"


@pytest.mark.parametrize("location", ["https://elsewhere.example/v1", "//elsewhere.example/v1"])
async def test_a_redirect_to_another_host_is_not_followed_and_names_it(location: str) -> None:
    async with raw(head("307 Temporary Redirect", "text/html", f"location: {location}")) as address:
        error = await failure_of(address)
    assert isinstance(error, UnreadableAnswer)
    assert error.message == "it points to another address, at elsewhere.example"


@pytest.mark.parametrize("host", ["xn--", "xn--a", "xn--\u2019", "\u00e9..x"])
async def test_a_name_of_no_host_is_told_as_that(host: str) -> None:
    with pytest.raises(WrongUse, match="not an address that can be asked"):
        await answer_of(f"http://{host}")


async def test_compression_that_is_damaged() -> None:
    packed = bytearray(gzip.compress(HELLO * 50))
    packed[40:60] = b"\xff" * 20
    async with raw(head("200 OK", "text/event-stream", "content-encoding: gzip"), bytes(packed)) as address:
        error = await failure_of(address)
    assert (type(error), error.message) == (UnreadableAnswer, "its compressed body is damaged")
    cut = gzip.compress(sse(chunk({"content": "Hel"}), chunk(finish="stop")))[:-20]
    async with raw(head("200 OK", "text/event-stream", "content-encoding: gzip"), cut) as address:
        assert isinstance(await failure_of(address), Truncated)


async def test_compression_under_a_status_of_failure_is_read() -> None:
    body = gzip.compress(json.dumps({"error": {"message": "Busy.", "type": "overloaded_error"}}).encode())
    async with raw(head("500 Oops", "application/json", "content-encoding: gzip"), body) as address:
        error = await failure_of(address)
    assert (type(error), error.message) == (Overloaded, "Busy.")
