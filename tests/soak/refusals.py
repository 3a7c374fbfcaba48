"""Everything that is done with conversations at a disk that refuses: `python -m tests.soak refusals`.

A process in a namespace of its own, with a small file system of its own, does each action of
tests/soak/history_actions.py while the disk is full, when it turns read-only under open files as after an error of the
disk, and when it was read-only from the start. Where nothing needs to be written, or a full disk has room in a log, the
action is done. Otherwise it is refused with a sentence and a remedy. Then the disk is in order again: what waits is
written, the action is done, all that was acknowledged is there, and it is there when the data folder is opened anew.
"""

import argparse
import asyncio
import errno
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from desktop_agent.storage import database_thread, write_behind
from desktop_agent.types.errors import AgentError
from tests.fakes.http_server import Loopback
from tests.frame.disks import fill
from tests.frame.patience import PATIENCE
from tests.soak.answer_actions import begin
from tests.soak.exchange_actions import back_up
from tests.soak.history_actions import ACTIONS
from tests.soak.history_process import Life, open_world
from tests.soak.history_world import World, observe
from tests.soak.kills import ROOT, Ledger, Server
from tests.soak.list_actions import search, trash

FULL, READ_ONLY, FROM_THE_START = "full", "read-only", "read-only from the start"
CONDITIONS = (FULL, READ_ONLY, FROM_THE_START)
_SIZE = "130m"
"""Where less than 100 MB are free nothing is indexed."""
_SWITCH = "turned"
_LIMIT = 60.0
DONE = "done"


@dataclass
class Told:
    """`outcomes` by action and condition: DONE, or the sentence."""

    outcomes: dict[str, str] = field(default_factory=dict[str, str])
    faults: list[str] = field(default_factory=list[str])


