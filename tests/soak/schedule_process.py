"""Processes that run the scheduled prompts of a data folder until they are killed.

    python -m tests.soak.schedule_process DATA URL

Each line on standard input starts one, which is forked, so that the program is loaded only once. It prints its process
id to standard output when its scheduler starts. Its clock is many times as fast as the real one, and can be set by a
file in the parent of the data folder, which holds the seconds to add.
"""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.session import Session
from desktop_agent.schedule.scheduler import Scheduler
from desktop_agent.schedule.timing import Clock
from desktop_agent.types.errors import AgentError
from desktop_agent.types.providers import Endpoint
from desktop_agent.types.schedules import RunResult, ScheduledPrompt, ScheduledRun
from desktop_agent.types.spending import BudgetReached

SPEED = 60.0
"""The fast clock passes a minute in each second."""


def fast_clock(folder: Path) -> Clock:
    """Return the clock that all processes of the folder share."""
    begun, jumps = float((folder / "begun").read_text()), folder / "jump"

    def seconds() -> float:
        return begun + (time.time() - begun) * SPEED + float(jumps.read_text() or 0)

    return Clock(seconds)


class Silent:
    """Receives the events of the scheduler."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def on_changed(self) -> None: ...

    def on_run_begun(self, session: Session) -> None: ...

    def on_run_ended(self, prompt: ScheduledPrompt, run: ScheduledRun, result: RunResult) -> None: ...

    def on_budget_wait(self, error: BudgetReached) -> None: ...

    def on_error(self, error: AgentError) -> None:
        sys.stderr.write(f"{error}\n")

    def release(self, session: Session) -> None:
        self.engine.release_session(session)


async def live(data: Path, url: str) -> None:
    endpoint = Endpoint(id="loopback", title="Loopback", base_url=url)
    engine = await Engine.open(data, RunDefaults(endpoint=endpoint, model="m", toolset="none"))
    scheduler = Scheduler(engine, Silent(engine), fast_clock(data.parent), "library", longest_sleep=0.2)
    os.write(1, f"{os.getpid()}\n".encode())
    await scheduler.run()


def main(data: Path, url: str) -> None:
    # Killed processes need not be waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in sys.stdin.buffer.raw:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                asyncio.run(live(data, url))
            finally:
                os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
