"""`kill -9` while conversations are changed: `python -m tests.soak kills --kills 500 --seed 1`.

A process with the real engine on a real data folder talks to a model server on loopback. It edits messages, renames,
imports, exports, searches, backs up, restores and deletes (tests/soak/history_actions.py), and reports whatever was
acknowledged as stored. It is killed at a random moment, also while it opens or closes. Afterwards these must hold:
SQLite's own check finds no damage in the database and the search index, and they have no rows of what was deleted; the
next start works and reports nothing; everything acknowledged is there; a change that was under way is stored completely
or not at all; text of an answer that was on the disk is in the answer; nothing is stored twice; the search finds
everything that is stored and nothing that was deleted; written files have their names only once they are complete; and
the conversation can be continued. After several kills the data folder is opened and closed once more, and then no byte
of what was deleted for good is in it.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from desktop_agent.engine.titles import INSTRUCTIONS
from tests.fakes.http_server import Loopback, Reply, Request, chunk, sse
from tests.soak.answer_actions import TITLE_END
from tests.soak.history_actions import ACTIONS
from tests.soak.history_process import Life
from tests.soak.history_world import ANYTHING, WORD
from tests.soak.stored_files import find_damage, find_words

ROOT = Path(__file__).resolve().parents[2]
KILLS_IN_A_FOLDER = 25
LIMIT = 240.0
"""Seconds after which a silent process is a fault; the machine may be loaded."""

_FIRST_GUESS = 0.05


@dataclass
class Report:
    """The results of all kills; `kills` counts them by the action under way."""

    kills: Counter[str] = field(default_factory=Counter[str])
    in_time: int = 0
    """Processes that had closed before they were killed."""
    folders: int = 0
    messages: int = 0
    searched: int = 0
    faults: list[str] = field(default_factory=list[str])


class Server:
    """Answers each prompt with a unique word, in pieces, and delays the end of the answer."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def reply(self, request: Request) -> Reply:
        if request.method == "GET":
            return Reply(json.dumps({"object": "list", "data": [{"id": "m"}]}).encode(), framing="length")
        word = "".join(self._chance.choices("abcdefghijklmnopqrstuvwxyz", k=14))
        if INSTRUCTIONS.encode()[:20] in request.body:
            body = [sse(chunk({"content": f"{word} {TITLE_END}"}), chunk(finish="stop"))]
            return Reply(body)
        pieces = [f"{word} ", *(f"leaf{number} " for number in range(self._chance.randrange(30)))]
        hold = asyncio.Event()
        asyncio.get_running_loop().call_later(self._chance.choice((0.0, 0.01, 0.1)), hold.set)
        begun = [sse(chunk({"content": piece}), done=False) for piece in pieces]
        return Reply(begun, hold=hold, late=sse(chunk({"content": "end"}), chunk(finish="stop")))


