"""The headless commands: `python -m desktop_agent ask …` and `… check`, and the same of `desktop-agent`."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence

_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ask` or `check` and return the exit code. Without a command, explain how to ask and get the window."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] not in (["ask"], ["check"]):
        return _print_usage(words)
    listen = _exit_on_interrupt()
    if words[0] == "check":
        from desktop_agent.api.headless_commands import run_check

        listen()
        return run_check(words[1:])
    from desktop_agent.api.command_line import parse_ask_arguments
    from desktop_agent.api.headless_commands import run_ask

    listen()
    try:
        return run_ask(parse_ask_arguments(words[1:]))
    except KeyboardInterrupt:
        # Ctrl+C before the loop listens for it.
        return _INTERRUPTED


def _print_usage(words: Sequence[str]) -> int:
    """The window is a program of its own, above this one: it is not started from here."""
    from desktop_agent.api.command_line import parse_window_arguments

    parse_window_arguments(words)  # --help and --version end here
    sys.stderr.write(
        "usage: desktop-agent ask [options] PROMPT (see desktop-agent ask --help), or desktop-agent check\n"
        "The window comes with an extra. Run pip install 'desktop-agent[window]', then desktop-agent.\n"
    )
    return 2


def _exit_on_interrupt() -> Callable[[], None]:
    """Let Ctrl+C end the program while it loads; return what undoes this.

    A KeyboardInterrupt there could be raised inside a library that turns it into another error.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(_INTERRUPTED))

    def listen() -> None:
        signal.signal(signal.SIGINT, before)

    return listen


if __name__ == "__main__":
    sys.exit(main())
