"""Kills, stops and set clocks while scheduled prompts run: `python -m tests.soak schedules --kills 200 --seed 1`.

One or two processes with the real engine and scheduler run prompts of every kind on one data folder, with a model
server on loopback and a clock that is sixty times as fast. At a random moment all are killed; sometimes one is stopped
for a while and continued, or the clock is set forward or back. Then these must hold: every stored prompt belongs to one
run, and every run has at most one; the server got at most one request for each run; no run started before its time or
later than allowed; no claimed run was forgotten; and at the end, when a process works undisturbed, every prompt has run
for its latest time.
"""

import argparse
import asyncio
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from desktop_agent.storage.connection import connect
from desktop_agent.storage.store import Store
from desktop_agent.types.schedules import Cron, Interval, ScheduledPrompt
from tests.fakes.http_server import Loopback, Reply, Request, chunk, sse
from tests.soak.schedule_process import SPEED, fast_clock
from tests.soak.stored_runs import find_lost, find_repeated

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 120.0
"""Seconds after which a process that has not started is a fault; the machine may be loaded."""
_SLACK = timedelta(seconds=SPEED * 3)
"""How late, by the fast clock, a loaded machine may claim a run."""
_SETTLING = 10.0
_SETTLED = timedelta(seconds=SPEED * (_SETTLING - 2))
_ZONE = ZoneInfo("Europe/Berlin")


@dataclass
class Report:
    """What came of it."""

    kills: int = 0
    pairs: int = 0
    stops: int = 0
    jumps: int = 0
    runs: Counter[str] = field(default_factory=Counter[str])
    asked: int = 0
    faults: list[str] = field(default_factory=list[str])


def prompts(start: datetime) -> list[ScheduledPrompt]:
    """Return prompts of every kind, which differ in their texts."""
    return [
        ScheduledPrompt(title="a", prompt="prompt-a", timing=Interval(minutes=1, start=start)),
        ScheduledPrompt(title="b", prompt="prompt-b", timing=Cron(line="* * * * *"), target="same"),
        ScheduledPrompt(title="c", prompt="prompt-c", timing=Cron(line="* * * * *"), missed="skip"),
        ScheduledPrompt(title="d", prompt="prompt-d", timing=Cron(line="*/3 * * * *"), missed="skip", target="same"),
        ScheduledPrompt(title="e", prompt="prompt-e", timing=Interval(minutes=2, start=start), target="same"),
    ]


