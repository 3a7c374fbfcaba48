"""Which confinement is offered, and what is said of it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop_agent.tools.commands import bubblewrap, confinement, landlock
from desktop_agent.tools.commands.bounds import Bounds
from desktop_agent.tools.commands.confinement import Confinement, bubblewrapped, landlocked, offered, unconfined, works
from tests.desktop_agent.tools.commands.ways import way
from tests.frame.patience import PATIENCE


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    offered.cache_clear()
    yield
    offered.cache_clear()


def test_what_is_said_before_a_command_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    kept = (
        "It can write only in the workspace and in a temporary folder of its own. It can read those, the system, and "
        "your development tools with their caches and settings, but no other file of yours."
    )
    loose = (
        "It can still change the permissions and dates of your other files, and what git and other programs run by "
        "themselves, without confinement, in the workspace; you are told if it did."
    )
    there = (
        "It cannot change the hooks and settings of git that are in the workspace now, nor what other programs run by "
        "themselves there, but for the files that it names and those that git checks out."
    )
    assert landlocked().title(()) == f"Confined by Landlock. {kept} It has no network. {loose}"
    hosts = ("a.example", "b.example")
    only = "It can reach only a.example, b.example."
    assert bubblewrapped("/x").title(hosts) == f"Confined by bubblewrap. {kept} {only} {there}"
    everywhere = (
        "It may use the whole network, and services of this machine: this system cannot limit it to the hosts that it "
        "names."
    )
    assert landlocked().title(hosts) == f"Confined by Landlock. {kept} {everywhere} {loose}"
    at_home = landlocked().title((), around_home=True)
    assert "The workspace has your home folder in it: it can read all of that, except the usual places of" in at_home
    assert "no other file of yours" not in at_home
    free = "Not confined: it can read, change and send whatever you can."
    assert unconfined("Install it.").title(()) == f"{free} Install it."
    assert unconfined("Install it.").title(hosts) == f"{free} {everywhere} Install it."


def test_for_root_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    for user, holds in ((0, False), (1000, True)):
        monkeypatch.setattr("os.geteuid", lambda user=user: user)
        for each in (bubblewrapped("/x"), landlocked()):
            assert each.holds is holds
            assert ("runs as root" in each.title(())) is not holds
            assert each.title(()).startswith("Confined by " if holds else "Not confined: ")
    assert not unconfined("").holds


def test_bubblewrap_comes_first_and_landlock_where_it_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    way("Landlock")
    assert way("bubblewrap").name == offered().name == "bubblewrap"
    for broken in (None, "/bin/false", "/nowhere/bwrap"):
        offered.cache_clear()
        monkeypatch.setattr(bubblewrap, "installed", lambda program=broken: program)
        assert offered().name == "Landlock"


def test_where_nothing_works_it_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "is_known", lambda: False)
    monkeypatch.setattr(bubblewrap, "installed", lambda: None)
    assert offered() == offered()
    assert (offered().name, offered().note) == ("", "Install bubblewrap to confine commands.")
    offered.cache_clear()
    monkeypatch.setattr(bubblewrap, "installed", lambda: "/bin/false")
    assert "does not let bubblewrap work" in offered().note
    offered.cache_clear()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert offered().name == ""


def test_it_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Confinement] = []
    monkeypatch.setattr(confinement, "works", lambda each: tried.append(each) or True)
    monkeypatch.setattr(bubblewrap, "installed", lambda: "/x")
    assert offered() is offered()
    assert len(tried) == 1


def test_what_confines_nothing_does_not_work() -> None:
    assert not works(unconfined(""))


def test_a_launcher_that_cannot_close_itself_in_starts_nothing(tmp_path: Path) -> None:
    import subprocess

    bounds = Bounds((tmp_path,), ())
    argv = landlock.command(("/bin/touch", str(tmp_path / "ran")), bounds)
    argv[argv.index("confined") + 1] = '{"writable": 1, "hidden": [], "network": false}'
    ended = subprocess.run(argv, env={}, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 125
    assert "could not be confined and was not started" in ended.stderr
    assert not (tmp_path / "ran").exists()
