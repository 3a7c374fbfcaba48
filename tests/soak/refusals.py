"""Every action on conversations while the disk refuses writes: `python -m tests.soak refusals`.

A process in a namespace of its own, with a small file system, does each action of tests/soak/history_actions.py in
three conditions: the disk is full, it turns read-only under open files as after a disk error, or it was read-only from
the start. If nothing needs to be written, or a full disk has room in a log, the action succeeds. Otherwise it is
refused with a sentence and a remedy. Then the disk is repaired: pending writes are stored, the action succeeds, and
everything acknowledged is there, also when the data folder is opened anew.
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
"""Nothing is indexed where less than 100 MB are free."""
_SWITCH = "turned"
_LIMIT = 60.0
DONE = "done"


@dataclass
class Report:
    """`outcomes` by action and condition: DONE, or the sentence with which it was refused."""

    outcomes: dict[str, str] = field(default_factory=dict[str, str])
    faults: list[str] = field(default_factory=list[str])


@contextmanager
def small_disk(folder: Path, condition: str) -> Iterator[Path]:
    """Mount a small file system at `folder`, which `break_disk` can bring into this condition."""
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
def turning_disk(backing: Path, mount_point: Path, switch: Path) -> Iterator[Path]:
    """Create both folders, mount tests/frame/turning_disk.py in the namespace of this process, yield `mount_point`."""
    backing.mkdir()
    mount_point.mkdir()
    command = [sys.executable, "-m", "tests.frame.turning_disk", *map(str, (backing, mount_point, switch))]
    with subprocess.Popen(command) as process:
        end = time.monotonic() + PATIENCE
        while not mount_point.is_mount():
            if process.poll() is not None or time.monotonic() > end:
                process.kill()
                raise OSError(errno.ENODEV, "the disk was not mounted", str(mount_point))
            time.sleep(0.01)
        try:
            yield mount_point
        finally:
            _run("umount", "-l", str(mount_point))


def break_disk(disk: Path, condition: str) -> Callable[[], None]:
    """Make the disk refuse writes; return a function that repairs it."""
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


def _run(*arguments: str) -> None:
    subprocess.run(arguments, check=True, capture_output=True)


class Trial:
    """One action on one disk."""

    def __init__(self, disk: Path, server: str, action: str, condition: str, report: Report) -> None:
        self._disk = disk
        self._server = server
        self._opened = 0
        self._action = action
        self._condition = condition
        self._report = report
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
        self._report.outcomes[f"{self._action}, {self._condition}"] = outcome
        await self._go_on(world)
        await self._judge(world)
        await world.engine.close()
        again = await self._open()
        await self._judge(again)
        await again.engine.close()

    async def _open(self) -> World:
        # Each world has its own seed, so that its words differ.
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
        """Let pending writes finish, then repeat the action, which must now succeed."""
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

    def _fault(self, fault: str) -> None:
        self._report.faults.append(f"{self._action}, {self._condition}: {fault}")


async def live(actions: Sequence[str], conditions: Sequence[str]) -> Report:
    """Run all trials in this process, which must be allowed to mount."""
    report = Report()
    database_thread.FIRST_RETRY_SECONDS = write_behind.RETRY_SECONDS = 0.02
    with tempfile.TemporaryDirectory(prefix="refusals-") as name:
        async with Loopback(choose=Server(random.Random("server")).reply, judged=False) as loopback:
            for number, (action, condition) in enumerate((a, c) for a in actions for c in conditions):
                with small_disk(Path(name, str(number)), condition) as disk:
                    await Trial(disk, loopback.url, action, condition, report).run()
    return report


def can_mount() -> bool:
    """Return whether processes here may mount file systems, also with FUSE."""
    unshare = shutil.which("unshare")
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return False
    command = [unshare or "", "-Urm", "mount", "-t", "tmpfs", "tmpfs", tempfile.gettempdir()]
    return unshare is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0


def run_in_namespace(*arguments: str) -> Report:
    """Run the trials in a process that may mount, and return their report. Raises CalledProcessError."""
    command = ["unshare", "-Urm", sys.executable, "-m", "tests.soak.refusals", *arguments]
    with tempfile.TemporaryDirectory() as home:
        # Actions write the files of other assistants into the home folder.
        environment = {**os.environ, "HOME": home}
        process = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE)
    return Report(**json.loads(process.stdout.splitlines()[-1]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.soak refusals", description="At disks that refuse")
    parser.add_argument("--action", choices=sorted(ACTIONS), action="append", default=[], help="these only")
    parser.add_argument("--condition", choices=CONDITIONS, action="append", default=[], help="these only")
    return parser


def main(argv: list[str]) -> int:
    """Return 0 if there were no faults."""
    _parser().parse_args(argv)
    report = run_in_namespace(*argv)
    for name, outcome in report.outcomes.items():
        print(f"{name}: {outcome}")
    for fault in report.faults:
        print(f"FAULT {fault}")
    print(f"{len(report.outcomes)} trials, {len(report.faults)} faults")
    return 1 if report.faults else 0


def _inside() -> None:
    arguments = _parser().parse_args()
    report = asyncio.run(live(arguments.action or tuple(ACTIONS), arguments.condition or CONDITIONS))
    print(json.dumps({"outcomes": report.outcomes, "faults": report.faults}))


if __name__ == "__main__":
    _inside()
