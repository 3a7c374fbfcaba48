"""`kill -9` between every two records of a run, and in the middle of every tool: nothing runs twice, nothing is lost.

Each life is a real process with a real data folder (tests/whole_app/dying.py). It dies at the chosen place; a second
one opens the conversation, continues, and runs to the end. What was durable before the death is compared with what the
second life found, did and wrote.
"""

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.storage.opening import DATABASE_NAME
from tests.frame.selection import OPTION, few
from tests.whole_app.dying import NEVER, TOOLS, Found, Life

KILLED = -9
MOST_DEATHS = 12
"""After so many deaths it may run to the end: a life that always dies after two records only opens the conversation."""


class Forge:
    """Runs lives, one after the other, with one start of the interpreter."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.whole_app.dying"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        self._process.communicate()
        assert self._process.returncode == 0

    def run_life(self, life: Life) -> int:
        """Return how it ended: 0, or minus the signal."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(life)) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@dataclass
class World:
    """A data folder, and the files that the tools change."""

    forge: Forge
    folder: Path

    def run_life(self, **options: Any) -> tuple[int, dict[str, Any]]:
        """Return how the life ended, and its report; `options` are fields of Life."""
        answer = self.folder / "answer.json"
        answer.unlink(missing_ok=True)
        life = Life(str(self.folder / "data"), str(self.folder / "work"), str(answer), **options)
        ended = self.forge.run_life(life)
        return ended, json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else {}

    def lines(self) -> dict[str, list[str]]:
        """Return the ids of the calls that each tool has written."""
        files = {name: self.folder / "work" / f"{name}.txt" for name in TOOLS}
        return {name: file.read_text().split() if file.exists() else [] for name, file in files.items()}

    def ends_of_runs(self) -> Counter[int]:
        """Return how many RunFinished each run has in the journal, by the number of the run."""
        with closing(sqlite3.connect(self.folder / "data" / DATABASE_NAME)) as db:
            ends = Counter({number: 0 for (number,) in db.execute("SELECT number FROM runs")})
            rows = db.execute("SELECT number >> 32 FROM journal WHERE type = 'run_finished'")
            ends.update(number for (number,) in rows)
            return ends


Worlds = Callable[[str], World]


@pytest.fixture(scope="module")
def forge() -> Iterator[Forge]:
    forge = Forge()
    yield forge
    forge.close()


@pytest.fixture
def worlds(forge: Forge, tmp_path: Path) -> Worlds:
    def world(name: str) -> World:
        folder = tmp_path / name
        (folder / "work").mkdir(parents=True)
        return World(forge, folder)

    return world


def tool_of(call: str) -> str:
    return call.rpartition("-")[2]


def judge(world: World, before: dict[str, list[str]], report: dict[str, Any]) -> Found:
    """Check what must hold wherever it died. `before`: what the tools had done by then."""
    found = Found(**report["found"])
    after = world.lines()
    for lines in after.values():
        assert len(lines) <= 1, f"a call ran twice: {after}"
    judge_history(report["history"])
    assert set(world.ends_of_runs().values()) == {1}, "a run has one end"
    assert report["history"][-1]["text"] == "done"
    judge_numbers(found, report)
    results = {id_: (outcome, words) for message in report["history"] for id_, outcome, words in message["results"]}
    for call in found.finished:
        assert results.get(call, ("succeeded",))[0] == found.finished[call] == "succeeded"
    for call in set(found.started) - set(found.finished):
        assert after.get(tool_of(call)) == before.get(tool_of(call)), f"{call} had started, and ran again"
        if call in results:
            outcome, words = results[call]
            assert outcome == "unknown"
            assert "Whether it took effect is not known" in words
    return found


def judge_history(history: list[dict[str, Any]]) -> None:
    """Every call has exactly one result, and the results are in the order of the calls."""
    for position, message in enumerate(history):
        if message["calls"]:
            assert [id_ for id_, _, _ in history[position + 1]["results"]] == message["calls"]
        elif message["results"]:
            assert history[position - 1]["calls"]


def judge_numbers(found: Found, report: dict[str, Any]) -> None:
    """A resumed run keeps its id, and its numbers continue without a gap."""
    heard: dict[str, list[int]] = {}
    for run, seq in report["heard"]:
        heard.setdefault(run, []).append(seq)
    for run, numbers in heard.items():
        first = found.seq.get(run, 0) + 1
        assert numbers == list(range(first, first + len(numbers)))
    assert report["resumed"] == found.whole
    assert not report["resumed"] or found.runs[0] in heard


def judge_calls(world: World, found: Found, report: dict[str, Any]) -> None:
    """Check the calls of the conversation itself after its run was resumed."""
    results = {id_: outcome for id_, outcome, _ in report["history"][-2]["results"]}
    asked: dict[str, list[str]] = {}
    for call, approval in report["asked"]:
        asked.setdefault(call, []).append(approval)
    for call, outcome in results.items():
        if call in found.finished or call in found.started:
            assert call not in asked
            continue
        assert outcome == "succeeded"
        assert world.lines()[tool_of(call)] == [call]
        if call in found.waiting:
            assert asked[call] == [found.waiting[call]], "the card has another id"
        elif call in found.allowed:
            assert call not in asked, "an allowed call was asked about again"
        else:
            assert len(asked.get(call, [])) == (tool_of(call) != "look")


