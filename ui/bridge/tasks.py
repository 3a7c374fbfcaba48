"""Coroutines started from slots: kept alive, and heard when they fail."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from desktop_agent.vocabulary.errors import AgentError, Sentence

_log = logging.getLogger(__name__)


class BackgroundTasks:
    """Starts coroutines and tells `on_error` of each that fails with something meant for the person."""

    def __init__(self, on_error: Callable[[AgentError], None]) -> None:
        self._on_error = on_error
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it in the background."""
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        # One that is cancelled before its first step never awaits its work.
        task.add_done_callback(lambda _: work.close())

    async def close(self) -> None:
        """Cancel what still runs and wait for it."""
        # In rounds: what is cancelled may start something more.
        while self._running:
            for task in self._running:
                task.cancel()
            await asyncio.wait(self._running)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except AgentError as error:
            self._on_error(error)
        except Exception as error:  # noqa: BLE001 - the window must stay usable; the log has the rest
            _log.exception("a background task failed")
            sentence = Sentence("Something went wrong inside the program ({kind}).", {"kind": type(error).__name__})
            self._on_error(AgentError(sentence))
