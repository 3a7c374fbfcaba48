"""Processes that a test started are distinguished from those started before it."""

import subprocess

import pytest

from tests.frame.children import Children


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "500"])
    yield process
    process.kill()
    process.wait()


def test_only_the_test_s_own_living_ones_count(sleeper: "subprocess.Popen[bytes]", new_children: Children) -> None:
    assert new_children() == []
    own = subprocess.Popen(["sleep", "500"])
    assert [process.pid for process in new_children()] == [own.pid]
    own.kill()
    while own.poll() is None:
        pass
    assert new_children() == []
    assert sleeper.poll() is None
