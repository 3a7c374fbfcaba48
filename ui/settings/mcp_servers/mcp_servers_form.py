"""The page of MCP servers: a card for each, with an editor or the import panel open among them."""

from collections.abc import Collection, Sequence
from functools import partial

from PySide6.QtWidgets import QPushButton, QWidget

from desktop_agent.types.errors import Sentence
from desktop_agent.types.mcp import McpLogLine, McpServer, McpServerState, StdioConnection
from ui.bridge.desktop.opening import AddressOpener
from ui.bridge.mcp.servers import McpServerSettings
from ui.settings.card_list import CardList
from ui.settings.mcp_servers.import_panel import ImportPanel
from ui.settings.mcp_servers.server_card import McpServerCard
from ui.settings.mcp_servers.server_editor import ServerEditor, ServerKind
from ui.style.boxes import vbox
from ui.style.controls import button, label
from ui.style.layouts import FlowRows
from ui.style.text import show_hidden, translate_sentence
from ui.style.theme import SPACE_M, ThemeSource


class McpServersForm(QWidget):
    """The page of MCP servers."""

    def __init__(self, themes: ThemeSource, settings: McpServerSettings) -> None:
        super().__init__()
        self._themes = themes
        self._settings = settings
        self._servers: tuple[McpServer, ...] = ()
        self._cards: dict[str, McpServerCard] = {}
        self._editor: ServerEditor | None = None
        self._import: ImportPanel | None = None
        self._followed_id = ""
        self._empty_note = label(
            self.tr(
                "No MCP server is set up yet. Add a program on this computer or an address on the web, or import the "
                "servers of another program."
            ),
            "muted",
            wrap=True,
        )
        self._card_list = CardList()
        self._card_list.panel_changed.connect(self._update_buttons)
        self._add_buttons: tuple[QPushButton, ...] = (
            button(self.tr("Add program…"), lambda: self.add("program")),
            button(self.tr("Add address…"), lambda: self.add("address")),
            button(self.tr("Import…"), self.start_import),
        )
        self._build_layout()
        self._connect()

    def refresh(self) -> None:
        """Show the current servers."""
        self.show_servers(self._settings.servers)
        self._show_states()

    def card(self, server_id: str) -> McpServerCard | None:
        """Return the card of a server."""
        return self._cards.get(server_id)

    def show_servers(self, servers: Sequence[McpServer]) -> None:
        """Show the servers. An open editor, open tools and logs stay."""
        self._servers = tuple(servers)
        old_cards, self._cards = self._cards, {}
        for server in servers:
            card = old_cards.get(server.id)
            is_same = card is not None and card.title == server.title
            self._cards[server.id] = card = card if card is not None and is_same else self._create_card(server)
            card.show_server(server)
        if self._editor is not None:
            # A new server got its id when it was saved.
            self._card_list.replaced_key = self._editor.server_id
        self._card_list.show_cards(self._cards)
        if self._followed_id and self._followed_id not in self._cards:
            self._follow_log("")
        self._update_buttons()
        if any(card is not old_cards.get(server_id) for server_id, card in self._cards.items()):
            self._show_states()

    def add(self, kind: ServerKind) -> None:
        """Open an editor for a new server."""
        self._open_editor(kind, None)

    def edit(self, server_id: str) -> None:
        """Open an editor for a server."""
        server = next((server for server in self._servers if server.id == server_id), None)
        if server is not None:
            self._open_editor("program" if isinstance(server.connection, StdioConnection) else "address", server)

    def start_import(self) -> None:
        """Open the import panel."""
        if self._card_list.focus_panel():
            return
        self._import = ImportPanel(self._settings.imports)
        self._import.cancelled.connect(self._close_panel)
        self._card_list.open(self._import)

    def finish_import(self) -> None:
        """Close the import panel."""
        if self._import is not None:
            self._close_panel()

    def show_saved(self, server_id: str) -> None:
        """Close the editor whose server was saved."""
        if self._is_saving(server_id):
            self._close_panel()

    def show_error(self, server_id: str, sentence: Sentence) -> None:
        """Show why a request about a server failed."""
        card = self._cards.get(server_id)
        if self._editor is not None and self._is_saving(server_id):
            self._editor.show_error(sentence)
        elif card is not None:
            card.show_problem(sentence)

    def set_stored_secrets(self, server_id: str, names: Collection[str]) -> None:
        """Set which secrets of a server the keyring has."""
        if self._editor is not None and self._editor.server_id == server_id:
            self._editor.set_stored_secrets(names)

    def _is_saving(self, server_id: str) -> bool:
        return self._editor is not None and self._editor.is_saving and self._editor.server_id == server_id

    def _open_editor(self, kind: ServerKind, server: McpServer | None) -> None:
        if self._card_list.focus_panel():
            return
        taken = frozenset(server.id for server in self._servers)
        self._editor = ServerEditor(self._themes, kind, server, taken)
        self._editor.saved.connect(self._settings.save)
        self._editor.cancelled.connect(self._close_panel)
        self._card_list.open(self._editor, server.id if server is not None else "")
        if server is not None and server.secret_names:
            self._settings.find_secrets(server.id)

    def _close_panel(self) -> None:
        focus = self._add_buttons[-1]
        if self._editor is not None:
            card = self._cards.get(self._editor.server_id)
            focus = card.edit_button if card is not None else self._add_buttons[0]
        self._editor = self._import = None
        self._card_list.close()
        focus.setFocus()

    def _update_buttons(self) -> None:
        for control in self._add_buttons:
            control.setVisible(self._card_list.panel is None)
        self._empty_note.setVisible(not self._servers and self._card_list.panel is None)

    def _create_card(self, server: McpServer) -> McpServerCard:
        card = McpServerCard(self._themes, server, self._settings)
        card.edit_pressed.connect(self.edit)
        card.log_toggled.connect(partial(self._follow_log_of, server.id))
        card.sign_in.sign_in_pressed.connect(partial(self._sign_in, server.id))
        return card

    def _show_states(self) -> None:
        for server in self._settings.servers:
            self._show_state(server.id, self._settings.state(server.id))
            self._settings.look_up_sign_in(server.id)

    def _show_state(self, server_id: str, state: McpServerState) -> None:
        if (card := self.card(server_id)) is not None:
            card.show_state(state)

    def _show_tested(self, server_id: str, state: McpServerState) -> None:
        if (card := self.card(server_id)) is not None:
            card.show_tested(state)

    def _show_lines(self, server_id: str, lines: Sequence[McpLogLine], is_all: bool) -> None:  # noqa: FBT001  # a slot
        if (card := self.card(server_id)) is not None:
            card.show_lines(lines, is_all=is_all)

    def _sign_in(self, server_id: str) -> None:
        self._settings.sign_in(server_id, partial(self._open_page, server_id))

    def _open_page(self, server_id: str, address: str) -> None:
        """Open the page of a sign-in, which has already checked the address."""
        if (card := self.card(server_id)) is not None:
            card.sign_in.show_page(address, is_open=True)
            opener = AddressOpener(card)
            opener.failed.connect(lambda: self._show_open_error(server_id, address))
            opener.open_page(address)

    def _show_open_error(self, server_id: str, address: str) -> None:
        if (card := self.card(server_id)) is not None:
            card.sign_in.show_page(address, is_open=False)

    def _end_sign_in(self, server_id: str, why: Sentence | None) -> None:
        if (card := self.card(server_id)) is not None:
            card.sign_in.show_result("" if why is None else translate_sentence(why, show_hidden))

    def _follow_log_of(self, card_id: str, server_id: str) -> None:
        """Follow the log of a card; close the log of another card first."""
        followed = self._cards.get(self._followed_id)
        if followed is not None and self._followed_id != card_id:
            followed.close_log()
        self._follow_log(server_id)

    def _follow_log(self, server_id: str) -> None:
        self._followed_id = server_id
        self._settings.watch_log(server_id)

    def _connect(self) -> None:
        settings = self._settings
        settings.servers_changed.connect(self.show_servers)
        settings.state_changed.connect(self._show_state)
        settings.tested.connect(self._show_tested)
        settings.log_lines_added.connect(self._show_lines)
        settings.secrets_found.connect(self.set_stored_secrets)
        settings.saved.connect(self.show_saved)
        settings.failed.connect(self.show_error)
        settings.sign_in_ended.connect(self._end_sign_in)
        settings.imports.imported.connect(self.finish_import)

    def _build_layout(self) -> None:
        words = self.tr(
            "MCP servers give the agent more tools than it has by itself: for your tickets, a database, a "
            "browser. They speak the Model Context Protocol (MCP)."
        )
        parts = (label(words, "muted", wrap=True), self._empty_note, self._card_list, FlowRows(self._add_buttons))
        vbox(*parts, parent=self, spacing=SPACE_M, margins=0, end_stretch=True)
