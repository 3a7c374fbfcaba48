import os
import subprocess
import sys

import pytest

from desktop_agent.sandbox.child_command import child_command, minimal_environment, original_environment
from tests.frame.patience import PATIENCE


def test_a_part_runs_alone_and_gets_its_words_behind_its_name() -> None:
    bounds = '{"network": true, "writes": ["/dev"], "limits": {}}'
    argv = child_command("confined", "desktop_agent.sandbox.launcher", bounds, "/bin/echo", "a b")
    ended = subprocess.run(argv, env={}, cwd="/", capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("a b\n", "", 0)


def test_what_every_command_waits_for_loads_no_large_library() -> None:
    code = "import sys; from desktop_agent.sandbox import launcher; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    large = {
        "asyncio",
        "dataclasses",
        "desktop_agent.sandbox.policy",
        "hashlib",
        "pydantic",
        "psutil",
        "socket",
        "tomllib",
    }
    assert large.isdisjoint(ended.stdout.split())


def test_a_frozen_program_is_asked_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert child_command("part", "module", "word") == [sys.executable, "--child", "part", "word"]


def test_its_environment_has_nothing_of_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    assert set(minimal_environment()) <= {"PATH", "SYSTEMROOT"}


def test_others_get_the_environment_of_before_the_program_was_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/lib")
    assert original_environment() == dict(os.environ)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/frozen/_internal")
    monkeypatch.setenv("_PYI_ARCHIVE_FILE", "/frozen/program")
    assert {"LD_LIBRARY_PATH", "_PYI_ARCHIVE_FILE"}.isdisjoint(original_environment())
    monkeypatch.setenv("LD_LIBRARY_PATH_ORIG", "/opt/lib")
    given = original_environment()
    assert given["LD_LIBRARY_PATH"] == "/opt/lib"
    assert "LD_LIBRARY_PATH_ORIG" not in given
    assert given["PATH"] == os.environ["PATH"]
