"""Silence in real time, every dialect at once: `python -m tests.soak silence`, or `make soak`. Takes four minutes.

A model may think for minutes, with or without signs of life from its server. The program's own limits must allow that,
a shorter limit must count from the last sign of life, and silence beyond a limit must be noticed. `--to-the-limit` also
waits until the program's own limit has passed, which takes another minute.
"""

import argparse
import asyncio
import sys
import time
from dataclasses import dataclass

from desktop_agent.types.errors import TimedOut
from desktop_agent.types.providers import Timeouts
from tests.fakes.silent_server import SIGNS_OF_LIFE, Pause, heard, quiet_server
from tests.fakes.vendor_streams import DIALECTS


@dataclass(frozen=True)
class Silence:
    """One kind of silence. `idle` is the limit, None for the program's own limits."""

    name: str
    pause: Pause
    idle: float | None
    expected: str = "done"


_SILENCES = (
    *(
        Silence(f"200 s, {name} every 15 s, own limits", Pause(200, 15, sign), None)
        for name, sign in SIGNS_OF_LIFE.items()
    ),
    *(
        Silence(f"200 s, {name} every 15 s, limit 30 s", Pause(200, 15, sign), 30)
        for name, sign in SIGNS_OF_LIFE.items()
    ),
    Silence("230 s, nothing at all, own limits", Pause(230), None),
    Silence("230 s, nothing at all, limit 200 s", Pause(230), 200, TimedOut.kind),
)
_OWN_LIMIT = Timeouts().idle
_BEYOND = Silence(f"nothing at all, own limit of {_OWN_LIMIT:g} s", Pause(_OWN_LIMIT + 60), None, TimedOut.kind)


async def _measure_all(silence: Silence) -> list[str]:
    """Return a line with the result for each dialect."""
    async with quiet_server(silence.pause) as port:
        return list(await asyncio.gather(*(_measure(silence, dialect, port) for dialect in DIALECTS)))


async def _measure(silence: Silence, dialect: str, port: int) -> str:
    started = time.monotonic()
    outcome = await heard(dialect, port, silence.idle)
    verdict = "ok" if outcome == silence.expected else f"MISSED, wanted {silence.expected}"
    return f"{silence.name:<50} {dialect:<18} {outcome:<10} after {time.monotonic() - started:5.1f} s  {verdict}"


async def _all(silences: tuple[Silence, ...]) -> int:
    lines = [line for results in await asyncio.gather(*map(_measure_all, silences)) for line in results]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if any("MISSED" in line for line in lines) else 0


def main(argv: list[str]) -> int:
    """Return 0 if all results are as expected."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak silence", description="Silence in real time")
    parser.add_argument("--to-the-limit", action="store_true", help="wait for the program's own limit too")
    arguments = parser.parse_args(argv)
    return asyncio.run(_all((*_SILENCES, _BEYOND) if arguments.to_the_limit else _SILENCES))
