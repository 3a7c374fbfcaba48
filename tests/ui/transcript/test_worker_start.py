"""The program starts parts of itself, from its folder and packaged."""

import importlib
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from desktop_agent.processes.worker import Worker, worker_command
from desktop_agent.processes.worker_process import WorkerLimits
from desktop_agent.sandbox.child_command import CHILD
from tests.frame.patience import PATIENCE
from ui import __main__ as program
from ui.transcript.blocks.code.highlighter import LIMITS
from ui.transcript.blocks.diagram_renderer import DiagramRenderer

COLOURING = "ui.transcript.blocks.code.highlighter_worker:highlight"
DIAGRAM = "ui.transcript.blocks.diagram_worker:draw"


def words_of(task):
    return Worker(task, list[int], LIMITS, timeout=1)._command


@pytest.mark.parametrize("task", [COLOURING, DIAGRAM])
def test_each_part_starts_isolated_and_says_nothing_to_nonsense(task):
    for data in (b"", b"nonsense"):
        run = subprocess.run(
            words_of(task), input=data, env={}, cwd="/", capture_output=True, timeout=PATIENCE, check=False
        )
        assert run.stdout == b""
        assert (run.returncode, b"ValueError" in run.stderr) == ((1, True) if data else (0, False))


def test_every_part_that_the_program_starts_is_there():
    for module in program._CHILDREN.values():
        assert callable(importlib.import_module(module).main)


def test_a_frozen_program_starts_itself(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "executable", "/opt/desktop-agent/desktop-agent")
    expected = ["/opt/desktop-agent/desktop-agent", CHILD, "worker"]
    assert worker_command() == expected
    diagram = DiagramRenderer(sys.executable).make_worker()
    assert diagram._command[:3] == expected


def test_a_part_is_run_instead_of_the_window(monkeypatch):
    monkeypatch.setattr(program, "_run_child", lambda name: name)
    assert program.main([CHILD, "worker"]) == "desktop_agent.processes.worker_process"


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
    part.write_text("print('mine')\ndef highlight(): pass\n")
    for folder in (part.parent, *part.parent.parents):
        (folder / "__init__.py").touch()
        if folder == tmp_path / "ui":
            break
    command = [
        str(tmp_path) if word == str(Path(program.__file__).parents[1]) else word for word in words_of(COLOURING)
    ]
    run = subprocess.run(command, input="", capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (run.stdout, run.returncode) == ("mine\n", 0)


def test_limits_go_there_and_back():
    limits = WorkerLimits(memory=1, seconds=0.5, call_seconds=2.0, reads_files=False, niceness=3)
    *_, limits_json = Worker(COLOURING, list[int], limits, timeout=1)._command
    assert WorkerLimits(**json.loads(limits_json)) == limits
    assert asdict(limits) == json.loads(limits_json)
