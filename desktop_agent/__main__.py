"""The headless command: `python -m desktop_agent ask …`, and what `desktop-agent ask` runs."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence

_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ask`; returns the exit code. The window is not started from here."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] != ["ask"]:
        sys.stderr.write("usage: desktop-agent ask [options] PROMPT (see desktop-agent ask --help)\n")
        return 2
    listen = _leave_at_once()
    from desktop_agent.faces.arguments import parse_ask_arguments
    from desktop_agent.faces.ask import run_ask

    listen()
    try:
        return run_ask(parse_ask_arguments(words[1:]))
    except KeyboardInterrupt:
        # Ctrl+C before the loop listens for it.
        return _INTERRUPTED


def _leave_at_once() -> Callable[[], None]:
    """Ctrl+C while the program still loads just ends it; returns what undoes this.

    An exception there could come in the middle of a library that makes another one of it.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(_INTERRUPTED))

    def listen() -> None:
        signal.signal(signal.SIGINT, before)

    return listen


if __name__ == "__main__":
    sys.exit(main())
