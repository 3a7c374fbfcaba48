"""A process that behaves as llama.cpp's server does, for the command line, `/health`, and Chat Completions.

Its options, statuses and bodies are those of tools/server/README.md of llama.cpp, build 11434: an unknown option ends
it; only `/health` needs no key, and answers 503 while the model loads. LLAMA_TEST_LOADING names a file: the model loads
while that exists. LLAMA_TEST_ANSWERING names one that delays the end of answers. LLAMA_TEST_FAILS makes it end at once.
"""

import argparse
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

KEY = os.environ.get("LLAMA_API_KEY", "")


def file_exists(variable: str) -> bool:
    return variable in os.environ and Path(os.environ[variable]).exists()


class Handler(BaseHTTPRequestHandler):
    alias = ""
    context = 0

    def do_GET(self) -> None:
        loading = file_exists("LLAMA_TEST_LOADING")
        if self.path != "/health" and not self.allowed():
            return
        if loading:
            self.answer(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})
        elif self.path == "/health":
            self.answer(200, {"status": "ok"})
        elif self.path == "/v1/models":
            model = {"id": self.alias, "object": "model", "created": 1, "owned_by": "llamacpp"}
            self.answer(200, {"object": "list", "data": [model]})
        elif self.path == "/props":
            self.answer(200, {"default_generation_settings": {"n_ctx": self.context}, "model_alias": self.alias})
        else:
            self.answer(404, {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        if not self.allowed():
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.chunk({"role": "assistant", "content": "Hello from "})
        while file_exists("LLAMA_TEST_ANSWERING"):
            time.sleep(0.02)
        self.chunk({"content": self.alias})
        self.chunk({}, "stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def chunk(self, delta: dict[str, Any], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        body = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": self.alias, "choices": [choice]}
        self.wfile.write(f"data: {json.dumps(body)}\n\n".encode())
        self.wfile.flush()

    def allowed(self) -> bool:
        if KEY and self.headers.get("authorization") != f"Bearer {KEY}":
            self.answer(401, {"error": {"code": 401, "message": "Invalid API Key", "type": "authentication_error"}})
            return False
        return True

    def answer(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        sys.stderr.write(f"{format % args}\n")


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for option in ("--model", "--alias", "--host"):
        parser.add_argument(option, required=True)
    for option in ("--port", "--ctx-size", "--parallel"):
        parser.add_argument(option, type=int, required=True)
    for option in ("--jinja", "--no-webui"):
        parser.add_argument(option, action="store_true")
    options = parser.parse_args()
    sys.stderr.write(f"loading model '{options.model}'\n")
    if "LLAMA_TEST_FAILS" in os.environ:
        sys.exit("error loading model: unknown model architecture: 'chance'")
    Handler.alias, Handler.context = options.alias, options.ctx_size
    ThreadingHTTPServer((options.host, options.port), Handler).serve_forever()


main()
