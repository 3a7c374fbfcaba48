"""Runs work on a second event loop while the loop of the test is blocked, as at the end of the program."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from desktop_agent.types.errors import AgentError


def raised_on_another_loop(work: Callable[[], Coroutine[Any, Any, None]]) -> AgentError | None:
    """Run the work to its end, in a thread of its own, and return the AgentError that it raised."""
    raised: list[AgentError] = []

    def run() -> None:
        try:
            asyncio.run(work())
        except AgentError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised[0] if raised else None
