"""The headless command `python -m desktop_agent ask …`, and what `desktop-agent` starts."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

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


def program() -> int:
    """Run `desktop-agent`: `ask`, or the window where it is installed; returns the exit code.

    The window is a program of its own, which happens to be started from here: nothing in this package uses it.
    """
    words = sys.argv[1:]
    if words[:1] == ["ask"]:
        return main(words)
    folder = _window_folder()
    if folder is not None and find_spec("PySide6") is not None:
        # Only in this process: elsewhere these names may be somebody else's.
        sys.path.insert(0, str(folder))
        return int(import_module("ui.__main__").main(words))
    from desktop_agent.faces.arguments import parse_window_arguments
    from desktop_agent.vocabulary.errors import ExtraMissing

    parse_window_arguments(words)  # --help and --version end here
    missing = ExtraMissing.of("The window", "window")
    sys.stderr.write(f"{missing} {missing.remedy}\n")
    return 2


def _window_folder() -> Path | None:
    """Where the window lies: in a folder of its own beside the installed package, or beside it in a checkout."""
    beside = Path(__file__).resolve().parents[1]
    folders = (beside / "desktop_agent_window", beside)
    return next((folder for folder in folders if (folder / "ui" / "__main__.py").is_file()), None)


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
