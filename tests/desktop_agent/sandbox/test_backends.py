"""Which confinement is offered, and what is said of it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop_agent.sandbox import backends
from desktop_agent.sandbox.backends import (
    Sandbox,
    available_sandbox,
    bubblewrap_sandbox,
    is_working,
    landlock_sandbox,
    no_sandbox,
)
from desktop_agent.sandbox.policy import SandboxPolicy
from desktop_agent.types.errors import Sentence
from tests.desktop_agent.tools.commands.sandboxes import working_sandbox
from tests.frame.patience import PATIENCE


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    available_sandbox.cache_clear()
    yield
    available_sandbox.cache_clear()


def test_what_is_said_before_a_command_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    kept = (
        "The command can write only in the workspace and in a temporary folder of its own. It can read those, the "
        "system, and your development tools with their caches and settings, but no other file of yours."
    )
    loose = (
        "It can still change the permissions and dates of your other files, and what git and other programs run by "
        "themselves, without confinement, in the workspace; you are told if it did."
    )
    there = (
        "It cannot change the hooks and settings of git that are in the workspace now, nor what other programs run by "
        "themselves there, but for the files that it names and those that git checks out."
    )
    assert str(landlock_sandbox().title(())) == f"Confined by Landlock. {kept} It has no network access. {loose}"
    hosts = ("a.example", "b.example")
    only = "The command can reach only a.example, b.example."
    assert str(bubblewrap_sandbox("/x").title(hosts)) == f"Confined by bubblewrap. {kept} {only} {there}"
    everywhere = (
        "The command can use the whole network and the services of this computer: this system cannot limit it to the "
        "hosts that it names."
    )
    assert str(landlock_sandbox().title(hosts)) == f"Confined by Landlock. {kept} {everywhere} {loose}"
    at_home = str(landlock_sandbox().title((), around_home=True))
    assert (
        "The workspace contains your home folder: the command can read all of that, except the usual places of"
        in at_home
    )
    assert "no other file of yours" not in at_home
    free = "Not confined: the command can read, change and send whatever you can."
    assert str(no_sandbox(Sentence("Install it.")).title(())) == f"{free} Install it."
    assert str(no_sandbox(Sentence("Install it.")).title(hosts)) == f"{free} {everywhere} Install it."


def test_for_root_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    for user, holds in ((0, False), (1000, True)):
        monkeypatch.setattr("os.geteuid", lambda user=user: user)
        for each in (bubblewrap_sandbox("/x"), landlock_sandbox()):
            assert each.is_enforced is holds
            assert ("runs as root" in str(each.title(()))) is not holds
            assert str(each.title(())).startswith("Confined by " if holds else "Not confined: ")
    assert not no_sandbox().is_enforced


def test_bubblewrap_comes_first_and_landlock_where_it_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    working_sandbox("Landlock")
    assert working_sandbox("bubblewrap").name == available_sandbox().name == "bubblewrap"
    for broken in (None, "/bin/false", "/nowhere/bwrap"):
        available_sandbox.cache_clear()
        monkeypatch.setattr(backends, "find_bubblewrap", lambda program=broken: program)
        assert available_sandbox().name == "Landlock"


def test_where_nothing_works_it_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "is_landlock_supported", lambda: False)
    monkeypatch.setattr(backends, "find_bubblewrap", lambda: None)
    assert available_sandbox() == available_sandbox()
    assert (available_sandbox().name, str(available_sandbox().note)) == ("", "Install bubblewrap to confine commands.")
    available_sandbox.cache_clear()
    monkeypatch.setattr(backends, "find_bubblewrap", lambda: "/bin/false")
    assert "does not let bubblewrap work" in str(available_sandbox().note)
    available_sandbox.cache_clear()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert available_sandbox().name == ""


def test_it_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Sandbox] = []
    monkeypatch.setattr(backends, "is_working", lambda each: tried.append(each) or True)
    monkeypatch.setattr(backends, "find_bubblewrap", lambda: "/x")
    assert available_sandbox() is available_sandbox()
    assert len(tried) == 1


def test_what_confines_nothing_does_not_work() -> None:
    assert not is_working(no_sandbox())


def test_a_launcher_that_cannot_close_itself_in_starts_nothing(tmp_path: Path) -> None:
    import subprocess

    policy = SandboxPolicy((tmp_path,), ())
    argv = backends.landlock_command(("/bin/touch", str(tmp_path / "ran")), policy)
    argv[argv.index("confined") + 1] = '{"writable": 1, "hidden": [], "network": false}'
    ended = subprocess.run(argv, env={}, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 125
    assert "could not be confined and was not started" in ended.stderr
    assert not (tmp_path / "ran").exists()
