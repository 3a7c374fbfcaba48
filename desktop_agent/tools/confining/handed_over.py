"""A program that is started by the process that stays around it, which is told over a socket what to start.

So its environment is its own alone, stands in no list of processes, and whoever wants it started learns whether it was.
"""

import ctypes
import json
import os
import signal
import socket
from typing import NoReturn

from desktop_agent.tools.confining.staying import fork_supervisor

_CANNOT_RUN = 126
_PIECE = 65_536


def start_from_socket(libc: ctypes.CDLL, descriptor: int) -> NoReturn:
    """Of the socket `descriptor` is the one end: words and environment come from there as JSON, then its end.

    Back goes the number of the error where the program cannot be started, and its end in any case. Raises OSError,
    ValueError, LookupError, TypeError before anything is started.
    """
    channel = socket.socket(fileno=descriptor)
    # Closed by what is started: whoever waits at the other end sees the end of it.
    channel.set_inheritable(False)
    spec = json.loads(_receive_all(channel))
    argv, environment = [str(each) for each in spec["argv"]], dict[str, str](spec["environment"])
    fork_supervisor(libc, release=lambda: _release(channel))
    restore_signals()
    try:
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - that is what it is for
    except (OSError, ValueError) as error:
        channel.sendall(str(getattr(error, "errno", None) or 0).encode())
    os._exit(_CANNOT_RUN)


def restore_signals() -> None:
    """Signals that Python ignores are ignored by what it becomes too, which expects to be ended by them."""
    for each in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(each, signal.SIG_DFL)


def _receive_all(channel: socket.socket) -> bytes:
    received = bytearray()
    while piece := channel.recv(_PIECE):
        received += piece
    return bytes(received)


def _release(channel: socket.socket) -> None:
    """Who waits holds nothing open that is the program's to close."""
    channel.close()
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in range(3):
        os.dup2(nothing, each)
    os.close(nothing)
