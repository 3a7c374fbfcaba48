import subprocess
import sys

import pytest

from desktop_agent.tools.processes.own_part import part_command, part_environment
from tests.frame.patience import PATIENCE


def test_a_part_runs_alone_and_gets_its_words_behind_its_name() -> None:
    argv = part_command("confined", "desktop_agent.tools.commands.launcher", '{"network": true}', "/bin/echo", "a b")
    ended = subprocess.run(argv, env={}, cwd="/", capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("a b\n", "", 0)


def test_a_frozen_program_is_asked_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert part_command("part", "module", "word") == [sys.executable, "--child", "part", "word"]


def test_its_environment_has_nothing_of_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    assert set(part_environment()) <= {"PATH", "SYSTEMROOT"}
