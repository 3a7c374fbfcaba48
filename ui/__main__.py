"""`desktop-agent`: the window, or `ask` without ever importing Qt; and the processes that it starts of itself."""

import gc
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from desktop_agent.faces.arguments import Place

_CHILDREN = {
    "colouring": "ui.transcript.blocks.colouring.child",
    "confined": "desktop_agent.tools.commands.launcher",
    "diagram": "ui.transcript.blocks.diagram.child",
    "page": "desktop_agent.tools.web.reading.child",
    "searching": "desktop_agent.tools.searching.matching",
}
"""What `ui.transcript.child_start` and `desktop_agent.tools.processes.own_part` start."""


def main(argv: Sequence[str] | None = None) -> int:
    """Start what the command line asks for; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["--child"] and words[1:] and words[1] in _CHILDREN:
        return _child(_CHILDREN[words[1]])
    if words[:1] == ["ask"]:
        from desktop_agent.__main__ import main as headless

        return headless(words)
    from desktop_agent.faces.arguments import parse_window_arguments

    place = parse_window_arguments(words)
    return _imported_for_good()(place)


def _child(name: str) -> int:
    # Run by its path in an isolated interpreter, this file does not know the folder that it lies in.
    sys.path.insert(0, str(Path(__file__).parents[1]))
    return int(importlib.import_module(name).main() or 0)


def _imported_for_good() -> Callable[["Place"], int]:
    """The window's entry point, imported as fast as it goes.

    PySide6 makes every import after its own slower, so the runtime comes first. What modules hold lives as long as the
    program: looking through it for garbage, now or later, would find none.
    """
    gc.disable()
    try:
        importlib.import_module("desktop_agent.engine.engine")
        from ui.app import run_window
    finally:
        gc.freeze()
        gc.enable()
    return run_window


if __name__ == "__main__":
    sys.exit(main())
