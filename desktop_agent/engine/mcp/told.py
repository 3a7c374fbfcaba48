"""Who is told of servers: how they are, what they say, and what the person should know."""

import asyncio
from collections import deque
from collections.abc import Callable

from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.mcp.log import LogLine

MOST_NOTICES = 100
# One that says without end that what it offers is another is passed on this often, in seconds.
_TELL_EVERY = 1.0


class Told:
    """Listeners, and the notices that came so far."""

    def __init__(self) -> None:
        self.notices: list[Sentence] = []
        self._last: deque[tuple[Sentence, str]] = deque(maxlen=MOST_NOTICES)
        self._of_notices: list[Callable[[Sentence], None]] = []
        self._of_failures: list[Callable[[Sentence], None]] = []
        self._of_states: list[Callable[[str], None]] = []
        self._of_contents: list[Callable[[str], None]] = []
        self._resting: dict[str, bool] = {}
        self._of_logs: list[Callable[[str, LogLine], None]] = []

    def on_notice(self, listener: Callable[[Sentence], None]) -> None:
        """Be told what the person should know: a tool that changed, a server that cannot be started."""
        self._of_notices.append(listener)

    def on_failure(self, listener: Callable[[Sentence], None]) -> None:
        """Be told what failed that the person agreed to just now, each time."""
        self._of_failures.append(listener)

    def on_state(self, listener: Callable[[str], None]) -> None:
        """Be told the id of a server that is otherwise than before, in one folder or another."""
        self._of_states.append(listener)

    def on_contents(self, listener: Callable[[str], None]) -> None:
        """Be told the id of a server that says that its prompts or resources are others now."""
        self._of_contents.append(listener)

    def on_log(self, listener: Callable[[str, LogLine], None]) -> None:
        """Be told each line of a server's log, with the server's id."""
        self._of_logs.append(listener)

    def _tell(self, sentence: Sentence, about: str = "") -> None:
        """Once. `about` tells apart what reads alike: a tool that changes again is another one again."""
        if (sentence, about) in self._last:
            return
        self._last.append((sentence, about))
        self.notices = [*self.notices, sentence][-MOST_NOTICES:]
        for listener in tuple(self._of_notices):
            listener(sentence)

    def _tell_failure(self, sentence: Sentence) -> None:
        self.notices = [*self.notices, sentence][-MOST_NOTICES:]
        for listener in tuple(self._of_failures):
            listener(sentence)

    def _tell_state(self, server_id: str) -> None:
        for listener in tuple(self._of_states):
            listener(server_id)

    def _tell_contents(self, server_id: str) -> None:
        if server_id in self._resting:
            self._resting[server_id] = True
            return
        self._resting[server_id] = False
        asyncio.get_running_loop().call_later(_TELL_EVERY, self._rested, server_id)
        for listener in tuple(self._of_contents):
            listener(server_id)

    def _rested(self, server_id: str) -> None:
        if self._resting.pop(server_id):
            self._tell_contents(server_id)

    def _tell_log(self, server_id: str, line: LogLine) -> None:
        for listener in tuple(self._of_logs):
            listener(server_id, line)
