"""Who is told of servers: how they are, what they say, and what the person should know."""

import asyncio
from collections import deque
from collections.abc import Callable

from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.mcp.log import McpLogLine

MAX_NOTICES = 100
# One that says without end that what it offers is another is passed on this often, in seconds.
_NOTIFY_INTERVAL = 1.0


class McpNotifier:
    """Listeners, and the notices that came so far."""

    def __init__(self) -> None:
        self.notices: list[Sentence] = []
        self._recent: deque[tuple[Sentence, str]] = deque(maxlen=MAX_NOTICES)
        self._notice_listeners: list[Callable[[Sentence], None]] = []
        self._failure_listeners: list[Callable[[Sentence], None]] = []
        self._state_listeners: list[Callable[[str], None]] = []
        self._catalog_listeners: list[Callable[[str], None]] = []
        self._pending_catalogs: dict[str, bool] = {}
        self._log_listeners: list[Callable[[str, McpLogLine], None]] = []

    def on_notice(self, listener: Callable[[Sentence], None]) -> None:
        """Be told what the person should know: a tool that changed, a server that cannot be started."""
        self._notice_listeners.append(listener)

    def on_failure(self, listener: Callable[[Sentence], None]) -> None:
        """Be told what failed that the person agreed to just now, each time."""
        self._failure_listeners.append(listener)

    def on_state(self, listener: Callable[[str], None]) -> None:
        """Be told the id of a server that is otherwise than before, in one folder or another."""
        self._state_listeners.append(listener)

    def on_catalog_changed(self, listener: Callable[[str], None]) -> None:
        """Be told the id of a server that says that its prompts or resources are others now."""
        self._catalog_listeners.append(listener)

    def on_log(self, listener: Callable[[str, McpLogLine], None]) -> None:
        """Be told each line of a server's log, with the server's id."""
        self._log_listeners.append(listener)

    def _notify(self, sentence: Sentence, about: str = "") -> None:
        """Once. `about` tells apart what reads alike: a tool that changes again is another one again."""
        if (sentence, about) in self._recent:
            return
        self._recent.append((sentence, about))
        self.notices = [*self.notices, sentence][-MAX_NOTICES:]
        for listener in tuple(self._notice_listeners):
            listener(sentence)

    def _notify_failure(self, sentence: Sentence) -> None:
        self.notices = [*self.notices, sentence][-MAX_NOTICES:]
        for listener in tuple(self._failure_listeners):
            listener(sentence)

    def _notify_state(self, server_id: str) -> None:
        for listener in tuple(self._state_listeners):
            listener(server_id)

    def _notify_catalog(self, server_id: str) -> None:
        if server_id in self._pending_catalogs:
            self._pending_catalogs[server_id] = True
            return
        self._pending_catalogs[server_id] = False
        asyncio.get_running_loop().call_later(_NOTIFY_INTERVAL, self._on_interval_over, server_id)
        for listener in tuple(self._catalog_listeners):
            listener(server_id)

    def _on_interval_over(self, server_id: str) -> None:
        if self._pending_catalogs.pop(server_id):
            self._notify_catalog(server_id)

    def _notify_log(self, server_id: str, line: McpLogLine) -> None:
        for listener in tuple(self._log_listeners):
            listener(server_id, line)
