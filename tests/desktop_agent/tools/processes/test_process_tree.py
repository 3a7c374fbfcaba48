import subprocess
from collections.abc import Iterator

import psutil
import pytest

from desktop_agent.tools.processes.process_tree import ProcessTree, new_mark


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
    assert (tree.ask_to_end(), tree.kill()) == (0, 0)
    assert stranger.poll() is None


def test_one_that_ended_before_it_was_looked_at_has_no_tree() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    tree = ProcessTree(process.pid, new_mark())
    assert (tree.ask_to_end(), tree.is_alive(), tree.kill(), tree.ids) == (0, False, 0, [])


def test_the_leader_is_killed_and_known_until_then(stranger: "subprocess.Popen[bytes]") -> None:
    tree = ProcessTree(stranger.pid, new_mark())
    assert tree.is_alive()
    tree.kill()
    assert stranger.wait(10) == -9
    assert not tree.is_alive()
    assert tree.kill() == 0


def test_marks_are_never_the_same() -> None:
    assert new_mark() != new_mark()