def kill_and_resume(world: World, **options: Any) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Return what the tools had done at the death, and the report of the second life."""
    ended, _ = world.run_life(**options)
    assert ended == KILLED
    before = world.lines()
    ended, report = world.run_life(delegates=options.get("delegates", False))
    assert ended == 0
    return before, report


@dataclass
class Tally:
    """How often each case occurred: a loop over all places must have met every case."""

    resumed: int = 0
    waiting: int = 0
    allowed: int = 0
    unknown: int = 0
    finished: int = 0

    def add(self, found: Found, report: dict[str, Any]) -> None:
        self.resumed += report["resumed"]
        self.waiting += bool(found.waiting)
        self.allowed += bool(set(found.allowed) - set(found.started))
        self.unknown += any("unknown" in result for message in report["history"] for result in message["results"])
        self.finished += bool(found.finished)


def test_between_any_two_records(worlds: Worlds) -> None:
    ended, whole = worlds("whole").run_life()
    assert ended == 0
    tally = Tally()
    for after in range(whole["records"] + 1):
        world = worlds(f"after {after}")
        before, report = kill_and_resume(world, after=after)
        found = judge(world, before, report)
        if report["resumed"]:
            judge_calls(world, found, report)
            assert len(world.ends_of_runs()) == 1
        tally.add(found, report)
    print(f"{whole['records'] + 1} deaths: {tally}")
    assert all(asdict(tally).values()), tally


@pytest.mark.parametrize("inside", TOOLS)
def test_in_the_middle_of_a_tool(worlds: Worlds, inside: str) -> None:
    world = worlds(inside)
    before, report = kill_and_resume(world, inside=inside)
    found = judge(world, before, report)
    judge_calls(world, found, report)
    outcomes = {tool_of(id_): outcome for id_, outcome, _ in report["history"][-2]["results"]}
    assert outcomes == {name: "unknown" if name == inside else "succeeded" for name in TOOLS}
    assert {name: len(lines) for name, lines in world.lines().items()} == dict.fromkeys(TOOLS, 1)


def judge_delegation(world: World, before: dict[str, list[str]], found: Found, report: dict[str, Any]) -> str:
    """Return how the call of a specialist that was open at the death ended, or "" when none was open."""
    if not report["resumed"]:
        return ""
    ((call, outcome, words),) = report["history"][-2]["results"]
    if call in found.finished:
        assert not report["asked"]
    elif call in found.started:
        # The specialist's work is not resumed: none of its calls runs or is asked about, and its run has ended.
        assert outcome == "unknown"
        assert "Whether it took effect is not known" in words
        assert world.lines() == before
        assert not report["asked"]
    else:
        assert outcome == "succeeded"
        assert all(len(lines) == 1 for lines in world.lines().values())
        assert [tool_of(id_) for id_, _ in report["asked"]] == ["write", "mark"]
    return outcome


def test_between_any_two_records_of_a_specialists_work(worlds: Worlds, pytestconfig: pytest.Config) -> None:
    """On a push only after every second record: the records are those of the test above, again below a call."""
    ended, whole = worlds("whole").run_life(delegates=True)
    assert ended == 0
    outcomes: Counter[str] = Counter()
    below = 0
    for after in range(0, whole["records"] + 1, 1 if pytestconfig.getoption(OPTION) else 2):
        world = worlds(f"after {after}")
        before, report = kill_and_resume(world, after=after, delegates=True)
        found = judge(world, before, report)
        outcomes[judge_delegation(world, before, found, report)] += 1
        below += len(found.runs) == 2
    print(f"{outcomes.total()} deaths: {dict(outcomes)}, {below} with a run below the run")
    assert set(outcomes) == {"", "unknown", "succeeded"}
    assert below


@pytest.mark.parametrize("inside", TOOLS)
def test_in_the_middle_of_a_specialists_tool(worlds: Worlds, inside: str) -> None:
    world = worlds(inside)
    before, report = kill_and_resume(world, inside=inside, delegates=True)
    found = judge(world, before, report)
    assert judge_delegation(world, before, found, report) == "unknown"
    # The tools ran up to the one in which the process died.
    assert [name for name in TOOLS if world.lines()[name]] == list(TOOLS[: TOOLS.index(inside) + 1])


@pytest.mark.parametrize("delegates", [False, True])
@pytest.mark.parametrize("every", few([1, 2, 3, 4], 1, "the same recovery"))
def test_however_often_it_dies(worlds: Worlds, every: int, delegates: bool) -> None:
    """It dies also while it repairs what the previous death has left."""
    world = worlds("again")
    ended, report = world.run_life(after=every, delegates=delegates)
    deaths = 0
    while ended == KILLED:
        deaths += 1
        after = every if deaths < MOST_DEATHS else NEVER
        ended, report = world.run_life(after=after, delegates=delegates)
    assert ended == 0
    judge_history(report["history"])
    assert report["history"][-1]["text"] == "done"
    assert set(world.ends_of_runs().values()) == {1}
    outcomes = {tool_of(id_): outcome for message in report["history"] for id_, outcome, _ in message["results"]}
    for name, lines in world.lines().items():
        assert len(lines) <= 1, f"{name} ran twice"
        assert delegates or lines or outcomes[name] == "unknown"
    assert deaths > 1
