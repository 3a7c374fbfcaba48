"""The headless command: `python -m desktop_agent ask …`, and what `desktop-agent ask` runs."""

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run `ask`; returns the exit code. The window is not started from here."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] != ["ask"]:
        sys.stderr.write("usage: desktop-agent ask [options] PROMPT (see desktop-agent ask --help)\n")
        return 2
    try:
        from desktop_agent.faces.arguments import parse_ask_arguments
        from desktop_agent.faces.ask import run_ask

        return run_ask(parse_ask_arguments(words[1:]))
    except KeyboardInterrupt:
        # Ctrl+C before the loop listens for it: while the program still loads.
        return 130


if __name__ == "__main__":
    sys.exit(main())
