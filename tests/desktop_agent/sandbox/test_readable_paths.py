"""Which places a command may read: by list, and by what the environment names."""

import os
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from desktop_agent.sandbox.policy import (
    ReadablePaths,
    SandboxPolicy,
    build_policy,
    contains_home,
    is_inside,
    path_lists,
    readable_paths,
)

LISTED = (".pyenv/versions/3/bin/python", ".cargo/bin/cargo", ".m2/repository/x.jar", "go/pkg/x", ".cache/pip/x")
ON_NO_LIST = (
    *("Documents/letter", ".config/foo/token", ".local/share/foo/key", "project/.env", ".foorc", ".cache/foo/x"),
    *(".cargo/credentials.toml", ".m2/settings.xml", ".cache/huggingface/token", ".local/share/uv/credentials/x"),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    for name in (*LISTED, *ON_NO_LIST):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    for name in (*path_lists()["variables"], "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def bounds(home: Path, tmp_path: Path) -> Callable[[], SandboxPolicy]:
    for name in ("work", "own"):
        (tmp_path / name).mkdir()
    return lambda: build_policy(tmp_path / "work", tmp_path / "own", (), network=False)


def is_open(place: Path, bounds: SandboxPolicy) -> bool:
    """By the innermost folder that is named."""
    nearest = next((each for each in (place, *place.parents) if is_in_any(each, bounds)), None)
    return nearest is not None and nearest not in bounds.hidden


def is_in_any(place: Path, bounds: SandboxPolicy) -> bool:
    return place in (*bounds.writable, *bounds.readable, *bounds.hidden)


def test_of_a_home_folder_tools_and_caches_are_readable_and_nothing_else(
    home: Path, bounds: Callable[[], SandboxPolicy]
) -> None:
    made = bounds()
    assert [name for name in LISTED if not is_open(home / name, made)] == []
    assert [name for name in ON_NO_LIST if is_open(home / name, made)] == []


@pytest.mark.parametrize(
    "place", ["/mnt", "/media", "/srv", "/home", "/root", "/tmp", "/var/mail", "/var/log", "/run/user"]
)
def test_of_the_system_only_programs_and_settings_are_readable(place: str, bounds: Callable[[], SandboxPolicy]) -> None:
    made = bounds()
    assert not is_open(Path(place), made)
    assert {Path("/usr"), Path("/etc")} <= set(made.readable)


@pytest.mark.parametrize(
    ("variable", "value", "opened", "closed"),
    [
        ("PATH", "tools/x/bin", "tools/x/lib/y", "tools/x/notes"),
        ("PATH", "bin", "bin/y", "lib/y"),
        ("PATH", ".local/bin", ".local/bin/y", ".local/share/y"),
        ("VIRTUAL_ENV", "venv", "venv/lib/y", "other/y"),
        ("GOPATH", "work/go", "work/go/pkg/y", "work/go/src/y"),
        ("CARGO_HOME", "c", "c/registry/y", "c/credentials.toml"),
    ],
)
def test_what_the_environment_names_is_readable(
    variable: str,
    value: str,
    opened: str,
    closed: str,
    home: Path,
    bounds: Callable[[], SandboxPolicy],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (opened, closed):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("x")
    (home / value).mkdir(parents=True, exist_ok=True)
    assert not is_open(home / opened, bounds()) or value == ".local/bin"
    monkeypatch.setenv(variable, os.pathsep.join([str(home / value), "/usr/bin", ".", ""]))
    assert is_open(home / opened, bounds())
    assert not is_open(home / closed, bounds())


@pytest.mark.parametrize("value", ["", "..", "../..", ".ssh", ".ssh/x", ".config", ".local/share", ".cache", ".cargo"])
def test_no_variable_opens_a_home_folder_or_a_private_place(
    value: str, home: Path, bounds: Callable[[], SandboxPolicy], monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".ssh/x").mkdir(parents=True)
    for variable in ("VIRTUAL_ENV", "PATH"):
        monkeypatch.setenv(variable, str(home / value))
    made = bounds()
    assert Path(os.path.normpath(home / value)) not in made.readable
    for name in (".ssh/x", "Documents/letter", ".config/foo/token"):
        assert not is_open(home / name, made)


def test_links_lead_to_what_is_readable_and_are_there_themselves(
    home: Path, tmp_path: Path, bounds: Callable[[], SandboxPolicy]
) -> None:
    (tmp_path / "disk/rustup/bin").mkdir(parents=True)
    (home / ".rustup").symlink_to("../disk/rustup")
    (home / ".volta").symlink_to(home / "Documents/../.ssh")
    (home / ".ssh").mkdir()
    made = bounds()
    assert tmp_path / "disk/rustup" in made.readable
    assert home / ".rustup" in made.links
    assert home / ".ssh" not in made.readable


def test_no_command_opens_something_for_the_next(
    home: Path, tmp_path: Path, bounds: Callable[[], SandboxPolicy], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a link, or settings, in the workspace that the person's environment or files lead to."""
    work = tmp_path / "work"
    before = bounds()
    (work / "bin").mkdir(parents=True, exist_ok=True)
    (work / "bin/x").symlink_to(home / "Documents/bin/x")
    (work / "venv").symlink_to(home / "Documents")
    (work / "gitconfig").write_text(f"[include]\npath = {home}/Documents/letter\n")
    (home / ".gitconfig").symlink_to(work / "gitconfig")
    (home / "Documents/bin").mkdir()
    monkeypatch.setenv("PATH", f"{work}/bin")
    monkeypatch.setenv("VIRTUAL_ENV", str(work / "venv"))
    assert bounds().readable == before.readable


@pytest.fixture
def handed(home: Path, tmp_path: Path) -> Callable[[dict[str, str]], ReadablePaths]:
    """What is handed over of some files in the home folder."""
    copies = tmp_path / "copies"
    copies.mkdir()

    def hand(files: dict[str, str]) -> ReadablePaths:
        for name, text in files.items():
            place = home / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        return readable_paths((tmp_path / "work",), copies)

    return hand


GIT = """
[user]
    name = "Me \\"#;\\\\ too" ; and more
    email = me@example.org
    token = hush
[core]
    symlinks
    sshCommand = hush
[url "https://hush@example.org/"]
    insteadOf = https://example.org/
[http "https://example.org/"]
    extraHeader = hush
    sslCAInfo = hush
[diff "algorithm"]
    command = hush
[color]
    ui = auto
    hush = red
[diff "https://me:hush@example.org"]
    binary = true
[diff "a \\"b\\" c"]
    xfuncname = "^\\t(\\\\w+)"
[filter "lfs"]
    clean = git-lfs clean -- %f
    smudge = git-lfs smudge https://me:hush@example.org
[include]
    path = more
[includeIf "gitdir:./work/"]
    path = ~/at-work
[includeIf "gitdir/i:./PLAY/"]
    path = at-play
[includeIf "hasconfig:remote.*.url:https://me:hush@example.org/**"]
    path = more
"""


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_understands_what_is_handed_over_of_its_settings(
    home: Path, handed: Callable[[dict[str, str]], ReadablePaths]
) -> None:
    found = handed(
        {
            ".gitconfig": GIT,
            "more": "[pull]\nrebase = true\n[imap]\npass = hush\n",
            "at-play": "[user]\nsigningkey = of play\n",
            "at-work": "[user]\nname = Worker\n[hush]\nkey = hush\n",
            ".config/git/config": "[init]\ndefaultBranch = trunk\n[user]\nemail = old@example.org\n",
        }
    )
    assert home / ".gitconfig" not in found.places
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "GIT_CONFIG_SYSTEM": "/dev/null", **found.variables}

    def config(folder: Path, *words: str) -> str:
        argv = ["git", "config", *words]
        return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=True).stdout

    for folder, name in ((home / "play", 'Me "#;\\ too'), (home / "work/p", "Worker")):
        folder.mkdir(parents=True)
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        assert config(folder, "user.name") == f"{name}\n"
        assert "hush" not in config(folder, "--list")
    kept = {
        "user.email": "me@example.org",
        "pull.rebase": "true",
        "init.defaultBranch": "trunk",
        "user.signingkey": "of play",
        "color.ui": "auto",
        'diff.a "b" c.xfuncname': "^\t(\\w+)",
        "filter.lfs.clean": "git-lfs clean -- %f",
    }
    assert {key: config(home / "play", key).removesuffix("\n") for key in kept} == kept
    assert config(home / "play", "--bool", "core.symlinks") == "true\n"


def test_settings_of_git_that_include_themselves_are_copied_once(
    handed: Callable[[dict[str, str]], ReadablePaths],
) -> None:
    found = handed({".gitconfig": "[include]\npath = .gitconfig\n[user]\nname = Me\n"})
    assert Path(found.variables["GIT_CONFIG_GLOBAL"] + "-0").read_text().count("Me") == 1


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        (".cargo/config.toml", '[env]\nX = "hush"\n[target.\'cfg(a = "b.c")\']\nrustflags = ["-C", "é\\t"]\n', None),
        (
            ".cargo/config.toml",
            '[registries.a]\nindex = "sparse+https://hush@example.org/"\nprotocol = "sparse"\n',
            None,
        ),
        (".cargo/config.toml", "build.jobs = 2 # token = 'hush'\n", None),
        (".cargo/config.toml", "# ------------------\n# At home\nbuild.jobs = 2\n", "as it is"),
        (".cargo/config.toml", "# my old one, hush_0123456789ab\nbuild.jobs = 2\n", None),
        (".cargo/config.toml", "[target.\"😀\\\"\\\\é\\u007F\"]\nlinker = '\"\\😀'\n[env]\nX = 'hush'\n", None),
        (".cargo/config.toml", "build.jobs = inf\n[env]\nX = 'hush'\n", None),
        (".cargo/config.toml", "[env\nX = 'hush'\n", "not at all"),
        (".config/go/env", "GOFLAGS=-mod=mod\n# GOARCH=hush\nGOAUTH=hush\n", None),
        (".config/uv/uv.toml", "exclude-newer = 2026-01-01\n[[index]]\nurl = 'https://x:hush@example.org'\n", None),
        (".config/uv/uv.toml", "offline = true\nindex-url = 'https://example.org/simple?hush'\n", None),
        (".config/uv/uv.toml", "offline = true\nfind-links = ['https://example.org/hush56789abcdef0/x']\n", None),
        (".config/uv/uv.toml", "index-url = 'https://example.org/whl/nightly/cu121/simple'\n", "as it is"),
        (".config/mise/config.toml", "[tools]\nnode = ['20', '22']\n[env]\nX = 'hush'\n", None),
        (".bazelrc", "build --jobs=2\n", "not at all"),
        (".tool-versions", "node 20\n", "as it is"),
    ],
)
def test_of_settings_only_what_is_listed_is_handed_over(
    name: str, text: str, kept: str | None, home: Path, handed: Callable[[dict[str, str]], ReadablePaths]
) -> None:
    found = handed({name: text})
    assert (home / name in found.places) == (kept == "as it is")
    assert (home / name in found.copies) == (kept != "not at all" and name != ".tool-versions")
    if copy := found.copies.get(home / name):
        said = copy.read_text()
        assert "hush" not in said
        assert "#" not in said
        whole = tomllib.loads(text) if name.endswith(".toml") else {}
        part = tomllib.loads(said) if name.endswith(".toml") else {}
        assert part or said == "GOFLAGS=-mod=mod\n"
        assert all(whole[key] == value for key, value in part.items() if key != "registries")


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        (
            ".config/mise/config.toml",
            """
            [tools]
            "npm:@c/x" = {version = "1", os = ["linux"], install_env = {NPM_TOKEN = "hush"}}
            node = [{version = "20", postinstall = "curl -H hush"}, "22"]
            "http:x" = {version = "1", url = "https://example.org/a?token=hush"}
            "http:https://me:hush@example.org" = "1"
            """,
            {
                "tools": {
                    "npm:@c/x": {"version": "1", "os": ["linux"]},
                    "node": [{"version": "20"}, "22"],
                    "http:x": {"version": "1"},
                }
            },
        ),
        (
            ".cargo/config.toml",
            """
            build = {jobs = 2, hush = "hush"}
            source.x = {registry = "https://example.org/", replace-with = "y", token = "hush"}
            source.y = {registry = "https://me:a/hush@example.org/"}
            source.z = {git = "ssh://git@example.org/x"}
            target.t = {linker = "mold", rustflags = ["-g"], l = {rustc-env = {TOKEN = "hush"}}}
            profile.dev = {debug = 1, hush = "hush", package.p = {opt-level = 3}}
            patch.crates-io.p = {path = "/p", token = "hush"}
            """,
            {
                "build": {"jobs": 2},
                "source": {
                    "x": {"registry": "https://example.org/", "replace-with": "y"},
                    "z": {"git": "ssh://git@example.org/x"},
                },
                "target": {"t": {"linker": "mold", "rustflags": ["-g"]}},
                "profile": {"dev": {"debug": 1, "package": {"p": {"opt-level": 3}}}},
                "patch": {"crates-io": {"p": {"path": "/p"}}},
            },
        ),
        (
            ".config/uv/uv.toml",
            """
            no-index = {password = "hush"}
            extra-index-url = []
            find-links = [{password = "hush"}]
            [[index]]
            name = "x"
            url = "https://example.org/simple"
            password = "hush"
            """,
            {"extra-index-url": [], "find-links": [], "index": [{"name": "x", "url": "https://example.org/simple"}]},
        ),
    ],
)
def test_of_tables_in_settings_only_listed_keys_are_handed_over(
    name: str, text: str, kept: dict[str, object], home: Path, handed: Callable[[dict[str, str]], ReadablePaths]
) -> None:
    found = handed({name: text})
    assert tomllib.loads(found.copies[home / name].read_text()) == kept
    assert home / name not in found.places


def test_a_home_folder_in_a_place_of_the_system_goes_by_the_list_too(
    home: Path, bounds: Callable[[], SandboxPolicy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(path_lists(), "system", ["/usr", str(home.parent)])
    made = bounds()
    assert is_open(home / LISTED[0], made)
    assert [name for name in ON_NO_LIST if is_open(home / name, made)] == []


def test_a_workspace_around_the_home_folder_is_known(home: Path, tmp_path: Path) -> None:
    assert [contains_home(each) for each in (home, tmp_path, home / "Documents", Path("/usr"))] == [
        *(True, True, False),
        False,
    ]


def test_no_path_of_the_list_is_in_a_private_place(home: Path, tmp_path: Path) -> None:
    """A list that opens what another one closes says nothing."""
    known = path_lists()
    for name in (
        *known["home"],
        *known["plain_settings"],
        *(each for one in known["settings"] for each in one["files"]),
    ):
        assert not is_inside(Path(name), map(Path, known["private"])), name
    assert readable_paths((tmp_path,)).places
