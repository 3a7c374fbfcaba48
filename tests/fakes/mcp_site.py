"""A server of tools over HTTP with a door, and who gives the keys to it: one small site that can misbehave."""

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
"""Status, headers, and the body; a body of b"..." goes on for ever."""
ENDLESS = b"..."

_CLIENT_HELLO = b"\x16"
"""How TLS begins. A plain server answers that it understands nothing."""


def as_json(value: Any, status: int = 200) -> Answer:
    return status, {"content-type": "application/json"}, json.dumps(value).encode()


@dataclass
class Site:
    """`answers` wins over what it would do; `tokens` are those that it takes; `held` has answers wait."""

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
        return [each.path for each in self.asked]

    def opens(self, url: str) -> None:
        """The person's browser, with a person who agrees to everything."""
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
                where = f"{asked.query['redirect_uri']}?code=the-code&state={asked.query['state']}"
                return 302, {"location": where}, b""
            case "/token":
                return as_json(self.given())
            case _:
                return 404, {}, b""

    @property
    def described(self) -> dict[str, Any]:
        ends = {f"{name}_endpoint": f"{self.root}/{path}" for name, path in _ENDS}
        more = {"code_challenge_methods_supported": ["S256"], "response_types_supported": ["code"]}
        return {"issuer": self.root, **ends, **more, **self.metadata}

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
        known: dict[str, Any] = {
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
        if message["method"] not in known:
            error = {"code": -32601, "message": "unknown"}
            return as_json({"jsonrpc": "2.0", "id": message["id"], "error": error})
        return as_json({"jsonrpc": "2.0", "id": message["id"], "result": known[message["method"]]})

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
                pairs = [each.partition(":") for each in head[1:] if each]
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


_ENDS = (("authorization", "authorize"), ("token", "token"), ("registration", "register"))


def browse(url: str) -> None:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as page:
            page.read()
    except urllib.error.HTTPError as error:
        error.close()


@asynccontextmanager
async def site(host: str = "127.0.0.1", **fields: Any) -> AsyncIterator[Site]:
    made = Site(host, **fields)
    open_now: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_now.add(task)
        try:
            await made.serve(reader, writer)
        except asyncio.CancelledError:
            pass
        finally:
            open_now.discard(task)

    server = await asyncio.start_server(serve, host, 0, ssl=made.context)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        if made.browsing:
            await asyncio.wait(made.browsing)
        server.close()
        for task in tuple(open_now):
            task.cancel()
        if open_now:
            await asyncio.wait(open_now)
        await server.wait_closed()
