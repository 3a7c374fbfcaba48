"""Kills and disk faults while real processes work: `python -m tests.soak disk-faults --runs 500 --seed 1`.

In each run the window, `ask` or `ask --continue` works on a data folder with conversations, and one fault (`FAULTS`)
happens before or during an answer. Then the disk is repaired and the program is started once more. These must hold:
everything that was stored before is there or, where bytes were destroyed, everything outside of them is there and the
loss was reported; the exit code is 0 only if the answer was stored; each fault is reported in its own words; a replaced
file is used from then on; there is no traceback; and the program can be used. If a file is overwritten in place, only
the last two must hold, as nobody can notice that. While the program works, "read-only" affects only files opened from
then on, as files that are open for writing cannot be made read-only. Faults that need a disk of their own are left out
where mounting is not allowed.
"""

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import DatabaseDamaged
from desktop_agent.types.messages import Message
from tests.fakes.http_server import Loopback, Reply, Request, chunk, sse

ROOT = Path(__file__).resolve().parents[2]
ACTORS = ("ask", "continue", "window")
FAULTS = {
    "killed": "",
    "full": "no room",
    "read-only": "cannot be written",
    "folder deleted": "gone",
    "replaced": "replaced",
    "overwritten": "",
    "byte of a table": "damaged",
    "byte of an index": "damaged",
    "truncated": "damaged",
    "log removed": "",
    "log removed after a kill": "which had the newest messages, was removed",
}
"""Faults, each with words of the message that must report it; empty where nothing is lost and no report is needed."""
NEED_A_DISK = ("full", "read-only")
OPEN_ONLY = ("killed", "folder deleted", "replaced", "overwritten", "log removed", "log removed after a kill")
GONE_ON_WITH = "works with the new file"
LIMIT = 120.0
"""Seconds after which a process that has not ended is a fault; the machine may be loaded."""

PAGE = 4096
_TOKEN = re.compile(r"\bk\d+e\b")
_FILLER = "Words that fill the pages of the database. "


@dataclass
class Report:
    """The results of all runs."""

    runs: int = 0
    kept: int = 0
    lost_and_told: int = 0
    rescued: int = 0
    kinds: Counter[str] = field(default_factory=Counter[str])
    codes: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])


class Server:
    """Answers each prompt with a unique word, and holds back the end of the answer until `go` is set."""

    def __init__(self) -> None:
        self._count = 1000
        self.token = ""
        self.half_told = asyncio.Event()
        self.go = asyncio.Event()

    def reply(self, request: Request) -> Reply:
        if request.method == "GET":
            return Reply(json.dumps({"object": "list", "data": [{"id": "m"}]}).encode(), framing="length")
        self._count += 1
        self.token = f"k{self._count}e"
        self.half_told.set()
        begun = sse(chunk({"content": _FILLER * 20}), done=False)
        return Reply(begun, hold=self.go, late=sse(chunk({"content": self.token}), chunk(finish="stop")))


@dataclass
class Process:
    """A finished process: all its output, its standard output, and its exit code, None if it was killed."""

    code: int | None
    output: str
    out: str


