"""The page of MCP servers at work."""

from collections.abc import Sequence

from PySide6.QtCore import QObject, Slot

from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.mcp.log import McpLogLine
from desktop_agent.vocabulary.mcp.states import McpServerState
from ui.bridge.mcp.tool_servers import McpServerSettings
from ui.bridge.opening import AddressOpener
from ui.look.sentences import translate_sentence
from ui.look.visible_text import show_hidden
from ui.preferences.tool_servers.taking.import_panel import ImportPanel
from ui.preferences.tool_servers.tool_servers_form import McpServersForm


class McpServersPresenter(QObject):
    """Shows how the servers are, and does what the person wants."""

    def __init__(self, form: McpServersForm, servers: McpServerSettings) -> None:
        super().__init__(form)
        self._form = form
        self._servers = servers
        form.saved.connect(servers.save)
        form.change_requested.connect(servers.change)
        form.removed.connect(servers.remove)
        form.test_requested.connect(self._test)
        form.log_followed.connect(servers.watch_log)
        form.sign_in_requested.connect(self._sign_in)
        form.sign_in_cancelled.connect(servers.cancel_sign_in)
        form.sign_out_requested.connect(servers.sign_out)
        form.states_requested.connect(self._show_states)
        form.stored_secrets_requested.connect(servers.find_secrets)
        form.import_started.connect(self._begin_import)
        servers.servers_changed.connect(form.show_servers)
        servers.state_changed.connect(self._show_state)
        servers.tested.connect(self._show_tested)
        servers.log_lines_added.connect(self._show_lines)
        servers.held_names.connect(form.set_stored_secrets)
        servers.saved.connect(form.show_saved)
        servers.failed.connect(form.show_error)
        servers.sign_in_ended.connect(self._end_sign_in)
        servers.imports.taken.connect(form.finish_import)

    def refresh(self) -> None:
        """Show what holds now."""
        self._form.show_servers(self._servers.servers)
        self._show_states()

    def _show_states(self) -> None:
        for server in self._servers.servers:
            self._show_state(server.id, self._servers.state(server.id))
            self._servers.look_up_sign_in(server.id)

    @Slot(str, object)
    def _show_state(self, server_id: str, state: McpServerState) -> None:
        card = self._form.card(server_id)
        if card is not None:
            card.show_state(state)

    @Slot(str)
    def _test(self, server_id: str) -> None:
        card = self._form.card(server_id)
        if card is not None:
            card.show_testing()
        self._servers.test(server_id)

    @Slot(str, object)
    def _show_tested(self, server_id: str, state: McpServerState) -> None:
        card = self._form.card(server_id)
        if card is not None:
            card.show_tested(state)

    @Slot(str, object, bool)
    def _show_lines(self, server_id: str, lines: Sequence[McpLogLine], is_all: bool) -> None:  # noqa: FBT001  # a slot
        card = self._form.card(server_id)
        if card is not None:
            card.show_lines(lines, is_all=is_all)

    @Slot(str)
    def _sign_in(self, server_id: str) -> None:
        self._servers.sign_in(server_id, lambda address: self._open_page(server_id, address))

    def _open_page(self, server_id: str, address: str) -> None:
        """Whether it may be opened was looked at before: the sign-in is refused otherwise."""
        card = self._form.card(server_id)
        if card is not None:
            card.sign_in.show_page(address, is_open=True)
            opener = AddressOpener(card)
            opener.failed.connect(lambda: self._show_not_opened(server_id, address))
            opener.open_page(address)

    def _show_not_opened(self, server_id: str, address: str) -> None:
        card = self._form.card(server_id)
        if card is not None:
            card.sign_in.show_page(address, is_open=False)

    @Slot(str, object)
    def _end_sign_in(self, server_id: str, why: Sentence | None) -> None:
        card = self._form.card(server_id)
        if card is not None:
            card.sign_in.show_result("" if why is None else show_hidden(translate_sentence(why)))

    @Slot(object)
    def _begin_import(self, panel: ImportPanel) -> None:
        imports = self._servers.imports
        panel.preview_requested.connect(imports.preview)
        panel.file_chosen.connect(imports.read)
        panel.import_requested.connect(imports.take)
        imports.files_found.connect(panel.show_files)
        imports.file_read.connect(panel.show_text)
        imports.previewed.connect(panel.show_preview)
        imports.refused.connect(panel.show_problem)
        imports.find_files()
