"""Files that other programs run by themselves are never written, moved, edited or deleted unasked."""

import asyncio
from pathlib import Path

import pytest

from desktop_agent.sandbox.backends import available_sandbox
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.permissions import PLAN_MODE, CommandPattern, PathPattern
from desktop_agent.types.tool_calls import AllowForConversation, AllowOnce, UntrustedSource
from tests.escape.attack import ATTACK, BAIT, Attempting, Trial, allows, one_end_to_end, run, write

PAGE = UntrustedSource("web", "evil.example")
STARTUP = {
    "editor": (".vscode/tasks.json", "VS Code when the folder is opened"),
    "editor, further down": ("sub/.vscode/settings.json", "VS Code when the folder is opened"),
    "container": (".devcontainer/devcontainer.json", "the editor when it opens the folder in a container"),
    "agent": (".claude/settings.json", "Claude Code when it works in the folder"),
    "servers of agents": (".mcp.json", "Claude Code when it works in the folder"),
    "shell": (".envrc", "direnv when a shell enters the folder"),
    "package manager": (".npmrc", "npm at its next command"),
    "hook": (".husky/pre-commit", "Husky at the next commit or push"),
    "hook by its name": ("scripts/hooks/pre-push", "Git when it commits, merges, pulls or pushes"),
    "build server": (".github/workflows/ci.yml", "GitHub when somebody pushes it"),
    "interpreter": ("src/sitecustomize.py", "Python at every start"),
    "ending": ("lib/any.pth", "Python at every start"),
    "upper case": (".VSCode/Tasks.JSON", "VS Code when the folder is opened"),
    "zero-width character": (".en\u200bvrc", "direnv when a shell enters the folder"),
    "climbs there": ("src/../.envrc", "direnv when a shell enters the folder"),
    "through a link to its folder": ("link/tasks.json", "VS Code when the folder is opened"),
    "through a link to it": ("plain.txt", "direnv when a shell enters the folder"),
}
startup = pytest.mark.parametrize("trick", one_end_to_end(STARTUP))


def prepare(work: Path) -> None:
    for name in (".vscode", "src", "sub/.vscode", "scripts/hooks", "lib"):
        (work / name).mkdir(parents=True)
    (work / "link").symlink_to(".vscode")
    (work / "plain.txt").symlink_to(".envrc")


def call(name: str, id_: str = ATTACK, **arguments: object) -> ToolUse:
    return ToolUse(id=id_, name=name, input=dict(arguments))


@startup
@pytest.mark.parametrize("setting", ["accept edits", "rule for the folder", "for this conversation"])
async def test_it_is_never_written_unasked(setting: str, trick: str, tmp_path: Path, attempt: Attempting) -> None:
    path, program = STARTUP[trick]
    async with attempt(tmp_path, write("a", id_="first"), write(path)) as trial:
        prepare(trial.work)
        trial.edits = setting == "accept edits"
        if setting == "rule for the folder":
            trial.rules = (allows("write_file", PathPattern(prefix=trial.work.as_posix())),)
        bait = trial.person
        trial.person = lambda card: AllowForConversation() if card.tool_use.id == "first" else bait(card)
        await trial.play()
        assert "first" in trial.started
        trial.assert_held_back()
        assert f"is run by {program}, without any confinement." in trial.cards[-1].reason


@startup
async def test_it_is_not_moved_there_nor_edited_nor_deleted_unasked(
    trick: str, tmp_path: Path, attempt: Attempting
) -> None:
    path, program = STARTUP[trick]
    uses = (
        call("move_file", source="innocent", target=path),
        call("edit_file", "edit", path=path, old_text="theirs", new_text="mine"),
        call("delete_file", "delete", path=path),
        call("move_file", "away", source=path, target="other"),
    )
    async with attempt(tmp_path, *uses) as trial:
        prepare(trial.work)
        (trial.work / "innocent").write_text("mine")
        path_in_workspace = trial.work / ".envrc" if trick == "through a link to it" else trial.work / path
        path_in_workspace.parent.mkdir(parents=True, exist_ok=True)
        path_in_workspace.write_text("theirs")
        trial.edits = True
        await trial.play()
        assert trial.started == []
        assert {card.tool_use.id for card in trial.cards} >= {"edit", "delete", "away"}
        assert all(program in card.reason for card in trial.cards)
        assert path_in_workspace.read_text() == "theirs"


@pytest.mark.parametrize("target", [".git", ".husky", ".vscode"])
async def test_no_folder_is_moved_to_where_a_program_looks(target: str, tmp_path: Path) -> None:
    move = call("move_file", source="innocent", target=target)
    async with Trial(tmp_path, move, run(f"mv innocent {target}", "line")) as trial:
        (trial.work / "innocent" / "hooks").mkdir(parents=True)
        (trial.work / "innocent" / "hooks" / "pre-commit").write_text("mine")
        trial.rules = (allows("run_command", CommandPattern(words=("mv",))),)
        trial.edits = True
        await trial.play()
        # Only commands can move folders.
        assert set(trial.started) <= {ATTACK}
        assert "line" in trial.asked
        assert not (trial.work / target).exists()


async def test_plan_mode_denies_it(tmp_path: Path) -> None:
    async with Trial(tmp_path, write(".envrc")) as trial:
        trial.prepare = lambda session: session.permission_policy.set_mode(PLAN_MODE)
        await trial.play()
        trial.assert_refused()


