"""The list of messages that wait, above the composer."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from ui.bridge.conduct.conduct import WaitingMessage
from ui.composer.waiting.waiting_row import QueuedMessageRow
from ui.look.controls import announce, button, label
from ui.look.parts.scrolled_column import ScrollColumn
from ui.look.theme import SPACE_S, SPACE_XS, ThemeSource

MAX_QUEUE_HEIGHT = 230


class MessageQueueView(QWidget):
    """Hidden while none waits. Says what the person wants; the list follows what is shown to it."""

    text_edited = Signal(str, str)
    """A message's id and its new text."""
    moved = Signal(str, int)
    """A message's id and its new place."""
    when_chosen = Signal(str, str)
    """A message's id, and when it is to be sent."""
    removed = Signal(str)
    send_requested = Signal()
    """Nothing works; what waits shall be sent now."""
    draft_returned = Signal(str)
    """What was being written instead of a message, and is not any more."""
    navigated_out = Signal()
    """Below the last one."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._messages: tuple[WaitingMessage, ...] = ()
        self._rows: dict[str, QueuedMessageRow] = {}
        self._title = label(kind="small")
        self._send = button(self.tr("Send now"), self.send_requested.emit, "link")
        self._list = ScrollColumn(SPACE_XS, most=lambda: MAX_QUEUE_HEIGHT * themes.zoom // 100)
        self._build_layout()
        self.hide()

    @property
    def rows(self) -> tuple[QueuedMessageRow, ...]:
        """First to be sent first."""
        return tuple(self._rows[message.id] for message in self._messages)

    def show_messages(self, messages: Sequence[WaitingMessage], *, working: bool) -> None:
        """These wait now; `working`: the agent is at work and takes them by itself."""
        self._send.setVisible(not working)
        if tuple(messages) != self._messages:
            self._update_rows(tuple(messages))
        self.setVisible(bool(messages))

    @property
    def changed_texts(self) -> tuple[str, ...]:
        """What is being written instead of messages that wait."""
        return tuple(row.changed_text for row in self.rows if row.changed_text is not None)

    def return_drafts(self) -> None:
        """Let go what is being written instead of them: they wait on as they are."""
        for row in self.rows:
            self._return_draft(row)
            row.end_editing()

    def take_focus(self) -> None:
        """The person wants to do something about the first."""
        if self._messages:
            self._focus_row(0)

    def _update_rows(self, messages: tuple[WaitingMessage, ...]) -> None:
        focused = next((at for at, row in enumerate(self.rows) if row.hasFocus()), None)
        held = None if focused is None else self._messages[focused].id
        grew = len(messages) > len(self._messages)
        self._messages = messages
        for gone in set(self._rows) - {message.id for message in messages}:
            self._remove_row(self._rows.pop(gone))
        for at, message in enumerate(messages):
            row = self._rows.get(message.id) or self._create_row(message.id, message)
            row.show_message(message, is_first=at == 0, is_last=at == len(messages) - 1)
            if self._list.column.indexOf(row) != at:
                self._list.column.insertWidget(at, row)
                row.show()
        self._title.setText(self.tr("Waiting messages: {0}").format(len(messages)))
        if grew:
            announce(self, self._title.text())
        if focused is not None and held not in self._rows:
            self._focus_row(min(focused, len(messages) - 1))

    def _create_row(self, message_id: str, message: WaitingMessage) -> QueuedMessageRow:
        row = self._rows[message_id] = QueuedMessageRow(self._themes, message)
        row.text_edited.connect(partial(self.text_edited.emit, message_id))
        row.when_chosen.connect(partial(self.when_chosen.emit, message_id))
        row.removed.connect(partial(self.removed.emit, message_id))
        row.moved.connect(partial(self._move_message, message_id))
        row.navigated.connect(partial(self._navigate, message_id))
        return row

    def _remove_row(self, row: QueuedMessageRow) -> None:
        self._return_draft(row)
        self._list.column.removeWidget(row)
        row.hide()
        row.deleteLater()

    def _return_draft(self, row: QueuedMessageRow) -> None:
        if row.changed_text is not None:
            self.draft_returned.emit(row.changed_text)

    def _index_of(self, message_id: str) -> int:
        return next(at for at, message in enumerate(self._messages) if message.id == message_id)

    def _move_message(self, message_id: str, by: int) -> None:
        place = self._index_of(message_id) + by
        if 0 <= place < len(self._messages):
            self.moved.emit(message_id, place)

    def _navigate(self, message_id: str, by: int) -> None:
        self._focus_row(self._index_of(message_id) + by)

    def _focus_row(self, place: int) -> None:
        if place >= len(self._messages) or not self._messages:
            self.navigated_out.emit()
        elif place >= 0:
            row = self._rows[self._messages[place].id]
            row.setFocus(Qt.FocusReason.OtherFocusReason)
            self._list.ensureWidgetVisible(row)

    def _build_layout(self) -> None:
        self.setAccessibleName(self.tr("Waiting messages"))
        head = QHBoxLayout()
        head.setContentsMargins(SPACE_S, 0, SPACE_S, 0)
        head.addWidget(self._title, 1)
        head.addWidget(self._send)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addLayout(head)
        layout.addWidget(self._list)
