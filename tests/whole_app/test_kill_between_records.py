"""`kill -9` between every two records of a run, and in the middle of every tool: nothing runs twice, nothing is lost.

Each life is a real process with a real data folder (tests/whole_app/dying.py). It dies at the chosen place; a second
one opens the conversation, goes on, and runs to the end. What became durable before the death is judged against what
the second life found, did and wrote.
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
"""Then it is let live: who dies after every second record comes no further than to open the conversation."""


class Forge:
    """Starts lives, one after the other, from one start of the interpreter."""

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

    def client(self, life: Life) -> int:
        """How it ended: 0, or minus the signal."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(life)) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@dataclass
class World:
    """One data folder, and the files that tools change."""

    forge: Forge
    folder: Path

    def client(self, **how: Any) -> tuple[int, dict[str, Any]]:
        answer = self.folder / "answer.json"
        answer.unlink(missing_ok=True)
        life = Life(str(self.folder / "data"), str(self.folder / "work"), str(answer), **how)
        ended = self.forge.client(life)
        return ended, json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else {}

    def lines(self) -> dict[str, list[str]]:
        """What the tools did, by their names."""
        files = {name: self.folder / "work" / f"{name}.txt" for name in TOOLS}
        return {name: file.read_text().split() if file.exists() else [] for name, file in files.items()}

    def ends_of_runs(self) -> Counter[int]:
        """How many RunFinished each run has in the journal, by the run's number."""
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


def judge(world: World, before: dict[str, list[str]], told: dict[str, Any]) -> Found:
    """What holds wherever it died. `before`: what the tools had done by then."""
    found = Found(**told["found"])
    after = world.lines()
    for lines in after.values():
        assert len(lines) <= 1, f"a call ran twice: {after}"
    judge_history(told["history"])
    assert set(world.ends_of_runs().values()) == {1}, "a run has one end"
    assert told["history"][-1]["text"] == "done"
    judge_numbers(found, told)
    results = {id_: (outcome, words) for message in told["history"] for id_, outcome, words in message["results"]}
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
    """Every call has exactly one result, and in call order."""
    for position, message in enumerate(history):
        if message["calls"]:
            assert [id_ for id_, _, _ in history[position + 1]["results"]] == message["calls"]
        elif message["results"]:
            assert history[position - 1]["calls"]


def judge_numbers(found: Found, told: dict[str, Any]) -> None:
    """A run that is gone on with keeps its name, and its numbers go on without a gap."""
    heard: dict[str, list[int]] = {}
    for run, seq in told["heard"]:
        heard.setdefault(run, []).append(seq)
    for run, numbers in heard.items():
        first = found.seq.get(run, 0) + 1
        assert numbers == list(range(first, first + len(numbers)))
    assert told["resumed"] == found.whole
    assert not told["resumed"] or found.runs[0] in heard


def judge_calls(world: World, found: Found, told: dict[str, Any]) -> None:
    """Calls of the conversation itself, when its run was gone on with."""
    results = {id_: outcome for id_, outcome, _ in told["history"][-2]["results"]}
    asked: dict[str, list[str]] = {}
    for call, approval in told["asked"]:
        asked.setdefault(call, []).append(approval)
    for call, outcome in results.items():
        if call in found.finished or call in found.started:
            assert call not in asked
            continue
        assert outcome == "succeeded"
        assert world.lines()[tool_of(call)] == [call]
        if call in found.waiting:
            assert asked[call] == [found.waiting[call]], "the card has another name"
        elif call in found.allowed:
            assert call not in asked, "a second question about what was allowed"
        else:
            assert len(asked.get(call, [])) == (tool_of(call) != "look")


def died_and_gone_on(world: World, **how: Any) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """What the tools had done at its death, and what the second life tells."""
    ended, _ = world.client(**how)
    assert ended == KILLED
    before = world.lines()
    ended, told = world.client(delegates=how.get("delegates", False))
    assert ended == 0
    return before, told


@dataclass
class Tally:
    """How often each thing was met: a loop over all places must have met them all."""

    resumed: int = 0
    waiting: int = 0
    allowed: int = 0
    on_unauthorized: int = 0
    finished: int = 0

    def add(self, found: Found, told: dict[str, Any]) -> None:
        self.resumed += told["resumed"]
        self.waiting += bool(found.waiting)
        self.allowed += bool(set(found.allowed) - set(found.started))
        self.on_unauthorized += any("unknown" in result for message in told["history"] for result in message["results"])
        self.finished += bool(found.finished)


