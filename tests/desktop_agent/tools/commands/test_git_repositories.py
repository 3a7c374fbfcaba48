"""Hooks and settings of git repositories, which git runs outside: what a confined command can do to them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from desktop_agent.sandbox.backends import Sandbox, no_sandbox
from desktop_agent.sandbox.git_config import hook_folders, included_files, is_default, read_config_file
from desktop_agent.tools.commands.git_repositories import MAX_REPOSITORIES, find_repositories, repository_state
from desktop_agent.tools.commands.run_command import run_command
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from tests.desktop_agent.tools.commands.sandboxes import working_sandbox
from tests.frame.selection import few

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
LOOK = "git runs such things outside of the confinement: look at them before you use git there."
EVIL = "[core]\n\tfsmonitor = touch /tmp/owned\n"


def git(folder: Path, *arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ("-c", "user.name=Me", "-c", "user.email=me@example.org", "-c", "protocol.file.allow=always")
    return subprocess.run(
        ("git", *identity, *arguments), cwd=folder, env=environment, check=True, capture_output=True, text=True
    ).stdout


def repository(folder: Path) -> Path:
    """Create a repository with one commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-b", "main")
    (folder / "a.txt").write_text("a\n")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "first")
    return folder


class Desk:
    def __init__(self, workspace: Workspace, confinement: Sandbox) -> None:
        self.folder = workspace.folder
        self.holds = confinement.name == "bubblewrap"
        self._tool = run_command(workspace, confinement=lambda: confinement)

    async def run(self, line: str) -> str:
        (part,) = await self._tool.run(self._tool.checked({"command": line}), RunningCall("1", lambda _: None))
        return part.text  # type: ignore[union-attr]

    async def cannot(self, line: str, *paths: str) -> None:
        """Assert that the line changed none of the paths where the sandbox can prevent it, or else is reported."""
        before = {path: _content(self.folder / path) for path in paths}
        output = await self.run(line)
        if self.holds:
            assert {path: _content(self.folder / path) for path in paths} == before
        else:
            assert LOOK in output
            assert all(path in output for path in paths)


def _content(path: Path) -> object:
    if path.is_symlink():
        return path.readlink()
    return path.read_text() if path.is_file() else path.exists()


@pytest.fixture(params=few(["bubblewrap", "Landlock"], 1, "test_confined.py tries both"))
def desk(request: pytest.FixtureRequest, workspace: Workspace) -> Desk:
    return Desk(workspace, working_sandbox(request.param))


@pytest.fixture
def bubblewrap(workspace: Workspace) -> Desk:
    return Desk(workspace, working_sandbox("bubblewrap"))


async def test_ordinary_work_goes_on(desk: Desk) -> None:
    repository(desk.folder)
    lines = (
        "export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@y GIT_COMMITTER_NAME=x",
        "export GIT_COMMITTER_EMAIL=x@y; echo b > b.txt; git add b.txt; git commit -qm second; git branch other",
        "git checkout -q -b third; git rm -q a.txt; git commit -qm gone; git checkout -q main; git merge -q third",
        "git tag v1; git stash list; echo c >> b.txt; git stash -q; git stash pop -q; git worktree add -q tree other",
        "git -C tree log --oneline; git gc -q; git reset -q --hard; git status --porcelain; git clone -q . copied",
    )
    output = await desk.run("set -e; " + "; ".join(lines))
    assert "[exit code 0.]" in output
    assert LOOK not in output
    assert git(desk.folder, "log", "--format=%s").split() == ["gone", "second", "first"]
    assert (desk.folder / "copied/b.txt").read_text() == "b\n"


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (f"printf '{EVIL}' >> .git/config", ".git/config"),
        (f"printf '{EVIL}' > x; mv -f x .git/config", ".git/config"),
        ("rm -f .git/config; printf x > .git/config", ".git/config"),
        ("git config core.fsmonitor 'touch /tmp/owned'", ".git/config"),
        ("echo 'touch /tmp/owned' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", ".git/hooks/pre-commit"),
        ("mv .git/hooks .git/old; mkdir .git/hooks; echo x > .git/hooks/pre-commit", ".git/hooks/pre-commit"),
        ("mv .git g; cp -r g .git; echo x >> .git/config", ".git/config"),
        ("ln -s /bin/true .git/hooks/post-checkout", ".git/hooks/post-checkout"),
    ],
)
async def test_hooks_and_settings_stay(desk: Desk, line: str, path: str) -> None:
    repository(desk.folder)
    await desk.cannot(line, path)


