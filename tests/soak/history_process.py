"""Lives of the engine on one data folder, each in a process of its own that somebody kills.

    python -m tests.soak.history_process

A line of JSON on the standard input is a life (see Life); it is forked off here, so that the program is loaded once.
It opens the data folder, puts in order what a dead process left, says what it finds, does what is planned, and closes.
What it says are lines of JSON on the standard output: `pid`; `observed` with all facts, `found` by the search, and
`notices`; `action` before each; what actions say (see tests/soak/history_actions.py); `closed`. The last line of each
life is `ended`, the exit code or the negative signal.
"""

import asyncio
import json
import os
import random
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.types.providers import Endpoint
from desktop_agent.types.search import SearchQuery
from tests.soak.history_actions import ACTIONS
from tests.soak.history_world import ENDPOINT, MODEL, World, observe, tidy


@dataclass(frozen=True)
class Life:
    """`find` are words to be looked for before anything is done; `place` is for what is written elsewhere."""

    data: str
    place: str
    server: str
    seed: int
    plan: tuple[str, ...] = ()
    find: tuple[str, ...] = ()


def say(line: dict[str, Any]) -> None:
    """Write a line at once: the next moment may be the last."""
    data = f"{json.dumps(line)}\n".encode()
    while data:
        data = data[os.write(1, data) :]


async def open_world(life: Life) -> World:
    """Open the data folder as the window does."""
    endpoint = Endpoint(id=ENDPOINT, title="Loopback", base_url=life.server)
    defaults = RunDefaults(endpoint=endpoint, model=MODEL, toolset="none", titles=True)
    engine = await Engine.open(Path(life.data), defaults)
    world = World(engine, Path(life.place), random.Random(life.seed), say)
    for interrupted in await engine.interrupted_conversations():
        await (await world.session(interrupted.conversation_id)).flush()
    return world


async def _found(world: World, words: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the conversations in which each word is found."""
    found: dict[str, list[str]] = {}
    if words:
        await world.engine.store.search.index_all()
    for word in words:
        results = await world.engine.store.search.find(SearchQuery(f"{word} "))
        found[word] = [hits.conversation_id for hits in results.conversations] if results is not None else []
    return found


async def live(life: Life) -> None:
    world = await open_world(life)
    notices = list(map(str, world.engine.notices))
    say({"observed": await observe(world), "found": await _found(world, life.find), "notices": notices})
    tidy(world)
    for name in life.plan:
        say({"action": name})
        await ACTIONS[name](world)
    say({"action": "close"})
    await world.engine.close()
    say({"closed": True})


def main() -> None:
    """Fork a life for each line, and wait for its end."""
    for line in sys.stdin:
        words = json.loads(line)
        life = Life(**{**words, "plan": tuple(words["plan"]), "find": tuple(words["find"])})
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                say({"pid": os.getpid()})
                asyncio.run(live(life))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        # A line that a kill has cut off ends here.
        os.write(1, f"\n{json.dumps({'ended': os.waitstatus_to_exitcode(status)})}\n".encode())


if __name__ == "__main__":
    main()
