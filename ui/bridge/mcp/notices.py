"""What MCP servers make the person be told: a tool that is another one now, a server that does not start."""

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.vocabulary.errors import Sentence


class McpNotices(QObject):
    """`noticed` carries each notice once, also one that reads like another.

    Those from before it was made come with `notify_all`. What failed that the person waits for is told each time.
    """

    noticed = Signal(object)

    def __init__(self, engine: Engine, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._notified: dict[int, Sentence] = {}
        engine.mcp.on_notice(self._notify_once)
        engine.mcp.on_failure(self._notify)

    def notify_all(self) -> None:
        """What was noticed before anybody listened."""
        for each in self._engine.mcp.notices:
            self._notify_once(each)

    def _notify_once(self, sentence: Sentence) -> None:
        if id(sentence) not in self._notified:
            self._notify(sentence)

    def _notify(self, sentence: Sentence) -> None:
        # Held, so that no other one can have its id.
        self._notified[id(sentence)] = sentence
        self.noticed.emit(sentence)
