"""Each limit is enforced. That the code keeps them is checked beside pytest: tests/frame/check.py."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.frame.budgets import PACKAGES, ROOT, faults, sources

SEEDED = {
    "a long module": ("ui/long.py", "x = 1\n" * 501, "501 lines"),
    "a silent method": ("ui/a.py", "class C:\n    def f(self):\n        return g()\n", "C.f has no docstring"),
    "a long function": ("ui/a.py", "def f():\n" + "    x = 1\n" * 50, "f has 51 lines"),
    "a long coroutine": ("ui/a.py", "async def f():\n" + "    x = 1\n" * 50, "f has 51 lines"),
    "a long class": ("ui/a.py", "class C:\n" + "    x = 1\n" * 300, "C has 301 lines"),
    "a junk drawer": ("desktop_agent/utils.py", "", "utils is no name"),
    "a junk drawer with a surname": ("ui/text_helpers.py", "", "text_helpers is no name"),
    "a junk folder": ("desktop_agent/common/x.py", "", "common is no name"),
    "a nested loop": ("ui/a.py", "dialog.exec()\n", "dialog.exec()"),
    "another loop beside the first": ("ui/shell/startup_window.py", "dialog.exec()\n", "dialog.exec()"),
    "events by hand": ("ui/a.py", "QApplication.processEvents()\n", "processEvents()"),
    "an item of a layout": ("ui/a.py", "layout.itemAt(0).widget()\n", "layout.itemAt()"),
    "a sleep": ("desktop_agent/a.py", "import time\ntime.sleep(1)\n", "time.sleep()"),
    "a bare sleep": ("desktop_agent/a.py", "from time import sleep\nsleep(1)\n", "sleep()"),
    "a print": ("desktop_agent/a.py", "print('x')\n", "print()"),
}

FINE = {
    "a full module": ("ui/long.py", "x = 1\n" * 500),
    "a full function": ("ui/a.py", "def f():\n" + "    x = 1\n" * 49),
    "the loop before all others": ("ui/shell/startup_window.py", "loop.exec()\n"),
    "an asyncio sleep": ("ui/a.py", "async def f():\n    await asyncio.sleep(1)\n"),
    "an override of what has a docstring": (
        "ui/a.py",
        'class B:\n    def f(self):\n        """Say."""\n\n\nclass C(B):\n    def f(self):\n        return g()\n',
    ),
    "words in a text": ("ui/a.py", "'print(), time.sleep() and .exec()'\n"),
}


def seed(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_every_file_was_read() -> None:
    read = {source.path for source in sources(ROOT)}
    for package in PACKAGES:
        assert f"{package}/__init__.py" in read
    assert len(read) >= 80


@pytest.mark.parametrize("name", SEEDED)
def test_a_seeded_fault_is_found(name: str, tmp_path: Path) -> None:
    path, text, complaint = SEEDED[name]
    seed(tmp_path, path, text)
    found = faults(tmp_path)
    assert len(found) == 1
    assert complaint in found[0]


@pytest.mark.parametrize("name", FINE)
def test_what_is_right_passes(name: str, tmp_path: Path) -> None:
    seed(tmp_path, *FINE[name])
    assert faults(tmp_path) == []


def test_a_full_folder_is_found(tmp_path: Path) -> None:
    for number in range(25):
        seed(tmp_path, f"ui/pane/m{number}.py", "")
    seed(tmp_path, "ui/pane.py", "")
    assert faults(tmp_path) == []
    seed(tmp_path, "ui/pane/one_more.py", "")
    assert faults(tmp_path) == ["ui/pane: 26 modules, at most 25"]


LINTED = {
    "C901": "def f(x):\n" + "".join(f"    if x == {n}:\n        x += 1\n" for n in range(11)) + "    return x\n",
    "T201": "print(1)\n",
    "BLE001": "try:\n    x = 1\nexcept Exception:\n    x = 2\n",
    "F401": "import os\n",
    "FIX002": "# TODO: later\n",
    "D100": "x = 1\n",
    "ANN001": "def f(x) -> None: ...\n",
}


@pytest.mark.parametrize("rule", LINTED)
def test_the_linter_bites(rule: str, tmp_path: Path) -> None:
    seed(tmp_path, "seeded.py", LINTED[rule])
    ruff = Path(sys.executable).with_name("ruff")
    command = [ruff, "check", "--no-cache", "--config", ROOT / "pyproject.toml", "--output-format", "concise", tmp_path]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert rule in run.stdout
