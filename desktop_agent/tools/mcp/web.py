"""A server that is somewhere else: streamable HTTP, with a bound on what it may send."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from desktop_agent.tools.mcp.server_log import ServerLog

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams

LARGEST_ANSWER = 32_000_000
"""Bytes of one answer, or of one event of a stream."""
# Seconds to connect and to send; and of silence in a stream, in which long calls are waited for.
_CONNECT = 20.0
_SILENCE = 900.0


@asynccontextmanager
async def http_streams(url: str, headers: Mapping[str, str], log: ServerLog) -> "AsyncGenerator[TransportStreams]":
    """Requests carry the headers, and go to no other host: redirects elsewhere are not followed."""
    from mcp.client.streamable_http import streamable_http_client

    client = await asyncio.to_thread(_client, dict(headers), log)
    async with client, streamable_http_client(url, http_client=client, max_sse_event_size=LARGEST_ANSWER) as streams:
        yield streams


def _client(headers: dict[str, str], log: ServerLog) -> "httpx2.AsyncClient":
    """In a thread: reading the certificates that the system trusts takes a tenth of a second."""
    import httpx2

    # Packed answers could be bombs, and packing saves little here.
    return httpx2.AsyncClient(
        headers={**headers, "accept-encoding": "identity"},
        timeout=httpx2.Timeout(_CONNECT, read=_SILENCE),
        event_hooks={"response": [_bounded, partial(_noted, log)]},
    )


async def _noted(log: ServerLog, response: "httpx2.Response") -> None:
    # What a server has no method for it may refuse: that is how the protocols are told apart.
    if response.status_code >= 400:
        log.add(f"HTTP {response.status_code} {response.reason_phrase}", "error")


async def _bounded(response: "httpx2.Response") -> None:
    import httpx2

    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.DecodingError("the server packs its answer unasked", request=response.request)
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        response.stream = _bounded_stream(response.stream)


def _bounded_stream(inner: Any) -> "httpx2.AsyncByteStream":
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = LARGEST_ANSWER
            async for piece in inner:
                left -= len(piece)
                if left < 0:
                    raise httpx2.ReadError(f"the answer is larger than {LARGEST_ANSWER:,} bytes")
                yield piece

        async def aclose(self) -> None:
            await inner.aclose()

    return Bounded()
