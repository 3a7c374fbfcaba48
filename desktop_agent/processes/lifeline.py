"""A small process around a program that must not outlive this one.

The program is ended when the standard input closes, and the system closes that however the other end dies: by a
crash, or by a kill that cannot be handled. `child_command(PART, MODULE, …)` are the words that start it.
"""

import os
import subprocess
import sys
import threading

PART = "lifeline"
MODULE = "desktop_agent.processes.lifeline"
_GRACE = 3.0
"""Seconds between asking the program to end and killing it."""
_CANNOT_RUN = 126


def main() -> int:
    """Run the program of the command line, and return how it ended."""
    words = sys.argv[3:]
    environment = None
    if getattr(sys, "frozen", False):
        # Other programs must not load a frozen program's libraries. Imported late: a start from source is faster so.
        from desktop_agent.sandbox.child_command import original_environment

        environment = original_environment()
    try:
        child = subprocess.Popen(  # noqa: S603 - that is what it is for
            words, stdin=subprocess.DEVNULL, env=environment
        )
    except OSError as error:
        sys.stderr.write(f"{words[0]} could not be started: {error.strerror}\n")
        return _CANNOT_RUN
    threading.Thread(target=_end_with_input, args=(child,), daemon=True).start()
    code = child.wait()
    return code if code >= 0 else 128 - code


def _end_with_input(child: "subprocess.Popen[bytes]") -> None:
    while os.read(0, 1024):
        pass
    child.terminate()
    try:
        child.wait(_GRACE)
    except subprocess.TimeoutExpired:
        child.kill()
