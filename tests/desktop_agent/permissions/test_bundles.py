"""The commands that bundles allow, tried with git itself."""

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
    proposed = [rule.pattern for rule in propose_rules(tool, "d", (CommandSubject(" ".join(beginning)),))]
    assert proposed[0] == CommandPattern(words=beginning)
    assert proposed[1] == find_bundle([beginning])


def test_no_command_is_in_two_bundles_and_no_title_is_used_twice() -> None:
    assert len(set(MEMBERS)) == len(MEMBERS)
    assert len({bundle.title for bundle in BUNDLES}) == len(BUNDLES)


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
    """Yield every option that this git has for the command and for `diff`, with a value and without."""
    names: set[str] = set()
    for subcommand in (command, "diff"):
        process = subprocess.run(
            ["git", subcommand, "--git-completion-helper-all"], capture_output=True, text=True, check=True
        )
        names |= {name.rstrip("=") for name in process.stdout.split() if len(name) > 2}
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
    before = contents_of(work)
    tried = 0
    for option in chain([()], options_of(command)):
        words = ("git", command, *option, "a")
        if has_escalating_words(words, words, 2):
            continue
        tried += 1
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(repository), "GIT_TRACE2_EVENT": str(trace)}
        process = subprocess.run(
            words,
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        assert contents_of(work) == before, words
        assert SECRET.encode() not in process.stdout + process.stderr, words
        assert programs_started(trace) == [], words
    assert tried > 20


def contents_of(folder: Path) -> dict[str, bytes]:
    # The index stores when files were last checked.
    return {f"{path}": path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "index"}


def programs_started(trace: Path) -> list[list[str]]:
    """Return the programs other than git that were started since the last call."""
    if not trace.exists():
        return []
    events = [json.loads(line) for line in trace.read_text().splitlines()]
    trace.unlink()
    return [event["argv"] for event in events if event["event"] == "child_start" and event["argv"][0] != "git"]