class Run:
    """One fault while one actor works on one data folder."""

    def __init__(
        self, folder: Path, template: Path, server: Server, url: str, chance: random.Random, fault: str
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.fault = fault
        self.actor = chance.choice(ACTORS)
        self.is_open = fault in OPEN_ONLY or chance.random() < 0.6
        self.faults: list[str] = []
        self.printed = ""
        self._spoke = asyncio.Event()
        self.may_lose: set[str] = set()
        self.lost: set[str] = set()
        self.is_detectable = True
        self.only_texts: set[str] = set()
        """Tokens lost from texts in an otherwise intact page: shown as unknown, and no check can find the damage."""
        self.must_be_told = ""
        self._template = template
        self._server = server
        self._url = url
        self._chance = chance
        self._known: set[str] = set()

    @property
    def path(self) -> Path:
        return self.data / DATABASE_NAME

    async def client(self) -> Process:
        """All of it."""
        shutil.copytree(self._template, self.data)
        (self.data / "old").rename(self.folder / "old")
        self._known = _tokens(self.path)
        undo: Callable[[], None] | None = None
        if not self.is_open:
            undo = self._strike()
        acted = await self._act()
        if undo is not None:
            undo()
        self._judge(acted)
        again = await self._restart()
        self._judge_restart(again)
        await self._count(acted)
        return acted

    def _strike(self) -> Callable[[], None] | None:
        """Cause the fault; return a function that undoes it."""
        match self.fault:
            case "full":
                ballast = self.folder / "ballast"
                _fill(ballast)
                return lambda: ballast.unlink(missing_ok=True)
            case "read-only":
                return self._make_read_only()
            case "folder deleted":
                self.may_lose = set(self._known)
                shutil.rmtree(self.data)
            case "replaced":
                (self.folder / "old").replace(self.path)
                self.must_be_told = GONE_ON_WITH
            case "overwritten":
                self.may_lose = set(self._known)
                self.is_detectable = False
                shutil.copyfile(self.folder / "old", self.path)
            case "byte of a table":
                self._flip(b"\x0d\x05")
            case "byte of an index":
                self._flip(b"\x0a\x02")
            case "truncated":
                self._truncate()
            case "log removed":
                self.path.with_name(f"{DATABASE_NAME}-wal").unlink(missing_ok=True)
            case _:
                pass
        return None

    def _truncate(self) -> None:
        cut = self._chance.randrange(PAGE, self.path.stat().st_size)
        lost = self.path.read_bytes()[cut // PAGE * PAGE :]
        self.may_lose = _tokens_in(lost)
        if self.is_open:
            # Writing beyond the cut fills the missing part of the page with zeros.
            self.only_texts = _tokens_in(lost[:PAGE])
        os.truncate(self.path, cut)

    def _make_read_only(self) -> Callable[[], None]:
        if not self.is_open:
            _mount("-o", "remount,ro", str(self.folder))
            return lambda: _mount("-o", "remount,rw", str(self.folder))
        _mount("--bind", str(self.folder), str(self.folder))
        _mount("-o", "remount,bind,ro", str(self.folder))
        return _once(lambda: _unmount(self.folder))

    def _flip(self, kinds: bytes) -> None:
        """Flip one bit of a page whose first byte is one of `kinds`."""
        data = bytearray(self.path.read_bytes())
        pages = [offset for offset in range(PAGE, len(data), PAGE) if data[offset] in kinds]
        page = self._chance.choice(pages)
        self.may_lose = _tokens_in(bytes(data[page : page + PAGE]))
        offset = page + self._chance.choice((self._chance.randrange(8), self._chance.randrange(PAGE)))
        data[offset] ^= 1 << self._chance.randrange(8)
        with self.path.open("r+b") as file:
            file.seek(offset)
            file.write(data[offset : offset + 1])
        copy = self.folder / "copy"
        copy.write_bytes(bytes(data))
        self.is_detectable = _is_damaged(copy)
        copy.unlink()

    async def _act(self) -> Process:
        self._server.half_told.clear()
        self._server.go.clear()
        kill = self.fault in {"killed", "log removed after a kill"}
        process = await self._start(self.actor)
        talking = asyncio.create_task(self._talk(process))
        half_told = asyncio.create_task(self._server.half_told.wait())
        spoke = asyncio.create_task(self._spoke.wait())
        await asyncio.wait({talking, half_told, spoke}, timeout=LIMIT, return_when=asyncio.FIRST_COMPLETED)
        half_told.cancel()
        spoke.cancel()
        undo: Callable[[], None] | None = None
        if self.is_open and not talking.done():
            await asyncio.sleep(self._chance.choice((0.0, 0.3, 1.0)))
            undo = None if kill else self._strike()
        self._server.go.set()
        if kill and not talking.done():
            await asyncio.sleep(self._chance.choice((0.0, 0.02, 0.1, 0.5, 1.5)))
            with suppress(sqlite3.Error):
                self._known |= _tokens(self.path)
            with suppress(ProcessLookupError):
                process.kill()
        elif self.actor == "window":
            await self._end(process, talking, undo)
        ended = await self._ended(process, talking)
        if undo is not None:
            undo()
        if self.fault == "log removed after a kill":
            self._remove_log(was_killed=ended.code is None)
        return ended

    def _remove_log(self, *, was_killed: bool) -> None:
        """Remove the log of an ended process. An empty log need not be reported, as reading the database leaves one."""
        log, known_before = self.path.with_name(f"{DATABASE_NAME}-wal"), self._known
        if was_killed and log.exists() and log.stat().st_size:
            self.must_be_told = FAULTS[self.fault]
        log.unlink(missing_ok=True)
        self.path.with_name(f"{DATABASE_NAME}-shm").unlink(missing_ok=True)
        # Opening the file itself would create a new log.
        copy = self.folder / "copy"
        shutil.copyfile(self.path, copy)
        self._known = _tokens(copy)
        for path in self.folder.glob("copy*"):
            path.unlink()
        self.may_lose = known_before - self._known

    async def _end(self, process: Any, talking: "asyncio.Task[Any]", undo: Callable[[], None] | None) -> None:
        """Let the window show the answer for a while, then end it with SIGTERM."""
        await asyncio.wait({talking}, timeout=self._chance.choice((1.5, 3.0)))
        if undo is not None and self._chance.random() < 0.5:
            undo()
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)

    async def _talk(self, process: Any) -> tuple[bytes, bytes]:
        """Return all output of the process; note when it reports the fault, since a window then stays open."""
        expected_word, lines = FAULTS[self.fault], b""
        error = asyncio.create_task(process.stderr.read())
        async for line in process.stdout:
            lines += line
            if expected_word and expected_word in line.decode():
                self._spoke.set()
        await process.wait()
        return lines, await error

    async def _ended(self, process: Any, talking: "asyncio.Task[Any]") -> Process:
        done, _ = await asyncio.wait({talking}, timeout=LIMIT)
        if not done:
            self.faults.append(f"the {self.actor} did not end")
            process.kill()
        out, err = await talking
        code = process.returncode
        return Process(None if code == -signal.SIGKILL else code, f"{_lines(out)}\n{err.decode()}", out.decode())

    async def _start(self, actor: str) -> Any:
        options = ["--data-dir", str(self.data), "--base-url", self._url, "--model", "m"]
        ask = ["-m", "desktop_agent", "ask", *options, "--tools", "none"]
        command_of = {
            "ask": [*ask, "go"],
            "continue": [*ask, "--continue", "conversation0", "go"],
            "window": ["-m", "tests.soak.driven_window", "--prompt", "go", "--draft", "a thought", *options],
        }
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *command_of[actor],
            cwd=ROOT,
            env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    def _judge(self, acted: Process) -> None:
        """Judge the output and the exit code of the process that worked during the fault."""
        self.printed += acted.output
        if "Traceback" in acted.output:
            self.faults.append(f"a traceback: {acted.output[-2000:]}")
        # The conversation to be continued may itself be destroyed, so that its id is unknown.
        is_gone = acted.code == 2 and "damaged" in acted.output and "There is no conversation" in acted.output
        if acted.code not in {None, 0, 1} and not is_gone:
            self.faults.append(f"it ended with {acted.code}: {acted.output[-500:]}")
        expected_word = FAULTS[self.fault]
        if acted.code == 1 and expected_word not in acted.output:
            self.faults.append(f"it ended with 1, and does not say {expected_word!r}: {acted.output[-500:]}")
        if acted.code == 1 and not expected_word and self.fault != "overwritten":
            self.faults.append(f"it failed: {acted.output[-500:]}")
        if acted.code == 0 and self.actor != "window" and self._server.token not in acted.out:
            self.faults.append("0 without an answer")

    async def _restart(self) -> Process:
        """Start the program again, with the disk repaired."""
        existing = await self._conversations()
        self._server.go.set()
        process = await self._start("continue" if "conversation0" in existing else "ask")
        return await self._ended(process, asyncio.create_task(self._talk(process)))

    def _judge_restart(self, again: Process) -> None:
        self.printed += again.output
        if "Traceback" in again.output:
            self.faults.append(f"a traceback at the next start: {again.output[-2000:]}")
        if again.code != 0:
            self.faults.append(f"the next start ended with {again.code}: {again.output[-800:]}")

    async def _conversations(self) -> list[str]:
        """Return the conversations in a copy of the database, as opening the file itself would create a log."""
        copy = self.folder / "look"
        copy.mkdir()
        for path in self.data.glob(f"{DATABASE_NAME}*"):
            shutil.copyfile(path, copy / path.name)
        try:
            with suppress(sqlite3.Error), closing(_read_only(copy / DATABASE_NAME)) as database:
                return [str(row[0]) for row in database.execute("SELECT id FROM conversations")]
            return []
        finally:
            shutil.rmtree(copy)

    async def _count(self, acted: Process) -> None:
        """Compare what is stored now with what was acknowledged."""
        acknowledged = set(self._known)
        if acted.code == 0:
            acknowledged.add(_TOKEN.findall(acted.output + acted.out)[-1])
        try:
            texts = await self._texts()
        except DatabaseDamaged as error:
            # A changed number is noticed only when it is read; then the next opening rescues the database.
            self.printed += f"\n{error}"
            texts = await self._texts()
        surviving = _tokens_in("\n".join(texts).encode())
        for aside in self.data.glob(f"{DATABASE_NAME}.replaced-*"):
            surviving |= _tokens(aside)
        self.lost = acknowledged - surviving
        if self.must_be_told not in self.printed:
            self.faults.append(f"not told: {self.must_be_told!r}, but {self.printed[-500:]}")
        beyond = self.lost - self.may_lose
        if beyond:
            self.faults.append(f"lost, and not by the fault itself: {sorted(beyond)}")
        if (
            self.lost - self.only_texts
            and self.is_detectable
            and not re.search("damaged|gone|log|replaced", self.printed)
        ):
            self.faults.append(f"lost, and nobody was told: {sorted(self.lost)}; but {self.printed[-500:]}")

    async def _texts(self) -> list[str]:
        """Return the texts of all messages as the program reads them."""
        store = await Store.open(self.data)
        try:
            self.printed += "\n".join(map(str, store.notices))
            return [
                message.text
                for record in await store.list_conversations()
                for message in (await store.load(record.id)).messages
            ]
        finally:
            await store.close()


def _lines(out: bytes) -> str:
    """Return the texts of the window, or what `ask` printed."""
    lines: list[str] = []
    for line in out.decode().splitlines():
        with suppress(ValueError):
            lines.append(str(json.loads(line)))
    return "\n".join(lines)


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)


