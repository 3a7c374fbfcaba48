"""Kills, set clocks and stops of the real window with scheduled prompts and waiting approvals.

    python -m tests.soak window-schedules --kills 200 --seed 1

The program runs on a data folder with prompts of every kind, half of which make the model call a command that must wait
for the person, and a model server on loopback. Its clock comes from libfaketime: it is thirty times as fast, starts on
the evening before the clock of Berlin changes, and is set forward, also over a change and over weeks, or back. At a
random moment the process is killed; sometimes it is stopped first and continued, as on a computer that slept, with or
without its clock set meanwhile. In some windows a person allows or denies every waiting call by way of the inbox.

After each kill: no run, prompt or request to the model is repeated, and no run started before its time or later than
allowed; each waiting call that was not decided still waits; no command has taken effect twice or without being allowed.
Sometimes, and at the end, the program works undisturbed until every prompt has run, or was skipped, for its latest
time; then all waiting calls are decided, each allowed command takes effect, and the program ends without an error.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from datetime import time as day_time
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.preferences_file import PreferencesFile
from desktop_agent.storage.store import Store
from desktop_agent.types.preferences import ChatPreferences, Preferences, ProviderPreferences
from desktop_agent.types.providers import Endpoint
from desktop_agent.types.schedules import Cron, Interval, ScheduledPrompt, Weekly
from tests.fakes.http_server import Loopback, Reply, Request, chunk, sse
from tests.soak.set_clock import MISSING, SetClock, find_library
from tests.soak.stored_runs import find_lost, find_repeated

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
ZONE = ZoneInfo("Europe/Berlin")
SPEED = 30.0
LIMIT = 240.0
"""Seconds after which a process that has not started or settled is a fault; the machine may be loaded."""
_LONGEST_LIFE = 3.0
_EARLY = 0.2
"""The share of kills that come while the program starts."""
_SLACK = timedelta(seconds=20)
_ROUNDS_UNTIL_SETTLED = 20
_CHANGES = [datetime(year, month, day, 1, tzinfo=UTC) for year, month, day in ((2026, 10, 25), (2027, 3, 28))]
_CHANGES += [datetime(year, month, day, 1, tzinfo=UTC) for year, month, day in ((2027, 10, 31), (2028, 3, 26))]
_CHANGES += [datetime(year, month, day, 1, tzinfo=UTC) for year, month, day in ((2028, 10, 29), (2029, 3, 25))]
_DAYS = tuple(range(7))
_ALLOW, _DENY = "Allow once", "Deny"


@dataclass
class Report:
    """What came of it."""

    kills: int = 0
    stops: int = 0
    forward: int = 0
    back: int = 0
    changes: int = 0
    """Changes to or from summer time that the clock passed or jumped over."""
    kept_waiting: int = 0
    """Calls that waited both before and after a kill."""
    longest_wait: int = 0
    """The largest number of kills that one call waited through."""
    decided: Counter[str] = field(default_factory=Counter[str])
    effects: int = 0
    cut_off: int = 0
    """Commands that were allowed and have no effect, since the process was killed then."""
    settled: int = 0
    runs: Counter[str] = field(default_factory=Counter[str])
    asked: int = 0
    faults: list[str] = field(default_factory=list[str])


def prompts(start: datetime, workspace: str) -> list[ScheduledPrompt]:
    """Return prompts of every kind with different texts. Those that begin with `do` let the model run a command."""

    def prompt(text: str, timing: Any, **more: Any) -> ScheduledPrompt:
        return ScheduledPrompt(title=text, prompt=text, timing=timing, workspace=workspace, **more)

    return [
        prompt("say-a", Interval(minutes=2, start=start)),
        prompt("say-b", Cron(line="*/3 * * * *"), target="same"),
        prompt("say-c", Cron(line="*/2 * * * *"), missed="skip"),
        prompt("say-d", Weekly(days=_DAYS, at=day_time(2, 30)), missed="skip"),
        prompt("do-e", Cron(line="*/5 * * * *")),
        prompt("do-f", Interval(minutes=4, start=start), target="same"),
        prompt("do-g", Cron(line="*/6 * * * *"), missed="skip"),
        prompt("do-h", Weekly(days=_DAYS, at=day_time(2, 30))),
    ]


class Server:
    """Calls a command that adds a unique word to a file, or answers, at once or after a delay."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._count = 0
        self.asked: Counter[str] = Counter()

    def reply(self, request: Request) -> Reply:
        if request.method == "GET":
            return Reply(b'{"object": "list", "data": [{"id": "m"}]}', framing="length")
        last = request.json["messages"][-1]
        hold = asyncio.Event()
        asyncio.get_running_loop().call_later(self._chance.choice((0.0, 0.05, 0.3)), hold.set)
        begun, end = sse(chunk({"content": "It "}), done=False), [chunk({"content": "is."}), chunk(finish="stop")]
        if last["role"] != "tool":
            content = last["content"]
            # After a run that was interrupted, two prompts are one message.
            text = (content if isinstance(content, str) else str(content[-1].get("text"))).split()[-1]
            self.asked[text] += 1
            if text.startswith("do"):
                self._count += 1
                line = f"sleep {self._chance.choice((0, 0.2))}; echo t{self._count} >> effects.txt"
                call = {"name": "run_command", "arguments": json.dumps({"command": line})}
                tool_call = {"index": 0, "id": f"t{self._count}", "type": "function", "function": call}
                end = [chunk({"tool_calls": [tool_call]}), chunk(finish="tool_calls")]
        return Reply(begun, hold=hold, late=sse(*end))


