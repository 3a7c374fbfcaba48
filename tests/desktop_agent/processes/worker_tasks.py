"""Tasks for a worker process."""

import ctypes
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

# What takes a process over calls the system without asking Python.
if sys.platform != "win32":
    _FORK, _SLEEP = ctypes.CDLL(None).fork, ctypes.CDLL(None).sleep


def echo(value: object) -> object:
    return value


def count(number: int) -> Iterator[int]:
    yield from range(number)


def count_slowly(number: int, seconds: float) -> Iterator[int]:
    for index in range(number):
        time.sleep(seconds)
        yield index


def count_for_ever() -> Iterator[int]:
    index = 0
    while True:
        yield index
        index += 1


def compute_for_ever() -> None:
    while True:
        pass


def repeat(size: int, number: int) -> Iterator[str]:
    yield from ("x" * size for _ in range(number))


def fork() -> int:
    child = _FORK()
    if child == 0:
        _SLEEP(5)
        os._exit(0)
    return child


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def end_process(code: int) -> None:
    os._exit(code)


def use_memory(size: int) -> int:
    return len(bytearray(size))


def write(data: list[int]) -> None:
    sys.stdout.buffer.write(bytes(data))
    sys.stdout.buffer.flush()
    os._exit(0)


def attempt(deed: str, folder: str) -> str:
    deeds = {
        "read": lambda: Path(folder, "there").read_text(),
        "list_folder": lambda: list(Path(folder).iterdir()),
        "write_file": lambda: Path(folder, "there").write_text("changed"),
        "connect": lambda: socket.socket().connect(("127.0.0.1", 1)),
        "start_program": lambda: subprocess.run(["/bin/true"], check=False),
        "send_signal": lambda: os.kill(os.getppid(), 0),
        "change_mode": lambda: Path(folder, "there").chmod(0),
    }
    try:
        deeds[deed]()
    except PermissionError:
        return "refused"
    return "done"
