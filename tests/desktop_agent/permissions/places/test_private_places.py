from pathlib import Path

import pytest

from desktop_agent.permissions.places.private_places import NO_PRIVATE_PLACES, private_places_in


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "me").mkdir()
    return tmp_path / "me"


@pytest.mark.parametrize("above", [0, 1])
def test_a_home_folder_and_what_lies_above_hold_private_places(above: int, home: Path) -> None:
    found = private_places_in(str([home, home.parent][above]))
    assert (home / ".ssh").as_posix() in found.hidden
    assert (home / ".bashrc").as_posix() in found.steering
    assert (home / ".config" / "git").as_posix() in found.steering


def test_a_folder_in_a_home_folder_holds_none(home: Path) -> None:
    (home / "project").mkdir()
    assert private_places_in(str(home / "project")) == NO_PRIVATE_PLACES
    assert private_places_in(None) == NO_PRIVATE_PLACES


def test_what_was_moved_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "settings"))
    assert (home / "settings" / "autostart").as_posix() in private_places_in(str(home)).steering


def test_a_link_is_followed(home: Path) -> None:
    (home / "elsewhere").mkdir()
    (home / ".aws").symlink_to(home / "elsewhere")
    assert (home / "elsewhere").as_posix() in private_places_in(str(home)).hidden
    (home.parent / "link").symlink_to(home)
    assert (home / ".ssh").as_posix() in private_places_in(str(home.parent / "link")).hidden


@pytest.mark.parametrize("of_person", [True, False])
def test_the_folder_of_hooks_is_found_when_it_is_set(of_person: bool, home: Path) -> None:
    project = home / "project"
    (project / ".git").mkdir(parents=True)
    settings = home / ".gitconfig" if of_person else project / ".git" / "config"
    (project / ".git" / "config").write_text("[core]\n\tbare = false\n")
    assert private_places_in(str(project)) == NO_PRIVATE_PLACES
    settings.write_text("[core]\n\thooksPath = tools/hooks\n")
    assert private_places_in(str(project)).steering == ((project / "tools" / "hooks").as_posix(),)
    assert private_places_in(str(project / "tools")).steering == ((project / "tools" / "hooks").as_posix(),)
