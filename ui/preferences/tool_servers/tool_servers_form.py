"""The MCP servers: a card for each, one of them being written, or some being imported."""

from collections.abc import Collection, Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.mcp.servers import McpServer, StdioConnection
from ui.look.controls import button, label
from ui.look.parts.flow_rows import FlowRows
from ui.look.theme import SPACE_M, ThemeSource
from ui.preferences.cards.card_column import CardColumn
from ui.preferences.tool_servers.editing.server_editor import Kind, ServerEditor
from ui.preferences.tool_servers.server_card import ServerCard
from ui.preferences.tool_servers.taking.import_panel import ImportPanel


class ToolServersForm(QWidget):
    """Asks for changes; whoever makes them answers with `show_servers`, `show_saved` or `show_failure`, and keeps the
    cards and the import up to date.
    """

    saved = Signal(object, object)
    """The McpServer as it shall be, and the new values of its secrets by name."""
    change_wanted = Signal(str, object)
    """A server's id, and a function that answers the McpServer as it shall be, given it as it is then."""
    removed = Signal(str)
    test_requested = Signal(str)
    log_watched = Signal(str)
    """Whose log is looked at; "": nobody's."""
    sign_in_requested = Signal(str)
    sign_in_cancelled = Signal(str)
    sign_out_requested = Signal(str)
    states_wanted = Signal()
    """Cards were made: say how each server is."""
    held_wanted = Signal(str)
    """A server is being written: say with `show_held` which of its secrets have a value."""
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
        self._column = CardColumn()
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
        before, self._cards = self._cards, {}
        for server in servers:
            card = before.get(server.id)
            is_same = card is not None and card.title == server.title
            self._cards[server.id] = card = card if card is not None and is_same else self._made_card(server)
            card.show_server(server)
        if self._editor is not None:
            # A new one got its id when it was saved.
            self._column.stand_for(self._editor.server_id)
        self._column.show_cards(self._cards)
        if self._logged and self._logged not in self._cards:
            self._watch("")
        self._none.setVisible(not servers and self._panel is None)
        if any(card is not before.get(server_id) for server_id, card in self._cards.items()):
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
        if self._is_writing():
            return
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
        if self._editor is not None and self._editor.is_saving and self._is_edited(server_id):
            self._close()

    def show_failure(self, server_id: str, sentence: Sentence) -> None:
        """What the person wanted of this server is not done, and why."""
        card = self._cards.get(server_id)
        if self._editor is not None and self._editor.is_saving and self._is_edited(server_id):
            self._editor.show_failure(sentence)
        elif card is not None:
            card.show_problem(sentence)

    def show_held(self, server_id: str, names: Collection[str]) -> None:
        """Of this server these secrets have a value."""
        if self._editor is not None and self._is_edited(server_id):
            self._editor.show_held(names)

    def _is_edited(self, server_id: str) -> bool:
        return self._editor is not None and self._editor.server_id == server_id

    @property
    def _panel(self) -> QWidget | None:
        return self._editor or self._import

    def _is_writing(self) -> bool:
        """What is written already goes first, and the keys go there."""
        if self._panel is not None:
            self._panel.setFocus()
        return self._panel is not None

    def _edit(self, kind: Kind, server: McpServer | None) -> None:
        if self._is_writing():
            return
        taken = frozenset(each.id for each in self._servers)
        self._editor = ServerEditor(self._themes, kind, server, taken)
        self._editor.saved.connect(self.saved)
        self._editor.cancelled.connect(self._close)
        self._open(self._editor, server.id if server is not None else "")
        self._editor.begin()
        if server is not None and server.secret_names:
            self.held_wanted.emit(server.id)

    def _open(self, panel: QWidget, instead_of: str = "") -> None:
        self._column.open(panel, instead_of)
        self._none.hide()
        for each in self._adding:
            each.setEnabled(False)

    def _close(self) -> None:
        focus = self._adding[0]
        if self._panel is None:
            return
        if self._editor is not None:
            card = self._cards.get(self._editor.server_id)
            focus = card.edit_button if card is not None else focus
        else:
            focus = self._adding[-1]
        self._editor = self._import = None
        self._column.close()
        for each in self._adding:
            each.setEnabled(True)
        self._none.setVisible(not self._servers)
        focus.setFocus()

    def _made_card(self, server: McpServer) -> ServerCard:
        card = ServerCard(self._themes, server)
        card.changed.connect(self.change_wanted)
        card.test_pressed.connect(self.test_requested)
        card.edit_pressed.connect(self.edit)
        card.removed.connect(self.removed)
        card.log_watched.connect(partial(self._watch_log, server.id))
        card.sign_in_pressed.connect(self.sign_in_requested)
        card.sign_in_cancelled.connect(self.sign_in_cancelled)
        card.sign_out_pressed.connect(self.sign_out_requested)
        return card

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
            "MCP servers give the agent more tools than it has by itself: for your tickets, a database, a "
            "browser. They speak the Model Context Protocol (MCP)."
        )
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        layout.addWidget(label(words, "muted", wrap=True))
        layout.addWidget(self._none)
        layout.addLayout(self._column)
        layout.addWidget(FlowRows(self._adding))
        layout.addStretch(1)
