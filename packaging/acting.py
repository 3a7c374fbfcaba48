"""What the packaged program must do when a model calls tools: all parts of itself that it starts are in the folder.

A model on loopback makes one call after the other, and the last request to it has all the results.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import tool_server
from desktop_agent.sandbox.backends import namespace_command
from desktop_agent.sandbox.child_command import CHILD
from desktop_agent.sandbox.policy import SandboxPolicy
from loopback import listening
from tool_server import answered

Check = tuple[str, bool, str]
PATIENCE = 120.0
ANSWER = "All of it was called."
PAGE = b"""<!doctype html><title>Packed</title><main><h1>Packed page</h1>
<p>One <b>bold</b> word, <span hidden>and none of this</span>.<ul><li>a point</ul></main>"""
READ = ("# Packed page", "**bold**", "a point")
# Without the network, in its folder: the second line is refused or lands in a file system of the command's own.
LINE = "echo inside > inside.txt; echo outside > {outside}; echo ran; exit 0"


class Model(ThreadingHTTPServer):
    """Makes `calls`, one after the other, then answers; `results` has their results. Serves a page and MCP too."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.results: list[str] = []
        self.root = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Serves a page to read, a model to ask and an MCP server to call."""

    server: Model
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/page":
            self._send(200, "text/html; charset=utf-8", PAGE)
        else:
            # An MCP server need not offer a stream of its own.
            self._send(405, "text/plain", b"")

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        if self.path == "/tools":
            reply = answered(request)
            self._send(200 if reply else 202, "application/json", json.dumps(reply).encode() if reply else b"")
            return
        results = [message for message in request["messages"] if message["role"] == "tool"]
        self.server.results = [written(message["content"]) for message in results]
        frames = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in self._chunks(len(results)))
        self._send(200, "text/event-stream", frames + b"data: [DONE]\n\n")

    def do_DELETE(self) -> None:
        self._send(405, "text/plain", b"")

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _chunks(self, done: int) -> list[dict[str, Any]]:
        if done < len(self.server.calls):
            name, arguments = self.server.calls[done]
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"index": 0, "id": f"call{done}", "type": "function", "function": function}
            deltas = (({"role": "assistant", "tool_calls": [call]}, None), ({}, "tool_calls"))
        else:
            deltas = (({"role": "assistant", "content": ANSWER}, None), ({}, "stop"))
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
        return [{**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in deltas]

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def written(content: str | list[dict[str, Any]]) -> str:
    """Return the text of a result, which may come in parts."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


@contextmanager
def model() -> Iterator[Model]:
    """Yield a model that listens."""
    server = Model()
    with listening(server):
        yield server


def acting(program: Path, environment: dict[str, str], home: Path) -> Iterator[Check]:
    """Yield all checks."""
    workspace, outside = home / "workspace", home / "outside.txt"
    workspace.mkdir(parents=True)
    (workspace / "notes.txt").write_text("nothing\nthe number is 4711\n")
    with model() as server:
        server.calls = [
            ("fetch_page", {"url": f"{server.root}/page"}),
            ("search_files", {"pattern": r"\d{4}", "is_expression": True}),
            ("run_command", {"command": LINE.format(outside=f"'{outside}'")}),
            ("packed__echo", {"said": "over standard streams"}),
            ("web__echo", {"said": "over HTTP"}),
        ]
        data = data_folder_with_servers(home, server)
        words = ("--data-dir", str(data), "--base-url", f"{server.root}/v1", "--model", "m", "--tools", "all")
        run = subprocess.run(
            [program, "ask", *words, "--workspace", str(workspace), "--approve", "always", "Call them."],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        results = [*server.results, *[""] * len(server.calls)]
    errors = run.stderr.strip()[-300:]
    page, matches, output, streams, web = results[: len(server.calls)]
    is_answered = run.returncode == 0 and ANSWER in run.stdout
    yield "a model calls tools", is_answered, f"{len(server.results)} results {errors}"
    yield "a page is read", all(text in page for text in READ) and "none of this" not in page, in_short(page)
    yield "files are searched", "4711" in matches and "notes.txt" in matches, in_short(matches)
    inside = (workspace / "inside.txt").is_file()
    yield "a command runs, confined", inside and not outside.exists() and "ran" in output, in_short(output)
    yield "an MCP server that is a program", "Heard: over standard streams" in streams, in_short(streams)
    yield "an MCP server over HTTP", "Heard: over HTTP" in web, in_short(web)
    yield from launched(program, environment, home)


def data_folder_with_servers(home: Path, server: Model) -> Path:
    """Return a data folder with two MCP servers, and with permission to read a page of this machine."""
    script = home / "tool_server.py"
    shutil.copyfile(tool_server.__file__, script)
    streams = {"type": "stdio", "command": sys.executable, "args": ["-I", str(script)]}
    web = {"type": "http", "url": f"{server.root}/tools"}
    servers = [
        {"id": "packed", "title": "Packed", "connection": streams},
        {"id": "web", "title": "Web", "connection": web},
    ]
    data = home / "data"
    data.mkdir()
    preferences = {"mcp": {"servers": servers}, "network": {"private_hosts": "127.0.0.1"}}
    (data / "preferences.json").write_text(json.dumps(preferences))
    return data


def launched(program: Path, environment: dict[str, str], home: Path) -> Iterator[Check]:
    """Check the launcher, which confines itself and becomes the command; other backends may be preferred to it."""
    policy = SandboxPolicy(writable=(home,), hidden=())
    from_source = namespace_command(("/bin/echo", "launched"), policy, ())
    words = [program, *from_source[from_source.index(CHILD) :]]
    run = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE)
    yield "the launcher of commands", run.stdout.strip() == "launched", run.stdout.strip() or run.stderr.strip()[-200:]


def in_short(text: str) -> str:
    """Return the beginning of a result, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:99]}…"
