"""`desktop-agent`: the window, or `ask` without ever importing Qt."""

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Start what the command line asks for; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["ask"]:
        from desktop_agent.__main__ import main as headless

        return headless(words)
    from desktop_agent.faces.arguments import parse_window_arguments

    place = parse_window_arguments(words)
    from ui.app import run_window

    return run_window(place)


if __name__ == "__main__":
    sys.exit(main())
