"""Who is told of servers: how they are, what they say, and what the person should know."""

from collections.abc import Callable

from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.mcp.log import LogLine

MOST_NOTICES = 100


class Told:
    """Listeners, and the notices that came so far."""

    def __init__(self) -> None:
        self.notices: list[Sentence] = []
        self._of_notices: list[Callable[[Sentence], None]] = []
        self._of_states: list[Callable[[str], None]] = []
        self._of_logs: list[Callable[[str, LogLine], None]] = []

    def on_notice(self, listener: Callable[[Sentence], None]) -> None:
        """Be told what the person should know: a tool that changed, a server that cannot be started."""
        self._of_notices.append(listener)

    def on_state(self, listener: Callable[[str], None]) -> None:
        """Be told the id of a server that is otherwise than before, in one folder or another."""
        self._of_states.append(listener)

    def on_log(self, listener: Callable[[str, LogLine], None]) -> None:
        """Be told each line of a server's log, with the server's id."""
        self._of_logs.append(listener)

    def _tell(self, sentence: Sentence) -> None:
        if sentence in self.notices[-10:]:
            return
        self.notices = [*self.notices, sentence][-MOST_NOTICES:]
        for listener in tuple(self._of_notices):
            listener(sentence)

    def _tell_state(self, server_id: str) -> None:
        for listener in tuple(self._of_states):
            listener(server_id)

    def _tell_log(self, server_id: str, line: LogLine) -> None:
        for listener in tuple(self._of_logs):
            listener(server_id, line)
