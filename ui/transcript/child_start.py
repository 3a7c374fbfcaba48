"""How the program starts a part of itself in a process of its own, where it may go wrong alone."""

import os
import sys
from pathlib import Path

WORKER_FLAG = "--child"
"""The first word of a command line that is none of a person's; the part follows."""

_PROGRAM = Path(__file__).parents[1] / "__main__.py"


def worker_command(part: str, python: str = sys.executable) -> list[str]:
    """The words that start a part. A frozen program is its own interpreter and has no other."""
    if getattr(sys, "frozen", False):
        return [sys.executable, WORKER_FLAG, part]
    return [python, "-I", "-B", "-X", "utf8", str(_PROGRAM), WORKER_FLAG, part]


def worker_environment() -> dict[str, str]:
    """Nothing of the person's but what the system needs to start a program."""
    return {name: os.environ[name] for name in ("SYSTEMROOT", "PATH") if name in os.environ}


def worker_folder() -> str:
    """A folder that stays and says nothing: the topmost."""
    return _PROGRAM.anchor