def _tokens(path: Path) -> set[str]:
    """Return the tokens of the answers in the history."""
    with closing(_read_only(path)) as database:
        database.text_factory = bytes
        rows = database.execute("SELECT * FROM messages").fetchall()
    return _tokens_in(b"\n".join(value for row in rows for value in row if isinstance(value, bytes)))


def _tokens_in(data: bytes) -> set[str]:
    return set(_TOKEN.findall(data.decode("utf-8", "replace")))


def _is_damaged(path: Path) -> bool:
    """Return whether SQLite can detect the flip: it cannot where a byte of a text changed."""
    try:
        with closing(_read_only(path)) as database:
            return database.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok"
    except sqlite3.Error:
        return True


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * PAGE)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def _once(undo: Callable[[], None]) -> Callable[[], None]:
    remaining = [undo]
    return lambda: remaining.pop()() if remaining else None


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", "-l", str(folder)], check=True)


def _can_mount(folder: Path) -> bool:
    try:
        _mount("-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder))
    except (OSError, subprocess.CalledProcessError):
        return False
    _unmount(folder)
    return True


async def _make_template(folder: Path) -> None:
    """Store conversations over several pages, and a copy of the file before the last of them."""
    store = await Store.open(folder)
    count = 0
    for number in range(8):
        if number == 7:
            await store.close()
            shutil.copy(folder / DATABASE_NAME, folder / "old")
            store = await Store.open(folder)
        conversation = await store.create_conversation(title=f"number {number}", id_=f"conversation{number}")
        for index in range(6):
            count += 1
            text = f"k{count}e {_FILLER * (3 + index * 6)}"
            await store.commit(conversation.id, Message.assistant(text) if index % 2 else Message.user(text))
    await store.close()


async def live(runs: int, seed: int, *, faults: tuple[str, ...] = (), tell: Any = print) -> Report:
    """Run everything in a temporary folder, which is kept if there were faults."""
    chance, report = random.Random(seed), Report()
    server = Server()
    folder = Path(tempfile.mkdtemp(prefix="disk-faults-"))
    template, run_folder = folder / "template", folder / "run"
    run_folder.mkdir()
    has_disk = _can_mount(run_folder)
    names = [name for name in faults or FAULTS if has_disk or name not in NEED_A_DISK]
    started = time.monotonic()
    await _make_template(template)
    async with Loopback(choose=server.reply, judged=False) as loopback:
        for number in range(runs):
            fault = names[number % len(names)] if faults else chance.choice(names)
            run, before = Run(run_folder, template, server, loopback.url, chance, fault), len(report.faults)
            await _run_once(run, report, folder / f"fault-{number}")
            if len(report.faults) > 60:
                break
            for line in report.faults[before:]:
                tell(line)
            if (number + 1) % 10 == 0:
                tell(f"{number + 1} runs, {len(report.faults)} faults, {time.monotonic() - started:.0f} s")
    if report.faults:
        tell(f"the data is in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return report


async def _run_once(run: Run, report: Report, folder_of_faults: Path) -> None:
    own_disk = run.fault in NEED_A_DISK
    name = f"{run.actor}, {run.fault} {'during' if run.is_open else 'before'}"
    run.folder.mkdir(exist_ok=True)
    if own_disk:
        _mount("-t", "tmpfs", "-o", "size=4m", "tmpfs", str(run.folder))
    try:
        acted = await run.client()
        report.codes[f"{run.fault}: {'killed' if acted.code is None else acted.code}"] += 1
    except Exception as error:  # the rest of the runs goes on
        run.faults.append(f"{type(error).__name__}: {error}")
    finally:
        if run.faults:
            shutil.copytree(run.folder, folder_of_faults, dirs_exist_ok=True)
        if own_disk:
            _unmount(run.folder)
        shutil.rmtree(run.folder, ignore_errors=True)
    report.runs += 1
    report.kinds[name] += 1
    report.kept += not run.lost
    report.lost_and_told += bool(run.lost)
    report.rescued += "carried over" in run.printed
    report.faults += [f"{folder_of_faults.name} ({name}): {line}" for line in run.faults]


def main(argv: list[str]) -> int:
    """Return 0 if there were no faults."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak disk-faults", description="Kills and faults of the disk"
    )
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--fault", choices=sorted(FAULTS), action="append", default=[], help="these only")
    arguments = parser.parse_args(argv)
    print(f"seed {arguments.seed}, {arguments.runs} runs", flush=True)
    faults = tuple(arguments.fault)
    report = asyncio.run(live(arguments.runs, arguments.seed, faults=faults, tell=lambda line: print(line, flush=True)))
    print(
        f"{report.runs} runs: nothing lost in {report.kept}, bytes of the fault in {report.lost_and_told}, "
        f"{report.rescued} rescues"
    )
    for name, count in sorted({**report.kinds, **report.codes}.items()):
        print(f"  {count:5} {name}")
    print(f"{len(report.faults)} faults")
    return 1 if report.faults else 0
