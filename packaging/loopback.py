"""Servers for the check of the packaged program: Chat Completions on loopback, plain or over TLS."""

import json
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ANSWER = "Packed and well."


class Handler(BaseHTTPRequestHandler):
    """Streams one answer, records the keys that came with requests, and serves documents."""

    server: "Server"

    def do_GET(self) -> None:
        document = self.server.documents.get(self.path)
        body = json.dumps(document).encode()
        self.send_response(404 if document is None else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.server.keys.append(self.headers.get("authorization", "").removeprefix("Bearer "))
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for delta, reason in (({"role": "assistant", "content": self.server.answer}, None), ({}, "stop")):
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class Server(ThreadingHTTPServer):
    """Listens on a free port. `keys` are those that came with requests; `documents` are what it serves, by path."""

    def __init__(self, answer: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.keys: list[str] = []
        self.documents: dict[str, Any] = {"/v1/models": {"object": "list", "data": [{"id": "m", "object": "model"}]}}
        self.scheme = "http"

    @property
    def url(self) -> str:
        """Return the base URL."""
        return f"{self.scheme}://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, *_: object) -> None:
        """Ignore that a client which refuses a certificate hangs up."""


@contextmanager
def listening(server: socketserver.BaseServer) -> Iterator[None]:
    """Let a server serve in a thread."""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def serving(certificate: Path | None = None, answer: str = ANSWER) -> Iterator[Server]:
    """Yield a server; over TLS with `certificate`, a file that has its key too."""
    server = Server(answer)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.scheme = "https"
    with listening(server):
        yield server


def own_certificate(folder: Path) -> Path:
    """Return a file with a self-signed certificate for 127.0.0.1 and its key."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    return both
