"""One server that another program knows, as it would be taken over."""

from typing import Literal

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QFrame, QVBoxLayout, QWidget

from desktop_agent.vocabulary.mcp.servers import StdioConnection
from ui.bridge.mcp.imports import Found
from ui.look.controls import label
from ui.look.sentences import literal
from ui.look.theme import SPACE_S, SPACE_XS
from ui.look.visible_text import with_hidden_shown
from ui.preferences.tool_servers.whole_text import WholeText
from ui.preferences.tool_servers.words import reached_by

_MOST_LINES = 12


class FoundCard(QFrame):
    """All of what would be started is to be seen, before it is."""

    changed = Signal()

    def __init__(self, found: Found, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        server, title = found.server, with_hidden_shown(found.server.title)
        self.server_id = server.id
        self._take = QCheckBox(literal(title))
        self._take.setAccessibleName(self.tr("Import {0}").format(title))
        self._take.setChecked(True)
        self._take.toggled.connect(self.changed)
        self.setProperty("kind", "card")
        self.setAccessibleName(title)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_S, SPACE_S, SPACE_S, SPACE_S)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self._take)
        is_program = isinstance(server.connection, StdioConnection)
        name = self.tr("Command line of {0}") if is_program else self.tr("Address of {0}")
        layout.addWidget(WholeText(reached_by(server), name.format(title), _MOST_LINES))
        for words, kind in self._remarks(found):
            layout.addWidget(label(words, kind, wrap=True))

    @property
    def is_wanted(self) -> bool:
        """Whether it is to be taken."""
        return self._take.isChecked()

    def _remarks(self, found: Found) -> list[tuple[str, Literal["muted", "warning"]]]:
        server = found.server
        remarks: list[tuple[str, Literal["muted", "warning"]]] = []
        if isinstance(server.connection, StdioConnection):
            plain = [f"{with_hidden_shown(n)}={with_hidden_shown(v)}" for n, v in server.connection.env.items()]
            if plain:
                remarks.append((self.tr("Plain variables: {0}").format(", ".join(plain)), "muted"))
        secret = [with_hidden_shown(each) for each in server.secret_names if each not in found.gaps]
        if secret:
            remarks.append((self.tr("Goes to the keyring: {0}").format(", ".join(secret)), "muted"))
        if not server.on:
            remarks.append((self.tr("It is off there, and stays off."), "muted"))
        if found.gaps:
            words = self.tr("The other program asks for these values itself: {0}. Enter them with Edit afterwards.")
            remarks.append((words.format(", ".join(with_hidden_shown(each) for each in found.gaps)), "warning"))
        if found.left:
            words = self.tr("Only the other program fills in what stands in ${…}. Correct it with Edit afterwards.")
            remarks.append((words, "warning"))
        return remarks
