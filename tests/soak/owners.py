"""Pairs of real processes on one conversation, some of them killed: `python -m tests.soak owners --pairs 200 --seed 1`.

Each pair consists of two of these: the window, `ask` in a new conversation, `ask --continue`. They work on one data
folder, by its own path, a symbolic link or a bind mount. The person in the window sends a prompt half of the time and
allows every waiting call, also one that a killed window left. In each run the scripted server on loopback calls a
command that adds a line to a file, and then answers. When both processes have ended, another `ask --continue` opens
every conversation with an unfinished run to recover it. Then these must hold: no effect happened twice; each call
started at most once and has exactly one result; prompts and answers alternate; each run ended once, with no event after
its end; no event number is repeated or missing; and every answer that a process printed is whole in the history.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from desktop_agent.storage.connection import connect
from desktop_agent.storage.preferences_file import PreferencesFile
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import ToolResult
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.preferences import Preferences, ProviderPreferences
from desktop_agent.types.providers import Endpoint
from tests.fakes.http_server import Loopback, Reply, Request, chunk, sse
from tests.soak.driven_window import PRESSED_ALLOW

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("ask", "continue", "continue", "window")
PATHS = ("data", "link", "mounted")
LIMIT = 240.0
"""Seconds after which a process that has not ended is a fault; the machine may be loaded."""

_PIECES = "('content_delta', 'thinking_delta', 'tool_args_delta', 'tool_progress')"
_MOUNT = 'mount --bind "$0" "$1" && shift && exec "$@"'


@dataclass
class Report:
    """The results of all pairs."""

    pairs: int = 0
    killed: int = 0
    refused: int = 0
    answered: int = 0
    runs: int = 0
    calls: int = 0
    effects: int = 0
    recovered: int = 0
    allowed: int = 0
    """Calls that a person allowed in a window."""
    kinds: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])


class Server:
    """Calls one command in each run, which writes a unique word, and then answers with that word."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._count = 0
        self.held = asyncio.Event()

    def reply(self, request: Request) -> Reply:
        if request.method == "GET":
            return Reply(json.dumps({"object": "list", "data": [{"id": "m"}]}).encode(), framing="length")
        last = request.json["messages"][-1]
        self._count += 1
        if last["role"] == "tool":
            parts = [
                chunk({"content": f"w{self._count} "}),
                chunk({"content": f"end{self._count}"}),
                chunk(finish="stop"),
            ]
            pieces = [sse(part, done=False) for part in parts[:-1]]
            return Reply([*pieces, sse(parts[-1])])
        line = f"sleep {self._chance.choice((0, 0, 0.2))}; echo t{self._count} >> effects.txt"
        call = {"name": "run_command", "arguments": json.dumps({"command": line})}
        tool_call = {"index": 0, "id": f"call_{self._count}", "type": "function", "function": call}
        return Reply(
            sse(chunk({"content": "I look. "}), chunk({"tool_calls": [tool_call]}), chunk(finish="tool_calls"))
        )


