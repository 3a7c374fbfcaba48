"""A link that takes a folder's place while bubblewrap mounts: the command is not started."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from desktop_agent.sandbox.expected_mounts import ExpectedMount, check_mounts, expect_mount, to_words
from desktop_agent.sandbox.policy import build_policy
from desktop_agent.tools.commands.execution import PreparedCommand, prepare_command
from tests.desktop_agent.tools.commands.sandboxes import working_sandbox
from tests.frame.patience import PATIENCE

GIT = "repository/.git"
SWAPS = {f"{GIT}/hooks": "../../..", f"{GIT}/config": "../../..", ".vscode/tasks.json": "../..", ".vscode": ".."}
ATTACK = "cat {0}/private; echo x > {0}/new"


def make_workspace(folder: Path) -> Path:
    """Beside it lies what no command may read."""
    workspace = folder / "work"
    for name in (f"{GIT}/hooks", f"{GIT}/objects", f"{GIT}/refs", ".vscode"):
        (workspace / name).mkdir(parents=True)
    for name in (f"{GIT}/HEAD", f"{GIT}/config", ".vscode/tasks.json"):
        (workspace / name).write_text("{}")
    (folder / "private").write_text("PRIVATE")
    # So that what is in the folder can be mounted too, wherever it leads.
    (folder / "tasks.json").write_text("{}")
    return workspace


def prepare(workspace: Path, temporary: Path, line: str, *hidden: Path) -> PreparedCommand:
    temporary.mkdir(exist_ok=True)
    policy = build_policy(workspace, temporary, hidden, network=False)
    argv = ("/bin/bash", "-c", line)
    return prepare_command(argv, workspace, {"PATH": "/usr/bin:/bin"}, policy, working_sandbox("bubblewrap"))


def run(prepared: PreparedCommand) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        prepared.argv,
        cwd=prepared.folder,
        env=prepared.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def is_refused(ended: subprocess.CompletedProcess[str]) -> bool:
    """Newer bubblewrap itself mounts nothing in the place of a link."""
    by_launcher = ended.returncode == 125 and "was replaced at this moment; call again" in ended.stderr
    return by_launcher or (ended.returncode == 1 and "mount on symlink destination" in ended.stderr)


def put_aside(path: Path) -> None:
    path.rename(path.with_name("aside"))


@pytest.mark.parametrize("name", SWAPS)
def test_a_link_in_the_place_of_what_is_mounted_opens_nothing(name: str, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    prepared = prepare(workspace, tmp_path / "own", ATTACK.format(tmp_path))
    put_aside(workspace / name)
    (workspace / name).symlink_to(SWAPS[name])
    ended = run(prepared)
    assert is_refused(ended)
    assert "PRIVATE" not in ended.stdout
    assert not (tmp_path / "new").exists()


def test_a_link_in_the_place_of_the_workspace_opens_nothing(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    put_aside(workspace)
    workspace.symlink_to(tmp_path)
    ended = run(prepare(workspace, tmp_path / "own", ATTACK.format(tmp_path)))
    assert ended.returncode != 0
    assert "PRIVATE" not in ended.stdout
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("swap", ["another", "an equal one", "a link to itself"])
def test_what_was_replaced_is_not_what_was_recorded(swap: str, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    config = workspace / GIT / "config"
    prepared = prepare(workspace, tmp_path / "own", "echo started")
    put_aside(config)
    makers: dict[str, Callable[[], object]] = {
        "another": lambda: config.write_text("[core]"),
        "an equal one": lambda: config.write_text("{}"),
        "a link to itself": lambda: config.symlink_to("aside"),
    }
    makers[swap]()
    assert is_refused(run(prepared))
    if swap != "a link to itself":
        assert run(prepare(workspace, tmp_path / "own", "echo started")).stdout == "started\n"


def test_a_link_that_was_there_while_it_was_recorded_opens_nothing(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    put_aside(workspace / ".vscode")
    (workspace / ".vscode").symlink_to("..")
    expected = expect_mount(workspace / ".vscode" / "tasks.json", is_read_only=True)
    assert expected.identity == (0, 0)


@pytest.mark.parametrize(
    "hidden",
    [("repository",), (GIT,), (f"{GIT}/hooks",), (f"{GIT}/objects",), (".vscode/tasks.json",), ("a", "a/b/c")],
    ids=" ".join,
)
def test_what_is_protected_may_lie_in_what_is_hidden(hidden: tuple[str, ...], tmp_path: Path) -> None:
    """Such as a store of passwords that is a repository, in a workspace that is a home folder."""
    workspace = make_workspace(tmp_path)
    (workspace / "a/b/c").mkdir(parents=True)
    paths = [workspace / name for name in hidden]
    line = f"cat {paths[0]} {paths[0]}/*; mv repository moved; mv .vscode moved; mv a moved; echo started"
    ended = run(prepare(workspace, tmp_path / "own", line, *paths))
    assert ended.stdout == "started\n", ended.stderr
    assert all(path.exists() for path in paths)


@pytest.mark.parametrize("name", ["two words", "a\ttab", "a\nline", "a\u2028line", "back\\slash", "grün", "\udcff"])
def test_names_of_every_kind_are_found_among_the_mounts(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    workspace = make_workspace(folder)
    ended = run(prepare(workspace, tmp_path / "own", f"echo started; echo x > {GIT}/config"))
    assert ended.stdout == "started\n", ended.stderr
    assert "Read-only file system" in ended.stderr


@pytest.mark.parametrize(("name", "count"), [("x" * 200, 2000), ("文" * 80, 800)])
def test_many_mounts_are_few_words_of_a_command_line(name: str, count: int, tmp_path: Path) -> None:
    mounts = [expect_mount(tmp_path / f"{number}" / name, is_read_only=True) for number in range(count)]
    words = to_words(mounts)
    assert max(map(len, words)) < 128 * 1024
    assert len(words) < 20
    assert [ExpectedMount(*mount) for word in words for mount in json.loads(word)] == [
        mount._replace(identity=[0, 0]) for mount in mounts
    ]
    with pytest.raises(OSError, match="was replaced"):
        check_mounts(words[-1:])
