"""The safe options of git, tried with git itself in a repository whose settings name programs to start."""

import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop_agent.permissions.shell.escalating_options import has_escalating_words
from desktop_agent.permissions.shell.parser import parse_line
from desktop_agent.permissions.shell.safe_options import SafeOptions, subcommand_options
from tests.frame.patience import PATIENCE
from tests.frame.selection import few

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

WHO = "a <a@example.org> 1700000000 +0000"
SIGNATURE = "-----BEGIN PGP SIGNATURE-----\n\nnone\n-----END PGP SIGNATURE-----\n"
# They share their safe options with another subcommand, or need another repository.
NOT_TRIED = {"show", "whatchanged", "reflog show", "reflog", "stash list", "stash show", "annotate", "diff-files"} | {
    *("diff-index", "stash pop", "submodule status", "ls-remote", "remote show", "clone", "fetch", "pull", "push")
}


class Repository:
    """A repository with signed commits and a signed tag, whose settings name a trap as each program."""

    def __init__(self, folder: Path) -> None:
        self.work, self.trace = folder / "work", folder / "trace"
        self.work.mkdir()
        trap = folder / "trap"
        trap.write_text("#!/bin/sh\nexit 1\n")
        trap.chmod(0o700)
        self.git("init", "-q", "-b", "main")
        for name in ("gpg.program", "core.editor", "core.pager", "sequence.editor", "credential.helper"):
            self.git("config", name, str(trap))
        (self.work / "a").write_text("one\n")
        self.git("add", "a")
        main = self.signed()
        self.git("update-ref", "refs/heads/main", main)
        self.git("update-ref", "refs/heads/topic", self.signed(main))
        self.git("tag", "v1", self.made("tag", f"object {main}\ntype commit\ntag v1\ntagger {WHO}\n\nv1\n{SIGNATURE}"))
        self.git("reset", "-q", "--hard")

    def signed(self, parent: str = "") -> str:
        parents = f"parent {parent}\n" if parent else ""
        signature = SIGNATURE.rstrip("\n").replace("\n", "\n ")
        tree = self.git("write-tree")
        text = f"tree {tree}\n{parents}author {WHO}\ncommitter {WHO}\ngpgsig {signature}\n\nsigned\n"
        return self.made("commit", text)

    def made(self, kind: str, text: str) -> str:
        return self.git("hash-object", "-t", kind, "-w", "--stdin", text=text)

    def git(self, *arguments: str, text: str = "") -> str:
        """Run git and return its output, whether or not it fails."""
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.work.parent),
            "GIT_TRACE2_EVENT": str(self.trace),
            **{f"GIT_{role}_{field}": "a" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")},
        }
        process = subprocess.run(
            ["git", *arguments],
            cwd=self.work,
            env=environment,
            input=text.encode(),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        return process.stdout.decode(errors="replace").strip()

    def started_by(self, *arguments: str) -> list[list[str]]:
        """Return the programs other than git that git starts for these arguments."""
        self.trace.unlink(missing_ok=True)
        self.git(*arguments)
        events = [json.loads(line) for line in self.trace.read_text().splitlines()]
        return [event["argv"] for event in events if event["event"] == "child_start" and event["argv"][0] != "git"]

    @property
    def around(self) -> dict[str, bytes]:
        """The contents of the files beside the working tree, of the settings and of the hooks."""
        files = [*self.work.parent.iterdir(), self.work / ".git/config", *(self.work / ".git/hooks").iterdir()]
        return {f"{path}": path.read_bytes() for path in files if path.is_file() and path != self.trace}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


STARTS = [
    "git log -1 --format=%G?",
    "git log -1 --format=%+G?",
    "git log -1 --format=%-GK",
    "git log -1 '--format=% GG'",
    "git log -1 --pretty='%h %-GS'",
    "git log -1 --show-signature",
    "git show --format=%+GF topic",
    "git rev-list -1 --format=%-GP main",
    "git shortlog --group=format:%+G? main",
    "git tag -v v1",
    "git tag --verif v1",
    "git tag -m x --edi v2",
    "git tag -am x -e v2",
    "git tag -a v2",
    "git tag -s -m x v2",
    "git branch --edit-description",
    "git branch --edit-desc main",
    "git merge --verify-signatures topic",
    "git merge --verify-sig topic",
    "git merge --no-ff -S topic",
    "git merge --no-ff -em x topic",
    "git cherry-pick --allow-empty --gpg-sign topic",
    "git cherry-pick --allow-empty -e topic",
    "git revert -e HEAD",
    "git grep -nO one",
    "git grep --open one",
    "git commit --allow-empty -em x",
    "git commit --allow-empty -m x -S",
    "git commit --amend",
    "git commit --amen",
    "git rebase -i HEAD",
]


@pytest.mark.parametrize("line", STARTS)
def test_words_for_which_git_starts_another_program_are_asked_about(line: str, repository: Repository) -> None:
    assert repository.started_by(*shlex.split(line)[1:]) != [], "the trap does not show what it is there for"
    (command,) = parse_line(line).top_level
    assert has_escalating_words(command.words, command.sources, 2)


def options_of(safe: SafeOptions) -> Iterator[tuple[str, ...]]:
    """Yield all safe options; the long ones with a value and without."""
    yield ()
    for name in sorted(safe.long):
        yield (f"--{name}=1",)
        yield (f"--{name}",)
    for letter in f"{safe.flags}{safe.valued}":
        yield (f"-{letter}",)


# Operands after the options, so that they have an effect. With a message git starts no editor.
BEHIND: dict[str, tuple[str, ...]] = {
    "tag": ("v1", "fresh{}"),
    "branch": ("main", "fresh{}"),
    "commit": ("--allow-empty -m x",),
    "revert": ("--no-edit HEAD",),
    "merge": ("topic",),
}


@pytest.mark.parametrize(
    "command",
    few(sorted(subcommand_options()["git"].keys() - NOT_TRIED), 8, "test_read_only_commands.py judges each"),
)
def test_for_words_that_are_harmless_git_starts_nothing_and_writes_nothing_elsewhere(
    command: str, repository: Repository
) -> None:
    safe, before, subcommand = subcommand_options()["git"][command], repository.around, command.split()
    assert safe is not None
    for number, option in enumerate(options_of(safe)):
        for operands in BEHIND.get(command, ("HEAD a",)):
            assert repository.started_by(*subcommand, *option, *operands.format(number).split()) == [], option
        assert repository.around == before, option
