from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.sandbox.policy import SandboxPolicy, build_policy, paths_except


def test_keys_and_own_folders_are_hidden_with_links_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / ".config/gh").mkdir(parents=True)
    (tmp_path / "keys").mkdir()
    (home / ".ssh").symlink_to(tmp_path / "keys")
    (home / "data").mkdir()
    monkeypatch.setenv("HOME", str(home))
    policy = build_policy(home, tmp_path, (home / "data",), network=True)
    assert {tmp_path / "keys", home / ".config/gh", home / "data"} <= set(policy.hidden)
    assert home / ".gnupg" not in policy.hidden
    assert (policy.writable, policy.network) == ((home, tmp_path), True)
    assert set(policy.hidden_below(home)) == {home / ".config/gh", home / "data"}


SECRETS = """
    .claude/.credentials.json .claude.json .codex/auth.json .gemini/oauth_creds.json .config/github-copilot/hosts.json
    .cache/huggingface/token .m2/settings.xml .gradle/gradle.properties .composer/auth.json .config/containers/auth.json
    .local/share/fish/fish_history .psql_history .mysql_history .sqlite_history .python_history .node_repl_history
    .bash_history .zsh_history .pulumi/credentials.json .config/age/key .config/Code/User/globalStorage/state.vscdb
    .1password/agent.sock .colima/default/docker.sock .orbstack/run/docker.sock .config/pip/pip.conf .s3cfg .kube/config
"""


@pytest.mark.parametrize("name", SECRETS.split())
def test_what_is_known_to_hold_secrets_is_hidden(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).touch()
    (tmp_path / ".gitconfig").touch()
    (hidden,) = build_policy(tmp_path, tmp_path, (), network=False).hidden_below(tmp_path)
    assert hidden in (tmp_path / name, *(tmp_path / name).parents)


def test_keys_are_hidden_where_the_person_moved_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, name in (
        ("XDG_CONFIG_HOME", "gh"),
        ("XDG_DATA_HOME", "keyrings"),
        ("XDG_STATE_HOME", "desktop-agent"),
        ("XDG_CACHE_HOME", "chromium"),
    ):
        (tmp_path / variable / name).mkdir(parents=True)
        (tmp_path / variable / ".ssh").mkdir()
        monkeypatch.setenv(variable, str(tmp_path / variable))
    hidden = build_policy(tmp_path, tmp_path, (), network=False).hidden_below(tmp_path)
    assert {each.name for each in hidden} == {"gh", "keyrings", "desktop-agent", "chromium"}


def test_a_workspace_that_is_hidden_itself_is_open(tmp_path: Path) -> None:
    assert tmp_path not in build_policy(tmp_path, tmp_path, (tmp_path,), network=False).hidden
    assert SandboxPolicy((tmp_path,), (tmp_path / "a",)).hidden_below(tmp_path / "a") == ()


def test_around_a_closed_place_stands_everything_else(tmp_path: Path) -> None:
    for name in ("a/b/c", "a/d", "e"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "f").touch()
    assert set(paths_except(tmp_path, (tmp_path / "a/b",))) == {tmp_path / "a/d", tmp_path / "e", tmp_path / "f"}
    assert list(paths_except(tmp_path, ())) == [tmp_path]
    assert list(paths_except(tmp_path, (tmp_path,))) == []


PATHS = st.lists(st.sampled_from(["a", "a/x", "a/x/1", "a/y", "b", "b/x", "c"]), max_size=4)


@given(closed=PATHS)
def test_nothing_closed_is_reached_and_nothing_open_is_missing(
    closed: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("tree")
    files = [root / name / "file" for name in ("a/x/1", "a/x", "a/y", "a", "b/x", "b", "c")]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    shut = tuple(root / name for name in closed)
    given_out = set(paths_except(root, shut))

    def is_in(file: Path, places: "set[Path] | tuple[Path, ...]") -> bool:
        return any(place in (file, *file.parents) for place in places)

    for file in files:
        assert is_in(file, given_out) != is_in(file, shut)


def test_a_secret_that_is_a_link_to_itself_holds_up_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").symlink_to(".ssh")
    assert (tmp_path / ".ssh") in build_policy(tmp_path, tmp_path, (), network=False).hidden
