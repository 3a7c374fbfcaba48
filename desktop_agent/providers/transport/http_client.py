"""The one pooled HTTP client: opens responses, reads them within limits, closes them at once.

Redirects are not followed; keys are only in `SecretHeader` and are added to the request at the last moment; errors do
not carry the HTTP library's own exception, because its frames contain headers.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from pydantic import SecretStr

from desktop_agent.network.redaction import redact_key
from desktop_agent.providers.transport import connection_errors, error_responses
from desktop_agent.types.errors import AgentError, Sentence, TimedOut, TooLarge, Truncated, UnreadableAnswer, WrongUse
from desktop_agent.types.providers import FIRST_EVENT_TIMEOUT, HEADERS_TIMEOUT, Timeouts

if TYPE_CHECKING:
    import httpx

    from desktop_agent.providers.transport.httpx_transport import ResponseBody

ERROR_BODY_LIMIT = 64 * 1024
ERROR_BODY_TIMEOUT = 10.0
# Seconds to the first event, and from one piece of an answer to the next, even if a server sends keepalives.
# The longest known, DeepSeek under load, gives up after ten minutes
# (https://api-docs.deepseek.com/quick_start/rate_limit).
MAX_QUIET_SECONDS = 3600.0
LISTING_LIMIT = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SecretHeader:
    """A header that carries a key. Raises WrongUse for a key that no header can carry, without repeating it."""

    name: str
    value: SecretStr
    prefix: str = ""

    def __post_init__(self) -> None:
        secret = self.value.get_secret_value()
        if not (secret.isascii() and secret.isprintable() and secret):
            del secret
            raise WrongUse(
                "The API key contains characters that no key can have.", "Copy the key again, without line breaks."
            )

    @classmethod
    def bearer(cls, key: SecretStr) -> "SecretHeader":
        """`Authorization: Bearer …` (RFC 6750)."""
        return cls("Authorization", key, "Bearer ")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request. `body` is JSON in bytes; GET without one, POST with one, unless `method` says otherwise."""

    url: str
    timeouts: Timeouts
    body: bytes | None = field(default=None, repr=False)
    secret: SecretHeader | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    accept: str = "application/json"
    method: str | None = None

    @property
    def where(self) -> str:
        """Return host and port, as sentences name them."""
        parts = urlsplit(self.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return f"{parts.hostname}:{port}"

    def redact(self, body: bytes) -> bytes:
        """Remove the key from what a server wrote about this call."""
        return body if self.secret is None else redact_key(body, self.secret.value.get_secret_value())

    def redact_key(self, text: str) -> str:
        """Remove the key from a text that a server wrote about this call."""
        return self.redact(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def _decompressed(body: AsyncIterator[bytes], encoding: str) -> AsyncGenerator[bytes, None]:
    from desktop_agent.network.decompression import decompress

    return decompress(body, encoding)


class HttpResponse:
    """A response whose head has arrived. Closing it closes the connection unless the body was read to its end."""

    def __init__(self, response: "httpx.Response", call: HttpRequest, deadline: float | None) -> None:
        from desktop_agent.providers.transport.httpx_transport import STREAM_EXTENSION

        self.status = response.status_code
        # A proxy may repeat the key, and the request id is stored with the answer and shown in errors.
        self.headers = {name.lower(): call.redact_key(value) for name, value in response.headers.items()}
        self._response = response
        # The transport's own bytes: the library's layers cost time, and would decompress without a limit.
        self._stream = cast("ResponseBody", response.extensions[STREAM_EXTENSION])
        self._stream.limits.silence = call.timeouts.idle
        self._raw = aiter(self._stream)
        encoding = self.headers.get("content-encoding", "").strip().lower()
        self._plain = None if encoding in ("", "identity") else _decompressed(self._raw, encoding)
        self._source: AsyncIterator[bytes] = self._plain or self._raw
        self._peeked: list[bytes] = []
        self._call = call
        self._deadline = deadline
        self._closing: asyncio.Task[None] | None = None

    def redact_key(self, text: str) -> str:
        """Remove a key that the server echoed."""
        return self._call.redact_key(text)

    async def peek(self) -> bytes:
        """Return the next piece of the body, which `body` will yield again.

        Empty if none arrives within ten seconds, or if the body ends or is broken, which `body` then raises.
        """
        import httpx

        with suppress(httpx.HTTPError, TimeoutError, UnreadableAnswer, StopAsyncIteration):
            async with asyncio.timeout(ERROR_BODY_TIMEOUT):
                self._peeked.append(await anext(self._source))
                return self._peeked[-1]
        return b""

    @asynccontextmanager
    async def body(self) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """Iterate the body as it arrives, decompressed: `async with answer.body() as chunks`.

        Leaving closes the answer. Raises TimedOut (silence, or the total limit), Truncated (cut) and UnreadableAnswer
        (damaged compression) at the end of the block. A context instead of a generator: no cost per chunk.
        """
        import httpx

        whole_body = _prepend(self._peeked, self._source) if self._peeked else None
        source = whole_body or self._source
        failure: AgentError | None = None
        try:
            yield source if self._deadline is None else _until_deadline(source, self._deadline)
        except httpx.HTTPError as error:
            failure = connection_errors.error_from_read(error, self._call.where, self._stream.limits)
        except TimeoutError:
            failure = _total_timeout(self._call)
        finally:
            await self.aclose()
            if whole_body is not None:
                await whole_body.aclose()
            if self._plain is not None:
                await self._plain.aclose()
            await _drain(self._raw)
        if failure is not None:
            raise failure

    def wait_for_first_event(self) -> None:
        """Apply the limits for the first event until `on_event`: one of silence, and MAX_QUIET_SECONDS."""
        self._stream.limits.silence = self._call.timeouts.for_start(slow=False).first_event or FIRST_EVENT_TIMEOUT
        self.on_keepalive()

    def on_event(self) -> None:
        """Apply the limit of silence within an answer: a piece of it was received."""
        limits = self._stream.limits
        limits.silence, limits.until = self._call.timeouts.idle, None

    def on_keepalive(self) -> None:
        """Start MAX_QUIET_SECONDS, unless it is running; it ends at `on_event`."""
        limits = self._stream.limits
        if limits.until is None:
            # A longer limit was set on purpose.
            limits.until = asyncio.get_running_loop().time() + max(MAX_QUIET_SECONDS, 2 * limits.silence)

    async def read(self, limit: int) -> bytes:
        """Return the body up to `limit` bytes; the rest is not fetched. Raises like `body`."""
        pieces: list[bytes] = []
        size = 0
        async with self.body() as chunks:
            async for chunk in chunks:
                pieces.append(chunk)
                size += len(chunk)
                if size >= limit:
                    break
        return b"".join(pieces)[:limit]

    async def aclose(self) -> None:
        """Return the connection to the pool or close it; continues even if the caller is cancelled meanwhile."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        import httpx

        with suppress(httpx.HTTPError, OSError):
            await self._response.aclose()


class HttpClient:
    """Made once for the whole program and shared by all providers; the pool is opened at first use.

    `read_interval`: small pieces of an answer within so many seconds are read together, as a window shows them.
    """

    def __init__(self, read_interval: float = 0.0) -> None:
        self._read_interval = read_interval
        self._client: httpx.AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def open(self, call: HttpRequest) -> HttpResponse:
        """Send, and wait for the head of the answer; the caller handles a status of 400 or above.

        Raises ConnectionFailed, TimedOut, WrongUse, and UnreadableAnswer for a redirect.
        """
        import httpx

        client = await self._get_client()
        limits = call.timeouts.for_start(slow=False)
        deadline = None if limits.total is None else asyncio.get_running_loop().time() + limits.total
        sending = _RequestProgress(limits.headers or HEADERS_TIMEOUT)
        failure: AgentError
        try:
            async with asyncio.timeout_at(deadline) as sending.timer:
                response = await client.send(
                    _build_request(client, call, limits, sending.done),
                    stream=True,
                    auth=_signer(call.secret),
                    follow_redirects=False,
                )
        except TimeoutError:
            failure = _headers_timeout(call.where, limits) if sending.limits_headers else _total_timeout(call)
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, OSError) as error:
            failure = connection_errors.error_from_connect(error, call.where, limits, is_sent=sending.is_done)
        else:
            answer = HttpResponse(response, call, deadline)
            if not 300 <= answer.status < 400:
                return answer
            await answer.aclose()
            target = ""
            with suppress(ValueError):  # what it leads to is no address
                target = urlsplit(answer.headers.get("location", "")).hostname or ""
            failure = error_responses.redirect_error(answer.status, target or call.where)
        raise failure

    async def exchange(self, call: HttpRequest, limit: int = LISTING_LIMIT) -> bytes:
        """Return the whole answer, without the key. Raises the error of its status or body, and like `open`."""
        answer = await self.open(call)
        if answer.status >= 400:
            raise await error_from_response(answer, call)
        body = await answer.read(limit + 1)
        if len(body) > limit:
            size = {"size": str(limit // (1024 * 1024))}
            raise TooLarge(Sentence("the answer is larger than {size} MB", size), retryable=False)
        # Callers quote it in errors.
        return call.redact(body)

    async def warm_up(self) -> None:
        """Import the HTTP library and open the pool now, so that the first question does not wait for that."""
        await self._get_client()

    async def aclose(self) -> None:
        """Close every connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _get_client(self) -> "httpx.AsyncClient":
        async with self._opening:
            if self._client is None:
                # Importing and loading certificates take tens of milliseconds: not on the loop.
                self._client = await asyncio.to_thread(_make_client, self._read_interval)
            return self._client


async def error_from_response(answer: HttpResponse, call: HttpRequest) -> AgentError:
    """Return the error for an answer of 400 or above; reads at most 64 KB, for 10 seconds, without the key."""
    received = bytearray()
    # A body that breaks off, or does not end, is used up to there.
    with suppress(Truncated, TimedOut, UnreadableAnswer, TimeoutError):
        async with asyncio.timeout(ERROR_BODY_TIMEOUT), answer.body() as chunks:
            async for chunk in chunks:
                received += chunk
                if len(received) >= ERROR_BODY_LIMIT:
                    break
    body = call.redact(bytes(received[:ERROR_BODY_LIMIT]))
    has_key = call.secret is not None
    return error_responses.error_from_status(answer.status, answer.headers, body, has_key=has_key)


def _make_client(read_interval: float) -> "httpx.AsyncClient":
    from desktop_agent.providers.transport.httpx_transport import create_client

    return create_client(read_interval)


class _RequestProgress:
    """A request being sent. Once it is sent, `timer` runs only as long as the server may take until the headers."""

    timer: asyncio.Timeout

    def __init__(self, headers: float) -> None:
        self._headers = headers
        self.is_done = False
        self.limits_headers = False

    def done(self) -> None:
        self.is_done = True
        headers_deadline, total = asyncio.get_running_loop().time() + self._headers, self.timer.when()
        if total is None or headers_deadline < total:
            self.limits_headers = True
            self.timer.reschedule(headers_deadline)


def _build_request(
    client: "httpx.AsyncClient", call: HttpRequest, limits: Timeouts, on_sent: Callable[[], None]
) -> "httpx.Request":
    import httpx

    from desktop_agent.providers.transport.httpx_transport import UploadStream

    headers = {"Accept": call.accept, "Accept-Encoding": "identity", **call.headers}
    if call.body is not None:
        headers["Content-Type"] = "application/json"
    # The library's own limit; this module has limits for the head and the body.
    longest = max(limits.headers or 0.0, limits.first_event or 0.0, limits.idle)
    request = client.build_request(
        call.method or ("GET" if call.body is None else "POST"),
        call.url,
        content=call.body,
        headers=headers,
        timeout=httpx.Timeout(limits.idle, connect=limits.connect, read=longest),
    )
    request.stream = UploadStream(call.body or b"", on_sent)
    return request


def _signer(secret: SecretHeader | None) -> "Callable[[httpx.Request], httpx.Request]":
    """Return a function that adds the key to the request at the last moment, so that no frame of ours contains it."""

    def sign(request: "httpx.Request") -> "httpx.Request":
        if secret is not None:
            request.headers[secret.name] = secret.prefix + secret.value.get_secret_value()
        return request

    return sign


async def _prepend(pieces: list[bytes], source: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    for chunk in pieces:
        yield chunk
    async for chunk in source:
        yield chunk


async def _until_deadline(source: AsyncIterator[bytes], deadline: float) -> AsyncGenerator[bytes, None]:
    """Yield the same chunks until the deadline of the loop's clock. Raises TimeoutError."""
    while True:
        # The limit is for waiting only, never for the consumer between two chunks.
        async with asyncio.timeout_at(deadline):
            try:
                chunk = await anext(source)
            except StopAsyncIteration:
                return
        yield chunk


async def _drain(source: AsyncIterator[bytes]) -> None:
    """Run the library's nested generators to their end. The connection is closed, so they fail at the next read;
    otherwise the garbage collector would finish each in a task of its own."""
    import httpx

    with suppress(httpx.HTTPError, httpx.StreamError, OSError):
        async for _ in source:
            pass


def _total_timeout(call: HttpRequest) -> TimedOut:
    values = {"where": call.where, "seconds": f"{call.timeouts.total:g}"}
    return TimedOut.after_sending(Sentence("the answer of {where} was not finished within {seconds} seconds", values))


def _headers_timeout(where: str, limits: Timeouts) -> TimedOut:
    values = {"where": where, "seconds": f"{limits.headers:g}"}
    return TimedOut.after_sending(Sentence("{where} did not begin to answer within {seconds} seconds", values))
