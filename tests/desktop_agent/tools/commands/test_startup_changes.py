"""Startup files, which other programs run outside of the sandbox: what a confined command can do to them."""

import base64
import os
import shutil
from pathlib import Path

import pytest

from desktop_agent.permissions.shell.git_checkout import is_checkout
from desktop_agent.sandbox.backends import Sandbox
from desktop_agent.sandbox.startup_files import AskLevel, StartupFile, find_startup_file, startup_file_table
from desktop_agent.tools.commands.run_command import run_command
from desktop_agent.tools.commands.side_effects import (
    describe_startup_changes,
    protected_startup_files,
    startup_file_state,
)
from desktop_agent.tools.commands.workspace_survey import survey_workspace
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from tests.desktop_agent.sandbox.test_startup_files import examples
from tests.desktop_agent.tools.commands.sandboxes import working_sandbox
from tests.desktop_agent.tools.commands.test_git_repositories import git, repository
from tests.frame.selection import few

WROTE_STARTUP_FILES = "It wrote what other programs run by themselves, outside of the confinement:"
STARTUP = (".vscode/tasks.json", ".envrc", ".github/workflows/ci.yml", ".npmrc", ".husky/pre-commit", ".mcp.json")
# A write whose command line does not contain the name of the file.
HIDDEN = "import sys, base64; exec(base64.b64decode(sys.argv[1]))"
ENTRIES = [each for each in startup_file_table() if each.level is AskLevel.ALWAYS]
# What commands create in ordinary work, and what the checks of git repositories look at.
NOT_LOOKED_AT = (".git/", "git~1/", ".hg/", ".jj/", ".venv/", "venv/", "node_modules/", "pyvenv.cfg")


def hidden(code: str) -> str:
    return f"python3 -c '{HIDDEN}' {base64.b64encode(code.encode()).decode()}"


def append(path: str, text: str = "mine") -> str:
    return hidden(f"open({path!r}, 'a').write({text!r})")


class Desk:
    def __init__(self, workspace: Workspace, confinement: Sandbox) -> None:
        self.folder = workspace.folder
        self.holds = confinement.name == "bubblewrap"
        self._tool = run_command(workspace, confinement=lambda: confinement, is_checkout=is_checkout)

    async def run(self, line: str, folder: str = ".") -> str:
        arguments = self._tool.checked({"command": line, "folder": folder})
        (part,) = await self._tool.run(arguments, RunningCall("1", lambda _: None))
        return part.text  # type: ignore[union-attr]


