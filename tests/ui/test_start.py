"""What is imported before the window is drawn for the first time, and what comes behind."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.frame.patience import PATIENCE
from tests.frame.selection import few
from ui.__main__ import BACKGROUND_IMPORTS, SLICED_IMPORTS

# The program itself, ended when one can write in its window.
STARTED = """
import importlib.abc, importlib.machinery, json, linecache, os, sys

class After(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "ui.shell.startup_window":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        run = spec.loader.exec_module
        def exec_module(module):
            run(module)
            run_first = module.run_until_painted
            # The slot of the first paint corrects what was guessed for it.
            painted = module.StartupWindow._on_painted
            seen = {}
            def note(front):
                seen["modules"] = sorted(sys.modules)
                seen["core"] = sorted(vars(sys.modules["PySide6.QtCore"]))
                painted(front)
            module.StartupWindow._on_painted = note
            def and_tell(front):
                run_first(front)
                widgets = sorted(vars(sys.modules["PySide6.QtWidgets"]))
                found = {**seen, "sources": sorted(linecache.cache), "widgets": widgets}
                sys.stdout.write(json.dumps(found))
                sys.stdout.flush()
                os._exit(0)
            module.run_until_painted = and_tell
        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, After())
from ui.__main__ import main
main(["--data-dir", sys.argv[1]])
"""
# The program itself, with a signal in the middle of an import.
SIGNALLED = """
import importlib.abc, os, signal, sys

class Signals(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == sys.argv[2]:
            os.kill(os.getpid(), signal.Signals[sys.argv[3]])
        return None

sys.meta_path.insert(0, Signals())
from ui.__main__ import main
code = main(["--data-dir", sys.argv[1]])
print(sys.argv[2] in sys.modules)
sys.exit(code)
"""
SEEN = {
    *("desktop_agent.api.command_line", "desktop_agent.storage.files"),
    "desktop_agent.storage.file_lock",
    *(
        "desktop_agent.types.errors",
        "desktop_agent.types.sentence_places",
        "desktop_agent.types.dialects",
    ),
}
"""What the window needs of the runtime to be drawn: words of errors, and where it lies."""
UNSEEN = ("ui.approval", "ui.bridge", "ui.settings", "ui.transcript", "ui.welcome", "ui.app", "ui.style.list_rows")
FOREIGN = (
    "PySide6.QtNetwork",
    "asyncio",
    "datetime",
    "html",
    "httpx",
    "importlib.metadata",
    "markdown_it",
    "platformdirs",
    "pydantic",
    "qasync",
    "socket",
    "sqlite3",
    "ssl",
)
MOST = 38
"""Modules of ours; each costs half a millisecond or more."""

SHOWN = """
import sys
import desktop_agent.engine.engine
import ui.app
late = {late!r}
there = [name for name, module in sys.modules.items() if module is not None]
print([name for name in there if any(name == each or name.startswith(each + ".") for each in late)])
"""
LATE = (
    "desktop_agent.agent.agent_loop",
    "desktop_agent.engine.session",
    "desktop_agent.engine.session_writer",
    "desktop_agent.permissions.gate",
    "desktop_agent.permissions.shell",
    "desktop_agent.providers.demo",
    "desktop_agent.providers.dialects",
    "desktop_agent.processes.run_process",
    "desktop_agent.tools.builtin_tools",
    "desktop_agent.types.options",
    *("bs4", "httpcore", "httpx", "jsonschema", "keyring", "mcp", "mcp_types", "PIL", "psutil", "pygments"),
    *("selectolax", "tree_sitter", "ziamath"),
)
SLICED = """
import importlib, json, sys

def brought(room):
    before = set(sys.modules)
    importlib.import_module(room)
    return sorted(set(sys.modules) - before)

behind, slices = json.loads(sys.argv[1])
found = {"behind": {room: brought(room) for room in behind}}
import ui.shell.startup_window, ui.bridge.single_instance, ui.bridge.event_loop
found["slices"] = {room: brought(room) for room in slices}
print(json.dumps(found))
"""


def told(code: str, *words: str) -> Any:
    run = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    return json.loads(run.stdout)


def among(names: list[str], rooms: tuple[str, ...]) -> list[str]:
    return [name for name in names if any(name == room or name.startswith(f"{room}.") for room in rooms)]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return told(STARTED, str(tmp_path_factory.mktemp("data")))


def test_the_window_can_be_written_in_before_anything_behind_it_is_imported(started):
    # PySide6 6.12 brings `datetime`.
    of_qt = set(told("import json, sys, PySide6.QtWidgets; print(json.dumps([*sys.modules]))"))
    modules = [name for name in started["modules"] if name not in of_qt]
    # Of the bridge, whether this is the only window, where it was, and the file for a crash.
    early = ["desktop", "desktop.crash_reports", "desktop.window_state", "single_instance"]
    assert among(modules, UNSEEN + FOREIGN) == ["ui.bridge", *(f"ui.bridge.{name}" for name in early)]
    runtime = {name for name in among(started["modules"], ("desktop_agent",)) if name.count(".") > 1}
    assert runtime == SEEN
    ours = among(started["modules"], ("desktop_agent", "resources", "ui"))
    assert 20 < len(ours) <= MOST
    assert {"ui.composer.message_editor", "ui.shell.window"} <= set(ours)


@pytest.mark.parametrize("number", few(["SIGTERM", "SIGINT", "SIGHUP"], 1, "the same handler"))
@pytest.mark.parametrize("room", ["PySide6.QtWidgets", "ui.shell.startup_window", "asyncio", "pydantic", "ui.app"])
def test_a_signal_at_any_moment_of_the_start_ends_it_in_order(tmp_path, room, number):
    command = [sys.executable, "-c", SIGNALLED, str(tmp_path), room, number]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "True\n"


def test_no_types_are_made_of_widgets_that_the_window_does_not_have(started):
    # `viewport()` and others that answer any widget make all of them: 13 ms.
    assert "QPlainTextEdit" in started["widgets"]
    assert "QTabWidget" not in started["widgets"]


def test_none_of_the_95_enumerations_of_qt_are_made_for_the_first_paint(started):
    # 16 ms; `set_by_name` sets their values without them.
    assert "QSize" in started["core"]
    assert "Qt" not in started["core"]


def test_no_source_is_read_for_an_import(started):
    root = str(Path(__file__).parents[2])
    assert [name for name in started["sources"] if name.startswith(f"{root}/ui/")] == []


def test_no_conversation_is_needed_to_fill_the_window():
    code = SHOWN.format(late=LATE)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert run.stdout == "[]\n"


def test_what_is_imported_in_a_thread_has_no_qt_and_what_is_imported_in_slices_comes_in_small_ones():
    found = told(SLICED, json.dumps([BACKGROUND_IMPORTS, SLICED_IMPORTS]))
    for names in found["behind"].values():
        assert among(names, ("PySide6", "shiboken6", "ui")) == []
    for room, names in found["slices"].items():
        assert 1 <= len(names) <= 60, room
        # What is no part of the window belongs into the thread.
        assert len(among(names, ("ui", "PySide6"))) > len(names) * 0.6, (room, names)