class Ledger:
    """What must be stored, because the process acknowledged it, and what may be."""

    def __init__(self) -> None:
        self._allowed: dict[str, set[str | None]] = {}
        self._begun: tuple[str, str] | None = None
        self.gone: set[str] = set()
        """Words that were deleted for good."""
        self.words: dict[str, set[str]] = {"list": set(), "trash": set()}
        self._observed: dict[str, str | None] = {}
        self._deleted: set[str | None] = set()
        """Texts of messages that were deleted since the last look; other messages may have the same."""
        self._together: dict[str, str | None] = {}
        self._announced: tuple[str, ...] = ()
        self._copied: Counter[str] = Counter()

    def note(self, line: dict[str, Any]) -> None:
        for name, value in line.get("intend", {}).items():
            self._allowed.setdefault(name, {None}).add(value)
        for name, value in line.get("confirm", {}).items():
            if value is None and name.startswith("message/"):
                self._deleted |= self._allowed.get(name, set())
            self._allowed[name] = {value}
        self._together = line.get("together", self._together)
        self._announced = tuple(line.get("announced", self._announced))
        self._copied.update(line.get("copied", {}))
        if "begun" in line:
            self._begun = line["begun"] and (line["begun"][0], line["begun"][1])

    def judge(self, facts: dict[str, str | None]) -> Iterator[str]:
        """Compare, and go on from what there is."""
        absent = {id_ for id_ in self._ids() if facts.get(f"place/{id_}") is None}
        dead = {id_ for id_ in absent if None in self._allowed.get(f"place/{id_}", {None})}
        for name, allowed in self._allowed.items():
            kind, id_, *_ = name.split("/")
            value = facts.get(name)
            if id_ in dead and kind in {"title", "head", "draft", "message", "placed"}:
                continue
            if value not in allowed and not (ANYTHING in allowed and value != "broken"):
                yield f"{name} is {value!r}, not one of {sorted(map(str, allowed))}"
        yield from self._judge_begun(facts, dead)
        yield from self._judge_new(facts)
        if 0 < sum(facts.get(name) == value for name, value in self._together.items()) < len(self._together):
            yield f"of {self._together} there is a part: { {name: facts.get(name) for name in self._together} }"
        yield from self._judge_words(facts)
        self._go_on_from(facts, dead)

    def _ids(self) -> set[str]:
        return {name.split("/")[1] for name in self._allowed if name.startswith("place/")}

    def _judge_begun(self, facts: dict[str, str | None], dead: set[str]) -> Iterator[str]:
        if self._begun is None or self._begun[0] in dead:
            return
        id_, text = self._begun
        answers = [value or "" for name, value in facts.items() if name.startswith(f"message/{id_}/")]
        if not any(answer.startswith(text.rstrip()) for answer in answers):
            yield f"the answer that had begun with {text!r} is gone"

    def _judge_new(self, facts: dict[str, str | None]) -> Iterator[str]:
        """Yield conversations with new or unacknowledged ids that are not whole."""
        for name, value in facts.items():
            kind, id_, *_ = name.split("/")
            is_known = None not in self._allowed.get(name, {None})
            # A folder whose deletion was under way is known too.
            is_made = any(self._allowed.get(name, ())) or str(value).split("|")[0] in self._announced
            if kind == "folder" and not is_made:
                yield f"{name} is {value!r}, which nobody made"
            if kind != "place" or is_known or (name in self._allowed and not self._announced):
                continue
            if facts.get(f"whole/{id_}") not in self._announced:
                yield f"{id_} is {facts.get(f'whole/{id_}')!r}, none of {self._announced}"

    def _note_gone(self, values: set[str | None]) -> None:
        self.gone |= {word for value in values for word in WORD.findall(value or "")}

    def _judge_words(self, facts: dict[str, str | None]) -> Iterator[str]:
        texts = {name: value or "" for name, value in facts.items() if name.startswith("message/")}
        uses = Counter(word for text in texts.values() for word in set(WORD.findall(text)))
        for word, count in uses.items():
            if count > 1 + self._copied[word]:
                yield f"{word} was said {count} times"
        yield from (f"{word} is back" for word in self.gone & uses.keys())

    def _go_on_from(self, facts: dict[str, str | None], dead: set[str]) -> None:
        for name, allowed in self._allowed.items():
            is_message = name.startswith("message/") and facts.get(name) is None
            if is_message or (name.split("/")[1] in dead and not name.startswith("placed/")):
                self._note_gone(allowed)
        self._note_gone(self._deleted)
        for name, text in self._observed.items():
            if name.startswith("message/") and facts.get(name) is None:
                self._note_gone({text})
        self._observed = facts
        outside = ("export/", "restored/", "whole/")
        self._allowed = {name: {value} for name, value in facts.items() if not name.startswith(outside)}
        self._allowed |= {f"place/{id_}": {None} for id_ in dead}
        self._begun, self._together, self._announced, self._deleted = None, {}, (), set()
        places = {name.split("/")[1]: value for name, value in facts.items() if value and "place/" in name}
        self.words = {"list": set(), "trash": set()}
        for name, value in facts.items():
            if name.startswith(("message/", "title/")):
                self.words[places[name.split("/")[1]]] |= set(WORD.findall(value or ""))
        # A word of a replaced title does not count as deleted if it is stored elsewhere.
        self.gone -= self.words["list"] | self.words["trash"]

    def judge_found(self, found: dict[str, list[str]], facts: dict[str, str | None]) -> Iterator[str]:
        """Yield words for which the search result differs from what is stored."""
        texts = [(name.split("/")[1], value or "") for name, value in facts.items() if name[:3] in {"mes", "tit"}]
        for word, ids in found.items():
            expected = {id_ for id_, text in texts if word in text and facts[f"place/{id_}"] == "list"}
            if set(ids) != expected or len(ids) != len(expected):
                yield f"{word} is in {sorted(expected)}, and was found in {ids}"


