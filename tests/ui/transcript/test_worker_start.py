"""The program starts parts of itself, from its folder and packaged, and gives them nothing of the person's."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.frame.patience import PATIENCE
from ui import __main__ as program
from ui.transcript.workers import WORKER_FLAG, worker_command, worker_environment, worker_folder


@pytest.mark.parametrize("part", ["colouring", "diagram"])
def test_each_part_starts_isolated_and_says_nothing_to_nonsense(part):
    command, own = worker_command(part), worker_environment()
    run = subprocess.run(
        command, input=b"", env=own, cwd=worker_folder(), capture_output=True, timeout=PATIENCE, check=False
    )
    assert run.stdout == b""
    assert (run.returncode, b"JSONDecodeError" in run.stderr) == ((0, False) if part == "colouring" else (1, True))


def test_every_part_that_the_program_starts_is_there():
    for module in program._CHILDREN.values():
        assert callable(importlib.import_module(module).main)


def test_a_frozen_program_starts_itself(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", "/opt/desktop-agent/desktop-agent")
    assert worker_command("colouring") == ["/opt/desktop-agent/desktop-agent", WORKER_FLAG, "colouring"]


def test_a_part_is_run_instead_of_the_window(monkeypatch):
    monkeypatch.setattr(program, "_run_child", lambda name: name)
    assert program.main([WORKER_FLAG, "colouring"]) == "ui.transcript.blocks.code.highlighter_worker"


def test_parts_know_little_of_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert set(worker_environment()) <= {"PATH", "SYSTEMROOT"}


LOADED = """
import sys
import ui.app
from ui.transcript.view import TranscriptView
from ui.transcript.blocks.code.code_block import suggest_file_name
assert suggest_file_name("bash") == "code.sh"
print(sorted(name for name in sys.modules if name.startswith("pygments")))
"""


def test_the_window_loads_no_grammar():
    run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert run.stdout == "[]\n"


def test_a_part_is_of_the_folder_that_the_program_lies_in(tmp_path):
    # Another one may be installed.
    part = tmp_path / "ui/transcript/blocks/code/highlighter_worker.py"
    part.parent.mkdir(parents=True)
    part.write_text("def main():\n    print('mine')\n    return 3\n")
    (tmp_path / "ui/__main__.py").write_text(Path(program.__file__).read_text(encoding="utf-8"))
    for folder in (part.parent, *part.parent.parents):
        (folder / "__init__.py").touch()
        if folder == tmp_path / "ui":
            break
    copied = {program.__file__: str(tmp_path / "ui/__main__.py")}
    command = [copied.get(word, word) for word in worker_command("colouring")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (run.stdout, run.returncode) == ("mine\n", 3)
