"""Keep pages of the settings dialog up to date: rules, modes and specialists, MCP servers, storage."""

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject

from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.errors import Sentence
from desktop_agent.types.mcp import McpLogLine, McpServerState
from desktop_agent.types.permissions import AuditEntry
from ui.bridge.desktop.local_models import LocalModelRunner
from ui.bridge.desktop.opening import AddressOpener
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.mcp.servers import McpServerSettings
from ui.bridge.model_servers import ModelServers
from ui.bridge.permissions import PermissionRules
from ui.bridge.settings import AvailableTools
from ui.bridge.single_instance import start_program
from ui.bridge.storage import DiskMonitor
from ui.settings.mcp_servers.import_panel import ImportPanel
from ui.settings.mcp_servers.mcp_servers_form import McpServersForm
from ui.settings.settings_dialog import SettingsDialog
from ui.settings.storage_form import StorageSettings
from ui.shell.attachments import FileSaver
from ui.shell.usage import UsagePresenter
from ui.style.text import show_hidden, translate_sentence


class RulesPresenter(QObject):
    """Shows the rules and the audit log. A dry run is of a call in the current conversation."""

    def __init__(
        self,
        dialog: SettingsDialog,
        rules: PermissionRules,
        tasks: BackgroundTasks,
        current_conversation_id: Callable[[], str | None],
    ) -> None:
        super().__init__(dialog)
        self._dialog = dialog
        self._rules = rules
        self._saver = FileSaver(tasks, self)
        self._current_conversation_id = current_conversation_id
        dialog.rules.revoke_requested.connect(rules.revoke)
        dialog.rules.dry_run.requested.connect(self._dry_run)
        dialog.audit_log_requested.connect(rules.read_newest)
        dialog.decisions.more_requested.connect(rules.read_more)
        dialog.decisions.export_requested.connect(self._export)
        rules.changed.connect(self._show_rules)
        rules.tools_found.connect(dialog.rules.dry_run.show_tools)
        rules.dry_run_finished.connect(dialog.rules.dry_run.show_verdict)
        rules.read.connect(self._show_decisions)

    def refresh(self) -> None:
        """Show the current rules, and the tools of the open conversation."""
        self._dialog.rules.show_rules(self._rules.all())
        conversation = self._current_conversation_id()
        if conversation is None:
            self._dialog.rules.dry_run.show_tools(())
        else:
            self._rules.find_tools(conversation)

    def _show_rules(self) -> None:
        if self._dialog.isVisible():
            self._dialog.rules.show_rules(self._rules.all())

    def _show_decisions(self, entries: tuple[AuditEntry, ...], is_all: bool) -> None:  # noqa: FBT001  # a slot
        self._dialog.decisions.show_entries(entries, is_all=is_all)

    def _dry_run(self, tool: str, arguments: JsonObject) -> None:
        conversation = self._current_conversation_id()
        if conversation is not None:
            self._rules.dry_run(conversation, tool, arguments)

    def _export(self) -> None:
        self._saver.ask(self._dialog, "decisions.jsonl", lambda: self._rules.as_json_lines().encode())


class AgentSettingsPresenter(QObject):
    """Shows the tools of the open conversation, or the built-in ones, and the models."""

    def __init__(
        self,
        dialog: SettingsDialog,
        tools: AvailableTools,
        servers: ModelServers,
        current_conversation_id: Callable[[], str | None],
    ) -> None:
        super().__init__(dialog)
        self._tools = tools
        self._servers = servers
        self._current_conversation_id = current_conversation_id
        tools.found.connect(dialog.modes.show_tools)
        tools.found.connect(dialog.specialists.show_tools)
        servers.models_changed.connect(dialog.specialists.show_models)

    def refresh(self) -> None:
        """Find tools and models again."""
        self._tools.find(self._current_conversation_id())
        self._servers.refresh_models()


