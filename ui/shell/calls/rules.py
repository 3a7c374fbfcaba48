"""The pages of rules and decisions at work."""

from collections.abc import Callable

from PySide6.QtCore import QObject

from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.conduct.audit import AuditEntry
from ui.bridge.calls.rules import PermissionRules
from ui.bridge.tasks import BackgroundTasks
from ui.preferences.settings_dialog import SettingsDialog
from ui.shell.contents.saving import FileSaver


class RulesPresenter(QObject):
    """Shows what stands and what was decided. `open_conversation` says whose rules are tried."""

    def __init__(
        self,
        dialog: SettingsDialog,
        rules: PermissionRules,
        tasks: BackgroundTasks,
        open_conversation: Callable[[], str | None],
    ) -> None:
        super().__init__(dialog)
        self._dialog = dialog
        self._rules = rules
        self._saver = FileSaver(tasks, self)
        self._open_conversation = open_conversation
        dialog.rule_revoked.connect(rules.revoke)
        dialog.dry_run_requested.connect(self._dry_run)
        dialog.audit_log_requested.connect(rules.read_newest)
        dialog.older_entries_requested.connect(rules.read_more)
        dialog.export_requested.connect(self._export)
        rules.changed.connect(self.refresh)
        rules.tools_found.connect(dialog.rules.show_tools)
        rules.dry_run_finished.connect(dialog.rules.show_verdict)
        rules.read.connect(self._show_decisions)

    def refresh(self) -> None:
        """Show what holds now."""
        self._dialog.rules.show_rules(self._rules.all())
        conversation = self._open_conversation()
        if conversation is None:
            self._dialog.rules.show_tools(())
        else:
            self._rules.find_tools(conversation)

    def _show_decisions(self, entries: tuple[AuditEntry, ...], is_all: bool) -> None:  # noqa: FBT001  # a slot
        self._dialog.decisions.show_entries(entries, is_all=is_all)

    def _dry_run(self, tool: str, arguments: JsonObject) -> None:
        conversation = self._open_conversation()
        if conversation is not None:
            self._rules.dry_run(conversation, tool, arguments)

    def _export(self) -> None:
        self._saver.ask(self._dialog, "decisions.jsonl", lambda: self._rules.as_json_lines().encode())
