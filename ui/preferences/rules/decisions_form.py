"""What was decided about calls so far: who decided, and what became of them."""

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from desktop_agent.vocabulary.blocks import Outcome
from desktop_agent.vocabulary.conduct.audit import AuditEntry
from desktop_agent.vocabulary.messages import now
from ui.look.controls import button, label
from ui.look.fonts import mono_font
from ui.look.parts.dates import exact_date
from ui.look.parts.json_text import arguments_as_json
from ui.look.rows import RowDelegate, RowRole
from ui.look.theme import SPACE_M, SPACE_S, ThemeSource
from ui.look.visible_text import show_hidden
from ui.look.written.order import in_logical_order, isolate
from ui.look.written.written_text import LogicalOrderText

_MAX_LINE_LENGTH = 200
_DETAILS_HEIGHT = 180


class AuditLogForm(QWidget):
    """One row for each call, newest first; the chosen one in full below."""

    more_requested = Signal()
    export_requested = Signal()

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._entries: tuple[AuditEntry, ...] = ()
        self._none = label(self.tr("No tool was called yet."), "muted")
        self._list = QListWidget()
        self._list.setAccessibleName(self.tr("Decisions"))
        self._list.setItemDelegate(RowDelegate(themes, self._list))
        self._list.setUniformItemSizes(True)
        self._list.currentRowChanged.connect(self._show_details)
        self._details = LogicalOrderText(readOnly=True, tabChangesFocus=True)
        self._details.setAccessibleName(self.tr("Details of the decision"))
        self._details.setProperty("kind", "code")
        self._details.setFixedHeight(_DETAILS_HEIGHT)
        self._more = button(self.tr("Show older"), self.more_requested.emit)
        self._export = button(self.tr("Export…"), self.export_requested.emit)
        foot = QHBoxLayout()
        foot.setSpacing(SPACE_S)
        foot.addWidget(self._more)
        foot.addStretch(1)
        foot.addWidget(self._export)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        words = self.tr("Every call that a model asked for: who decided about it, and what became of it.")
        layout.addWidget(label(words, "muted", wrap=True))
        # It takes the room of the list that is not there, and stands at its top.
        layout.addWidget(self._none, 1, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self._list, 1)
        layout.addWidget(self._details)
        layout.addLayout(foot)
        themes.changed.connect(self._redraw)
        self.show_entries((), is_all=True)

    @Slot()
    def _redraw(self) -> None:
        self._show_details(self._list.currentRow())

    def show_entries(self, entries: Sequence[AuditEntry], *, is_all: bool) -> None:
        """These, newest first; `is_all`: nothing older is there."""
        self._entries = tuple(entries)
        chosen = self._list.currentRow()
        blocker = QSignalBlocker(self._list)
        self._list.clear()
        for entry in self._entries:
            item = QListWidgetItem(isolate(self._title(entry)), self._list)
            item.setData(RowRole.SUBTITLE, self._summary(entry))
            item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{self._title(entry)}. {self._summary(entry)}")
        blocker.unblock()
        self._none.setVisible(not self._entries)
        for each in (self._list, self._details, self._export):
            each.setVisible(bool(self._entries))
        self._more.setVisible(not is_all)
        self._list.setCurrentRow(min(max(chosen, 0), len(self._entries) - 1))

    def _title(self, entry: AuditEntry) -> str:
        about = next((each for each in entry.input.values() if isinstance(each, str)), "")
        path = " → ".join((*entry.agent_path, entry.tool))
        return show_hidden(" ".join(f"{path}  {about}"[:_MAX_LINE_LENGTH].split()))

    def _summary(self, entry: AuditEntry) -> str:
        parts = [self._decision_text(entry)]
        if entry.outcome is not None and entry.state == "allowed":
            parts.append(self._outcome_text(entry.outcome))
        parts += [exact_date(entry.at, now()), show_hidden(entry.conversation_title[:_MAX_LINE_LENGTH])]
        return " · ".join(parts)

    def _decision_text(self, entry: AuditEntry) -> str:
        words = {
            ("allowed", "person"): self.tr("Allowed by you"),
            ("allowed", "rule"): self.tr("Allowed by a rule"),
            ("allowed", "mode"): self.tr("Allowed by the mode"),
            ("allowed", "default"): self.tr("Allowed without asking: it only reads"),
            ("denied", "person"): self.tr("Denied by you"),
            ("denied", "rule"): self.tr("Denied by a rule"),
            ("denied", "program"): self.tr("Denied without asking"),
            ("stopped", "program"): self.tr("Stopped before it was started"),
        }
        return words.get((entry.state, entry.by), self.tr("Not decided"))

    def _outcome_text(self, outcome: Outcome) -> str:
        words = {
            Outcome.SUCCEEDED: self.tr("done"),
            Outcome.FAILED: self.tr("failed"),
            Outcome.TIMED_OUT: self.tr("took too long"),
            Outcome.CANCELLED: self.tr("stopped"),
            Outcome.UNKNOWN: self.tr("outcome unknown"),
        }
        return words.get(outcome, outcome.value)

    def _show_details(self, row: int) -> None:
        if not 0 <= row < len(self._entries):
            self._details.clear()
            return
        entry = self._entries[row]
        lines = [isolate(self._title(entry)), self._summary(entry)]
        if entry.was_edited:
            lines.append(self.tr("You edited the arguments."))
        lines += [show_hidden(each) for each in (entry.reason, entry.message) if each]
        self._details.setPlainText("\n".join([*lines, "", ""]))
        written = QTextCharFormat()
        written.setFont(mono_font(self._themes.theme, self._themes.zoom))
        end = QTextCursor(self._details.document())
        end.movePosition(QTextCursor.MoveOperation.End)
        end.insertText(in_logical_order(arguments_as_json(entry.input)), written)
