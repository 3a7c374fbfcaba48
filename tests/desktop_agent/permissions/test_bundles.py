"""What the bundles let through, tried with the program itself."""

import json
import shutil
import string
import subprocess
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from desktop_agent.permissions.rule_proposals import BUNDLES, find_bundle, propose_rules
from desktop_agent.permissions.shell.escalating_options import has_escalating_words
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.permissions import CommandPattern, CommandSubject
from desktop_agent.types.tool_calls import Effect
from tests.desktop_agent.permissions.conftest import MakeTool
from tests.frame.patience import PATIENCE

MEMBERS = [each for bundle in BUNDLES for each in bundle.beginnings]
READ_ONLY = BUNDLES[0]
SECRET = "only for me"


@pytest.mark.parametrize("beginning", MEMBERS, ids=" ".join)
def test_each_command_of_a_bundle_is_one_that_would_be_proposed_alone(
    make_open_tool: MakeTool, beginning: tuple[str, ...]
) -> None:
    tool: AnyTool = make_open_tool([Effect.EXECUTE])
    proposed = [each.pattern for each in propose_rules(tool, "d", (CommandSubject(" ".join(beginning)),))]
    assert proposed[0] == CommandPattern(words=beginning)
    assert proposed[1] == find_bundle([beginning])


def test_no_command_is_in_two_bundles_and_no_title_is_used_twice() -> None:
    assert len(set(MEMBERS)) == len(MEMBERS)
    assert len({each.title for each in BUNDLES}) == len(BUNDLES)


def test_commands_of_two_bundles_are_in_none() -> None:
    assert find_bundle([("git", "log"), ("git", "add")]) is None
    assert find_bundle([("git", "log"), ("git", "push")]) is None
    assert find_bundle([()]) is None
    assert find_bundle([]) is None


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("read_only")
    (folder / "secret").write_text(SECRET)
    work = folder / "work"
    work.mkdir()
    (work / "a").write_text("one\n")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org")
    for line in (["init", "-q"], ["add", "a"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *line], cwd=work, check=True)
    (work / "a").write_text("two\n")
    (work / "b").write_text("new\n")
    return folder


def options_of(command: str) -> Iterator[tuple[str, ...]]:
    """Every option of which this git knows, of the command and of all that show changes, with a value or without."""
    names: set[str] = set()
    for each in (command, "diff"):
        listed = subprocess.run(
            ["git", each, "--git-completion-helper-all"], capture_output=True, text=True, check=True
        )
        names |= {name.rstrip("=") for name in listed.stdout.split() if len(name) > 2}
    for name in sorted(names):
        if not name.startswith("--no-") or name == "--no-index":
            yield (f"{name}=pwned",)
            yield (name, "../secret")
    for letter in string.ascii_letters:
        yield (f"-{letter}", "../secret")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("command", [words[1] for words in READ_ONLY.beginnings])
def test_what_is_read_only_writes_nothing_starts_nothing_and_shows_nothing_of_elsewhere(
    command: str, repository: Path
) -> None:
    work, trace = repository / "work", repository / "trace"
    before = seen(work)
    tried = 0
    for option in chain([()], options_of(command)):
        words = ("git", command, *option, "a")
        if has_escalating_words(words, words, 2):
            continue
        tried += 1
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(repository), "GIT_TRACE2_EVENT": str(trace)}
        ended = subprocess.run(
            words,
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        assert seen(work) == before, words
        assert SECRET.encode() not in ended.stdout + ended.stderr, words
        assert started(trace) == [], words
    assert tried > 20


def seen(folder: Path) -> dict[str, bytes]:
    # The index remembers when files were looked at.
    return {f"{each}": each.read_bytes() for each in folder.rglob("*") if each.is_file() and each.name != "index"}


def started(trace: Path) -> list[list[str]]:
    """What git has started since this was asked last, apart from itself."""
    if not trace.exists():
        return []
    events = [json.loads(line) for line in trace.read_text().splitlines()]
    trace.unlink()
    return [each["argv"] for each in events if each["event"] == "child_start" and each["argv"][0] != "git"]
