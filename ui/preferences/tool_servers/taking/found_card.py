"""One server that another program knows, as it would be taken over."""

from typing import Literal

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QFrame, QVBoxLayout, QWidget

from desktop_agent.vocabulary.mcp.servers import StdioConnection
from ui.bridge.mcp.imports import ImportCandidate
from ui.look.controls import label
from ui.look.sentences import escape_mnemonics
from ui.look.theme import SPACE_S, SPACE_XS
from ui.look.visible_text import show_hidden
from ui.preferences.tool_servers.whole_text import ReadOnlyText
from ui.preferences.tool_servers.words import describe_connection

_MAX_LINES = 12


class ImportCard(QFrame):
    """All of what would be started is to be seen, before it is."""

    changed = Signal()

    def __init__(self, found: ImportCandidate, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        server, title = found.server, show_hidden(found.server.title)
        self.server_id = server.id
        self._checkbox = QCheckBox(escape_mnemonics(title))
        self._checkbox.setAccessibleName(self.tr("Import {0}").format(title))
        self._checkbox.setChecked(True)
        self._checkbox.toggled.connect(self.changed)
        self.setProperty("kind", "card")
        self.setAccessibleName(title)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_S, SPACE_S, SPACE_S, SPACE_S)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self._checkbox)
        is_program = isinstance(server.connection, StdioConnection)
        name = self.tr("Command line of {0}") if is_program else self.tr("Address of {0}")
        layout.addWidget(ReadOnlyText(describe_connection(server), name.format(title), _MAX_LINES))
        for words, kind in self._notes(found):
            layout.addWidget(label(words, kind, wrap=True))

    @property
    def is_selected(self) -> bool:
        """Whether it is to be taken."""
        return self._checkbox.isChecked()

    def _notes(self, found: ImportCandidate) -> list[tuple[str, Literal["muted", "warning"]]]:
        server = found.server
        remarks: list[tuple[str, Literal["muted", "warning"]]] = []
        if isinstance(server.connection, StdioConnection):
            plain = [f"{show_hidden(n)}={show_hidden(v)}" for n, v in server.connection.env.items()]
            if plain:
                remarks.append((self.tr("Plain variables: {0}").format(", ".join(plain)), "muted"))
        secret = [show_hidden(each) for each in server.secret_names if each not in found.placeholders]
        if secret:
            remarks.append((self.tr("Goes to the keyring: {0}").format(", ".join(secret)), "muted"))
        if not server.on:
            remarks.append((self.tr("It is off there, and stays off."), "muted"))
        if found.placeholders:
            words = self.tr("The other program asks for these values itself: {0}. Enter them with Edit afterwards.")
            remarks.append((words.format(", ".join(show_hidden(each) for each in found.placeholders)), "warning"))
        if found.unresolved:
            words = self.tr("Only the other program fills in what stands in ${…}. Correct it with Edit afterwards.")
            remarks.append((words, "warning"))
        return remarks