class Lives:
    """The process from which the others are forked, and their output."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._process: Any = None
        self.error = b""

    async def begin(self, life: Life) -> None:
        if self._process is None:
            self._process = await self._start()
        self._process.stdin.write(f"{json.dumps(asdict(life))}\n".encode())
        await self._process.stdin.drain()

    async def line(self) -> dict[str, Any]:
        """Return the next complete line; skip lines that a kill has cut off."""
        while True:
            async with asyncio.timeout(LIMIT):
                data = await self._process.stdout.readline()
            if not data:
                raise RuntimeError((await self._process.stderr.read()).decode())
            with suppress(ValueError):
                line: Any = json.loads(data)
                if isinstance(line, dict):
                    return line

    async def close(self) -> str:
        """Return the standard error output."""
        if self._process is None:
            return ""
        self._process.stdin.close()
        error = await self._process.stderr.read()
        await self._process.wait()
        return error.decode()

    async def _start(self) -> Any:
        folders = {f"XDG_{name}_HOME": str(self._home / name.lower()) for name in ("DATA", "CONFIG", "STATE", "CACHE")}
        folders["TMPDIR"] = str(self._home)
        keys = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.soak.history_process",
            cwd=ROOT,
            env={**os.environ, "HOME": str(self._home), **folders, **keys},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=2**28,
        )


class Folder:
    """One data folder, and the processes that are killed on it one after the other."""

    def __init__(
        self, folder: Path, lives: Lives, server: str, chance: random.Random, report: Report, actions: Sequence[str]
    ) -> None:
        self._actions = actions
        self._place = folder
        self._data = folder / "data"
        self._lives = lives
        self._server = server
        self._chance = chance
        self._report = report
        self._ledger = Ledger()
        self._usual: defaultdict[str, float] = defaultdict(lambda: _FIRST_GUESS)
        """Seconds that each action has lately taken."""
        folder.mkdir()

    async def kill_one(self) -> bool:
        """Let a process work, and kill it; return False if it had closed before."""
        plan = ["begin" if not self._ledger.words["list"] else "go on", *self._chance.choices(self._actions, k=2)]
        if self._ledger.words["list"] and self._chance.random() < 0.2:
            plan[0] = "begin"
        target = self._chance.choice(("open", *plan, *plan[1:], *plan[1:], "close"))
        await self._lives.begin(self._life(tuple(plan)))
        pid = int((await self._lives.line())["pid"])
        action = await self._live(pid, target)
        if action is None:
            self._report.in_time += 1
            return False
        self._report.kills[action] += 1
        for fault in find_damage(self._data):
            self._fault(fault)
        return True

    async def close(self) -> None:
        """Open and close the folder again, and look for deleted words in its files."""
        for _ in range(2):
            await self._lives.begin(self._life(("search",)))
            await self._lives.line()
            if await self._live(0, ""):
                self._fault("the last process did not close")
        for fault in find_damage(self._data):
            self._fault(fault)
        for fault in find_words(self._data, self._ledger.gone):
            self._fault(fault)
        self._report.folders += 1

    def _life(self, plan: tuple[str, ...]) -> Life:
        words = self._ledger.words
        groups = (sorted(words["list"]), sorted(words["trash"]), sorted(self._ledger.gone))
        find = [word for group in groups for word in self._chance.sample(group, min(len(group), 3))]
        seed = self._chance.randrange(2**32)
        return Life(str(self._data), str(self._place), self._server, seed, plan, tuple(find))

    async def _live(self, pid: int, target: str) -> str | None:
        """Follow one life; return the action during which it was killed, None if it closed. `pid` 0 is not killed."""
        action, started, timer = "open", time.monotonic(), None
        if target == "open":
            timer = self._kill_later(pid, action)
        while "ended" not in (line := await self._lives.line()):
            self._ledger.note(line)
            if "observed" in line:
                self._judge(line)
            if "error" in line:
                self._fault(f"{action}: {line['error']}")
            if "observed" in line or "action" in line or "closed" in line:
                self._usual[action] += (time.monotonic() - started - self._usual[action]) / 3
                action, started = line.get("action", "between"), time.monotonic()
                if pid and timer is None and action == target:
                    timer = self._kill_later(pid, action)
        if timer is not None:
            timer.cancel()
        if line["ended"] == -signal.SIGKILL:
            return action
        if line["ended"] != 0:
            self._fault(f"it ended with {line['ended']} in {action}; {self._place}")
            return action
        return None

    def _kill_later(self, pid: int, action: str) -> asyncio.TimerHandle:
        def kill() -> None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

        return asyncio.get_running_loop().call_later(self._chance.random() * 0.8 * self._usual[action], kill)

    def _judge(self, line: dict[str, Any]) -> None:
        facts = line["observed"]
        for fault in (*self._ledger.judge(facts), *self._ledger.judge_found(line["found"], facts)):
            self._fault(fault)
        for notice in line["notices"]:
            self._fault(f"said at the start: {notice}")
        self._report.messages += sum(name.startswith("message/") for name in facts)
        self._report.searched += len(line["found"])

    def _fault(self, fault: str) -> None:
        self._report.faults.append(f"{sum(self._report.kills.values())} kills: {fault}")


async def live(kills: int, seed: int, *, actions: Sequence[str] = (), tell: Callable[[str], object] = print) -> Report:
    """All of it in a folder of its own, which stays where something was wrong. `actions`: these only."""
    chance, report = random.Random(seed), Report()
    top, started = Path(tempfile.mkdtemp(prefix="kills-")), time.monotonic()
    lives = Lives(top)
    async with Loopback(choose=Server(chance).reply, judged=False) as loopback:
        folder: Folder | None = None
        for number in range(kills):
            if folder is None:
                folder = Folder(top / str(number), lives, loopback.url, chance, report, actions or tuple(ACTIONS))
            while not await folder.kill_one():
                pass
            if (number + 1) % KILLS_IN_A_FOLDER == 0 or number + 1 == kills:
                await folder.close()
                folder = None
                tell(f"{number + 1} kills, {len(report.faults)} faults, {time.monotonic() - started:.0f} s")
            if report.faults:
                break
        error = await lives.close()
    if error:
        report.faults.append(error[-3000:])
    if report.faults:
        tell(f"the data is in {top}")
    else:
        shutil.rmtree(top, ignore_errors=True)
    return report


def main(argv: list[str]) -> int:
    """Return 0 if there were no faults."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak kills", description="Kills while history is changed")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--action", choices=sorted(ACTIONS), action="append", default=[], help="these only")
    arguments = parser.parse_args(argv)
    print(f"seed {arguments.seed}, {arguments.kills} kills", flush=True)
    report = asyncio.run(
        live(arguments.kills, arguments.seed, actions=arguments.action, tell=lambda line: print(line, flush=True))
    )
    for name, count in report.kills.most_common():
        print(f"  {count:5} {name}")
    print(
        f"{report.messages} messages looked at again, {report.searched} words searched, {report.folders} folders,"
        f" {report.in_time} had closed before; {len(report.faults)} faults"
    )
    for fault in report.faults:
        print(f"  {fault}")
    return 1 if report.faults else 0
