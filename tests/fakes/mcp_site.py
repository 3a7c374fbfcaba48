"""A site that is both an MCP server over HTTP and the OAuth server for it, and can misbehave."""

import asyncio
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.frame.patience import PATIENCE


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: str

    @property
    def form(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(self.body).items()}


Answer = tuple[int, dict[str, str], bytes]
"""Status, headers, and the body; the body ENDLESS goes on for ever."""
ENDLESS = b"..."

_CLIENT_HELLO = b"\x16"
"""The first byte of TLS. A server without TLS answers it with 400."""


def as_json(value: Any, status: int = 200) -> Answer:
    return status, {"content-type": "application/json"}, json.dumps(value).encode()


@dataclass
class Site:
    """The site. `answers` replaces its own answers, by path; it accepts `tokens`; answers in `held` wait."""

    host: str = "127.0.0.1"
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    answers: dict[str, Callable[[Asked], Answer]] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    held: dict[str, asyncio.Event] = field(default_factory=dict)
    expires_in: int | None = 3600
    refresh: str | None = "refresh-secret-1"
    metadata: dict[str, Any] = field(default_factory=dict)
    pages: list[str] = field(default_factory=list)
    sent: int = 0
    context: ssl.SSLContext | None = None
    _count: int = 0
    browsing: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def root(self) -> str:
        return f"{'https' if self.context else 'http'}://{self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.root}/mcp"

    def paths(self) -> list[str]:
        return [request.path for request in self.asked]

    def opens(self, url: str) -> None:
        """Open a page as the person's browser does; the person agrees to everything."""
        self.pages.append(url)
        task = asyncio.create_task(asyncio.to_thread(browse, url))
        self.browsing.add(task)
        task.add_done_callback(self.browsing.discard)

    def answer(self, asked: Asked) -> Answer:
        if asked.path in self.answers:
            return self.answers[asked.path](asked)
        match asked.path:
            case "/mcp":
                return self._tools(asked)
            case "/.well-known/oauth-protected-resource/mcp":
                return as_json({"resource": self.url, "authorization_servers": [self.root]})
            case "/.well-known/oauth-authorization-server":
                return as_json(self.described)
            case "/register":
                return as_json({**json.loads(asked.body), "client_id": "c1", "client_secret": "client-secret-1"}, 201)
            case "/authorize":
                location = f"{asked.query['redirect_uri']}?code=the-code&state={asked.query['state']}"
                return 302, {"location": location}, b""
            case "/token":
                return as_json(self.given())
            case _:
                return 404, {}, b""

    @property
    def described(self) -> dict[str, Any]:
        endpoints = {f"{name}_endpoint": f"{self.root}/{path}" for name, path in _ENDPOINTS}
        more = {"code_challenge_methods_supported": ["S256"], "response_types_supported": ["code"]}
        return {"issuer": self.root, **endpoints, **more, **self.metadata}

    def given(self) -> dict[str, Any]:
        self._count += 1
        token = f"access-secret-{self._count}"
        self.tokens = {token}
        given = {"access_token": token, "token_type": "Bearer", "expires_in": self.expires_in}
        return {**given, **({"refresh_token": self.refresh} if self.refresh else {})}

    def _tools(self, asked: Asked) -> Answer:
        if asked.method != "POST":
            return 405, {}, b""
        if asked.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            return 401, {"www-authenticate": "Bearer"}, b""
        message = json.loads(asked.body)
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "s", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object", "properties": {}}}]},
            "tools/call": {"content": [{"type": "text", "text": "seen"}]},
        }
        if "id" not in message:
            return 202, {}, b""
        if message["method"] not in results:
            error = {"code": -32601, "message": "unknown"}
            return as_json({"jsonrpc": "2.0", "id": message["id"], "error": error})
        return as_json({"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]})

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first = await reader.readexactly(1)
            if first == _CLIENT_HELLO:
                await self._send(writer, 400, {}, b"")
                return
            while True:
                head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                first = b""
                method, target, _ = head[0].split(" ")
                pairs = [line.partition(":") for line in head[1:] if line]
                headers = {name.lower(): value.strip() for name, _, value in pairs}
                body = (await reader.readexactly(int(headers.get("content-length", "0")))).decode()
                parts = urlsplit(target)
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                asked = Asked(method, parts.path, query, headers, body)
                self.asked.append(asked)
                answer = self.answer(asked)
                if asked.path in self.held:
                    await self.held[asked.path].wait()
                await self._send(writer, *answer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    async def _send(self, writer: asyncio.StreamWriter, status: int, headers: dict[str, str], body: bytes) -> None:
        length = 10**12 if body is ENDLESS else len(body)
        lines = [f"HTTP/1.1 {status} x", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write("\r\n".join([*lines, f"content-length: {length}", "", ""]).encode())
        while body is ENDLESS:
            writer.write(b"x" * 65_536)
            self.sent += 65_536
            await writer.drain()
        writer.write(body)
        await writer.drain()


_ENDPOINTS = (("authorization", "authorize"), ("token", "token"), ("registration", "register"))


def browse(url: str) -> None:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as page:
            page.read()
    except urllib.error.HTTPError as error:
        error.close()


@asynccontextmanager
async def site(host: str = "127.0.0.1", **fields: Any) -> AsyncIterator[Site]:
    served = Site(host, **fields)
    connections: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            await served.serve(reader, writer)
        except asyncio.CancelledError:
            pass
        finally:
            connections.discard(task)

    server = await asyncio.start_server(serve, host, 0, ssl=served.context)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        if served.browsing:
            await asyncio.wait(served.browsing)
        server.close()
        for task in tuple(connections):
            task.cancel()
        if connections:
            await asyncio.wait(connections)
        await server.wait_closed()