@pytest.fixture(params=few(["bubblewrap", "Landlock"], 1, "test_confined.py tries both"))
def desk(request: pytest.FixtureRequest, workspace: Workspace) -> Desk:
    desk = Desk(workspace, working_sandbox(request.param))
    for name in STARTUP:
        (desk.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (desk.folder / name).write_text("theirs\n")
    return desk


@pytest.mark.parametrize("path", STARTUP)
async def test_what_is_there_is_kept_from_a_line_that_does_not_name_it(desk: Desk, path: str) -> None:
    output = await desk.run(append(path))
    if desk.holds:
        assert (desk.folder / path).read_text() == "theirs\n"
        assert "Read-only file system" in output
        assert "only where the line names that very file" in output
    else:
        entry = find_startup_file(path)
        assert entry is not None
        assert f"{WROTE_STARTUP_FILES} {path} ({entry.program}, {entry.when})." in output


@pytest.mark.parametrize("path", STARTUP)
async def test_a_line_that_names_it_writes_it_and_that_is_told(desk: Desk, path: str) -> None:
    output = await desk.run(f"echo mine >> {path}")
    assert (desk.folder / path).read_text() == "theirs\nmine\n"
    assert f"{WROTE_STARTUP_FILES} {path} (" in output
    # A line that may write one file may not write another.
    other = next(candidate for candidate in STARTUP if candidate.partition("/")[0] != path.partition("/")[0])
    await desk.run(f"true {path}; {append(other)}")
    assert ((desk.folder / other).read_text() == "theirs\n") is desk.holds


async def test_no_way_around(desk: Desk) -> None:
    for code in (
        "import os; os.rename('.vscode', 'x'); os.makedirs('.vscode'); open('.vscode/tasks.json', 'w').write('mine')",
        "import os; os.remove('.envrc'); open('.envrc', 'w').write('mine')",
        "import os; open('new', 'w').write('mine'); os.replace('new', '.npmrc')",
        "import os; open('.husky/pre-push', 'w').write('mine')",
        "import os; os.link('.mcp.json', 'same'); open('same', 'w').write('mine')",
    ):
        output = await desk.run(hidden(code))
        if desk.holds:
            assert all((desk.folder / path).read_text() == "theirs\n" for path in STARTUP), code
            assert not (desk.folder / ".husky/pre-push").exists()
        else:
            assert WROTE_STARTUP_FILES in output, code


NEW = [".cursor/mcp.json", "sub/.envrc", "conf.d/any.pth", "lefthook.yml", ".idea/startup.xml"]


@pytest.mark.parametrize("path", NEW)
async def test_what_comes_to_be_is_told(desk: Desk, path: str) -> None:
    folder = str(Path(path).parent)
    output = await desk.run(
        hidden(f"import os; os.makedirs({folder!r}, exist_ok=True); open({path!r}, 'w').write('mine')")
    )
    assert (desk.folder / path).read_text() == "mine"
    entry = find_startup_file(path)
    assert entry is not None
    assert f"{WROTE_STARTUP_FILES} {path} ({entry.program}, {entry.when})." in output


async def test_a_mark_of_a_cache_hides_nothing(desk: Desk) -> None:
    output = await desk.run("mkdir new && touch new/CACHEDIR.TAG && echo x > new/.envrc")
    assert f"{WROTE_STARTUP_FILES} new/.envrc (direnv" in output


async def test_ordinary_work_says_nothing(desk: Desk) -> None:
    output = await desk.run("mkdir -p src && echo x > src/main.py && cat .envrc && rm -r src && ls .vscode && touch a")
    assert "programs" not in output
    assert "exit code 0" in output


async def test_copies_elsewhere_are_taken_away_and_put_there_again(desk: Desk) -> None:
    for name in ("vendor/lib/.travis.yml", "vendor/lib/.github/workflows/ci.yml", "dist/.npmrc"):
        (desk.folder / name).parent.mkdir(parents=True)
        (desk.folder / name).write_text("theirs\n")
    assert "exit code 0" in await desk.run("rm -r vendor dist")
    assert not (desk.folder / "vendor").exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
async def test_git_goes_from_branch_to_branch_where_they_differ(desk: Desk) -> None:
    repository(desk.folder)
    git(desk.folder, "checkout", "-q", "-b", "other")
    for name in STARTUP:
        (desk.folder / name).write_text("on the other\n")
    (desk.folder / ".circleci").mkdir()
    (desk.folder / ".circleci/config.yml").write_text("on the other\n")
    git(desk.folder, "add", ".")
    git(desk.folder, "commit", "-qm", "second")
    for line, text in (
        ("git checkout -q main", "theirs\n"),
        ("git merge -q other", "on the other\n"),
        ("git reset -q --hard HEAD~1", "theirs\n"),
        ("cd . && git switch -q other", "on the other\n"),
        ("git checkout -q main -- . && git stash -q && git stash pop -q", "theirs\n"),
    ):
        output = await desk.run(line)
        assert "exit code 0" in output, output
        assert {(desk.folder / path).read_text() for path in STARTUP} == {text}, line
        if "stash" not in line:
            assert ".github/workflows/ci.yml (GitHub, when somebody pushes it)" in output
    assert git(desk.folder, "status", "--porcelain", "-uno").count("\n") == len(STARTUP)


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
async def test_also_at_the_top_of_a_repository_inside(desk: Desk) -> None:
    inside = repository(desk.folder / "libs/one")
    (inside / ".envrc").write_text("theirs\n")
    (desk.folder / "libs/.envrc").write_text("theirs\n")
    await desk.run(append("libs/one/.envrc"))
    assert ((inside / ".envrc").read_text() == "theirs\n") is desk.holds
    assert "libs/.envrc (direnv" in await desk.run(append("libs/.envrc"))


async def test_a_line_runs_in_a_folder(desk: Desk) -> None:
    await desk.run("echo mine >> tasks.json", ".vscode")
    assert (desk.folder / ".vscode/tasks.json").read_text() == "theirs\nmine\n"


async def test_where_a_link_leads_is_kept(desk: Desk) -> None:
    (desk.folder / "plain.txt").write_text("theirs\n")
    (desk.folder / "bunfig.toml").symlink_to("plain.txt")
    await desk.run(append("plain.txt"))
    assert ((desk.folder / "plain.txt").read_text() == "theirs\n") is desk.holds


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda example: f"{example.program}, {example.patterns[0]}")
def test_every_entry_is_kept_or_told(entry: StartupFile, tmp_path: Path) -> None:
    paths = [example for example in examples(entry) if not example.startswith(NOT_LOOKED_AT)]
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    before = startup_file_state(tmp_path, survey_workspace(tmp_path))
    for path in paths:
        (tmp_path / path).write_text("mine")
    survey = survey_workspace(tmp_path)
    protected = protected_startup_files("make all", ".", tmp_path, survey)
    description = describe_startup_changes(before, startup_file_state(tmp_path, survey), 100)
    for path in paths:
        assert f"{path} ({entry.program}, {entry.when})" in description
        file = tmp_path / path
        assert entry.is_built or not {file, *file.parents}.isdisjoint(protected.read_only)
        assert not entry.is_built or file not in protected.read_only
        assert file not in protected_startup_files(f"cp a {path}", ".", tmp_path, survey).read_only or "$" in path
    assert all(os.path.lexists(example) for example in (*protected.read_only, *protected.pinned))


def test_a_line_that_names_a_file_does_not_name_one_whose_name_only_begins_like_it(tmp_path: Path) -> None:
    for name in (".huskyrc", ".huskyrc.json"):
        (tmp_path / name).write_text("mine")
    survey = survey_workspace(tmp_path)
    protected = protected_startup_files("cp a .huskyrc.json", ".", tmp_path, survey)
    assert protected.read_only == (tmp_path / ".huskyrc",)


@pytest.mark.parametrize("link", [".vscode", "sub/.vscode", ".husky"])
def test_what_a_link_to_a_folder_leads_to_is_kept_or_told(link: str, tmp_path: Path) -> None:
    name = "pre-commit" if link == ".husky" else "tasks.json"
    (tmp_path / "sub").mkdir()
    (tmp_path / "conf").mkdir()
    (tmp_path / link).symlink_to(tmp_path / "conf")
    file = tmp_path / "conf" / name
    file.write_text("theirs")
    survey = survey_workspace(tmp_path)
    before = startup_file_state(tmp_path, survey)
    protected = protected_startup_files("make all", ".", tmp_path, survey).read_only
    assert ({file, file.parent}.isdisjoint(protected)) is link.startswith("sub/")
    file.write_text("mine")
    assert f"{link}/{name} (" in describe_startup_changes(
        before, startup_file_state(tmp_path, survey_workspace(tmp_path)), 100
    )
