"""The command `desktop-agent`: the window, the headless commands without Qt, and the program's own child processes."""

import builtins
import gc
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

    from desktop_agent.api.command_line import LaunchOptions
    from desktop_agent.types.errors import AgentError
    from ui.bridge.desktop.crash_reports import CrashLog
    from ui.shell.startup_window import StartupWindow


class EarlySignals:
    """Remembers a signal during the start; Python's own handler would interrupt an import or a running slot."""

    def __init__(self) -> None:
        self.received = False
        """Whether the system or the terminal has asked the program to end."""
        # Windows has no SIGHUP.
        for number in (signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)):
            signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.received = True


class _NoStubGenerator:
    """A finder that gives PySide6 an empty package in place of its generator of `.pyi` files.

    `shibokensupport/signature/loader.py` imports the generator at each start, which takes an eighth of the time in
    which Qt is imported. Only the command of the generator uses it.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        del path, target
        is_generator = name == "shibokensupport.signature.lib.pyi_generator"
        return ModuleSpec(name, None, is_package=True) if is_generator else None


def import_qt() -> None:
    """Import Qt without the parts that cost time at the start and help only developers of PySide6."""
    finder = _NoStubGenerator()
    sys.meta_path.insert(0, finder)
    try:
        importlib.import_module("PySide6.QtWidgets")
    finally:
        sys.meta_path.remove(finder)
    remove_feature_import_hook()


def remove_feature_import_hook() -> None:
    """Put the original `__import__` back in place of PySide6's.

    PySide6's `__import__` serves `from __feature__ import …`, which is not used here. For that it reads and keeps the
    source of every module imported after it (`feature_imported` of shibokensupport/feature.py): a third of the time of
    our imports, and 8 MB. PySide6 keeps the original in `builtins`. If another hook was installed later, for example
    by a debugger, nothing is changed.
    """
    plain = getattr(builtins, "__orig_import__", None)
    if plain is not None and getattr(builtins.__import__, "__name__", "") == "__feature_import__":
        builtins.__import__ = plain


_CHILDREN = {
    "confined": "desktop_agent.sandbox.launcher",
    "lifeline": "desktop_agent.processes.lifeline",
    "worker": "desktop_agent.processes.worker_process",
}
"""The child processes that `desktop_agent.sandbox.child_command` starts."""


BACKGROUND_IMPORTS = (
    "desktop_agent.engine.engine",
    "desktop_agent.engine.mcp_servers",
    "desktop_agent.engine.session_opening",
    "desktop_agent.processes.worker",
    "desktop_agent.markdown.parser",
    "mdit_py_plugins.footnote",
)
"""Modules without Qt, imported in a thread after the first paint."""

SLICED_IMPORTS = (
    "ui.sidebar.conversation_rows",
    "ui.transcript.markdown.stream",
    "ui.transcript.style",
    "ui.transcript.blocks.code.code_block",
    "ui.transcript.blocks.table_block",
    "ui.transcript.rows.row",
    "ui.transcript.find.finder",
    "ui.transcript.view",
    "ui.bridge.library",
    "ui.shell.conversation_page",
    "ui.app",
)
"""Modules with Qt, imported one by one in slices too short to notice; each imports what those before it did not."""


def main(argv: Sequence[str] | None = None) -> int:
    """Start what the command line asks for. Returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["--child"] and words[1:] and words[1] in _CHILDREN:
        return _run_child(_CHILDREN[words[1]])
    from desktop_agent.__main__ import HEADLESS
    from desktop_agent.__main__ import main as headless

    if words[:1] in HEADLESS:
        return headless(words)

    signals = EarlySignals()
    from desktop_agent.api.command_line import open_closed_streams, parse_window_arguments

    open_closed_streams()
    return _run_window(parse_window_arguments(words), signals)


def _run_child(name: str) -> int:
    return int(importlib.import_module(name).main() or 0)


