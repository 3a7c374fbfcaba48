"""The waiting calls beside the one on the screen; out of sight while there is only one."""

from collections.abc import Iterable

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from ui.approval.parts.wrapped_text import WrappingLabel
from ui.approval.pending_approval import PendingApproval
from ui.look.rows import RowDelegate, RowRole
from ui.look.sentences import plain_tooltip
from ui.look.theme import SPACE_S, ThemeSource
from ui.look.written.order import isolate_untrusted, strip_bidi_marks


class CallList(QWidget):
    """One row for each call."""

    chosen = Signal(str)
    """The approval's id, when the person turns to another call."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._count = WrappingLabel(kind="muted")
        self._list = QListWidget()
        self._list.setAccessibleName(self.tr("Waiting calls"))
        self._list.setItemDelegate(RowDelegate(themes, self._list))
        self._list.setMouseTracking(True)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self._list.currentItemChanged.connect(self._emit_chosen)
        self.setFocusProxy(self._list)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self._count)
        layout.addWidget(self._list, 1)

    def show_calls(self, calls: Iterable[PendingApproval], current: str | None) -> None:
        """List these and mark the current one; nothing is reported."""
        blocker = QSignalBlocker(self._list)
        self._list.clear()
        for call in calls:
            item = QListWidgetItem(isolate_untrusted(call.tool), self._list)
            item.setData(Qt.ItemDataRole.UserRole, call.approval_id)
            item.setData(RowRole.SUBTITLE, isolate_untrusted(call.subject))
            whole = f"{item.text()}: {isolate_untrusted(call.subject)}"
            item.setData(Qt.ItemDataRole.AccessibleTextRole, strip_bidi_marks(whole))
            item.setToolTip(plain_tooltip(whole))
            if call.approval_id == current:
                self._list.setCurrentItem(item)
        blocker.unblock()
        self._count.setText(self.tr("{0} calls are waiting").format(self._list.count()))
        self.setVisible(self._list.count() > 1)

    def _emit_chosen(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            self.chosen.emit(str(item.data(Qt.ItemDataRole.UserRole)))
