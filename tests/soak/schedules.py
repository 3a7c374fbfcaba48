"""Kills, stops and set clocks while scheduled prompts run: `python -m tests.soak schedules --kills 200 --seed 1`.

One process or two, with the real engine and the real scheduler, run prompts of every kind on one data folder, with a
model server on loopback and a clock that runs sixty times as fast. At some moment all are killed; now and then one is
stopped for a while and goes on, or the clock is set, forward or back. Then it is counted: every prompt that is stored
belongs to one run and every run has at most one; the server was asked at most once for each run; no run began before
its time, or later than was chosen; nothing that was claimed was forgotten; and at the end, left alone, every prompt
has run for its newest time.
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
"""Seconds until a process that does not begin is a fault; the machine may be loaded."""
_SLACK = timedelta(seconds=SPEED * 3)
"""By so much of the fast clock a loaded machine may claim late."""
_SETTLING = 10.0
_SETTLED = timedelta(seconds=SPEED * (_SETTLING - 2))
_ZONE = ZoneInfo("Europe/Berlin")


@dataclass
class Told:
    """What came of it."""

    kills: int = 0
    pairs: int = 0
    stops: int = 0
    jumps: int = 0
    runs: Counter[str] = field(default_factory=Counter[str])
    asked: int = 0
    faults: list[str] = field(default_factory=list[str])


def prompts(start: datetime) -> list[ScheduledPrompt]:
    """Prompts of every kind, which differ by their texts."""
    return [
        ScheduledPrompt(title="a", prompt="prompt-a", timing=Interval(minutes=1, start=start)),
        ScheduledPrompt(title="b", prompt="prompt-b", timing=Cron(line="* * * * *"), target="same"),
        ScheduledPrompt(title="c", prompt="prompt-c", timing=Cron(line="* * * * *"), missed="skip"),
        ScheduledPrompt(title="d", prompt="prompt-d", timing=Cron(line="*/3 * * * *"), missed="skip", target="same"),
        ScheduledPrompt(title="e", prompt="prompt-e", timing=Interval(minutes=2, start=start), target="same"),
    ]


class Server:
    """Answers at once or after a moment, and counts what it was asked."""

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
    """One data folder, and the processes on it."""

    def __init__(self, folder: Path, url: str, chance: random.Random, told: Told) -> None:
        self._folder, self._data, self._url = folder, folder / "data", url
        self._chance, self._told = chance, told
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
        """Let one process or two work for a while, and kill them."""
        count = 2 if self._chance.random() < 0.3 else 1
        pids = [await self._start() for _ in range(count)]
        self._told.pairs += count == 2
        await asyncio.sleep(self._chance.random() * 1.2)
        if self._chance.random() < 0.15:
            self._told.stops += 1
            os.kill(pids[0], signal.SIGSTOP)
            await asyncio.sleep(self._chance.random() * 4)
            os.kill(pids[0], signal.SIGCONT)
            await asyncio.sleep(self._chance.random())
        if self._chance.random() < 0.15:
            self._jump(self._chance.choice((-3600.0, -240.0, 240.0, 7200.0)))
            await asyncio.sleep(self._chance.random())
        self._told.kills += count
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        if self._chance.random() < 0.3:
            await asyncio.sleep(self._chance.random() * 4)

    async def settle(self) -> None:
        """Leave one process alone until each prompt has run for its newest time; tell which never did."""
        await self._start()
        await asyncio.sleep(_SETTLING)
        until = time.monotonic() + LIMIT
        while (lost := self._lost()) and time.monotonic() < until:
            await asyncio.sleep(1)
        self._told.faults += lost

    async def close(self) -> None:
        """End the last process too, and tell what they have complained of."""
        if self._lives is not None:
            os.killpg(self._lives.pid, signal.SIGKILL)
            _, error = await self._lives.communicate()
            if error:
                self._told.faults.append(error.decode()[-2000:])

    def _jump(self, seconds: float) -> None:
        self._told.jumps += 1
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
        places = {f"XDG_{name}_HOME": str(self._folder / name.lower()) for name in ("DATA", "CONFIG", "STATE", "CACHE")}
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
                **places,
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

    def judge(self, asked: Counter[str]) -> None:
        with closing(connect(self._data / "conversations.sqlite3")) as db:
            self._told.faults += find_repeated(db, asked, _ZONE)
            rows = db.execute("SELECT CASE state WHEN 'ended' THEN result ELSE state END FROM schedule_runs").fetchall()
        self._told.runs = Counter(str(row[0]) for row in rows)
        self._told.asked = sum(asked.values())


async def live(kills: int, seed: int, tell: Callable[[str], object] = print) -> Told:
    """All of it in a folder of its own, which stays where something was wrong."""
    chance, told = random.Random(seed), Told()
    folder, began = Path(tempfile.mkdtemp(prefix="schedules-")), time.monotonic()
    server = Server(chance)
    async with Loopback(choose=server.reply, judged=False) as loopback:
        trial = Trial(folder, loopback.url, chance, told)
        await trial.prepare()
        rounds = 0
        while told.kills < kills and not told.faults:
            await trial.kill_once()
            rounds += 1
            if rounds % 10 == 0:
                trial.judge(server.asked)
                tell(f"{told.kills} kills, {sum(told.runs.values())} runs, {time.monotonic() - began:.0f} s")
        if not told.faults:
            await trial.settle()
            trial.judge(server.asked)
        await trial.close()
    if told.faults:
        tell(f"the data is in {folder}")
    else:
        with suppress(OSError):
            shutil.rmtree(folder)
    return told


def main(argv: list[str]) -> int:
    """0 when nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak schedules", description="Kills while prompts run")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    wanted = parser.parse_args(argv)
    print(f"seed {wanted.seed}, {wanted.kills} kills", flush=True)
    told = asyncio.run(live(wanted.kills, wanted.seed, lambda line: print(line, flush=True)))
    for name, count in told.runs.most_common():
        print(f"  {count:5} {name}")
    print(
        f"{told.kills} kills, {told.pairs} times two processes, {told.stops} stops, {told.jumps} set clocks;"
        f" the model was asked {told.asked} times; {len(told.faults)} faults"
    )
    for fault in told.faults[:40]:
        print(f"  {fault}")
    return 1 if told.faults else 0
