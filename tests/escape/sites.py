"""Loopback servers that play hosts of the web: one that a command may reach, and one that it may not."""

import hashlib
import io
import json
import socket
import ssl
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

Pages = dict[str, tuple[int, dict[str, str], bytes]]


class Site(ThreadingHTTPServer):
    """Serves its pages, and records the host and path of each request."""

    request_queue_size = 64
    daemon_threads = False

    def __init__(self, host: str, pages: Pages, context: ssl.SSLContext | None = None) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.pages = pages
        self.asked: list[tuple[str, str]] = []
        self.names: list[str | None] = []
        self.connections = 0
        super().__init__((host, 0), _Handler)
        if context is not None:
            context.sni_callback = lambda _socket, name, _context: self.names.append(name)
            self.socket = context.wrap_socket(self.socket, server_side=True)

    def verify_request(self, request: object, client_address: object) -> bool:
        self.connections += 1
        return True

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: an aborted handshake is expected."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 20

    def do_GET(self) -> None:
        site = self.server
        assert isinstance(site, Site)
        site.asked.append((self.headers.get("Host", ""), self.path))
        status, headers, body = site.pages.get(self.path.partition("?")[0], (404, {}, b"nothing\n"))
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        if self.close_connection:
            # As servers do (RFC 9112, section 9.6): otherwise a client may use the connection again while it closes.
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        pass


@contextmanager
def open_site(host: str, pages: Pages | None = None, context: ssl.SSLContext | None = None) -> Iterator[Site]:
    site = Site(host, {"/": (200, {}, b"the page\n")} | (pages or {}), context)
    thread = threading.Thread(target=site.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield site
    finally:
        site.shutdown()
        thread.join()
        site.server_close()


def page(body: bytes, content_type: str = "application/octet-stream") -> tuple[int, dict[str, str], bytes]:
    return 200, {"Content-Type": content_type}, body


def repository(folder: Path) -> Pages:
    """Return the files of a Git repository as a plain web server serves them, below /repo.git."""
    bare = folder / "repo.git"
    author = ("-c", "user.name=Me", "-c", "user.email=me@example.org")
    for arguments in (
        ("init", "-q", str(folder / "work")),
        ("-C", str(folder / "work"), *author, "commit", "-q", "--allow-empty", "-m", "first"),
        ("clone", "-q", "--bare", str(folder / "work"), str(bare)),
        ("-C", str(bare), "update-server-info"),
    ):
        subprocess.run(["git", *arguments], check=True, capture_output=True)
    files = [file for file in bare.rglob("*") if file.is_file()]
    return {f"/repo.git/{file.relative_to(bare).as_posix()}": page(file.read_bytes()) for file in files}


def python_index(files_at: str) -> Pages:
    """Return a Python package index at /simple whose only wheel is served from `files_at`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        info = "tiny-1.0.dist-info"
        wheel.writestr("tiny.py", "SAID = 'tiny'\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    name = "tiny-1.0-py3-none-any.whl"
    links = f'<a href="{files_at}/files/{name}">{name}</a>'.encode()
    return {"/simple/tiny/": page(links, "text/html"), f"/files/{name}": page(buffer.getvalue())}


def node_registry(files_at: str) -> Pages:
    """Return an npm registry whose only package is served from `files_at`."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        content = json.dumps({"name": "tiny", "version": "1.0.0"}).encode()
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    digest = hashlib.sha1(buffer.getvalue()).hexdigest()
    dist = {"tarball": f"{files_at}/files/tiny-1.0.0.tgz", "shasum": digest}
    version = {"name": "tiny", "version": "1.0.0", "dist": dist}
    document = {"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    return {
        "/tiny": page(json.dumps(document).encode(), "application/json"),
        "/files/tiny-1.0.0.tgz": page(buffer.getvalue()),
    }
