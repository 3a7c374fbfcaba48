"""The command `desktop-agent`: opens the window where it is installed, and runs the runtime's command line otherwise.

A wheel carries this file as `desktop_agent_window/__init__.py`, with `ui` beside it: docs/adr/0001-one-distribution.md.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path


def main() -> int:
    """Run the command line. Returns the exit code."""
    words = sys.argv[1:]
    from desktop_agent.__main__ import HEADLESS
    from desktop_agent.__main__ import main as headless

    if words[:1] in HEADLESS or find_spec("PySide6") is None:
        return headless(words)
    folder = Path(__file__).parent
    if (folder / "ui").is_dir():
        # Installed. Only for the window in this process: elsewhere another package may own these names.
        sys.path.insert(0, str(folder))
    return int(import_module("ui.__main__").main(words))
