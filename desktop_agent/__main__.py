"""The headless commands: `python -m desktop_agent ask …`, `… conversations …`, `… usage`; and of `desktop-agent`."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence

_INTERRUPTED = 130
HEADLESS = (["ask"], ["check"], ["conversations"], ["usage"])
"""The first words of the command line that open no window."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a headless command and return the exit code. Without a command, explain how to ask and get the window."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] not in HEADLESS:
        return _print_usage(words)
    listen = _exit_on_interrupt()
    from desktop_agent.api.command_line import open_closed_streams

    open_closed_streams()
    if words[0] == "usage":
        from desktop_agent.api.usage_command import run_usage

        listen()
        return run_usage(words[1:])
    if words[0] != "ask":
        from desktop_agent.api.conversations_command import run_check, run_conversations

        listen()
        return (run_check if words[0] == "check" else run_conversations)(words[1:])
    from desktop_agent.api.ask_command import run_ask
    from desktop_agent.api.command_line import parse_ask_arguments

    listen()
    try:
        return run_ask(parse_ask_arguments(words[1:]))
    except KeyboardInterrupt:
        # Ctrl+C before the loop listens for it.
        return _INTERRUPTED


def _print_usage(words: Sequence[str]) -> int:
    """The window is a program of its own, above this one: it is not started from here."""
    from desktop_agent.api.command_line import open_closed_streams, parse_window_arguments

    open_closed_streams()
    parse_window_arguments(words)  # --help and --version end here
    sys.stderr.write(
        "usage: desktop-agent ask [options] PROMPT, desktop-agent conversations COMMAND, or desktop-agent usage "
        "(each explained by --help)\n"
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
