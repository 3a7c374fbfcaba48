"""Paths that lead elsewhere than they seem to, and files that other programs run."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.permissions import CommandPattern, PathPattern, RuleEffect
from desktop_agent.types.tool_calls import AllowForConversation, AllowOnce
from tests.escape.attack import ATTACK, BAIT, Attempting, Trial, allows, one_end_to_end, run, write
from tests.fakes.session import results_of

SECRET = "only for me"


def call(name: str, **arguments: object) -> ToolUse:
    return ToolUse(id=ATTACK, name=name, input=dict(arguments))


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    """A workspace with links to a folder outside that no tool may touch."""
    outside, work = tmp_path / "outside", tmp_path / "work"
    for folder in (outside, work / "src"):
        folder.mkdir(parents=True)
    (outside / "secret").write_text(SECRET)
    (tmp_path / "work2").mkdir()
    (tmp_path / "work2" / "secret").write_text(SECRET)
    (work / "note.txt").write_text("note")
    (work / "out").symlink_to(outside)
    (work / "file").symlink_to(outside / "secret")
    (work / "src" / "up").symlink_to("../..")
    (work / "dangling").symlink_to(outside / "not yet")
    (work / "twice").symlink_to("out")
    (work / "round").symlink_to("round")
    (work / "chain").symlink_to("src/up/outside")
    return tmp_path


OUT = {
    "climbs": "../outside/secret",
    "climbs from below": "src/../../outside/secret",
    "climbs through what is not there": "no/../../outside/secret",
    "climbs with backslashes": "..\\outside\\secret",
    "climbs with both": "src/..\\../outside/secret",
    "climbs with dots between": "./././.././outside/secret",
    "folder of a similar name": "../work2/secret",
    "absolute": "{}/outside/secret",
    "absolute, through the workspace": "{}/work/../outside/secret",
    "absolute, with two slashes": "/{}/outside/secret",
    "link to a folder": "out/secret",
    "link to a file": "file",
    "link to a link": "twice/secret",
    "link upwards": "src/up/outside/secret",
    "link over a link": "chain/secret",
    "link that leads to nothing yet": "dangling",
    "link to itself": "round",
    "link, and back out": "out/../outside/secret",
    "home folder": "~/secret",
    "home folder of another": "~root/secret",
    "null": "note.txt\x00/../../outside/secret",
    "line end": "note.txt\n../outside/secret",
    "drive": "C:\\outside\\secret",
    "server": "\\\\server\\share\\secret",
    "process": "/proc/self/cwd/../outside/secret",
    "root of the process": "/proc/self/root{}/outside/secret",
    "descriptor": "/dev/fd/0",
    "half a character": "\ud800/../../outside/secret",
    "too long": "a/" * 3000 + "../" * 3001 + "outside/secret",
}


@pytest.mark.parametrize("tool", ["write_file", "read_file", "delete_file", "move_file", "search_files"])
@pytest.mark.parametrize("trick", one_end_to_end(OUT))
async def test_no_path_leads_out(trick: str, tool: str, ground: Path, attempt: Attempting) -> None:
    path = OUT[trick].format(ground)
    arguments: dict[str, dict[str, object]] = {
        "write_file": {"path": path, "content": "mine now"},
        "read_file": {"path": path},
        "delete_file": {"path": path},
        "move_file": {"source": "note.txt", "target": path},
        "search_files": {"pattern": "only", "path": path},
    }
    # Even if the person allows it.
    async with attempt(ground, call(tool, **arguments[tool]), person=lambda _: AllowOnce()) as trial:
        trial.edits = True
        await trial.play()
        assert trial.result().outcome is Outcome.FAILED
        assert SECRET not in str(trial.result().content)
        assert (ground / "outside" / "secret").read_text() == SECRET
        assert (ground / "work2" / "secret").read_text() == SECRET
        assert sorted(file.name for file in (ground / "outside").iterdir()) == ["secret"]
        assert trial.text() == "note"


IN_SRC = {
    "climbs out of the folder": "src/../other",
    "folder of a similar name": "src2/other",
    "other case": "SRC/other",
    "fullwidth": "ｓｒｃ/other",
    "Cyrillic letter": "srс/other",
    "space at the end": "src /other",
    "dot at the end": "src./other",
    "zero-width space": "src\u200b/other",
    "slash that is none": "src\u2215other",
    "link into another folder": "src/link/other",
    "link for the folder": "alias/other",
}


@pytest.mark.parametrize("trick", one_end_to_end(IN_SRC))
async def test_what_is_allowed_in_a_folder_is_asked_about_beside_it(
    trick: str, tmp_path: Path, attempt: Attempting
) -> None:
    async with attempt(tmp_path, write("src/b", id_=BAIT), write(IN_SRC[trick])) as trial:
        trial.rules = (allows("write_file", PathPattern(prefix=(trial.work / "src").as_posix())),)
        for name in ("src", "beside"):
            (trial.work / name).mkdir()
        (trial.work / "src" / "link").symlink_to("../beside")
        (trial.work / "alias").symlink_to("beside")
        await trial.play()
        assert trial.asked == [ATTACK]
        trial.assert_held_back()
        assert BAIT in trial.started
        assert not list(trial.work.rglob("other"))


DENIED = {
    "climbs and comes back": "src/../café/key",
    "absolute": "{}/work/café/key",
    "link": "link/key",
    "link to the file": "direct",
    "other case": "CAFÉ/key",
    "accent written apart": "cafe\u0301/key",
    "accent apart and other case": "CAFE\u0301/KEY",
    "compatible letters": "ｃａｆé/key",
    "dots": "./café/./key",
    "slashes": "café//key",
    "backslash": "café\\key",
}


@pytest.mark.parametrize("trick", one_end_to_end(DENIED))
async def test_no_spelling_leads_around_a_rule_that_denies(trick: str, tmp_path: Path, attempt: Attempting) -> None:
    path = DENIED[trick].format(tmp_path)
    async with attempt(tmp_path, call("read_file", path=path)) as trial:
        (trial.work / "src").mkdir()
        (trial.work / "café").mkdir()
        (trial.work / "café" / "key").write_text(SECRET)
        (trial.work / "link").symlink_to("café")
        (trial.work / "direct").symlink_to("café/key")
        trial.rules = (
            allows("read_file", PathPattern(prefix=(trial.work / "café").as_posix()), RuleEffect.DENY),
            allows("read_file"),
        )
        await trial.play()
        assert trial.started == []
        assert trial.result().outcome is Outcome.DENIED


RUN_BY_GIT = {
    "hook": ".git/hooks/pre-commit",
    "settings": ".git/config",
    "settings of the working tree": ".git/config.worktree",
    "attributes": ".git/info/attributes",
    "repository inside": "vendor/.git/config",
    "repository of a submodule": ".git/modules/x/config",
    "pointer to a repository": "sub/.git",
    "upper case": ".GIT/config",
    "dot at the end": ".git./config",
    "space at the end": ".git /config",
    "short name of Windows": "GIT~1/config",
    "zero-width character": ".g\u200cit/config",
    "climbs there": "src/../.git/config",
    "link": "link/config",
}


@pytest.mark.parametrize("setting", ["accept edits", "for this conversation", "rule for the folder"])
@pytest.mark.parametrize("trick", one_end_to_end(RUN_BY_GIT))
async def test_what_git_would_run_is_never_written_unasked(
    trick: str, setting: str, tmp_path: Path, attempt: Attempting
) -> None:
    settings = "[core]\n\tfsmonitor = touch pwned\n"
    uses = (write("a", id_="first"), write(RUN_BY_GIT[trick], settings))
    async with attempt(tmp_path, *uses) as trial:
        for name in (".git", "src"):
            (trial.work / name).mkdir()
        (trial.work / "link").symlink_to(".git")
        trial.edits = setting == "accept edits"
        if setting == "rule for the folder":
            trial.rules = (allows("write_file", PathPattern(prefix=trial.work.as_posix())),)
        bait = trial.person
        trial.person = lambda card: AllowForConversation() if card.tool_use.id == "first" else bait(card)
        await trial.play()
        assert "first" in trial.started
        trial.assert_held_back()
        assert "Git" in trial.cards[-1].reason


async def test_settings_are_not_moved_to_where_git_looks_for_them(tmp_path: Path) -> None:
    move = call("move_file", source="innocent", target=".git/config")
    async with Trial(tmp_path, write("innocent", id_="first"), move) as trial:
        (trial.work / ".git").mkdir()
        trial.edits = True
        await trial.play()
        assert trial.started == ["first"]
        trial.assert_held_back()


async def test_ordinary_files_do_not_become_a_repository_unasked(tmp_path: Path) -> None:
    settings = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch pwned\n"
    parts = {"HEAD": "ref: refs/heads/main\n", "config": settings, "objects/a": "", "refs/a": ""}
    writes = [write(f"sub/{name}", text, name) for name, text in parts.items()]
    everywhere = CommandPattern(words=("git", "status"), folder=None)
    async with Trial(tmp_path, *writes, run("git status", folder="sub")) as trial:
        trial.edits = True
        trial.rules = (allows("run_command", everywhere),)
        await trial.play()
        # Git recognises a repository only by all of its parts, so only the last of them is asked about.
        assert trial.asked == ["objects/a"]
        assert trial.text("sub/objects/a") is None
        assert not list(trial.work.rglob("pwned"))


async def test_git_starts_nothing_in_ordinary_files_that_look_like_a_repository(tmp_path: Path) -> None:
    settings = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch pwned\n"
    parts = {"HEAD": "ref: refs/heads/main\n", "config": settings, "objects/a": "", "refs/a": ""}
    everywhere = CommandPattern(words=("git", "status"), folder=None)
    async with Trial(tmp_path, run("git status", folder="sub")) as trial:
        for name, text in parts.items():
            (trial.work / "sub" / name).parent.mkdir(parents=True, exist_ok=True)
            (trial.work / "sub" / name).write_text(text)
        trial.rules = (allows("run_command", everywhere),)
        await trial.play()
        assert trial.started == [ATTACK]
        assert not list(trial.work.rglob("pwned"))


class Swapper:
    """Swaps a folder and a link to the outside at the same path, in turns, until it is stopped."""

    def __init__(self, ground: Path) -> None:
        self.swapped, self.real, self.link = (ground / "work" / name for name in ("swap", "real", "other"))
        self.real.mkdir()
        self.link.symlink_to(ground / "outside")
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.exchange)

    def exchange(self) -> None:
        while not self.stop.is_set():
            for entry in (self.real, self.link):
                try:
                    entry.rename(self.swapped)
                except OSError:
                    # Meanwhile the tool created a folder at this path.
                    shutil.rmtree(self.swapped, ignore_errors=True)
                    continue
                # Gives the tool time to see each of the two.
                self.stop.wait(0.0005)
                self.swapped.rename(entry)

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join()


def rounds(tool: str) -> Iterator[ToolUse]:
    arguments: dict[str, dict[str, object]] = {
        "write_file": {"path": "swap/secret", "content": "mine now"},
        "read_file": {"path": "swap/secret"},
        "delete_file": {"path": "swap/secret"},
        "edit_file": {"path": "swap/secret", "old_text": "only", "new_text": "not"},
    }
    for number in range(40):
        yield ToolUse(id=f"{number}", name=tool, input={**arguments[tool]})


@pytest.mark.parametrize("tool", ["write_file", "read_file", "delete_file", "edit_file"])
async def test_a_folder_that_becomes_a_link_at_any_moment_leads_nowhere(tool: str, ground: Path) -> None:
    async with Trial(ground, *rounds(tool), person=lambda _: AllowOnce()) as trial:
        trial.edits = True
        with Swapper(ground):
            await trial.play()
        assert (ground / "outside" / "secret").read_text() == SECRET
        assert sorted(entry.name for entry in (ground / "outside").iterdir()) == ["secret"]
        results = results_of(trial.session.history).values()
        assert len(results) == 40
        assert not [entry for entry in results if SECRET in str(entry.content)]


@pytest.mark.parametrize("tool", ["write_file", "edit_file", "delete_file"])
async def test_what_was_allowed_of_one_file_is_not_done_to_another_behind_a_link(tool: str, ground: Path) -> None:
    """While the approval request for one file is open, a link to another file replaces it."""
    work = ground / "work"
    (work / "one").write_text("note")
    (work / "other").write_text("note, and more")
    arguments = {"write_file": {"content": "x"}, "edit_file": {"old_text": "note", "new_text": "x"}, "delete_file": {}}

    def swapping(_: object) -> AllowOnce:
        (work / "one").rename(work / "away")
        (work / "one").symlink_to("other")
        return AllowOnce()

    async with Trial(ground, call(tool, path="one", **arguments[tool]), person=swapping) as trial:
        await trial.play()
        assert trial.result().outcome is Outcome.FAILED
        assert (work / "other").read_text() == "note, and more"
