"""`kill -9` while conversations are changed: `python -m tests.soak kills --kills 500 --seed 1`.

A process with the real engine on a real data folder talks to a model server on loopback, changes what was said,
renames, imports, exports, searches, backs up, restores and deletes (tests/soak/history_actions.py), and says whatever
has been acknowledged as stored. At some moment, of its opening and closing too, it is killed. Then it is counted: the
database and the index of the search are whole by SQLite's own check, with no row of what is gone; the next start
works and says nothing; what was acknowledged is there, what was about to be changed is as before or as it was to be,
whole; text of an answer that was on the disk is in the answer; nothing is there twice; the search finds what is there
and nothing of what was deleted; files that were written have their names only when they are whole; and the
conversation can be gone on with. When a data folder was used for a while it is opened once more, and closed, and then
no byte of what was deleted for good is in it.
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
"""Seconds until a process that says nothing is a fault; the machine may be loaded."""

_FIRST_GUESS = 0.05


@dataclass
class Told:
    """What came of it. `kills` by the action that was under way."""

    kills: Counter[str] = field(default_factory=Counter[str])
    in_time: int = 0
    """Processes that had closed before their kill came."""
    folders: int = 0
    messages: int = 0
    searched: int = 0
    faults: list[str] = field(default_factory=list[str])


class Server:
    """Answers each prompt with a word that it never says again, in pieces, and holds back the end for a moment."""

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
    """What must be stored, as far as the process has said so, and what may be."""

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
        """What came with an id that nobody knew before, or was never acknowledged, is whole."""
        for name, value in facts.items():
            kind, id_, *_ = name.split("/")
            is_known = None not in self._allowed.get(name, {None})
            # A folder that was just being deleted is known too.
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
        # A word of a title that was given up is not deleted for good.
        self.gone -= self.words["list"] | self.words["trash"]

    def judge_found(self, found: dict[str, list[str]], facts: dict[str, str | None]) -> Iterator[str]:
        """What the search found, now that it is known what there is."""
        texts = [(name.split("/")[1], value or "") for name, value in facts.items() if name[:3] in {"mes", "tit"}]
        for word, ids in found.items():
            where = {id_ for id_, text in texts if word in text and facts[f"place/{id_}"] == "list"}
            if set(ids) != where or len(ids) != len(where):
                yield f"{word} is in {sorted(where)}, and was found in {ids}"


class Lives:
    """The process from which the others are forked, and what they say."""

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
        """Return what is said next; what a kill has cut off is nothing."""
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
        """Return what was said to standard error."""
        if self._process is None:
            return ""
        self._process.stdin.close()
        error = await self._process.stderr.read()
        await self._process.wait()
        return error.decode()

    async def _start(self) -> Any:
        places = {f"XDG_{name}_HOME": str(self._home / name.lower()) for name in ("DATA", "CONFIG", "STATE", "CACHE")}
        places["TMPDIR"] = str(self._home)
        keys = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.soak.history_process",
            cwd=ROOT,
            env={**os.environ, "HOME": str(self._home), **places, **keys},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=2**28,
        )


class Folder:
    """One data folder, and the processes that are killed on it one after the other."""

    def __init__(
        self, place: Path, lives: Lives, server: str, chance: random.Random, told: Told, actions: Sequence[str]
    ) -> None:
        self._actions = actions
        self._place = place
        self._data = place / "data"
        self._lives = lives
        self._server = server
        self._chance = chance
        self._told = told
        self._ledger = Ledger()
        self._usual: defaultdict[str, float] = defaultdict(lambda: _FIRST_GUESS)
        """Seconds that each action has lately taken."""
        place.mkdir()

    async def kill_one(self) -> bool:
        """Let a process work, and kill it; False where it had closed by then."""
        plan = ["begin" if not self._ledger.words["list"] else "go on", *self._chance.choices(self._actions, k=2)]
        if self._ledger.words["list"] and self._chance.random() < 0.2:
            plan[0] = "begin"
        target = self._chance.choice(("open", *plan, *plan[1:], *plan[1:], "close"))
        await self._lives.begin(self._life(tuple(plan)))
        pid = int((await self._lives.line())["pid"])
        action = await self._live(pid, target)
        if action is None:
            self._told.in_time += 1
            return False
        self._told.kills[action] += 1
        for fault in find_damage(self._data):
            self._fault(fault)
        return True

    async def close(self) -> None:
        """Open it once more to the end, and look for what was deleted."""
        for _ in range(2):
            await self._lives.begin(self._life(("search",)))
            await self._lives.line()
            if await self._live(0, ""):
                self._fault("the last process did not close")
        for fault in find_damage(self._data):
            self._fault(fault)
        for fault in find_words(self._data, self._ledger.gone):
            self._fault(fault)
        self._told.folders += 1

    def _life(self, plan: tuple[str, ...]) -> Life:
        words = self._ledger.words
        known = (sorted(words["list"]), sorted(words["trash"]), sorted(self._ledger.gone))
        find = [word for group in known for word in self._chance.sample(group, min(len(group), 3))]
        seed = self._chance.randrange(2**32)
        return Life(str(self._data), str(self._place), self._server, seed, plan, tuple(find))

    async def _live(self, pid: int, target: str) -> str | None:
        """Follow one life; return during what it was killed, None where it closed. `pid` 0 is not killed."""
        action, began, timer = "open", time.monotonic(), None
        if target == "open":
            timer = self._kill_later(pid, action)
        while "ended" not in (line := await self._lives.line()):
            self._ledger.note(line)
            if "observed" in line:
                self._judge(line)
            if "error" in line:
                self._fault(f"{action}: {line['error']}")
            if "observed" in line or "action" in line or "closed" in line:
                self._usual[action] += (time.monotonic() - began - self._usual[action]) / 3
                action, began = line.get("action", "between"), time.monotonic()
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
        self._told.messages += sum(name.startswith("message/") for name in facts)
        self._told.searched += len(line["found"])

    def _fault(self, words: str) -> None:
        self._told.faults.append(f"{sum(self._told.kills.values())} kills: {words}")


async def live(kills: int, seed: int, *, actions: Sequence[str] = (), tell: Callable[[str], object] = print) -> Told:
    """All of it in a folder of its own, which stays where something was wrong. `actions`: these only."""
    chance, told = random.Random(seed), Told()
    top, began = Path(tempfile.mkdtemp(prefix="kills-")), time.monotonic()
    lives = Lives(top)
    async with Loopback(choose=Server(chance).reply, judged=False) as loopback:
        folder: Folder | None = None
        for number in range(kills):
            if folder is None:
                folder = Folder(top / str(number), lives, loopback.url, chance, told, actions or tuple(ACTIONS))
            while not await folder.kill_one():
                pass
            if (number + 1) % KILLS_IN_A_FOLDER == 0 or number + 1 == kills:
                await folder.close()
                folder = None
                tell(f"{number + 1} kills, {len(told.faults)} faults, {time.monotonic() - began:.0f} s")
            if told.faults:
                break
        error = await lives.close()
    if error:
        told.faults.append(error[-3000:])
    if told.faults:
        tell(f"the data is in {top}")
    else:
        shutil.rmtree(top, ignore_errors=True)
    return told


def main(argv: list[str]) -> int:
    """0 when nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak kills", description="Kills while history is changed")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--action", choices=sorted(ACTIONS), action="append", default=[], help="these only")
    asked = parser.parse_args(argv)
    print(f"seed {asked.seed}, {asked.kills} kills", flush=True)
    told = asyncio.run(live(asked.kills, asked.seed, actions=asked.action, tell=lambda line: print(line, flush=True)))
    for name, count in told.kills.most_common():
        print(f"  {count:5} {name}")
    print(
        f"{told.messages} messages looked at again, {told.searched} words searched, {told.folders} folders,"
        f" {told.in_time} had closed before; {len(told.faults)} faults"
    )
    for fault in told.faults:
        print(f"  {fault}")
    return 1 if told.faults else 0