@pytest.mark.parametrize("way_there", ["hook", "settings"])
async def test_a_program_that_git_runs_is_told_of(desk: Desk, way_there: str) -> None:
    repository(desk.folder)
    (desk.folder / "check").write_text("true\n")
    if way_there == "hook":
        (desk.folder / ".git/hooks/pre-commit").symlink_to("../../check")
    else:
        git(desk.folder, "config", "core.fsmonitor", "./check")
    assert LOOK not in await desk.run("echo x > other")
    output = await desk.run("echo x >> check")
    assert f"It changed what git runs or reads: check. {LOOK}" in output


async def test_missing_hooks_stay_missing(desk: Desk) -> None:
    repository(desk.folder)
    shutil.rmtree(desk.folder / ".git/hooks")
    await desk.cannot("mkdir -p .git/hooks; echo x > .git/hooks/pre-push", ".git/hooks/pre-push")
    assert git(desk.folder, "status", "--porcelain") == ""


async def test_a_repository_inside_of_the_workspace(desk: Desk) -> None:
    repository(desk.folder / "vendor/lib")
    await desk.cannot("echo x >> vendor/lib/.git/config", "vendor/lib/.git/config")


async def test_the_folders_above_cannot_be_moved_aside(bubblewrap: Desk) -> None:
    repository(bubblewrap.folder / "vendor/lib")
    line = "mv vendor old; mkdir -p vendor; cp -r old/. vendor; echo x >> vendor/lib/.git/config"
    await bubblewrap.cannot(line, "vendor/lib/.git/config")