def test_between_any_two_records(worlds: Worlds) -> None:
    ended, whole = worlds("whole").client()
    assert ended == 0
    tally = Tally()
    for after in range(whole["records"] + 1):
        world = worlds(f"after {after}")
        before, told = died_and_gone_on(world, after=after)
        found = judge(world, before, told)
        if told["resumed"]:
            judge_calls(world, found, told)
            assert len(world.ends_of_runs()) == 1
        tally.add(found, told)
    print(f"{whole['records'] + 1} deaths: {tally}")
    assert all(asdict(tally).values()), tally


@pytest.mark.parametrize("inside", TOOLS)
def test_in_the_middle_of_a_tool(worlds: Worlds, inside: str) -> None:
    world = worlds(inside)
    before, told = died_and_gone_on(world, inside=inside)
    found = judge(world, before, told)
    judge_calls(world, found, told)
    outcomes = {tool_of(id_): outcome for id_, outcome, _ in told["history"][-2]["results"]}
    assert outcomes == {name: "unknown" if name == inside else "succeeded" for name in TOOLS}
    assert {name: len(lines) for name, lines in world.lines().items()} == dict.fromkeys(TOOLS, 1)


def judge_delegation(world: World, before: dict[str, list[str]], found: Found, told: dict[str, Any]) -> str:
    """How the call of a specialist ended that was open when the process died; "" where none was."""
    if not told["resumed"]:
        return ""
    ((call, outcome, words),) = told["history"][-2]["results"]
    if call in found.finished:
        assert not told["asked"]
    elif call in found.started:
        # Its work is not taken up: nothing of it runs, nothing of it is asked, and its own run is over.
        assert outcome == "unknown"
        assert "Whether it took effect is not known" in words
        assert world.lines() == before
        assert not told["asked"]
    else:
        assert outcome == "succeeded"
        assert all(len(lines) == 1 for lines in world.lines().values())
        assert [tool_of(each) for each, _ in told["asked"]] == ["write", "mark"]
    return outcome


def test_between_any_two_records_of_a_specialists_work(worlds: Worlds, pytestconfig: pytest.Config) -> None:
    """On a push after every second record: they are those of the test above, once more below a call."""
    ended, whole = worlds("whole").client(delegates=True)
    assert ended == 0
    outcomes: Counter[str] = Counter()
    below = 0
    for after in range(0, whole["records"] + 1, 1 if pytestconfig.getoption(OPTION) else 2):
        world = worlds(f"after {after}")
        before, told = died_and_gone_on(world, after=after, delegates=True)
        found = judge(world, before, told)
        outcomes[judge_delegation(world, before, found, told)] += 1
        below += len(found.runs) == 2
    print(f"{outcomes.total()} deaths: {dict(outcomes)}, {below} with a run below the run")
    assert set(outcomes) == {"", "unknown", "succeeded"}
    assert below


@pytest.mark.parametrize("inside", TOOLS)
def test_in_the_middle_of_a_specialists_tool(worlds: Worlds, inside: str) -> None:
    world = worlds(inside)
    before, told = died_and_gone_on(world, inside=inside, delegates=True)
    found = judge(world, before, told)
    assert judge_delegation(world, before, found, told) == "unknown"
    # Up to the one that it died in.
    assert [name for name in TOOLS if world.lines()[name]] == list(TOOLS[: TOOLS.index(inside) + 1])


@pytest.mark.parametrize("delegates", [False, True])
@pytest.mark.parametrize("every", few([1, 2, 3, 4], 1, "the same recovery"))
def test_however_often_it_dies(worlds: Worlds, every: int, delegates: bool) -> None:
    """Also while it puts in order what the death before has left."""
    world = worlds("again")
    ended, told = world.client(after=every, delegates=delegates)
    deaths = 0
    while ended == KILLED:
        deaths += 1
        after = every if deaths < MOST_DEATHS else NEVER
        ended, told = world.client(after=after, delegates=delegates)
    assert ended == 0
    judge_history(told["history"])
    assert told["history"][-1]["text"] == "done"
    assert set(world.ends_of_runs().values()) == {1}
    outcomes = {tool_of(id_): outcome for message in told["history"] for id_, outcome, _ in message["results"]}
    for name, lines in world.lines().items():
        assert len(lines) <= 1, f"{name} ran twice"
        assert delegates or lines or outcomes[name] == "unknown"
    assert deaths > 1
