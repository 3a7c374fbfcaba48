"""`desktop-agent`: the window, `ask` and `check` without importing Qt; and the processes that it starts of itself."""

import gc
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from desktop_agent.faces.arguments import LaunchOptions
    from ui.shell.start.early_signals import EarlySignals
    from ui.shell.start.front import StartupWindow

_CHILDREN = {
    "colouring": "ui.transcript.blocks.colouring.child",
    "confined": "desktop_agent.tools.commands.launcher",
    "diagram": "ui.transcript.blocks.diagram.child",
    "page": "desktop_agent.tools.web.reading.child",
    "searching": "desktop_agent.tools.searching.matching",
}
"""What `ui.transcript.child_start` and `desktop_agent.tools.processes.own_part` start."""


BACKGROUND_IMPORTS = (
    "desktop_agent.engine.engine",
    "desktop_agent.engine.reopening",
    "markdown_it",
    "mdit_py_plugins.footnote",
)
"""What has no Qt, and is imported in a thread after the first paint."""

SLICED_IMPORTS = (
    "ui.sidebar.conversation_rows",
    "ui.transcript.markdown.stream",
    "ui.transcript.look",
    "ui.transcript.blocks.code.code_block",
    "ui.transcript.blocks.table_block",
    "ui.transcript.rows.row",
    "ui.transcript.surface.finding.finding",
    "ui.transcript.view",
    "ui.bridge.library",
    "ui.shell.conversation_page",
    "ui.app",
)
"""What has, in slices that are each shorter than anybody notices; each brings what those before did not."""


def main(argv: Sequence[str] | None = None) -> int:
    """Start what the command line asks for; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["--child"] and words[1:] and words[1] in _CHILDREN:
        return _run_child(_CHILDREN[words[1]])
    if words[:1] in (["ask"], ["check"]):
        from desktop_agent.__main__ import main as headless

        return headless(words)
    from ui.shell.start.early_signals import EarlySignals

    signals = EarlySignals()
    from desktop_agent.faces.arguments import parse_window_arguments

    return _run_window(parse_window_arguments(words), signals)


def _run_child(name: str) -> int:
    # Run by its path in an isolated interpreter, this file does not know the folder that it lies in.
    sys.path.insert(0, str(Path(__file__).parents[1]))
    return int(importlib.import_module(name).main() or 0)


def _run_window(place: "LaunchOptions", early: "EarlySignals") -> int:
    """Open the window and stay until it is closed; returns the exit code (2: there is no screen)."""
    # What modules hold lives as long as the program: looking through it for garbage, now or later, would find none.
    gc.disable()
    from ui.shell.start.plain_imports import remove_feature_import_hook

    importlib.import_module("PySide6.QtWidgets")
    remove_feature_import_hook()
    from desktop_agent.storage.paths import data_folder
    from desktop_agent.vocabulary.errors import AgentError
    from ui.bridge.single_instance import SingleInstance
    from ui.look.theme import ThemeSource
    from ui.shell.start.display import NO_DISPLAY, has_display, open_application
    from ui.shell.start.first_loop import run_until_painted
    from ui.shell.start.front import StartupWindow

    if not has_display():
        sys.stderr.write(NO_DISPLAY)
        return 2
    app = open_application()
    try:
        folder = data_folder(place.data_dir)
    except AgentError as error:
        sys.stderr.write(f"{error.whole}\n")
        return 1
    instance = SingleInstance(folder)
    if not instance.is_first():
        sys.stderr.write(f"{instance.sentence}\n")
        return 0 if instance.is_raised else 1
    startup = StartupWindow(app, ThemeSource(), folder)
    instance.raise_requested.connect(startup.raise_window)
    try:
        if early.received:
            return 0
        run_until_painted(startup)
        from ui.bridge.loop import run_event_loop

        return run_event_loop(app, lambda: _run_behind_window(startup, place, folder, early))
    finally:
        instance.close()


async def _run_behind_window(
    startup: "StartupWindow", place: "LaunchOptions", folder: Path, early: "EarlySignals"
) -> int:
    """What is behind the window, from its first paint to the end of the program."""
    from ui.bridge.end_signals import TerminationSignals

    signals = TerminationSignals(startup.app)
    signals.end_requested.connect(startup.end_without_asking)
    if early.received:
        startup.end_without_asking()
    try:
        if not await _load(startup):
            return 1
        if startup.can_close:
            startup.close_window()
            return 0
        gc.freeze()
        gc.enable()
        from ui.app import run_app

        return await run_app(startup, place, folder)
    finally:
        signals.close()


async def _load(startup: "StartupWindow") -> bool:
    """Import what is behind the window, unless it is left before; whether it could be imported."""
    from ui.shell.start.loading import import_in_slices, import_in_thread

    try:
        for room in BACKGROUND_IMPORTS:
            if not startup.can_close:
                await import_in_thread(room)
        await import_in_slices(SLICED_IMPORTS, lambda: startup.can_close)
    except Exception:  # noqa: BLE001  whatever a part that is missing or damaged raises
        import traceback

        from desktop_agent.vocabulary.errors import AgentError
        from ui.shell.start.saying_why import show_startup_error

        traceback.print_exc()
        what = "Desktop Agent cannot start: a part of it is missing or damaged."
        await show_startup_error(
            startup, AgentError(what, "Copy what you have written, close the window, and install it again.")
        )
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
