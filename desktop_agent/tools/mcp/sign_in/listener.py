"""Where the browser brings the answer of a sign-in: one address of this machine, for one answer (RFC 8252)."""

import asyncio
import contextlib
import hmac
import html
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from desktop_agent.vocabulary.mcp.sign_in_words import ENGLISH_PAGE_TEXTS, SignInPageTexts

CALLBACK_HOST = "127.0.0.1"
_CALLBACK_PATH = "/callback"
_MAX_REQUEST_BYTES = 16_384
_MAX_CONNECTIONS = 8
# Seconds that a browser has for its question.
_REQUEST_TIMEOUT = 10.0
_PAGE_TEMPLATE = (
    "<!doctype html><html lang='{language}'><meta charset=utf-8><title>Desktop Agent</title>"
    "<style>body{{font:16px system-ui;margin:20vh auto;max-width:26em;text-align:center}}"
    ":root{{color-scheme:light dark}}</style>"
    "<p>{text}</p></html>"
)


@dataclass(frozen=True, slots=True)
class AuthorizationResponse:
    """What the browser brought: a code, or the word of an error."""

    code: str
    state: str
    issuer: str | None
    error: str


class CallbackListener:
    """Waits for one answer with the right state; every other one is sent away and changes nothing."""

    def __init__(self, words: SignInPageTexts = ENGLISH_PAGE_TEXTS) -> None:
        self._texts = words
        self._state: str | None = None
        self._answer: asyncio.Future[AuthorizationResponse] = asyncio.get_running_loop().create_future()
        self._open: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None
        self._port = 0

    @property
    def address(self) -> str:
        """For the browser."""
        return f"http://{CALLBACK_HOST}:{self._port}{_CALLBACK_PATH}"

    def expect(self, state: str) -> None:
        """From now on an answer with this state is taken."""
        self._state = state

    async def answer(self) -> AuthorizationResponse:
        """The first that is taken."""
        return await asyncio.shield(self._answer)

    async def open(self, port: int) -> None:
        """At this port, if it is free; 0 is any. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, CALLBACK_HOST, port, limit=_MAX_REQUEST_BYTES)
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Nothing listens any more."""
        self._answer.cancel()
        for writer in self._open:
            # Whoever is being answered is told all of it first.
            if not writer.is_closing() and not writer.transport.get_write_buffer_size():
                writer.close()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.append(writer)
        if len(self._open) > _MAX_CONNECTIONS:
            # Who only holds a connection open keeps the browser from none.
            self._open.pop(0).transport.abort()
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._respond(head.decode("latin-1")))
                await writer.drain()
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            pass
        finally:
            if writer in self._open:
                self._open.remove(writer)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _respond(self, head: str) -> bytes:
        """What is answered to a question; the right one is taken."""
        line, _, rest = head.partition("\r\n")
        words = line.split(" ")
        hosts = [
            each.partition(":")[2].strip().lower() for each in rest.split("\r\n") if each.lower().startswith("host:")
        ]
        mine = self.address.partition("://")[2].partition("/")[0]
        # A page of the web that has its name lead here comes with that name.
        if len(words) != 3 or words[0] != "GET" or hosts not in ([mine], [mine.replace(CALLBACK_HOST, "localhost")]):
            return self._page(400, self._texts.invalid_response)
        found = _parse_callback(words[1])
        if found is None:
            return self._page(404, self._texts.not_found)
        if self._state is None or not hmac.compare_digest(found.state.encode(), self._state.encode()):
            return self._page(400, self._texts.invalid_response)
        if self._answer.done():
            return self._page(400, self._texts.finished)
        self._answer.set_result(found)
        return self._page(200, self._texts.refused if found.error else self._texts.done)

    def _page(self, status: int, text: str) -> bytes:
        return _render_page(status, text, self._texts.language)


@asynccontextmanager
async def listen_for_callback(
    port: int = 0, words: SignInPageTexts = ENGLISH_PAGE_TEXTS
) -> AsyncGenerator[CallbackListener]:
    """Listen at this port, or at another where it is taken. Raises OSError."""
    listener = CallbackListener(words)
    try:
        try:
            await listener.open(port)
        except OSError:
            await listener.open(0)
        yield listener
    finally:
        await listener.close()


def _parse_callback(target: str) -> AuthorizationResponse | None:
    try:
        parts = urlsplit(target)
        values = parse_qs(parts.query, max_num_fields=20)
    except ValueError:
        return None
    if parts.path != _CALLBACK_PATH:
        return None
    one = {name: each[0] for name, each in values.items()}
    return AuthorizationResponse(one.get("code", ""), one.get("state", ""), one.get("iss"), one.get("error", ""))


def _render_page(status: int, text: str, language: str) -> bytes:
    body = _PAGE_TEMPLATE.format(text=html.escape(text), language=html.escape(language)).encode()
    head = (
        f"HTTP/1.1 {status} {'OK' if status == 200 else 'Refused'}\r\nContent-Type: text/html; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + body