async def test_a_submodule(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = repository(tmp_path_factory.mktemp("other"))
    repository(desk.folder)
    git(desk.folder, "submodule", "add", str(other), "sub")
    await desk.cannot(
        "echo x >> .git/modules/sub/config; echo x > .git/modules/sub/hooks/pre-commit; echo 'gitdir: ../x' > sub/.git",
        ".git/modules/sub/config",
        ".git/modules/sub/hooks/pre-commit",
        "sub/.git",
    )


async def test_a_further_working_tree(desk: Desk) -> None:
    repository(desk.folder / "main")
    git(desk.folder / "main", "worktree", "add", "../tree")
    await desk.cannot(
        "echo ../../../evil > main/.git/worktrees/tree/commondir; echo 'gitdir: ../x' > tree/.git",
        "main/.git/worktrees/tree/commondir",
        "tree/.git",
    )


async def test_hooks_and_settings_that_lie_elsewhere(desk: Desk) -> None:
    repository(desk.folder)
    (desk.folder / "own-hooks").mkdir()
    (desk.folder / "shared.config").write_text("")
    git(desk.folder, "config", "core.hooksPath", "own-hooks")
    git(desk.folder, "config", "include.path", "../shared.config")
    await desk.cannot("echo x > own-hooks/pre-commit; echo x >> shared.config", "own-hooks/pre-commit", "shared.config")


async def test_linked_hooks_stay_and_another_link_is_told(desk: Desk) -> None:
    repository(desk.folder)
    shutil.rmtree(desk.folder / ".git/hooks")
    (desk.folder / "linked").mkdir()
    (desk.folder / ".git/hooks").symlink_to("../linked")
    await desk.cannot("echo x > linked/pre-commit", "linked/pre-commit")
    (desk.folder / "linked/pre-commit").unlink(missing_ok=True)
    output = await desk.run("mkdir evil; rm .git/hooks; ln -s ../evil .git/hooks")
    assert f"[It changed what git runs or reads: .git/hooks. {LOOK}]" in output


async def test_what_cannot_be_kept_from_coming_to_be_is_told(desk: Desk) -> None:
    """Such as a new repository in a writable folder, and one whose `commondir` points elsewhere."""
    repository(desk.folder)
    output = await desk.run(
        f"git init -q new; printf '{EVIL}' >> new/.git/config; git init -q plain; git init -q hooked; "
        "touch hooked/.git/hooks/x"
    )
    assert f"[It made repositories of git with settings of their own: hooked/.git, new/.git. {LOOK}]" in output
    output = await desk.run("mkdir evil; cp .git/config evil; echo ../evil > .git/commondir")
    assert ".git/commondir" in output
    assert LOOK in output


async def test_without_confinement_nothing_is_said_about_it(workspace: Workspace) -> None:
    repository(workspace.folder)
    output = await Desk(workspace, no_sandbox()).run("git init -q new; touch new/.git/hooks/x .git/hooks/y")
    assert output == "[exit code 0.]"


def test_settings_are_read_as_git_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(
        '[core]\n\tbare = false ; no\n\tHooksPath = "my hooks"\n[include] path = more\n'
        '[includeIf "gitdir:~/x"]\n\tpath=~/other\n# path = no\n[remote "o"]\n\turl = x\n\tfetch\n[a] b = c\\\nd\n?!\n'
    )
    settings = read_config_file(file)
    assert settings == (
        ("core.bare", "false"),
        ("core.hookspath", "my hooks"),
        ("include.path", "more"),
        ("includeif.path", "~/other"),
        ("remote.url", "x"),
        ("remote.fetch", ""),
        ("a.b", "cd"),
        ("a.?", "?!"),
    )
    assert list(hook_folders(settings, tmp_path)) == [tmp_path / "my hooks"]
    assert list(included_files(settings, file)) == [tmp_path / "more", Path.home() / "other"]
    assert not is_default(settings)
    assert read_config_file(tmp_path / "nothing") == ()


def test_what_leads_nowhere_or_in_circles_is_passed_over(tmp_path: Path) -> None:
    repository(tmp_path / "a")
    (tmp_path / "a/.git/commondir").write_text(".\n")
    for name, content in (("b", b"gitdir: ../b/.git"), ("c", b"\xff\0"), ("d", b"gitdir: /etc")):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".git").write_bytes(content)
    (tmp_path / "e").mkdir()
    (tmp_path / "e/.git").symlink_to("/etc")
    (tmp_path / "f").symlink_to(tmp_path)
    repositories = find_repositories([tmp_path / name / ".git" for name in "abcdefg"], tmp_path)
    assert len(repositories.repositories) == 1
    assert all(tmp_path in path.parents for path in (*repositories.files, *repositories.folders, *repositories.pinned))
    assert repository_state(repositories) == repository_state(repositories)


@pytest.mark.parametrize("value", ["~nobody-here/x", "a\0b", "x" * 5_000, "loop", "/", "", "..", "~"])
def test_settings_that_lead_anywhere_are_survived(tmp_path: Path, value: str) -> None:
    repository(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / ".git/config").write_text(f"[core]\nhooksPath = {value}\n[include]\npath = {value}\n")
    for name in ("commondir", "config.worktree"):
        (tmp_path / ".git" / name).write_text(f"{value}\n")
    repositories = find_repositories([tmp_path / ".git"], tmp_path)
    assert (tmp_path / ".git/config") in repositories.files
    assert repository_state(repositories) == repository_state(repositories)


def test_there_is_a_bound_on_repositories(tmp_path: Path) -> None:
    for number in range(MAX_REPOSITORIES + 5):
        inside = tmp_path / str(number) / ".git"
        (inside / "objects").mkdir(parents=True)
        (inside / "HEAD").touch()
    assert len(find_repositories(sorted(tmp_path.glob("*/.git")), tmp_path).repositories) == MAX_REPOSITORIES
