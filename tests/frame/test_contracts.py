"""The import contracts hold, every file was read, and a seeded fault breaks each contract.

All faults are seeded in one copy, each in a module of its own. The linter runs over it once, and must name all of them.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("desktop_agent", "ui")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]

# (contract, folder of the module that gets the line, the line)
SEEDED = [
    ("ui-floors", "ui/style", "import ui.shell"),
    ("ui-floors", "ui/transcript", "import ui.shell"),
    ("ui-floors", "ui/sidebar", "import ui.composer"),
    ("ui-floors", "ui/bridge", "import ui.style"),
    ("runtime-floors", "desktop_agent/types", "import desktop_agent.conversation"),
    ("runtime-floors", "desktop_agent/agent", "import desktop_agent.engine"),
    ("runtime-floors", "desktop_agent/tools", "import desktop_agent.storage"),
    ("runtime-floors", "desktop_agent/providers", "import desktop_agent.conversation"),
    ("runtime-floors", "desktop_agent/tools", "import desktop_agent.permissions"),
    ("runtime-floors", "desktop_agent/network", "import desktop_agent.tools"),
    ("runtime-floors", "desktop_agent/types", "import desktop_agent.network"),
    ("runtime-floors", "desktop_agent/mcp", "import desktop_agent.tools"),
    ("runtime-floors", "desktop_agent/sandbox", "import desktop_agent.network"),
    ("runtime-floors", "desktop_agent/sandbox", "import desktop_agent.processes"),
    ("runtime-floors", "desktop_agent/processes", "import desktop_agent.network"),
    ("qt-line", "desktop_agent/engine", "import ui.style"),
    ("qt-line", "desktop_agent/tools", "from PySide6.QtCore import QObject"),
    ("qt-line", "desktop_agent/api", "import qasync"),
    ("engine-door", "ui/shell", "import desktop_agent.engine"),
    ("engine-door", "ui/approval", "import desktop_agent.permissions"),
    ("engine-door", "ui/transcript", "import desktop_agent.network"),
    ("engine-door", "ui/transcript", "import desktop_agent.processes.run_process"),
    ("engine-door", "ui/shell", "import desktop_agent.processes.worker"),
    ("style-alone", "ui/style", "import desktop_agent.network"),
    ("style-alone", "ui/style", "import desktop_agent.conversation.transcript"),
    ("nouns-only", "desktop_agent/types", "import socket"),
    ("nouns-only", "desktop_agent/types", "import asyncio"),
    ("one-keyring", "desktop_agent/storage", "import keyring"),
    ("one-keyring", "ui/bridge", "import keyring.errors"),
    ("one-transport", "desktop_agent/providers", "import httpx"),
    ("one-transport", "desktop_agent/tools", "from httpx import AsyncClient"),
    ("one-transport", "desktop_agent/network", "import h11"),
    ("one-database", "desktop_agent/engine", "import sqlite3"),
    ("one-database", "desktop_agent/exchange/readers", "import sqlite3"),
]
STRAYS = {"ui-floors": "ui/stray.py", "runtime-floors": "desktop_agent/stray.py"}
"""Modules on no floor."""
TITLE = re.compile(r"^(.+)\n-+\n", re.MULTILINE)


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    # A wide terminal: otherwise the names of contracts are wrapped.
    environment = {**os.environ, "COLUMNS": "300"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def copy_to(folder: Path) -> Path:
    """Copy the two packages as they are to a place where faults do no harm."""
    shutil.copy(ROOT / "pyproject.toml", folder)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def complaints(run: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return what the linter says about each broken contract, by its id."""
    assert run.returncode == 1, run.stdout + run.stderr
    _, *parts = TITLE.split(run.stdout.partition("Broken contracts\n")[2])
    texts = dict(zip(parts[::2], parts[1::2], strict=True))
    return {contract["id"]: texts[contract["name"]] for contract in CONTRACTS if contract["name"] in texts}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """What the linter says about a copy with all faults except strays, which end its check of the floors."""
    folder = copy_to(tmp_path_factory.mktemp("faulty"))
    for number, (_, place, line) in enumerate(SEEDED):
        (folder / place / f"seeded{number}.py").write_text(f"{line}\n")
    (folder / "desktop_agent/tools/circle.py").write_text("import desktop_agent.tools.tool\n")
    with (folder / "desktop_agent/tools/tool.py").open("a") as file:
        file.write("\nimport desktop_agent.tools.circle\n")
    return lint(folder)


def test_the_floors_hold() -> None:
    run = lint(ROOT)
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_file_was_read(faulty: subprocess.CompletedProcess[str]) -> None:
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    analyzed = re.search(r"Analyzed (\d+) files", faulty.stdout)
    assert analyzed is not None
    assert int(analyzed[1]) >= len(files) + len(SEEDED)
    assert len(files) >= 80


@pytest.mark.parametrize("number", range(len(SEEDED)), ids=lambda number: "-".join(SEEDED[number]))
def test_a_seeded_fault_breaks_its_contract(number: int, faulty: subprocess.CompletedProcess[str]) -> None:
    contract, place, _ = SEEDED[number]
    assert f"{place.replace('/', '.')}.seeded{number} -> " in complaints(faulty)[contract]


def test_a_circle_is_broken(faulty: subprocess.CompletedProcess[str]) -> None:
    assert ".tool -> .circle (1 import)" in complaints(faulty)["no-circles"]


def test_a_module_on_no_floor_breaks_the_floors(tmp_path: Path) -> None:
    folder = copy_to(tmp_path)
    for stray in STRAYS.values():
        (folder / stray).touch()
    texts = complaints(lint(folder))
    assert texts.keys() == STRAYS.keys()
    assert all("stray" in text for text in texts.values())


def test_every_contract_has_a_seeded_fault() -> None:
    assert {contract["id"] for contract in CONTRACTS} == {"no-circles", *(contract for contract, _, _ in SEEDED)}


def test_every_screen_stands_behind_the_engine_door() -> None:
    door = next(contract for contract in CONTRACTS if contract["id"] == "engine-door")
    children = {child.stem for child in (ROOT / "ui").iterdir() if child.is_dir() or child.suffix == ".py"}
    rooms = children - {"__init__", "__main__", "__pycache__", "app", "bridge", "launcher", "style"}
    assert {f"ui.{room}" for room in rooms} == set(door["source_modules"])
    assert len(rooms) >= 7
