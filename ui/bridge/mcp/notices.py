"""What servers of tools make the person be told: a tool that is another one now, a server that does not start."""

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.vocabulary.errors import Sentence


class ServerNotices(QObject):
    """`told` carries each Sentence once; those from before it was made come with `tell_all`."""

    told = Signal(object)

    def __init__(self, engine: Engine, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._told: set[str] = set()
        engine.mcp.on_notice(self._tell)

    def tell_all(self) -> None:
        """What was noticed before anybody listened."""
        for each in self._engine.mcp.notices:
            self._tell(each)

    def _tell(self, sentence: Sentence) -> None:
        if str(sentence) not in self._told:
            self._told.add(str(sentence))
            self.told.emit(sentence)
