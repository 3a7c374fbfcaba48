"""How much of a server's tools is looked at, and how much of them goes to a model with every request."""

import time
from collections.abc import Callable

from desktop_agent.tools.in_thread import StopSign

MOST_SECONDS = 2.0
"""Of a thread's own time, for all schemas of a server."""
MOST_CHARACTERS = 400_000
"""Of descriptions and schemas of a server's tools together."""


class Allowance:
    """What is left for one server's list of tools; `sign` ends it at once."""

    def __init__(self, sign: StopSign, clock: Callable[[], float] = time.thread_time) -> None:
        self._sign = sign
        self._clock = clock
        self._until = clock() + MOST_SECONDS
        self._characters = MOST_CHARACTERS

    def lasts(self) -> bool:
        """Whether there is time left."""
        return not self._sign.is_hoisted and self._clock() < self._until

    def takes(self, characters: int) -> bool:
        """Whether so many fit; then they are counted."""
        if characters > self._characters:
            return False
        self._characters -= characters
        return True