@contextmanager
def small_disk(folder: Path, condition: str) -> Iterator[Path]:
    """Mount a small file system there, which `break_disk` can bring into this condition."""
    folder.mkdir()
    _run("mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(folder))
    try:
        if condition == READ_ONLY:
            with turning_disk(folder / "backing", folder / "disk", folder / _SWITCH) as disk:
                yield disk
        else:
            yield folder
    finally:
        _run("umount", "-l", str(folder))


@contextmanager
def turning_disk(backing: Path, place: Path, switch: Path) -> Iterator[Path]:
    """Mount tests/frame/turning_disk.py in the namespace of this process, and yield `place`. Both folders are made."""
    backing.mkdir()
    place.mkdir()
    command = [sys.executable, "-m", "tests.frame.turning_disk", *map(str, (backing, place, switch))]
    with subprocess.Popen(command) as process:
        end = time.monotonic() + PATIENCE
        while not place.is_mount():
            if process.poll() is not None or time.monotonic() > end:
                process.kill()
                raise OSError(errno.ENODEV, "the disk was not mounted", str(place))
            time.sleep(0.01)
        try:
            yield place
        finally:
            _run("umount", "-l", str(place))


def break_disk(disk: Path, condition: str) -> Callable[[], None]:
    """Let the disk refuse; return what mends it."""
    if condition == FULL:
        ballast = disk / "ballast"
        fill(ballast)
        return ballast.unlink
    if condition == READ_ONLY:
        switch = disk.with_name(_SWITCH)
        switch.touch()
        return switch.unlink
    _run("mount", "--bind", str(disk), str(disk))
    _run("mount", "-o", "remount,bind,ro", str(disk))
    return lambda: _run("umount", "-l", str(disk))


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


class Trial:
    """One action at one disk."""

    def __init__(self, disk: Path, server: str, action: str, condition: str, told: Told) -> None:
        self._disk = disk
        self._server = server
        self._opened = 0
        self._action = action
        self._condition = condition
        self._told = told
        self._ledger = Ledger()
        self._errors: list[str] = []

    async def run(self) -> None:
        world = await self._open()
        for prepare in (begin, begin, begin, trash, search, back_up):
            await prepare(world)
        world.free_path("")
        if self._condition == FROM_THE_START:
            await world.engine.close()
            mend = break_disk(self._disk, self._condition)
            world = await self._open()
        else:
            mend = break_disk(self._disk, self._condition)
        outcome = await self._outcome(world)
        mend()
        self._told.outcomes[f"{self._action}, {self._condition}"] = outcome
        await self._go_on(world)
        await self._judge(world)
        await world.engine.close()
        again = await self._open()
        await self._judge(again)
        await again.engine.close()

    async def _open(self) -> World:
        # Each with words of its own.
        self._opened += 1
        world = await open_world(Life(str(self._disk / "data"), str(self._disk), self._server, self._opened))
        world.tell = self._note
        return world

    def _note(self, line: dict[str, Any]) -> None:
        self._ledger.note(line)
        if "error" in line:
            self._errors.append(line["error"])

    async def _outcome(self, world: World) -> str:
        try:
            async with asyncio.timeout(_LIMIT):
                await ACTIONS[self._action](world)
        except AgentError as error:
            if not error.remedy:
                self._fault(f"no remedy: {error.sentence}")
            return str(error.whole)
        except Exception as error:  # the other trials go on
            self._fault(f"{type(error).__name__}: {error}")
            return "raised"
        return "; ".join(self._errors) or DONE

    async def _go_on(self, world: World) -> None:
        """What waits is written, and the action is done now."""
        self._errors.clear()
        try:
            async with asyncio.timeout(_LIMIT):
                while world.engine.store.read_only is not None:
                    await asyncio.sleep(0.01)
                for session in world.sessions.values():
                    await session.wait_idle()
                    await session.write_all()
                    await session.flush()
                await ACTIONS[self._action](world)
        except (AgentError, TimeoutError, IndexError) as error:
            self._fault(f"afterwards: {type(error).__name__}: {error}")
        for error in self._errors:
            self._fault(f"afterwards: {error}")

    async def _judge(self, world: World) -> None:
        for notice in world.engine.notices:
            if self._condition != FROM_THE_START:
                self._fault(f"said at the start: {notice}")
        facts = await observe(world)
        for fault in self._ledger.judge(facts):
            self._fault(fault)

    def _fault(self, words: str) -> None:
        self._told.faults.append(f"{self._action}, {self._condition}: {words}")


async def live(actions: Sequence[str], conditions: Sequence[str]) -> Told:
    """All of them, in this process, which may mount."""
    told = Told()
    database_thread.FIRST_RETRY_SECONDS = write_behind.RETRY_SECONDS = 0.02
    with tempfile.TemporaryDirectory(prefix="refusals-") as name:
        async with Loopback(choose=Server(random.Random("server")).reply, judged=False) as loopback:
            for number, (action, condition) in enumerate((a, c) for a in actions for c in conditions):
                with small_disk(Path(name, str(number)), condition) as disk:
                    await Trial(disk, loopback.url, action, condition, told).run()
    return told


def can_mount() -> bool:
    """Return whether a process may have file systems of its own here, also made by another process."""
    unshare = shutil.which("unshare")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return False
    command = [unshare or "", "-Urm", "mount", "-t", "tmpfs", "tmpfs", tempfile.gettempdir()]
    return unshare is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0


def run_in_namespace(*arguments: str) -> Told:
    """Run the trials in a process that may mount, and return what came of them. Raises CalledProcessError."""
    command = ["unshare", "-Urm", sys.executable, "-m", "tests.soak.refusals", *arguments]
    with tempfile.TemporaryDirectory() as home:
        # In which actions put what other assistants leave there.
        environment = {**os.environ, "HOME": home}
        process = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE)
    return Told(**json.loads(process.stdout.splitlines()[-1]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.soak refusals", description="At disks that refuse")
    parser.add_argument("--action", choices=sorted(ACTIONS), action="append", default=[], help="these only")
    parser.add_argument("--condition", choices=CONDITIONS, action="append", default=[], help="these only")
    return parser


def main(argv: list[str]) -> int:
    """0 when nothing was wrong."""
    _parser().parse_args(argv)
    told = run_in_namespace(*argv)
    for name, outcome in told.outcomes.items():
        print(f"{name}: {outcome}")
    for fault in told.faults:
        print(f"FAULT {fault}")
    print(f"{len(told.outcomes)} trials, {len(told.faults)} faults")
    return 1 if told.faults else 0


def _inside() -> None:
    asked = _parser().parse_args()
    told = asyncio.run(live(asked.action or tuple(ACTIONS), asked.condition or CONDITIONS))
    print(json.dumps({"outcomes": told.outcomes, "faults": told.faults}))


if __name__ == "__main__":
    _inside()
