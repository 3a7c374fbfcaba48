"""Attempts to evade the protection of git's hooks and settings with more than one command."""

import os
import shutil
from pathlib import Path

import pytest

from desktop_agent.tools.commands import git_repositories, workspace_survey
from desktop_agent.tools.commands.run_command import run_command
from desktop_agent.tools.commands.side_effects import INCOMPLETE_PROTECTION
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.tool_calls import CommandPreview
from tests.desktop_agent.tools.commands.sandboxes import working_sandbox
from tests.desktop_agent.tools.commands.test_git_repositories import EVIL, LOOK, Desk, git, repository
from tests.frame.selection import few

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
HOOK, SETTINGS = ".git/hooks/pre-commit", ".git/config"
BEHIND = "(yes '# comment' | head -c 1100000; echo"
FAKES = "for i in $(seq 9); do mkdir -p {0}$i/refs {0}$i/objects; : > {0}$i/HEAD; done"


@pytest.fixture(params=few(["bubblewrap", "Landlock"], 1, "test_confined.py tries both"))
def desk(request: pytest.FixtureRequest, workspace: Workspace) -> Desk:
    return Desk(workspace, working_sandbox(request.param))


@pytest.fixture
def few_repositories(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the number of repositories that are looked at."""
    monkeypatch.setattr(git_repositories, "MAX_REPOSITORIES", 5)


@pytest.mark.parametrize("part", ["HEAD", "refs", "objects"])
async def test_a_repository_without_some_of_its_parts_is_still_protected(desk: Desk, part: str) -> None:
    repository(desk.folder)
    await desk.run(f"mv .git/{part} .git/aside")
    await desk.cannot(f"echo x > {HOOK}; printf '{EVIL}' >> {SETTINGS}", HOOK, SETTINGS)
    output = await desk.run(f"mv .git/aside .git/{part}")
    assert output == "[exit code 0.]"


async def test_a_bare_repository_without_head_and_refs_is_still_protected(desk: Desk) -> None:
    (desk.folder / "some.git").mkdir()
    git(desk.folder / "some.git", "init", "--bare")
    await desk.run("mv some.git/HEAD some.git/refs .")
    await desk.cannot("echo x > some.git/hooks/pre-push", "some.git/hooks/pre-push")


async def test_where_a_push_goes_is_kept(desk: Desk) -> None:
    repository(desk.folder)
    git(desk.folder, "remote", "add", "origin", "https://good.example/x.git")
    await desk.cannot("git config remote.origin.url https://evil.example/x.git", SETTINGS)
    await desk.cannot("git config core.worktree /", SETTINGS)


@pytest.mark.usefixtures("few_repositories")
async def test_repositories_that_are_none_leave_room_for_those_that_are(desk: Desk) -> None:
    repository(desk.folder / "z")
    assert f"[{INCOMPLETE_PROTECTION}]" in await desk.run(FAKES.format("a"))
    await desk.cannot(f"echo x > z/{HOOK}", f"z/{HOOK}")


@pytest.mark.usefixtures("few_repositories")
async def test_decoy_repositories_leave_room_at_the_first_survey_too(bubblewrap: Desk) -> None:
    repository(bubblewrap.folder / "z")
    for number in range(9):
        shutil.copytree(bubblewrap.folder / "z/.git", bubblewrap.folder / f"a{number}")
    await bubblewrap.cannot(f"echo x > z/{HOOK}", f"z/{HOOK}")
    assert str(INCOMPLETE_PROTECTION) in await bubblewrap.run("true")


@pytest.mark.usefixtures("few_repositories")
async def test_modules_that_are_none_leave_room_for_those_that_are(desk: Desk) -> None:
    repository(desk.folder)
    module = desk.folder / ".git/modules/z"
    module.mkdir(parents=True)
    git(module, "init", "--bare")
    await desk.run("true")
    assert str(INCOMPLETE_PROTECTION) in await desk.run(FAKES.format(".git/modules/a"))
    await desk.cannot("echo x > .git/modules/z/hooks/pre-commit", ".git/modules/z/hooks/pre-commit")


async def test_many_files_take_no_guard_away(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace_survey, "MAX_ENTRIES", 30)
    repository(desk.folder)
    repository(desk.folder / "x/y")
    await desk.run("true")
    assert f"[{INCOMPLETE_PROTECTION}]" in await desk.run("touch j{1..40}")
    await desk.cannot(f"echo x > {HOOK}; echo x > x/y/{HOOK}", HOOK, f"x/y/{HOOK}")


async def test_many_files_are_said_before_the_next_command(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_survey, "MAX_ENTRIES", 30)
    desk, tool = (
        Desk(workspace, working_sandbox("bubblewrap")),
        run_command(workspace, confinement=lambda: working_sandbox("bubblewrap")),
    )
    for line, is_said in (("touch j{1..40}", False), ("rm j*", True), ("true", False)):
        await desk.run("true")
        preview = await tool.preview(tool.checked({"command": line}))  # type: ignore[misc]
        assert isinstance(preview, CommandPreview)
        assert (str(INCOMPLETE_PROTECTION) in str(preview.confinement)) is is_said
        await desk.run(line)


def test_too_many_files_hide_no_repository_near_the_top(tmp_path: Path) -> None:
    for name in (".git", "a/.git"):
        (tmp_path / name).mkdir(parents=True)
    for number in range(30):
        (tmp_path / f"{number:02}").touch()
    survey = workspace_survey.survey_workspace(tmp_path, most=20)
    assert survey.is_cut
    assert sorted(survey.repositories) == [".git/", "a/.git/"]


async def test_what_is_included_is_followed(desk: Desk) -> None:
    repository(desk.folder)
    (desk.folder / "own-hooks").mkdir()
    (desk.folder / "one").write_text('[includeIf "gitdir:/elsewhere/"]\n\tpath = deep/two\n')
    (desk.folder / "deep").mkdir()
    (desk.folder / "deep/two").write_text(
        "[core]\n\thooksPath = own-hooks\n[include]\n\tpath = ../one\n\tpath = three\n"
    )
    git(desk.folder, "config", "include.path", "../one")
    await desk.cannot(
        f"echo x > own-hooks/pre-push; printf '{EVIL}' >> deep/two; printf '{EVIL}' >> one",
        "own-hooks/pre-push",
        "deep/two",
        "one",
    )
    output = await desk.run(f"printf '{EVIL}' > deep/three")
    assert f"[It changed what git runs or reads: deep/three. {LOOK}]" in output


async def test_hooks_that_come_to_be_where_settings_name_them_are_told(desk: Desk) -> None:
    repository(desk.folder)
    git(desk.folder, "config", "core.hooksPath", ".husky/_")
    output = await desk.run("mkdir -p .husky/_; echo x > .husky/_/pre-commit")
    assert f"[It changed what git runs or reads: .husky/_, .husky/_/pre-commit. {LOOK}]" in output
    await desk.cannot("echo y > .husky/_/pre-commit", ".husky/_/pre-commit")


@pytest.mark.parametrize(
    ("value", "name"), [('h"o"oks', "hooks"), ('"my\\\\hooks"', "my\\hooks"), ("a\\\nb ; c", "ab")]
)
async def test_names_of_hooks_are_read_as_git_reads_them(desk: Desk, value: str, name: str) -> None:
    repository(desk.folder)
    (desk.folder / name).mkdir()
    with (desk.folder / SETTINGS).open("a") as file:
        file.write(f"[core]\n\thooksPath = {value}\n")
    assert git(desk.folder, "config", "core.hooksPath") == f"{name}\n"
    await desk.cannot(f"echo x > '{name}/pre-push'", f"{name}/pre-push")


async def test_lines_that_git_would_run_when_it_goes_on_are_told(desk: Desk) -> None:
    repository(desk.folder)
    todo = ".git/rebase-merge/git-rebase-todo"
    note = f"[It changed what git runs or reads: {todo}. {LOOK}]"
    assert note in await desk.run(f"mkdir .git/rebase-merge; printf 'pick a\\n  exec touch owned\\nx y\\n' > {todo}")
    assert LOOK not in await desk.run(f"printf 'pick b\\nx y\\n' > {todo}")
    assert LOOK not in await desk.run("rm -r .git/rebase-merge; mkdir .git/sequencer; echo pick > .git/sequencer/todo")
    assert ".git/sequencer/todo" in await desk.run("echo 'exec touch owned' >> .git/sequencer/todo")
    output = await desk.run(f"git init -q new; mkdir new/.git/rebase-merge; echo 'x y' > new/{todo}")
    assert f"[It made repositories of git with settings of their own: new/.git. {LOOK}]" in output


@pytest.mark.parametrize("how", ["link", "include", "moved", "hooks"])
async def test_settings_of_the_person_that_lie_in_the_workspace(
    desk: Desk, how: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    file = desk.folder / ("git/config" if how == "moved" else "hooks/pre-push" if how == "hooks" else "gitconfig")
    file.parent.mkdir(exist_ok=True)
    file.write_text("[user]\n\tname = Me\n")
    if how == "link":
        (home / ".gitconfig").symlink_to(file)
    elif how == "moved":
        monkeypatch.setenv("XDG_CONFIG_HOME", str(desk.folder))
    else:
        settings = f"[include]\npath = {file}\n" if how == "include" else f"[core]\nhooksPath = {file.parent}\n"
        (home / ".gitconfig").write_text(settings)
    name = str(file.relative_to(desk.folder))
    # What lies at one of the known places is closed in every confinement.
    desk.holds |= how in {"link", "moved"}
    await desk.cannot(f"printf '{EVIL}' >> {name}", name)


@pytest.fixture
def bubblewrap(workspace: Workspace) -> Desk:
    return Desk(workspace, working_sandbox("bubblewrap"))


def test_files_that_include_each_other_come_to_an_end(tmp_path: Path) -> None:
    repository(tmp_path)
    for number in range(300):
        more = "".join(f"\tpath = {name}\n" for name in (number + 1, number, 0))
        (tmp_path / ".git" / str(number)).write_text(f"[include]\n{more}")
    with (tmp_path / SETTINGS).open("a") as file:
        file.write("[include]\n\tpath = 0\n")
    repositories = git_repositories.find_repositories([tmp_path / ".git"], tmp_path)
    assert 50 < len(repositories.files) <= 110
    assert os.fspath(tmp_path / ".git/1") in map(os.fspath, repositories.files)


@pytest.mark.parametrize("settings", [f"{EVIL}", "[core]\n\tbare = true\n"])
async def test_settings_of_a_new_repository_behind_more_than_is_read_are_told(desk: Desk, settings: str) -> None:
    output = await desk.run(f"git init -q new; {BEHIND}; printf '{settings}') >> new/.git/config")
    assert f"[It made repositories of git with settings of their own: new/.git. {LOOK}]" in output


async def test_lines_to_go_on_with_behind_more_than_is_read_are_told(desk: Desk) -> None:
    repository(desk.folder)
    todo = ".git/rebase-merge/git-rebase-todo"
    note = f"[It changed what git runs or reads: {todo}. {LOOK}]"
    await desk.run("mkdir .git/rebase-merge")
    assert note in await desk.run(f"{BEHIND}; echo 'exec touch owned') > {todo}")
    assert LOOK not in await desk.run("true")
    assert note in await desk.run(f"echo 'exec touch owned' >> {todo}")
    # Now the file is short, and has a line that was too far behind to be read before.
    assert note in await desk.run(f"echo 'exec touch owned' > {todo}")


def test_two_conversations_may_look_at_one_workspace_at_once(tmp_path: Path) -> None:
    """What one conversation iterates over is not changed by the other."""
    for name in "abc":
        repository(tmp_path / name)
    memory = git_repositories.repository_memory(tmp_path)
    entries = [tmp_path / name / ".git" for name in "abc"]
    memory.remember(git_repositories.find_repositories(entries[:2], tmp_path))
    repositories, all_entries = iter(memory.repositories), iter(memory.entries)
    assert (next(repositories), next(all_entries)) == (entries[0], entries[0])
    memory.remember(git_repositories.find_repositories(entries[2:], tmp_path))
    assert [*repositories, *all_entries] == [entries[1]] * 2
    assert [*memory.repositories] == [*memory.entries] == entries


@pytest.mark.parametrize("name", ["worktrees", "modules"])
async def test_a_link_to_where_git_keeps_repositories_opens_nothing(name: str, tmp_path: Path) -> None:
    """The workspace itself, made a repository, is then found in the folder around it."""
    (tmp_path / "private").write_text("PRIVATE")
    (tmp_path / "work").mkdir()
    desk = Desk(Workspace(tmp_path / "work"), working_sandbox("bubblewrap"))
    repository(desk.folder)
    await desk.run(f"mkdir objects refs && cp .git/HEAD . && rm -rf .git/{name} && ln -s ../.. .git/{name}")
    output = await desk.run(f"ls {tmp_path}; cat {tmp_path}/private; echo x > {tmp_path}/new; git status --short")
    assert "exit code 0" in output
    assert "PRIVATE" not in output
    assert not (tmp_path / "new").exists()
    await desk.cannot(f"echo x > {HOOK}; printf '{EVIL}' >> {SETTINGS}", HOOK, SETTINGS)


async def test_a_repository_that_became_a_link_is_still_protected(desk: Desk) -> None:
    repository(desk.folder)
    await desk.run("true")
    (desk.folder / ".git").rename(desk.folder / "moved")
    (desk.folder / ".git").symlink_to("moved")
    await desk.cannot("echo x > moved/hooks/pre-commit; printf x >> moved/config", "moved/hooks/pre-commit")
    assert "exit code 0" in await desk.run("git status")
