"""The floors hold, every file was looked at, and each contract breaks when it should."""

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

# (contract, file that gets the line, the line)
SEEDED = [
    ("ui-floors", "ui/style/seeded.py", "import ui.shell"),
    ("ui-floors", "ui/transcript/seeded.py", "import ui.shell"),
    ("ui-floors", "ui/sidebar/seeded.py", "import ui.composer"),
    ("ui-floors", "ui/bridge/seeded.py", "import ui.style"),
    ("ui-floors", "ui/stray.py", ""),
    ("runtime-floors", "desktop_agent/types/seeded.py", "import desktop_agent.conversation"),
    ("runtime-floors", "desktop_agent/agent/seeded.py", "import desktop_agent.engine"),
    ("runtime-floors", "desktop_agent/tools/seeded.py", "import desktop_agent.storage"),
    ("runtime-floors", "desktop_agent/providers/seeded.py", "import desktop_agent.conversation"),
    ("runtime-floors", "desktop_agent/tools/seeded.py", "import desktop_agent.permissions"),
    ("runtime-floors", "desktop_agent/network/seeded.py", "import desktop_agent.tools"),
    ("runtime-floors", "desktop_agent/types/seeded.py", "import desktop_agent.network"),
    ("runtime-floors", "desktop_agent/mcp/seeded.py", "import desktop_agent.tools"),
    ("runtime-floors", "desktop_agent/sandbox/seeded.py", "import desktop_agent.network"),
    ("runtime-floors", "desktop_agent/sandbox/seeded.py", "import desktop_agent.processes"),
    ("runtime-floors", "desktop_agent/processes/seeded.py", "import desktop_agent.network"),
    ("runtime-floors", "desktop_agent/stray.py", ""),
    ("qt-line", "desktop_agent/engine/seeded.py", "import ui.style"),
    ("qt-line", "desktop_agent/tools/seeded.py", "from PySide6.QtCore import QObject"),
    ("qt-line", "desktop_agent/api/seeded.py", "import qasync"),
    ("engine-door", "ui/shell/seeded.py", "import desktop_agent.engine"),
    ("engine-door", "ui/approval/seeded.py", "import desktop_agent.permissions"),
    ("engine-door", "ui/transcript/seeded.py", "import desktop_agent.network"),
    ("engine-door", "ui/transcript/seeded.py", "import desktop_agent.processes.run_process"),
    ("engine-door", "ui/shell/seeded.py", "import desktop_agent.processes.worker"),
    ("style-alone", "ui/style/seeded.py", "import desktop_agent.network"),
    ("style-alone", "ui/style/seeded.py", "import desktop_agent.conversation.transcript"),
    ("nouns-only", "desktop_agent/types/seeded.py", "import socket"),
    ("nouns-only", "desktop_agent/types/seeded.py", "import asyncio"),
    ("one-keyring", "desktop_agent/storage/seeded.py", "import keyring"),
    ("one-keyring", "ui/bridge/seeded.py", "import keyring.errors"),
    ("one-transport", "desktop_agent/providers/seeded.py", "import httpx"),
    ("one-transport", "desktop_agent/tools/seeded.py", "from httpx import AsyncClient"),
    ("one-transport", "desktop_agent/network/seeded.py", "import h11"),
    ("one-database", "desktop_agent/engine/seeded.py", "import sqlite3"),
    ("no-circles", "desktop_agent/tools/tool.py", "import desktop_agent.tools.seeded"),
]


def lint(folder: Path, contract: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    command += ["--contract", contract] if contract else []
    # A wide terminal: otherwise the names of contracts are wrapped.
    environment = {**os.environ, "COLUMNS": "300"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two packages as they are, in a place where faults do no harm."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copy(ROOT / "pyproject.toml", folder)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_the_floors_hold() -> None:
    run = lint(ROOT)
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_file_was_read(copy: Path) -> None:
    files = [file for package in PACKAGES for file in (copy / package).rglob("*.py")]
    analyzed = re.search(r"Analyzed (\d+) files", lint(copy).stdout)
    assert analyzed is not None
    assert int(analyzed[1]) >= len(files) >= 80


@pytest.mark.parametrize(("contract", "path", "line"), SEEDED)
def test_a_seeded_fault_breaks_its_contract(contract: str, path: str, line: str, copy: Path) -> None:
    file = copy / path
    before = file.read_text() if file.exists() else None
    other = copy / "desktop_agent/tools/seeded.py"
    try:
        file.write_text(f"{before or ''}\n{line}\n")
        if contract == "no-circles":
            other.write_text("import desktop_agent.tools.tool\n")
        run = lint(copy, contract)
    finally:
        other.unlink(missing_ok=True)
        if before is None:
            file.unlink(missing_ok=True)
        else:
            file.write_text(before)
    assert "BROKEN" in run.stdout, run.stdout + run.stderr
    assert run.returncode == 1
    assert Path(path).stem in run.stdout


def test_every_contract_has_a_seeded_fault() -> None:
    assert {contract["id"] for contract in CONTRACTS} == {contract for contract, _, _ in SEEDED}


def test_every_screen_stands_behind_the_engine_door() -> None:
    door = next(contract for contract in CONTRACTS if contract["id"] == "engine-door")
    children = {child.stem for child in (ROOT / "ui").iterdir() if child.is_dir() or child.suffix == ".py"}
    rooms = children - {"__init__", "__main__", "__pycache__", "app", "bridge", "launcher", "style"}
    assert {f"ui.{room}" for room in rooms} == set(door["source_modules"])
    assert len(rooms) >= 7