@dataclass(frozen=True)
class Calls:
    """The calls in the journal that a person was asked about: their words by approval id, and those that still wait."""

    words: dict[str, str] = field(default_factory=dict[str, str])
    waiting: frozenset[str] = frozenset()


def read_calls(db: sqlite3.Connection) -> Calls:
    """Read the calls that were asked about, and which of them are undecided and unfinished in an unfinished run."""
    open_runs = {number for (number,) in db.execute("SELECT number FROM runs WHERE NOT finished")}
    words: dict[str, str] = {}
    waiting: set[str] = set()
    kinds = "('approval_requested', 'approval_resolved', 'tool_finished')"
    for number, kind, body in db.execute(f"SELECT number, type, event FROM journal WHERE type IN {kinds}"):
        event = json.loads(body)
        if kind == "approval_requested":
            words[event["approval_id"]] = event["tool_use_id"]
            waiting |= {event["tool_use_id"]} if number >> 32 in open_runs else set()
        else:
            waiting.discard(event.get("tool_use_id") or event["result"]["tool_use_id"])
    return Calls(words, frozenset(waiting))


def words_answered(calls: Calls, answers: Mapping[str, str], *buttons: str) -> set[str]:
    """Return the words of the calls for which one of these buttons was pressed. `answers`: the button by approval."""
    return {calls.words[id_] for id_, button in answers.items() if button in buttons and id_ in calls.words}


def find_wrong_calls(before: Calls, after: Calls, answers: Mapping[str, str], effects: Counter[str]) -> Iterator[str]:
    """Yield the faults after a kill; `effects` counts what commands have done, by their words."""
    decided = words_answered(before, answers, _ALLOW, _DENY) | words_answered(after, answers, _ALLOW, _DENY)
    for word in sorted(before.waiting - after.waiting - decided):
        yield f"{word} waited, was not decided, and does not wait any more"
    yield from (f"{word} took effect {count} times" for word, count in effects.items() if count > 1)
    for word in sorted(effects.keys() - words_answered(after, answers, _ALLOW)):
        yield f"{word} took effect, and was not allowed"


