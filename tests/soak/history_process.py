"""Processes with the engine on one data folder, each of which is killed at some moment.

    python -m tests.soak.history_process

Each line of JSON on standard input starts one (see Life), which is forked, so that the program is loaded only once. It
opens the data folder, recovers what a killed process left, reports what is stored, does the planned actions, and
closes. It prints lines of JSON to standard output: `pid`; `observed` with all facts, `found` by the search, and
`notices`; `action` before each action; what actions report (see tests/soak/history_actions.py); `closed`. The last line
of each is `ended`, with the exit code or the negative signal.
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
    """`find` holds words to search for first; `place` is the folder for files outside of the data folder."""

    data: str
    place: str
    server: str
    seed: int
    plan: tuple[str, ...] = ()
    find: tuple[str, ...] = ()


def write_line(line: dict[str, Any]) -> None:
    """Write a line and flush it, as the process may be killed at any moment."""
    data = f"{json.dumps(line)}\n".encode()
    while data:
        data = data[os.write(1, data) :]


async def open_world(life: Life) -> World:
    """Open the data folder as the window does."""
    endpoint = Endpoint(id=ENDPOINT, title="Loopback", base_url=life.server)
    defaults = RunDefaults(endpoint=endpoint, model=MODEL, toolset="none", titles=True)
    engine = await Engine.open(Path(life.data), defaults)
    world = World(engine, Path(life.place), random.Random(life.seed), write_line)
    for interrupted in await engine.interrupted_conversations():
        await (await world.session(interrupted.conversation_id)).flush()
    return world


async def _search(world: World, words: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the conversations in which each word is found."""
    conversations: dict[str, list[str]] = {}
    if words:
        await world.engine.store.search.index_all()
    for searched in words:
        results = await world.engine.store.search.find(SearchQuery(f"{searched} "))
        conversations[searched] = (
            [hits.conversation_id for hits in results.conversations] if results is not None else []
        )
    return conversations


async def live(life: Life) -> None:
    world = await open_world(life)
    notices = list(map(str, world.engine.notices))
    write_line({"observed": await observe(world), "found": await _search(world, life.find), "notices": notices})
    tidy(world)
    for name in life.plan:
        write_line({"action": name})
        await ACTIONS[name](world)
    write_line({"action": "close"})
    await world.engine.close()
    write_line({"closed": True})


def main() -> None:
    """Fork a life for each line, and wait for its end."""
    for line in sys.stdin:
        fields = json.loads(line)
        life = Life(**{**fields, "plan": tuple(fields["plan"]), "find": tuple(fields["find"])})
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                write_line({"pid": os.getpid()})
                asyncio.run(live(life))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        # Ends a line that a kill has cut off.
        os.write(1, f"\n{json.dumps({'ended': os.waitstatus_to_exitcode(status)})}\n".encode())


if __name__ == "__main__":
    main()