class Server:
    """Answers at once or after a delay, and counts the requests by their texts."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.asked: Counter[str] = Counter()

    def reply(self, request: Request) -> Reply:
        if request.method == "GET":
            return Reply(b'{"object": "list", "data": [{"id": "m"}]}', framing="length")
        last = request.json["messages"][-1]["content"]
        text = last if isinstance(last, str) else str(last[-1].get("text"))
        # After a run that was interrupted, two prompts are one message.
        self.asked[text.split()[-1]] += 1
        hold = asyncio.Event()
        asyncio.get_running_loop().call_later(self._chance.choice((0.0, 0.05, 0.3)), hold.set)
        begun = sse(chunk({"content": "It "}), done=False)
        return Reply(begun, hold=hold, late=sse(chunk({"content": "is."}), chunk(finish="stop")))


class Trial:
    """One data folder, and the processes that work on it."""

    def __init__(self, folder: Path, url: str, chance: random.Random, report: Report) -> None:
        self._folder, self._data, self._url = folder, folder / "data", url
        self._chance, self._report = chance, report
        self._jumped = 0.0
        self._lives: Any = None
        """The process from which the others are forked."""

    async def prepare(self) -> None:
        self._data.mkdir()
        (self._folder / "begun").write_text(str(time.time()))
        (self._folder / "jump").write_text("0")
        store = await Store.open(self._data)
        now = fast_clock(self._folder).now()
        for prompt in prompts(now):
            await store.schedules.save(prompt, now)
        await store.close()

    async def kill_once(self) -> None:
        """Let one or two processes work for a while, and kill them."""
        count = 2 if self._chance.random() < 0.3 else 1
        pids = [await self._start() for _ in range(count)]
        self._report.pairs += count == 2
        await asyncio.sleep(self._chance.random() * 1.2)
        if self._chance.random() < 0.15:
            self._report.stops += 1
            os.kill(pids[0], signal.SIGSTOP)
            await asyncio.sleep(self._chance.random() * 4)
            os.kill(pids[0], signal.SIGCONT)
            await asyncio.sleep(self._chance.random())
        if self._chance.random() < 0.15:
            self._jump(self._chance.choice((-3600.0, -240.0, 240.0, 7200.0)))
            await asyncio.sleep(self._chance.random())
        self._report.kills += count
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        if self._chance.random() < 0.3:
            await asyncio.sleep(self._chance.random() * 4)

    async def settle(self) -> None:
        """Let one process work until each prompt has run for its latest time; report those that never do."""
        await self._start()
        await asyncio.sleep(_SETTLING)
        until = time.monotonic() + LIMIT
        while (lost := self._lost()) and time.monotonic() < until:
            await asyncio.sleep(1)
        self._report.faults += lost

    async def close(self) -> None:
        """End the last process too, and report the errors that the processes printed."""
        if self._lives is not None:
            os.killpg(self._lives.pid, signal.SIGKILL)
            _, error = await self._lives.communicate()
            if error:
                self._report.faults.append(error.decode()[-2000:])

    def _jump(self, seconds: float) -> None:
        self._report.jumps += 1
        self._jumped += seconds
        unfinished = self._folder / "jump.new"
        unfinished.write_text(str(self._jumped))
        unfinished.replace(self._folder / "jump")

    async def _start(self) -> int:
        if self._lives is None:
            self._lives = await self._start_lives()
        self._lives.stdin.write(b"\n")
        await self._lives.stdin.drain()
        async with asyncio.timeout(LIMIT):
            return int(await self._lives.stdout.readline())

    async def _start_lives(self) -> Any:
        folders = {
            f"XDG_{name}_HOME": str(self._folder / name.lower()) for name in ("DATA", "CONFIG", "STATE", "CACHE")
        }
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.soak.schedule_process",
            str(self._data),
            self._url,
            cwd=ROOT,
            env={
                **os.environ,
                "HOME": str(self._folder),
                **folders,
                "TZ": _ZONE.key,
                "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
            },
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )

    def _lost(self) -> list[str]:
        with closing(connect(self._data / "conversations.sqlite3")) as db:
            now = fast_clock(self._folder).now()
            return [*find_lost(db, now - _SETTLED, now, _SLACK, _ZONE)]

    def judge(self, request_counts: Counter[str]) -> None:
        with closing(connect(self._data / "conversations.sqlite3")) as db:
            self._report.faults += find_repeated(db, request_counts, _ZONE)
            rows = db.execute("SELECT CASE state WHEN 'ended' THEN result ELSE state END FROM schedule_runs").fetchall()
        self._report.runs = Counter(str(row[0]) for row in rows)
        self._report.asked = sum(request_counts.values())


async def live(kills: int, seed: int, tell: Callable[[str], object] = print) -> Report:
    """Run everything in a temporary folder, which is kept if there were faults."""
    chance, report = random.Random(seed), Report()
    folder, started = Path(tempfile.mkdtemp(prefix="schedules-")), time.monotonic()
    server = Server(chance)
    async with Loopback(choose=server.reply, judged=False) as loopback:
        trial = Trial(folder, loopback.url, chance, report)
        await trial.prepare()
        rounds = 0
        while report.kills < kills and not report.faults:
            await trial.kill_once()
            rounds += 1
            if rounds % 10 == 0:
                trial.judge(server.asked)
                tell(f"{report.kills} kills, {sum(report.runs.values())} runs, {time.monotonic() - started:.0f} s")
        if not report.faults:
            await trial.settle()
            trial.judge(server.asked)
        await trial.close()
    if report.faults:
        tell(f"the data is in {folder}")
    else:
        with suppress(OSError):
            shutil.rmtree(folder)
    return report


def main(argv: list[str]) -> int:
    """Return 0 if there were no faults."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak schedules", description="Kills while prompts run")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments = parser.parse_args(argv)
    print(f"seed {arguments.seed}, {arguments.kills} kills", flush=True)
    report = asyncio.run(live(arguments.kills, arguments.seed, lambda line: print(line, flush=True)))
    for name, count in report.runs.most_common():
        print(f"  {count:5} {name}")
    print(
        f"{report.kills} kills, {report.pairs} times two processes, {report.stops} stops, {report.jumps} set clocks;"
        f" the model was asked {report.asked} times; {len(report.faults)} faults"
    )
    for fault in report.faults[:40]:
        print(f"  {fault}")
    return 1 if report.faults else 0
