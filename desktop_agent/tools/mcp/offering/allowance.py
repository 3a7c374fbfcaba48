"""How much of a server's tools is looked at, and how much of them goes to a model with every request."""

import time
from collections.abc import Callable

from desktop_agent.tools.in_thread import CancelToken

MAX_SCHEMA_SECONDS = 2.0
"""Of a thread's own time, for all schemas of a server."""
MAX_SCHEMA_CHARACTERS = 400_000
"""Of descriptions and schemas of a server's tools together."""


class SchemaBudget:
    """What is left for one server's list of tools; `sign` ends it at once."""

    def __init__(self, sign: CancelToken, clock: Callable[[], float] = time.thread_time) -> None:
        self._sign = sign
        self._clock = clock
        self._deadline = clock() + MAX_SCHEMA_SECONDS
        self._characters = MAX_SCHEMA_CHARACTERS

    def has_time(self) -> bool:
        """Whether there is time left."""
        return not self._sign.is_cancelled and self._clock() < self._deadline

    def take(self, characters: int) -> bool:
        """Whether so many fit; then they are counted."""
        if characters > self._characters:
            return False
        self._characters -= characters
        return True
