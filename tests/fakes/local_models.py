"""Model files in the GGUF format, and a llama.cpp server to run them."""

import struct
import sys
from pathlib import Path

import psutil

SERVER = Path(__file__).with_name("llama_server.py")
TEXT, LIST, NUMBER = 8, 9, 4


def gguf_text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_value(value: object) -> bytes:
    """Encode the type and the value; bytes are already encoded, with their type."""
    match value:
        case str():
            return struct.pack("<I", TEXT) + gguf_text(value)
        case int():
            return struct.pack("<II", NUMBER, value)
        case list():
            return struct.pack("<IIQ", LIST, TEXT, len(value)) + b"".join(gguf_text(item) for item in value)
        case bytes():
            return value
    raise TypeError(value)


QWEN = {
    "general.architecture": "qwen3",
    "general.type": "model",
    "general.name": "Qwen3 8B",
    "qwen3.context_length": 40960,
    "tokenizer.ggml.tokens": ["a", "b", "c"],
    "general.file_type": 15,
}


def gguf(values: dict[str, object] | None = None, *, version: int = 3, count: int | None = None) -> bytes:
    """The header of a GGUF file, and 64 bytes after it."""
    values = QWEN if values is None else values
    entries = b"".join(gguf_text(key) + gguf_value(value) for key, value in values.items())
    counts = struct.pack("<QQ", 0, len(values) if count is None else count)
    return b"GGUF" + struct.pack("<I", version) + counts + entries + b"\0" * 64


def write_model(path: Path, values: dict[str, object] | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gguf(values))
    return path


def install_server(folder: Path) -> str:
    """Write a program llama-server that starts the fake one; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "llama-server"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{SERVER}" "$@"\n')
    program.chmod(0o755)
    return str(program)


def servers_of(model: Path | str) -> list[psutil.Process]:
    """The processes that serve this model file."""
    servers = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            if str(SERVER) in words and str(model) in words and process.status() != psutil.STATUS_ZOMBIE:
                servers.append(process)
        except psutil.Error:
            continue
    return servers
