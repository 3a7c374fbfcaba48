from pathlib import Path

import pytest

from desktop_agent.tools.commands.workspace_survey import private_paths_in


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "me").mkdir()
    return tmp_path / "me"


@pytest.mark.parametrize("above", [0, 1])
def test_a_home_folder_and_what_lies_above_hold_private_places(above: int, home: Path) -> None:
    assert (home / ".ssh").as_posix() in private_paths_in(str([home, home.parent][above]))


def test_a_folder_in_a_home_folder_holds_none(home: Path) -> None:
    (home / "project").mkdir()
    assert private_paths_in(str(home / "project")) == ()
    assert private_paths_in(None) == ()


def test_what_was_moved_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "settings"))
    assert (home / "settings" / "gh").as_posix() in private_paths_in(str(home))


def test_a_link_is_followed(home: Path) -> None:
    (home / "elsewhere").mkdir()
    (home / ".aws").symlink_to(home / "elsewhere")
    assert (home / "elsewhere").as_posix() in private_paths_in(str(home))
    (home.parent / "link").symlink_to(home)
    assert (home / ".ssh").as_posix() in private_paths_in(str(home.parent / "link"))