@pytest.mark.parametrize("target", ["notes.txt", "folder/tasks.json"])
async def test_a_link_that_stands_where_a_program_looks_makes_a_startup_file_of_what_it_leads_to(
    target: str, tmp_path: Path
) -> None:
    async with Trial(tmp_path, write(target)) as trial:
        (trial.work / ".envrc").symlink_to("notes.txt")
        (trial.work / "folder").mkdir()
        (trial.work / ".vscode").symlink_to("folder")
        trial.edits = True
        await trial.play()
        trial.assert_held_back()


REPOSITORY = ["HEAD", "config", "hooks/any", "objects/ab/cd", "refs/heads/main", "packed-refs", "info/attributes"]


@pytest.mark.parametrize("part", REPOSITORY)
@pytest.mark.parametrize("folder", ["vendor/lib.git/", ""])
async def test_nothing_of_a_bare_repository_is_written_unasked(
    folder: str, part: str, tmp_path: Path, attempt: Attempting
) -> None:
    async with attempt(tmp_path, write(f"{folder}README", id_="first"), write(f"{folder}{part}")) as trial:
        top = trial.work / folder
        for name in ("objects", "refs"):
            (top / name).mkdir(parents=True)
        (top / "HEAD").write_text("ref: refs/heads/main\n")
        trial.edits = True
        await trial.play()
        assert "is run by Git " in trial.cards[-1].reason
        trial.assert_held_back()


@pytest.mark.parametrize("last", ["HEAD", "objects/a"])
async def test_no_folder_becomes_a_repository_unasked(last: str, tmp_path: Path) -> None:
    parts = [name for name in ("config", "HEAD", "objects/a", "refs/a") if name != last]
    async with Trial(tmp_path, *(write(f"x/{name}", id_=name) for name in parts), write(f"x/{last}")) as trial:
        trial.edits = True
        await trial.play()
        assert trial.started == parts
        trial.assert_held_back()


BUILD = ["Makefile", "package.json", "sub/pyproject.toml", "conftest.py", "vite.config.ts", "build.rs", "Dockerfile"]


@pytest.mark.parametrize("path", one_end_to_end(BUILD))
@pytest.mark.parametrize("setting", ["accept edits", "rule for the folder"])
@pytest.mark.parametrize("tainted", [False, True])
async def test_what_the_next_build_runs_is_asked_about_after_content_from_outside(
    tainted: bool, setting: str, path: str, tmp_path: Path, attempt: Attempting
) -> None:
    async with attempt(tmp_path, write("src/main.py", id_="first"), write(path)) as trial:
        trial.edits = setting == "accept edits"
        if setting == "rule for the folder":
            trial.rules = (allows("write_file", PathPattern(prefix=trial.work.as_posix())),)
        if tainted:
            trial.prepare = lambda session: session.permission_policy.mark_untrusted(PAGE)
        await trial.play()
        assert "first" in trial.started
        if not tainted:
            assert trial.asked == []
            return
        trial.assert_held_back()
        assert f"The content of “{path}” is run by" in trial.cards[-1].reason


async def test_who_trusts_what_came_in_is_asked_about_builds_all_the_same(tmp_path: Path) -> None:
    async with Trial(tmp_path, write("src/main.py", id_="first"), write("Makefile")) as trial:
        trial.edits = True

        def prepare(session) -> None:
            session.permission_policy.mark_untrusted(PAGE)
            session.permission_policy.lift_suspension()

        trial.prepare = prepare
        await trial.play()
        assert "first" in trial.started
        trial.assert_held_back()


async def test_leave_for_a_conversation_is_for_the_file_that_was_named(tmp_path: Path) -> None:
    uses = (write(".envrc", id_=BAIT), write(".envrc", "more", "again"), write(".npmrc"))
    async with Trial(tmp_path, *uses) as trial:
        trial.person = lambda card: AllowForConversation() if card.tool_use.id == BAIT else AllowOnce()
        await trial.play()
        assert trial.asked == [BAIT, ATTACK]


COPIES = ["cp mine {}", "mv mine {}", "tee {} < mine", "cat mine > {}", "cat mine >> {}"]


@pytest.mark.parametrize("line", COPIES)
@pytest.mark.parametrize("path", [".vscode/tasks.json", ".envrc", ".husky/pre-commit"])
async def test_no_allowed_command_writes_it_by_name(path: str, line: str, tmp_path: Path, attempt: Attempting) -> None:
    async with attempt(tmp_path, run(line.format(path))) as trial:
        (trial.work / "mine").write_text("mine")
        trial.rules = tuple(allows("run_command", CommandPattern(words=(word,))) for word in ("cp", "mv", "tee", "cat"))
        trial.edits = True
        await trial.play()
        trial.assert_held_back()
        assert "without any confinement" in trial.cards[-1].reason


@pytest.mark.parametrize("more", [" #;git stash", " -k 'x;git checkout y' -k test"])
async def test_words_of_git_that_run_no_git_open_none_to_an_allowed_test(more: str, tmp_path: Path) -> None:
    if not await asyncio.to_thread(lambda: available_sandbox().name == "bubblewrap"):
        pytest.skip("only bubblewrap keeps a file from a command that may write around it")
    line = "python3 -m unittest -q"
    async with Trial(tmp_path, run(line, BAIT), run(f"{line}{more}")) as trial:
        (trial.work / ".envrc").write_text("theirs")
        (trial.work / "test_a.py").write_text(
            "import unittest\nclass A(unittest.TestCase):\n    def test(self):\n        open('.envrc', 'w')\n"
        )
        await trial.play()
        assert ATTACK in trial.started
        assert ATTACK not in trial.asked
        assert "Read-only file system" in str(trial.result().content)
        assert (trial.work / ".envrc").read_text() == "theirs"