def _run_window(options: "LaunchOptions", early: "EarlySignals") -> int:
    """Open the window and wait until it is closed. Returns the exit code; 2 means that there is no screen."""
    # The objects of modules live as long as the program: a collection among them finds no garbage.
    gc.disable()

    import_qt()
    from desktop_agent.storage.files import data_folder
    from desktop_agent.types.errors import AgentError
    from ui.bridge.desktop.crash_reports import CrashLog
    from ui.bridge.single_instance import SingleInstance, StartRequest
    from ui.shell.startup_window import NO_DISPLAY, StartupWindow, has_display, open_application, run_until_painted
    from ui.style.theme import ThemeSource

    if not has_display():
        sys.stderr.write(NO_DISPLAY)
        return 2
    app = open_application()
    try:
        folder = data_folder(options.data_dir)
    except AgentError as error:
        sys.stderr.write(f"{error.whole}\n")
        return _show_missing_folder(app, error) if options.data_dir is None else 1
    instance, request = SingleInstance(folder), StartRequest(options.targets, options.background, options.quick_ask)
    if not instance.is_first(request):
        sys.stderr.write(f"{instance.sentence}\n")
        return 0 if instance.is_raised else 1
    crashes = CrashLog(folder)
    crashes.begin()
    startup = StartupWindow(app, ThemeSource(), folder)
    startup.start_requests.append(request)
    instance.requested.connect(startup.on_started_again)
    try:
        if early.received:
            return 0
        if options.background or options.quick_ask:
            startup.stay_hidden()
        else:
            run_until_painted(startup)
        instance.listen()
        from ui.bridge.event_loop import run_event_loop

        code = run_event_loop(app, lambda: _run_behind_window(startup, options, folder, crashes, early))
    finally:
        crashes.close()
        instance.close()
    if startup.starts_again:
        from ui.bridge.single_instance import restart_program

        restart_program(options.restart_arguments)
    return code


def _show_missing_folder(app: "QApplication", error: "AgentError") -> int:
    """Show why there is no data folder, until the window is closed: a start from a menu has no terminal.

    Returns the exit code.
    """
    from ui.bridge.event_loop import TerminationSignals, run_event_loop
    from ui.shell.startup_errors import show_startup_error
    from ui.shell.startup_window import StartupWindow, run_until_painted
    from ui.style.theme import ThemeSource

    # Nothing can be read or saved at this path, so the window has its first size.
    startup = StartupWindow(app, ThemeSource(), Path(os.devnull))
    run_until_painted(startup)

    async def show() -> int:
        signals = TerminationSignals(app)
        signals.end_requested.connect(startup.end_without_asking)
        try:
            await show_startup_error(startup, error)
        finally:
            signals.close()
        return 1

    return run_event_loop(app, show)


async def _run_behind_window(
    startup: "StartupWindow", options: "LaunchOptions", folder: Path, crashes: "CrashLog", early: "EarlySignals"
) -> int:
    """Run the program from the first paint to its end."""
    from ui.bridge.event_loop import TerminationSignals
    from ui.style.accessibility import install_accessibility

    install_accessibility(startup.app)
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

        return await run_app(startup, options, folder, crashes)
    finally:
        signals.close()


async def _load(startup: "StartupWindow") -> bool:
    """Import everything behind the window, unless the window is closed first. Return whether no import failed."""
    from ui.bridge.late_imports import import_in_slices, import_in_thread

    try:
        for module in BACKGROUND_IMPORTS:
            if not startup.can_close:
                await import_in_thread(module)
        await import_in_slices(SLICED_IMPORTS, lambda: startup.can_close)
    except Exception:  # noqa: BLE001  a missing or damaged part may raise anything
        import traceback

        from desktop_agent.types.errors import AgentError
        from ui.shell.startup_errors import show_startup_error

        traceback.print_exc()
        sentence = "Desktop Agent cannot start: a part of it is missing or damaged."
        await show_startup_error(
            startup, AgentError(sentence, "Copy what you have written, close the window, and install it again.")
        )
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
