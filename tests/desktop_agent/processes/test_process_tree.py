import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from desktop_agent.processes.run_process import ProcessTree, new_mark


@pytest.fixture
def stranger() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that leads a session of its own."""
    with subprocess.Popen(["sleep", "100"], start_new_session=True) as process:
        yield process
        process.kill()


def test_a_stranger_who_got_the_number_of_a_dead_leader_is_left_alone(stranger: "subprocess.Popen[bytes]") -> None:
    tree = ProcessTree(stranger.pid, new_mark())
    # As it is when the leader had died, and its number was given to somebody else.
    tree._root, tree._known = psutil.Process(), set()
    assert (tree.terminate(), tree.kill()) == (0, 0)
    assert stranger.poll() is None


def test_one_that_ended_before_it_was_looked_at_has_no_tree() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    tree = ProcessTree(process.pid, new_mark())
    assert (tree.terminate(), tree.is_alive(), tree.kill(), tree.ids) == (0, False, 0, [])


def test_the_leader_is_killed_and_known_until_then(stranger: "subprocess.Popen[bytes]") -> None:
    tree = ProcessTree(stranger.pid, new_mark())
    assert tree.is_alive()
    tree.kill()
    assert stranger.wait(10) == -9
    assert not tree.is_alive()
    assert tree.kill() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_one_that_stays_ends_last_and_by_itself(tmp_path: Path) -> None:
    """Its child has put itself into its group, so that nobody may be killed by group."""
    code = (
        "import os, sys, time\n"
        "child = os.fork()\n"
        "if not child:\n    open(sys.argv[1], 'w').close()\n    time.sleep(100)\n"
        "os.waitpid(child, 0)\nsys.exit(7)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "begun")], start_new_session=True) as process:
        tree = ProcessTree(process.pid, new_mark(), is_supervised=True)
        while not (tmp_path / "begun").exists():
            time.sleep(0.01)
        tree.kill()
        assert process.wait(10) == 7
        assert tree.kill() == 0


def test_one_that_stays_without_a_reason_is_killed_in_the_end(stranger: "subprocess.Popen[bytes]") -> None:
    tree = ProcessTree(stranger.pid, new_mark(), is_supervised=True)
    looks = 0
    while tree.kill():
        looks += 1
        assert looks < 100
    assert looks > 1
    assert stranger.wait(10) == -9


def test_marks_are_never_the_same() -> None:
    assert new_mark() != new_mark()
