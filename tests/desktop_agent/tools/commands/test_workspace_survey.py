"""Listings of unchanged folders are cached, and whatever appears or disappears is noticed all the same."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from desktop_agent.tools.commands import workspace_survey
from desktop_agent.tools.commands.workspace_survey import ListingCache


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> ListingCache:
    """A cache that takes the listing of a heavy folder as settled at once."""
    monkeypatch.setattr(workspace_survey, "_SETTLED_NS", 0)
    cache = ListingCache()
    monkeypatch.setattr(workspace_survey, "HEAVY_LISTINGS", cache)
    return cache


@pytest.fixture
def heavy(tmp_path: Path) -> Path:
    folder = tmp_path / "node_modules"
    for name in ("a/x", "a/y", "b"):
        (folder / name).mkdir(parents=True)
    (folder / "b/file").touch()
    (folder / "b/link").symlink_to(folder / "a")
    tick()
    return folder


def tick() -> None:
    # The clock of file times goes in steps.
    time.sleep(0.02)


def test_what_did_not_change_is_looked_into_once(heavy: Path, fresh: ListingCache) -> None:
    first = workspace_survey.survey_workspace(heavy.parent)
    assert fresh.read == 5
    assert workspace_survey.survey_workspace(heavy.parent) == first
    assert fresh.read == 5


def move_aside(folder: Path) -> None:
    (folder / "a").rename(folder / "c")
    (folder / "a").mkdir()
    (folder / "a/.git").mkdir()


WAYS: dict[str, tuple[Callable[[Path], object], str]] = {
    "made": (lambda folder: (folder / "a/x/.git").mkdir(), "node_modules/a/x/.git/"),
    "a file": (lambda folder: (folder / "b/.git").write_text("gitdir: /tmp"), "node_modules/b/.git"),
    "with its parents": (lambda folder: (folder / "new/deep/.git").mkdir(parents=True), "node_modules/new/deep/.git/"),
    "another folder": (move_aside, "node_modules/a/.git/"),
}


@pytest.mark.parametrize("how", WAYS)
def test_a_repository_that_comes_to_be_is_found(how: str, heavy: Path, fresh: ListingCache) -> None:
    assert workspace_survey.survey_workspace(heavy.parent).repositories == []
    change, expected = WAYS[how]
    change(heavy)
    assert workspace_survey.survey_workspace(heavy.parent).repositories == [expected]


def test_a_time_that_was_set_back_hides_nothing(heavy: Path, fresh: ListingCache) -> None:
    before = (heavy / "b").stat()
    workspace_survey.survey_workspace(heavy.parent)
    (heavy / "b/.git").mkdir()
    os.utime(heavy / "b", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert workspace_survey.survey_workspace(heavy.parent).repositories == ["node_modules/b/.git/"]


def test_a_repository_that_went_is_gone(heavy: Path, fresh: ListingCache) -> None:
    (heavy / "b/.git").mkdir()
    tick()
    assert workspace_survey.survey_workspace(heavy.parent).repositories == ["node_modules/b/.git/"]
    (heavy / "b/.git").rmdir()
    assert workspace_survey.survey_workspace(heavy.parent).repositories == []


def test_what_changed_just_now_is_looked_into_again(heavy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ListingCache()
    for _ in range(2):
        cache.entries(heavy / "b")
    assert cache.read == 2
    monkeypatch.setattr(workspace_survey, "_SETTLED_NS", 0)
    for _ in range(2):
        cache.entries(heavy / "b")
    assert cache.read == 3


def test_no_more_is_remembered_than_may_be(heavy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace_survey, "_SETTLED_NS", 0)
    cache = ListingCache(most=1)
    for name in ("a", "b", "a"):
        cache.entries(heavy / name)
    assert cache.read == 3


def test_a_link_is_no_folder_and_a_bare_repository_is_found(heavy: Path, fresh: ListingCache) -> None:
    for name in ("objects", "refs"):
        (heavy / "bare" / name).mkdir(parents=True)
    (heavy / "bare/HEAD").touch()
    for _ in range(2):
        assert workspace_survey.survey_workspace(heavy.parent).repositories == ["node_modules/bare/"]
        tick()


def test_too_much_in_heavy_folders_is_said(heavy: Path, fresh: ListingCache) -> None:
    assert workspace_survey.survey_workspace(heavy.parent, most=3).is_cut
    assert not workspace_survey.survey_workspace(heavy.parent, most=8).is_cut
