"""The servers of tools: a card for each, one of them being written, or some being imported."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.mcp.servers import McpServer, StdioConnection
from ui.look.controls import button, label
from ui.look.theme import SPACE_M, SPACE_S, ThemeSource
from ui.preferences.tool_servers.editing.server_editor import Kind, ServerEditor
from ui.preferences.tool_servers.server_card import ServerCard
from ui.preferences.tool_servers.sight import bring_into_sight
from ui.preferences.tool_servers.taking.import_panel import ImportPanel


class ToolServersForm(QWidget):
    """Asks for changes; whoever makes them answers with `show_servers`, `show_saved` or `show_failure`, and keeps the
    cards and the import up to date.
    """

    saved = Signal(object, object)
    """The McpServer as it shall be, and the new values of its secrets by name."""
    removed = Signal(str)
    test_requested = Signal(str)
    log_watched = Signal(str)
    """Whose log is looked at; "": nobody's."""
    sign_in_requested = Signal(str)
    sign_in_cancelled = Signal(str)
    sign_out_requested = Signal(str)
    states_wanted = Signal()
    """Cards were made: say how each server is."""
    import_begun = Signal(object)
    """The ImportPanel that is open from now on."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._servers: tuple[McpServer, ...] = ()
        self._cards: dict[str, ServerCard] = {}
        self._editor: ServerEditor | None = None
        self._import: ImportPanel | None = None
        self._logged = ""
        self._none = label(
            self.tr(
                "None is set up yet. Add a program of this machine or an address on the web, or import what another "
                "program knows already."
            ),
            "muted",
            wrap=True,
        )
        self._column = QVBoxLayout()
        self._column.setSpacing(SPACE_S)
        self._adding: tuple[QPushButton, ...] = (
            button(self.tr("Add program…"), lambda: self.add("program")),
            button(self.tr("Add address…"), lambda: self.add("address")),
            button(self.tr("Import…"), self.begin_import),
        )
        self._arrange()

    def card(self, server_id: str) -> ServerCard | None:
        """The card of a server."""
        return self._cards.get(server_id)

    def show_servers(self, servers: Sequence[McpServer]) -> None:
        """These are set up; what is being written stays, and so do tools and logs that are open."""
        self._servers = tuple(servers)
        ids = [each.id for each in servers]
        for server_id in [each for each in self._cards if each not in ids]:
            self._drop(self._cards.pop(server_id))
            if self._logged == server_id:
                self._watch("")
        is_new = False
        for place, server in enumerate(servers):
            card = self._cards.get(server.id)
            if card is None:
                card = self._cards[server.id] = self._made_card(server)
                is_new = True
            elif card.title != server.title:
                self._drop(card)
                card = self._cards[server.id] = self._made_card(server)
                is_new = True
            card.show_server(server)
            self._column.insertWidget(place, card)
            card.setVisible(not self._is_edited(server.id))
        self._none.setVisible(not servers and self._editor is None and self._import is None)
        if is_new:
            self.states_wanted.emit()

    def add(self, kind: Kind) -> None:
        """Write a new one."""
        self._edit(kind, None)

    def edit(self, server_id: str) -> None:
        """Write this one."""
        server = next((each for each in self._servers if each.id == server_id), None)
        if server is not None:
            self._edit("program" if isinstance(server.connection, StdioConnection) else "address", server)

    def begin_import(self) -> None:
        """Take over what other programs know."""
        self._close()
        self._import = ImportPanel()
        self._import.cancelled.connect(self._close)
        self._open(self._import)
        self._import.begin()
        self.import_begun.emit(self._import)

    def end_import(self) -> None:
        """It is done."""
        if self._import is not None:
            self._close()

    def show_saved(self, server_id: str) -> None:
        """It is kept."""
        if self._is_edited(server_id):
            self._close()

    def show_failure(self, server_id: str, sentence: Sentence) -> None:
        """What the person wanted of this server is not done, and why."""
        card = self._cards.get(server_id)
        if self._editor is not None and self._is_edited(server_id):
            self._editor.show_failure(sentence)
        elif card is not None:
            card.show_problem(sentence)

    def _is_edited(self, server_id: str) -> bool:
        return self._editor is not None and self._editor.server_id == server_id

    def _edit(self, kind: Kind, server: McpServer | None) -> None:
        self._close()
        taken = frozenset(each.id for each in self._servers)
        self._editor = ServerEditor(self._themes, kind, server, taken)
        self._editor.saved.connect(self.saved)
        self._editor.cancelled.connect(self._close)
        card = self._cards.get(server.id) if server is not None else None
        self._open(self._editor, card)
        self._editor.begin()

    def _open(self, panel: QWidget, instead_of: QWidget | None = None) -> None:
        place = self._column.indexOf(instead_of) if instead_of is not None else self._column.count()
        if instead_of is not None:
            instead_of.hide()
        self._column.insertWidget(place, panel)
        panel.show()
        self._none.hide()
        for each in self._adding:
            each.setEnabled(False)
        bring_into_sight(panel)

    def _close(self) -> None:
        panel, focus = self._editor or self._import, self._adding[0]
        if panel is None:
            return
        if self._editor is not None:
            card = self._cards.get(self._editor.server_id)
            focus = card.edit_button if card is not None else focus
        else:
            focus = self._adding[-1]
        self._editor = self._import = None
        self._drop(panel)
        for each in self._adding:
            each.setEnabled(True)
        self.show_servers(self._servers)
        focus.setFocus()

    def _drop(self, widget: QWidget) -> None:
        self._column.removeWidget(widget)
        widget.hide()
        widget.deleteLater()

    def _made_card(self, server: McpServer) -> ServerCard:
        card = ServerCard(self._themes, server)
        card.changed.connect(self._save_change)
        card.test_pressed.connect(self.test_requested)
        card.edit_pressed.connect(self.edit)
        card.removed.connect(self.removed)
        card.log_watched.connect(partial(self._watch_log, server.id))
        card.sign_in_pressed.connect(self.sign_in_requested)
        card.sign_in_cancelled.connect(self.sign_in_cancelled)
        card.sign_out_pressed.connect(self.sign_out_requested)
        return card

    def _save_change(self, server: McpServer) -> None:
        self.saved.emit(server, {})

    def _watch_log(self, card_id: str, server_id: str) -> None:
        """One log at a time."""
        before = self._cards.get(self._logged)
        if before is not None and self._logged != card_id:
            before.close_log()
        self._watch(server_id)

    def _watch(self, server_id: str) -> None:
        self._logged = server_id
        self.log_watched.emit(server_id)

    def _arrange(self) -> None:
        words = self.tr(
            "Servers of tools give the agent more tools than it has by itself: for your tickets, a database, a "
            "browser. They speak the Model Context Protocol (MCP)."
        )
        foot = QHBoxLayout()
        foot.setSpacing(SPACE_S)
        for each in self._adding:
            foot.addWidget(each)
        foot.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        layout.addWidget(label(words, "muted", wrap=True))
        layout.addWidget(self._none)
        layout.addLayout(self._column)
        layout.addLayout(foot)
        layout.addStretch(1)