class McpServersPresenter(QObject):
    """Shows the state of the servers and applies the person's changes."""

    def __init__(self, form: McpServersForm, servers: McpServerSettings) -> None:
        super().__init__(form)
        self._form = form
        self._servers = servers
        requests = form.requests
        requests.saved.connect(servers.save)
        requests.change_requested.connect(servers.change)
        requests.removed.connect(servers.remove)
        requests.test_requested.connect(self._test)
        requests.log_followed.connect(servers.watch_log)
        requests.sign_in_requested.connect(self._sign_in)
        requests.sign_in_cancelled.connect(servers.cancel_sign_in)
        requests.sign_out_requested.connect(servers.sign_out)
        requests.states_requested.connect(self._show_states)
        requests.stored_secrets_requested.connect(servers.find_secrets)
        form.import_started.connect(self._begin_import)
        servers.servers_changed.connect(form.show_servers)
        servers.state_changed.connect(self._show_state)
        servers.tested.connect(self._show_tested)
        servers.log_lines_added.connect(self._show_lines)
        servers.secrets_found.connect(form.set_stored_secrets)
        servers.saved.connect(form.show_saved)
        servers.failed.connect(form.show_error)
        servers.sign_in_ended.connect(self._end_sign_in)
        servers.imports.imported.connect(form.finish_import)

    def refresh(self) -> None:
        """Show the current servers."""
        self._form.show_servers(self._servers.servers)
        self._show_states()

    def _show_states(self) -> None:
        for server in self._servers.servers:
            self._show_state(server.id, self._servers.state(server.id))
            self._servers.look_up_sign_in(server.id)

    def _show_state(self, server_id: str, state: McpServerState) -> None:
        if (card := self._form.card(server_id)) is not None:
            card.show_state(state)

    def _test(self, server_id: str) -> None:
        if (card := self._form.card(server_id)) is not None:
            card.show_testing()
        self._servers.test(server_id)

    def _show_tested(self, server_id: str, state: McpServerState) -> None:
        if (card := self._form.card(server_id)) is not None:
            card.show_tested(state)

    def _show_lines(self, server_id: str, lines: Sequence[McpLogLine], is_all: bool) -> None:  # noqa: FBT001  # a slot
        if (card := self._form.card(server_id)) is not None:
            card.show_lines(lines, is_all=is_all)

    def _sign_in(self, server_id: str) -> None:
        self._servers.sign_in(server_id, lambda address: self._open_page(server_id, address))

    def _open_page(self, server_id: str, address: str) -> None:
        """Open the page of a sign-in, which has already checked the address."""
        if (card := self._form.card(server_id)) is not None:
            card.sign_in.show_page(address, is_open=True)
            opener = AddressOpener(card)
            opener.failed.connect(lambda: self._show_open_error(server_id, address))
            opener.open_page(address)

    def _show_open_error(self, server_id: str, address: str) -> None:
        if (card := self._form.card(server_id)) is not None:
            card.sign_in.show_page(address, is_open=False)

    def _end_sign_in(self, server_id: str, why: Sentence | None) -> None:
        if (card := self._form.card(server_id)) is not None:
            card.sign_in.show_result("" if why is None else translate_sentence(why, show_hidden))

    def _begin_import(self, panel: ImportPanel) -> None:
        imports = self._servers.imports
        panel.preview_requested.connect(imports.preview)
        panel.file_chosen.connect(imports.read)
        panel.import_requested.connect(imports.import_servers)
        imports.files_found.connect(panel.show_files)
        imports.file_read.connect(panel.show_text)
        imports.previewed.connect(panel.show_preview)
        imports.refused.connect(panel.show_problem)
        imports.find_files()


class StoragePresenter(QObject):
    """Shows the data folder with its size, checks it, and writes and restores backups."""

    def __init__(self, page: StorageSettings, disk: DiskMonitor, tasks: BackgroundTasks) -> None:
        super().__init__(page)
        self._page = page
        self._disk = disk
        self._tasks = tasks
        self._opener = AddressOpener(self)
        page.show_folder(disk.folder)
        page.check_requested.connect(disk.check)
        page.folder_requested.connect(lambda: self._opener.open_folder(Path(disk.folder)))
        backups = disk.backups
        page.backup_requested.connect(backups.back_up)
        page.restore_requested.connect(backups.restore)
        page.backup_deleted.connect(backups.delete)
        page.copy_requested.connect(backups.open_copy)
        page.copy_deleted.connect(backups.delete)
        page.compact_requested.connect(backups.compact)
        page.cancel_requested.connect(backups.cancel)
        page.program_requested.connect(start_program)
        disk.checking.connect(page.show_checking)
        disk.checked.connect(self._show_checked)
        backups.changed.connect(page.show_backups)
        backups.copies_changed.connect(page.show_copies)
        backups.begun.connect(page.show_begun)
        backups.done.connect(self._show_done)
        backups.restored.connect(page.offer_program)

    def refresh(self) -> None:
        """Show what is stored now."""
        self._tasks.start(self._refresh())
        self._disk.backups.refresh()

    def _show_checked(self, result: Sentence, is_whole: bool) -> None:  # noqa: FBT001  a slot
        self._page.show_result(result, is_whole=is_whole)
        self._tasks.start(self._refresh())

    def _show_done(self, result: Sentence, went_well: bool) -> None:  # noqa: FBT001  a slot
        self._page.show_done(result, went_well=went_well)
        self._tasks.start(self._refresh())

    async def _refresh(self) -> None:
        self._page.show_last_check(await self._disk.last_check())
        self._page.show_size(*await self._disk.count())


def connect_local_models(dialog: SettingsDialog, runner: LocalModelRunner) -> None:
    """Connect the page of model files with the runner; once a model is ready, hide the settings."""
    page = dialog.local

    def hide_from_page() -> None:
        # Loading may take minutes: the person may be on another page by then.
        if page.isVisible():
            dialog.hide()

    page.run_requested.connect(runner.run)
    page.file_chosen.connect(runner.run_file)
    page.stop_requested.connect(runner.stop)
    page.refresh_requested.connect(runner.refresh)
    runner.found.connect(page.show_found)
    runner.state_changed.connect(page.show_state)
    runner.failed.connect(page.show_problem)
    runner.ready.connect(hide_from_page)


PagePresenter = RulesPresenter | AgentSettingsPresenter | McpServersPresenter | StoragePresenter | UsagePresenter
"""What `refresh` brings up to date whenever the settings are opened."""