class Trial:
    """One data folder, and the successive processes of the program on it."""

    def __init__(
        self, folder: Path, library: Path, request_counts: Counter[str], chance: random.Random, report: Report
    ) -> None:
        self._folder, self._data, self._asked = folder, folder / "data", request_counts
        self._chance, self._report = chance, report
        self._work = folder / "work"
        change = chance.choice(_CHANGES[:2])
        self.clock = SetClock(library, folder, change - timedelta(hours=2), SPEED)
        self._since = self.clock.now()
        """The time from which the clock was not set back, or the program has noticed that it was."""
        self._was_set_back = False
        self._start_seconds = 1.0
        """Seconds that the latest process took until it ran scheduled prompts."""
        self._furthest = self._since
        self._process: Any = None
        self._answers: dict[str, str] = {}
        """The button that was pressed last for each approval."""
        self._waits: Counter[str] = Counter()

    async def prepare(self, url: str) -> None:
        self._data.mkdir(mode=0o700)
        self._work.mkdir()
        endpoint = Endpoint(id="loopback", title="Loopback", base_url=url)
        providers = ProviderPreferences(endpoints=(endpoint,), endpoint_id=endpoint.id, model="m")
        chosen = Preferences(providers=providers, chat=ChatPreferences(titles="local"))
        await PreferencesFile(self._data).save(chosen)
        store = await Store.open(self._data)
        for prompt in prompts(self._since, str(self._work)):
            await store.schedules.save(prompt, self._since)
        await store.close()

    async def kill_once(self) -> None:
        """Let the program work for a while, stop it or set its clock, and kill it."""
        button = self._chance.choices(("", _ALLOW, _DENY), (5, 4, 1))[0]
        pid, started = await self._begin(button), time.monotonic()
        if self._chance.random() < _EARLY:
            await asyncio.sleep(self._chance.random() * self._start_seconds)
        else:
            await self._next("ready")
            self._start_seconds = time.monotonic() - started
            # A loaded machine takes longer for all steps.
            await asyncio.sleep(self._chance.random() * max(_LONGEST_LIFE, 3 * self._start_seconds))
        if self._chance.random() < 0.15:
            self._report.stops += 1
            os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(self._chance.random() * 2)
            if self._chance.random() < 0.7:
                self._set_clock()
            os.kill(pid, signal.SIGCONT)
            await asyncio.sleep(self._chance.random() * 2)
        if self._chance.random() < 0.2:
            self._set_clock()
            await asyncio.sleep(self._chance.random() * 2)
        before = self._read(read_calls)
        self._report.kills += 1
        os.kill(pid, signal.SIGKILL)
        await self._wait_for_end()
        self._judge(before)
        if self._chance.random() < 0.1:
            # The clock may also be set between two processes.
            self._set_clock()

    async def settle(self) -> None:
        """Let the program work until every prompt has run for its latest time and nothing waits, and end it."""
        answered_before = set(self._answers)
        # With a slow clock, prompts do not become due all the time.
        self.clock.set_speed(1)
        pid = await self._begin(_ALLOW)
        waiting = self._read(read_calls).waiting
        await self._until(lambda: [] if self._is_clock_seen() else ["the clock that was set back is not seen"])
        if self._was_set_back:
            self._since, self._was_set_back = self.clock.now(), False
        await self._until(self._find_lost)
        await self._until(
            lambda: [f"{word} waits still: nobody was asked" for word in waiting & self._read(read_calls).waiting]
        )
        answers = {id_: button for id_, button in self._answers.items() if id_ not in answered_before}
        allowed = words_answered(self._read(read_calls), answers, _ALLOW)
        await self._until(lambda: [f"{word} was allowed, and did nothing" for word in allowed - set(self._effects())])
        os.kill(pid, signal.SIGTERM)
        if (code := await self._wait_for_end()) != 0:
            self._report.faults.append(f"the program ended with {code}")
        self._judge(Calls())
        self._report.settled += 1
        self.clock.set_speed(SPEED)

    async def close(self) -> None:
        """End the process from which the others are forked, and report the errors that they printed."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            _, error = await self._process.communicate()
            before, found, trace = error.decode().partition("Traceback")
            if found:
                self._report.faults.append(f"{before[-300:]}{found}{trace[:3000]}")

    async def _until(self, find: Callable[[], list[str]]) -> None:
        """Wait until there are no faults any more; report those that remain."""
        end = time.monotonic() + LIMIT
        while faults := find():
            if time.monotonic() > end:
                self._report.faults += faults
                return
            await asyncio.sleep(0.1)

    def _find_lost(self) -> list[str]:
        return self._read(lambda db: list(find_lost(db, self._since, self.clock.now(), _SLACK, ZONE)))

    def _is_clock_seen(self) -> bool:
        now = self.clock.now().timestamp() * 1e6 + 1e6
        return self._read(
            lambda db: all(until <= now for (until,) in db.execute("SELECT checked_until FROM schedules"))
        )

    def _set_clock(self) -> None:
        now = self.clock.now()
        change = next((change for change in _CHANGES if change > now), now)
        over = (change - now).total_seconds() - self._chance.choice((-600, 60, 300))
        seconds = self._chance.choice((240.0, 7200.0, 3 * 86400.0, over, over, -240.0, -3600.0, -2 * 86400.0))
        if seconds < 0:
            self._report.back += 1
            self._was_set_back = True
        else:
            self._report.forward += 1
        self.clock.jump(seconds)

    def _judge(self, before: Calls) -> None:
        """Check what is stored after a process was killed. `before` are the calls stored at the kill."""
        after, effects, faults = self._read(read_calls), Counter(self._effects()), self._report.faults
        faults += find_wrong_calls(before, after, self._answers, effects)
        still_waiting = before.waiting & after.waiting
        self._report.kept_waiting += len(still_waiting)
        self._waits.update(still_waiting)
        self._report.longest_wait = max(self._waits.values(), default=0)
        allowed = words_answered(after, self._answers, _ALLOW)
        faults += self._read(lambda db: list(find_repeated(db, self._asked, ZONE)))
        self._report.effects, self._report.cut_off = len(effects), len(allowed - effects.keys() - after.waiting)
        self._report.decided = Counter(self._answers.values())
        sql = "SELECT CASE state WHEN 'ended' THEN result ELSE state END FROM schedule_runs"
        self._report.asked = sum(self._asked.values())
        self._report.runs = self._read(lambda db: Counter(str(row[0]) for row in db.execute(sql)))
        now = self.clock.now()
        self._report.changes += sum(self._furthest < change <= now for change in _CHANGES)
        self._furthest = max(self._furthest, now)

    def _effects(self) -> list[str]:
        path = self._work / "effects.txt"
        return path.read_text().split() if path.exists() else []

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with closing(sqlite3.connect(f"file:{self._data / DATABASE_NAME}?mode=ro", uri=True)) as db:
            db.execute("BEGIN")
            return work(db)

    async def _begin(self, button: str) -> int:
        if self._process is None:
            self._process = await self._start()
        self._process.stdin.write(f"{button}\n".encode())
        await self._process.stdin.drain()
        return (await self._next("pid"))["pid"]

    async def _wait_for_end(self) -> int:
        return (await self._next("ended"))["ended"]

    async def _next(self, key: str) -> dict[str, Any]:
        """Return the next line with this key, and record the lines before it."""
        while True:
            async with asyncio.timeout(LIMIT):
                data = await self._process.stdout.readline()
            if not data:
                raise RuntimeError((await self._process.stderr.read()).decode())
            with suppress(ValueError):
                line: Any = json.loads(data)
                if isinstance(line, dict) and "answered" in line:
                    self._answers[line["answered"]] = line["button"]
                if isinstance(line, dict) and key in line:
                    return line

    async def _start(self) -> Any:
        folders = {
            f"XDG_{name}_HOME": str(self._folder / name.lower()) for name in ("DATA", "CONFIG", "STATE", "CACHE")
        }
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.soak.scheduled_window",
            str(self._data),
            cwd=ROOT,
            env={
                **os.environ,
                "HOME": str(self._folder),
                **folders,
                "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
                "QT_QPA_PLATFORM": "offscreen",
                **self.clock.environment(ZONE.key),
            },
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )


async def live(kills: int, seed: int, library: Path, tell: Callable[[str], object] = print) -> Report:
    """Run everything in a temporary folder, which is kept if there were faults."""
    chance, report = random.Random(seed), Report()
    folder, started = Path(tempfile.mkdtemp(prefix="window-schedules-")), time.monotonic()
    server = Server(chance)
    async with Loopback(choose=server.reply, judged=False) as loopback:
        trial = Trial(folder, library, server.asked, chance, report)
        ticking = asyncio.create_task(trial.clock.run())
        await trial.prepare(loopback.url)
        try:
            while report.kills < kills and not report.faults:
                await trial.kill_once()
                if not report.faults and (report.kills % _ROUNDS_UNTIL_SETTLED == 0 or report.kills == kills):
                    await trial.settle()
                    tell(f"{report.kills} kills, {sum(report.runs.values())} runs, {time.monotonic() - started:.0f} s")
        finally:
            ticking.cancel()
            await trial.close()
    if report.faults:
        tell(f"the data is in {folder}")
    else:
        with suppress(OSError):
            shutil.rmtree(folder)
    return report


def main(argv: list[str]) -> int:
    """Return 0 if there were no faults, 2 if libfaketime is not installed."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak window-schedules", description="Kills and set clocks")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--faketime", type=Path, help="a folder in which libfaketime was unpacked")
    arguments = parser.parse_args(argv)
    library = find_library(arguments.faketime)
    if library is None:
        print(MISSING)
        return 2
    print(f"seed {arguments.seed}, {arguments.kills} kills", flush=True)
    report = asyncio.run(live(arguments.kills, arguments.seed, library, lambda line: print(line, flush=True)))
    for name, count in report.runs.most_common():
        print(f"  {count:5} {name}")
    print(
        f"{report.kills} kills, {report.stops} stops; the clock was set forward {report.forward} times and back"
        f" {report.back} times, and passed {report.changes} changes of summer time; left alone {report.settled} times\n"
        f"calls waited through a kill {report.kept_waiting} times, one of them through {report.longest_wait} kills;"
        f" decided: {dict(report.decided)}, {report.effects} commands took effect,"
        f" {report.cut_off} were cut off by a kill; the model was asked {report.asked} times;"
        f" {len(report.faults)} faults"
    )
    for fault in report.faults[:40]:
        print(f"  {fault}")
    return 1 if report.faults else 0