class World:
    """A data folder with three paths that lead to it, and the pairs of processes that work on it in turn."""

    def __init__(self, folder: Path, server: str, chance: random.Random, report: Report) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.report = report
        self._chance = chance
        self._printed: list[str] = []
        self._effects = self._runs = self._calls = 0
        for name in ("data", "mounted", "work"):
            (folder / name).mkdir()
        (folder / "link").symlink_to("data")
        endpoint = Endpoint(id="loopback", title="Loopback", base_url=server)
        chosen = ProviderPreferences(endpoints=(endpoint,), endpoint_id=endpoint.id, model="m")
        self._preferences = Preferences(providers=chosen)
        self._changed_paths = PATHS if _can_mount(folder) else PATHS[:2]

    async def prepare(self) -> None:
        await PreferencesFile(self.data).save(self._preferences)

    async def pair(self) -> None:
        """Run two processes at once and kill some of them; then recover unfinished runs and check everything."""
        existing = await self._conversations()
        kinds = [self._chance.choice(KINDS if existing else ("ask", "window")) for _ in range(2)]
        id_ = self._chance.choice(existing) if existing else ""
        await asyncio.gather(*(self._live(kind, id_) for kind in kinds))
        self.report.pairs += 1
        self.report.kinds["+".join(sorted(kinds))] += 1
        await self.check()

    async def check(self) -> None:
        """Recover unfinished runs, and check what is stored."""
        for id_ in await self._conversations(open_only=True):
            ended = await self._run("continue", "data", id_, None)
            self.report.recovered += 1
            if ended != 0:
                self.report.faults.append(f"{id_} is not recovered: {ended}")
        await self._count()

    async def _live(self, kind: str, id_: str) -> None:
        await asyncio.sleep(self._chance.choice((0.0, 0.0, 0.3, 1.0)))
        kill_after = self._chance.choice((None, None, 3.0, 5.0, 8.0))
        if kind == "window":
            kill_after = self._chance.choice((5.0, 8.0, 12.0))
        await self._run(kind, self._chance.choice(self._changed_paths), id_, kill_after)

    async def _run(self, kind: str, path: str, id_: str, kill_after: float | None) -> int | None:
        """Run one process; return its exit code, None if it was killed."""
        data_options = ["--data-dir", str(self.folder / path)]
        work = ["--workspace", str(self.folder / "work"), "--approve", "always", "--tools", "all", "--jsonl"]
        more = ["--continue", id_] if kind == "continue" else []
        arguments = ["-m", "desktop_agent", "ask", *data_options, *work, *more, "go"]
        if kind == "window":
            prompt = self._chance.choice(("", "go"))
            arguments = ["-m", "tests.soak.driven_window", "--prompt", prompt, *data_options]
        mount = [
            "unshare",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            _MOUNT,
            str(self.data),
            str(self.folder / "mounted"),
        ]
        process = await asyncio.create_subprocess_exec(
            *(mount if path == "mounted" else []),
            sys.executable,
            *arguments,
            cwd=ROOT,
            env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        talking = asyncio.create_task(process.communicate())
        done, _ = await asyncio.wait({talking}, timeout=LIMIT if kill_after is None else kill_after)
        if not done:
            process.kill()
            if kill_after is None:
                self.report.faults.append(f"{kind} did not end")
            self.report.killed += 1
        out, err = await talking
        self._note(kind, process.returncode, out.decode(), err.decode(), is_killed=not done)
        return process.returncode if done else None

    def _note(self, kind: str, code: int | None, out: str, err: str, *, is_killed: bool) -> None:
        if "Traceback" in err:
            self.report.faults.append(f"{kind}: {err[-2000:]}")
        if kind == "window":
            self.report.allowed += out.splitlines().count(json.dumps(PRESSED_ALLOW))
            return
        if is_killed:
            return
        if code == 0:
            self.report.answered += 1
            lines = [json.loads(line) for line in out.splitlines()]
            answer = "".join(event.get("text", "") for event in lines if event["type"] == "content_delta")
            self._printed.append(answer)
        elif "is being worked on by" in err or "in use by another program" in err:
            self.report.refused += 1
        else:
            self.report.faults.append(f"{kind} ended with {code}: {err[-500:]}")

    async def _conversations(self, *, open_only: bool = False) -> list[str]:
        if not (self.data / "conversations.sqlite3").exists():
            return []
        store = await Store.open(self.data)
        try:
            ids = [record.id for record in await store.list_conversations()]
            return [id_ for id_ in ids if not open_only or (await store.load(id_)).journal]
        finally:
            await store.close()

    async def _count(self) -> None:
        faults = self.report.faults
        effects = (
            Counter((self.folder / "work" / "effects.txt").read_text().split()) if self._has_effects else Counter()
        )
        faults += [f"{token} took effect {count} times" for token, count in effects.items() if count > 1]
        self.report.effects += sum(effects.values()) - self._effects
        self._effects = sum(effects.values())
        if not (self.data / "conversations.sqlite3").exists():
            return
        store = await Store.open(self.data)
        try:
            histories = [(await store.load(record.id)).messages for record in await store.list_conversations()]
        finally:
            await store.close()
        for history in histories:
            faults += _faults_of(history)
        answers = {_answered(history, index) for history in histories for index in range(len(history))}
        faults += [f"printed and not kept: {answer!r}" for answer in self._printed if answer not in answers]
        with closing(connect(self.data / "conversations.sqlite3")) as database:
            runs, calls, journal_faults = _journal_faults(database)
        self.report.runs += runs - self._runs
        self.report.calls += calls - self._calls
        self._runs, self._calls = runs, calls
        faults += journal_faults

    @property
    def _has_effects(self) -> bool:
        return (self.folder / "work" / "effects.txt").exists()


def _can_mount(folder: Path) -> bool:
    mount = ["unshare", "--map-root-user", "--mount", "sh", "-c", _MOUNT, str(folder / "data"), str(folder / "mounted")]
    return subprocess.run([*mount, "true"], capture_output=True, check=False).returncode == 0


def _answered(history: tuple[Message, ...], index: int) -> str:
    """Return the text of all answers between this prompt and the next one."""
    answer = ""
    for message in history[index + 1 :]:
        if message.role is Role.USER:
            break
        answer += message.text if message.role is Role.ASSISTANT else ""
    return answer


def _faults_of(history: tuple[Message, ...]) -> list[str]:
    """Return faults: calls and results that do not match, two answered prompts in a row, repeated ids."""
    faults: list[str] = []
    ids = Counter(message.id for message in history)
    faults += [f"message {id_} {count} times" for id_, count in ids.items() if count > 1]
    waiting: list[str] = []
    for message in history:
        results = [block.tool_use_id for block in message.blocks if isinstance(block, ToolResult)]
        if message.role is Role.TOOL and sorted(results) != sorted(waiting):
            faults.append(f"results {results} for calls {waiting}")
        elif message.role is not Role.TOOL and waiting:
            faults.append(f"calls without a result: {waiting}")
        waiting = [call.id for call in message.tool_uses]
    return faults + ([f"calls without a result: {waiting}"] if waiting else [])


def _journal_faults(database: Any) -> tuple[int, int, list[str]]:
    """Return the number of runs and of calls, and the faults in their events."""
    faults: list[str] = []
    calls: set[str] = set()
    runs = database.execute("SELECT number, id, finished FROM runs").fetchall()
    for number, run_id, finished in runs:
        rows = database.execute(
            "SELECT number, type, event FROM journal WHERE number >= ? AND number < ? ORDER BY number",
            (number << 32, (number + 1) << 32),
        ).fetchall()
        kinds = [kind for _, kind, _ in rows]
        if not finished or kinds.count("run_finished") != 1 or kinds[-1] != "run_finished":
            faults.append(f"run {run_id} ends {kinds.count('run_finished')} times, and with {kinds[-1:]}")
        for kind in ("tool_started", "tool_finished"):
            ids = [_call_of(json.loads(event)) for _, event_type, event in rows if event_type == kind]
            calls.update(ids)
            faults += [f"{kind} of {id_} {count} times" for id_, count in Counter(ids).items() if count > 1]
        faults += _gaps(run_id, [(row & 0xFFFFFFFF, kind) for row, kind, _ in rows])
    return len(runs), len(calls), faults


def _call_of(event: dict[str, Any]) -> str:
    return event.get("id") or event["result"]["tool_use_id"]


def _gaps(run_id: str, rows: list[tuple[int, str]]) -> list[str]:
    """Return gaps in the numbers of events. Numbers may be missing where text deltas, which are not stored, stood
    between the beginning and the end of an answer."""
    faults: list[str] = []
    before, kind_before = 0, ""
    for seq, kind in rows:
        may_miss = kind_before in {"answer_started", "turn_started", "tool_started", "tool_progress"} or kind in {
            "tool_use",
            "thinking_block",
            "text_closed",
            "message_delta",
            "tool_progress",
            "error_occurred",
            "run_finished",
        }
        if seq != before + 1 and not may_miss:
            faults.append(f"run {run_id}: {kind} is number {seq} behind {before} ({kind_before})")
        before, kind_before = seq, kind
    return faults


async def several(folder: Path, count: int, report: Report, server: str) -> None:
    """Run `ask --continue` `count` times at once on one conversation: each answers or is refused."""
    chance = random.Random(0)
    (folder / "several").mkdir()
    world = World(folder / "several", server, chance, report)
    await world.prepare()
    await world._run("ask", "data", "", None)
    [id_] = await world._conversations()
    await asyncio.gather(*(world._run("continue", "data", id_, None) for _ in range(count)))
    await world.check()


async def live(pairs: int, seed: int, *, at_once: int = 10, tell: Any = print) -> Report:
    """Run all pairs in a temporary folder, which is kept if there were faults."""
    chance, report = random.Random(seed), Report()
    server = Server(chance)
    folder = Path(tempfile.mkdtemp(prefix="owners-"))
    started = time.monotonic()
    try:
        async with Loopback(choose=server.reply, judged=False) as loopback:
            world: World | None = None
            for number in range(pairs):
                if world is None or number % 20 == 0:
                    (folder / str(number)).mkdir()
                    world = World(folder / str(number), loopback.url, chance, report)
                    await world.prepare()
                await world.pair()
                if report.faults:
                    break
                if (number + 1) % 10 == 0:
                    tell(f"{time.monotonic() - started:.0f} s: {report}")
            if at_once and not report.faults:
                await several(folder, at_once, report, loopback.url)
    finally:
        if not report.faults:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            tell(f"the data is in {folder}")
    return report


def main(argv: list[str]) -> int:
    """Return 0 if there were no faults."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak owners", description="Pairs of processes")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments = parser.parse_args(argv)
    print(f"seed {arguments.seed}, {arguments.pairs} pairs", flush=True)
    report = asyncio.run(live(arguments.pairs, arguments.seed, tell=lambda line: print(line, flush=True)))
    print(report)
    return 1 if report.faults else 0
