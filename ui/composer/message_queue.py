"""The message queue above the composer: messages that wait while the agent works, to edit, reorder or remove."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QApplication, QFrame, QMenu, QSizePolicy, QStyle, QWidget

from ui.bridge.session_controls import WaitingMessage
from ui.style.boxes import hbox, vbox
from ui.style.controls import ElidedLabel, IconButton, announce, button, label, open_menu_at
from ui.style.layouts import ScrollColumn
from ui.style.removal import remove_widget
from ui.style.text import native_shortcut, show_hidden, trim_prompt
from ui.style.theme import SPACE_S, SPACE_XS, ThemeSource
from ui.style.widgets import SmallTextEdit


class QueuedMessageControls(QWidget):
    """The buttons of a row. Folded, they are in a menu and the time of sending is one word."""

    def __init__(self, themes: ThemeSource, row: "QueuedMessageRow") -> None:
        super().__init__()
        self._is_soon = True
        self.is_folded = False
        self._pictures = label(kind="small")
        self._when = button("", row.toggle_when, "quiet")
        self._up = IconButton(themes, "chevron-up", self.tr("Send earlier"))
        self._down = IconButton(themes, "chevron-down", self.tr("Send later"))
        self._edit = IconButton(themes, "pencil", self.tr("Edit"))
        self._remove = IconButton(themes, "trash", self.tr("Remove"))
        self._buttons = (self._up, self._down, self._edit, self._remove)
        self._more = IconButton(themes, "more", self.tr("Change this message"))
        self._menu = QMenu(self)
        self._menu.setAccessibleName(self._more.accessibleName())
        self._entries: list[QAction] = []
        for control, keys in zip(self._buttons, ("Alt+Up", "Alt+Down", "Enter", "Del"), strict=True):
            action = self._menu.addAction(control.accessibleName(), control.click)
            action.setShortcut(QKeySequence(keys))
            self._entries.append(action)
        self._menu.insertSeparator(self._entries[-1])
        self._build_layout(row)

    def show_message(self, message: WaitingMessage, words: str, *, is_first: bool, is_last: bool) -> None:
        """Show a message's state; the first cannot move up, the last not down. `words` say which one it is."""
        for control in (self._when, *self._buttons, self._more):
            control.setAccessibleDescription(words)
        self._is_soon = message.when == "soon"
        when, other_time = self.when_text, self._when_name(soon=not self._is_soon)
        self._when.setAccessibleName(self.tr("Sent: {0}. Press to change it to: {1}").format(when, other_time))
        self._when.setToolTip(self.tr("Change to: {0}").format(other_time) + f" ({native_shortcut('Ctrl+Enter')})")
        # Set even while hidden: the row's width depends on it.
        self._pictures.setText(self.tr("Pictures: {0}").format(message.pictures))
        self._pictures.setVisible(bool(message.pictures))
        self._up.setEnabled(not is_first)
        self._down.setEnabled(not is_last)
        for action, control in zip(self._entries, self._buttons, strict=True):
            action.setEnabled(control.isEnabled())
        self.fold(folded=self.is_folded)

    @property
    def when_text(self) -> str:
        return self._when_name(soon=self._is_soon)

    @property
    def pictures_text(self) -> str:
        """The number of pictures in words; empty without any."""
        return "" if self._pictures.isHidden() else self._pictures.text()

    def fold(self, *, folded: bool) -> None:
        """Fold or unfold."""
        self.is_folded = folded
        self._when.setText(self._when_name(soon=self._is_soon, short=folded))
        for control in self._buttons:
            control.setVisible(not folded)
        self._more.setVisible(folded)

    def preferred_width(self, *, folded: bool) -> int:
        """Return the width folded or unfolded: the same in each row, so that the rows look alike."""
        words = [self._when_name(soon=soon, short=folded) for soon in (True, False)]
        self._when.ensurePolished()
        metrics = self._when.fontMetrics()
        longest = max(metrics.horizontalAdvance(word) for word in words)
        when = self._when.sizeHint().width() - metrics.horizontalAdvance(self._when.text()) + longest
        widths = [self._pictures.sizeHint().width(), when]
        widths += [control.sizeHint().width() for control in ((self._more,) if folded else self._buttons)]
        return sum(widths) + SPACE_XS * (len(widths) - 1)

    def _when_name(self, *, soon: bool, short: bool = False) -> str:
        if short:
            return self.tr("Soon") if soon else self.tr("When done")
        return self.tr("As soon as possible") if soon else self.tr("When the agent is done")

    def _open_menu(self) -> None:
        open_menu_at(self._more, self._menu, -self._menu.sizeHint().height())

    def _build_layout(self, row: "QueuedMessageRow") -> None:
        self._up.clicked.connect(lambda: row.move_by(-1))
        self._down.clicked.connect(lambda: row.move_by(1))
        self._edit.clicked.connect(row.begin_editing)
        self._remove.clicked.connect(row.remove)
        self._more.clicked.connect(self._open_menu)
        self._more.hide()
        parts = (self._pictures, self._when, *self._buttons, self._more)
        hbox(*parts, parent=self, spacing=SPACE_XS, margins=0, start_stretch=True)


MIN_LETTERS = 24


class QueuedMessageLine(QWidget):
    """Text and controls in one line. Where room is scarce the controls fold, then move below the text."""

    def __init__(self, words: ElidedLabel, controls: QueuedMessageControls) -> None:
        super().__init__()
        self._words, self._controls = words, controls
        words.setParent(self)
        controls.setParent(self)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        words, controls = self._words.sizeHint().height(), self._controls.sizeHint().height()
        return max(words, controls) if self._is_one_line(width) else words + SPACE_XS + controls

    def sizeHint(self) -> QSize:
        width = self._min_text_width + SPACE_S + self._controls.preferred_width(folded=False)
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        return QSize(self._controls.preferred_width(folded=True), self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def event(self, event: QEvent) -> bool:
        """Lay out again when a part wants another size."""
        if event.type() in {QEvent.Type.LayoutRequest, QEvent.Type.Show, QEvent.Type.LayoutDirectionChange}:
            self._place()
            self.updateGeometry()
        return super().event(event)

    @property
    def _min_text_width(self) -> int:
        return self._words.fontMetrics().averageCharWidth() * MIN_LETTERS

    def _is_one_line(self, width: int) -> bool:
        return self._min_text_width + SPACE_S + self._controls.preferred_width(folded=True) <= width

    def _place(self) -> None:
        width, height = self.width(), self.height()
        folded = self.sizeHint().width() > width
        if folded != self._controls.is_folded:
            self._controls.fold(folded=folded)
        if self._is_one_line(width):
            room = self._controls.sizeHint().width()
            words = QRect(0, 0, width - room - SPACE_S, height)
            controls = QRect(width - room, 0, room, height)
        else:
            top = self._words.sizeHint().height()
            words, controls = QRect(0, 0, width, top), QRect(0, top + SPACE_XS, width, height - top - SPACE_XS)
        for part, area in ((self._words, words), (self._controls, controls)):
            part.setGeometry(QStyle.visualRect(self.layoutDirection(), self.rect(), area))


EDITOR_LINES = 4


class QueuedMessageRow(QFrame):
    """A row that takes the focus: Enter edits, Delete removes, Alt+Up and Alt+Down move, Up and Down navigate.

    Ctrl+Enter changes when it is sent.
    """

    def __init__(self, themes: ThemeSource, message: WaitingMessage, queue: "MessageQueueView") -> None:
        super().__init__()
        self._message = message
        self._queue = queue
        self._editor: SmallTextEdit | None = None
        self._unchanged = ""
        """The text of the editor at first, which may differ from that of the message in some characters."""
        self._editor_panel: QWidget | None = None
        self._text = ElidedLabel()
        self._controls = QueuedMessageControls(themes, self)
        self._main_layout = vbox(parent=self, spacing=SPACE_XS, margins=(SPACE_S, 2, SPACE_XS, 2))
        self._build_layout()
        self.show_message(message, is_first=True, is_last=True)

    @property
    def changed_text(self) -> str | None:
        """Return the text in the editor if it was changed, else None."""
        text = self._unchanged if self._editor is None else self._editor.toPlainText()
        return None if text == self._unchanged else text

    def show_message(self, message: WaitingMessage, *, is_first: bool, is_last: bool) -> None:
        """Show a message's text and state."""
        self._message = message
        parts = (" ".join(message.text.split()), *map(show_hidden, message.files))
        words = " · ".join(filter(None, parts)) or self.tr("Only pictures")
        self._text.show_text(words)
        self._controls.show_message(message, words, is_first=is_first, is_last=is_last)
        self.setAccessibleName(self.tr("Waiting message: {0}").format(words))
        facts = (self._controls.pictures_text, self._controls.when_text)
        self.setAccessibleDescription(" · ".join(filter(None, facts)))

    def begin_editing(self) -> None:
        """Open an editor below the line."""
        if self._editor is not None:
            return
        self._editor = SmallTextEdit(self.tr("Text of the waiting message"), EDITOR_LINES)
        self._editor.setPlainText(self._message.text)
        self._unchanged = self._editor.toPlainText()
        self._editor.moveCursor(self._editor.textCursor().MoveOperation.End)
        self._editor.given.connect(self._save_text)
        self._editor.textChanged.connect(self._queue.edited)
        cancel, save = button(self.tr("Cancel"), self.end_editing), button(self.tr("Save"), self._save_text, "primary")
        foot = hbox(cancel, save, start_stretch=True)
        self._editor_panel = QWidget()
        vbox(self._editor, foot, parent=self._editor_panel, spacing=SPACE_XS, margins=0)
        self._main_layout.addWidget(self._editor_panel)
        # A layout shows it later, and what is hidden takes no focus now.
        self._editor_panel.show()
        self._editor.setFocus()

    def end_editing(self) -> None:
        """Close the editor and discard the changes."""
        if self._editor_panel is None:
            return
        focused = QApplication.focusWidget()
        if focused is not None and self._editor_panel.isAncestorOf(focused):
            self.setFocus()
        remove_widget(self._main_layout, self._editor_panel)
        self._editor, self._editor_panel = None, None
        self._queue.edited.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        alt = bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        match event.key():
            case Qt.Key.Key_Return | Qt.Key.Key_Enter if control:
                self.toggle_when()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter | Qt.Key.Key_F2:
                self.begin_editing()
            case Qt.Key.Key_Escape if self._editor is not None:
                self.end_editing()
            case Qt.Key.Key_Delete | Qt.Key.Key_Backspace:
                self.remove()
            case Qt.Key.Key_Up | Qt.Key.Key_Down as key:
                by = -1 if key == Qt.Key.Key_Up else 1
                self.move_by(by) if alt else self._queue.navigate(self._message.id, by)
            case _:
                super().keyPressEvent(event)

    def toggle_when(self) -> None:
        """Change when it is sent."""
        self._queue.when_chosen.emit(self._message.id, "idle" if self._message.when == "soon" else "soon")

    def move_by(self, by: int) -> None:
        """Move it by so many positions."""
        self._queue.move_message(self._message.id, by)

    def remove(self) -> None:
        """Remove it from the queue."""
        self._queue.removed.emit(self._message.id)

    def _save_text(self) -> None:
        text = self.changed_text
        self.end_editing()
        if text is not None:
            self._queue.text_edited.emit(self._message.id, trim_prompt(text))

    def _build_layout(self) -> None:
        self.setProperty("kind", "chip")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        # Rows scroll where room is scarce; they never shrink.
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self._main_layout.addWidget(QueuedMessageLine(self._text, self._controls))


MAX_QUEUE_HEIGHT = 230


class MessageQueueView(QWidget):
    """The queued messages. Emits what the person wants; the list follows `show_messages`."""

    edited = Signal()
    """A text in an editor changed."""
    text_edited = Signal(str, str)
    """A message's id and its new text."""
    moved = Signal(str, int)
    """A message's id and its new position."""
    when_chosen = Signal(str, str)
    """A message's id, and "idle" or "soon"."""
    removed = Signal(str)
    send_requested = Signal()
    """The agent is idle; send the queued messages now."""
    draft_returned = Signal(str)
    """The changed text of an editor that was closed."""
    navigated_out = Signal()
    """Down from the last row."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self._messages: tuple[WaitingMessage, ...] = ()
        self._rows: dict[str, QueuedMessageRow] = {}
        self._title = label(kind="small")
        self._send = button(self.tr("Send now"), self.send_requested.emit, "link")
        self._list = ScrollColumn(SPACE_XS, most=lambda: themes.scaled(MAX_QUEUE_HEIGHT))
        self._build_layout()
        self.hide()

    @property
    def rows(self) -> tuple[QueuedMessageRow, ...]:
        """In order of sending."""
        return tuple(self._rows[message.id] for message in self._messages)

    def show_messages(self, messages: Sequence[WaitingMessage], *, working: bool) -> None:
        """Show the queue; `working`: the agent works and takes the messages by itself."""
        self._send.setVisible(not working)
        if tuple(messages) != self._messages:
            self._update_rows(tuple(messages))
        self.setVisible(bool(messages))

    @property
    def changed_texts(self) -> tuple[str, ...]:
        return tuple(row.changed_text for row in self.rows if row.changed_text is not None)

    def return_drafts(self) -> None:
        """Close all editors and emit their changed texts; the messages stay as they are."""
        for row in self.rows:
            self._return_draft(row)
            row.end_editing()

    def take_focus(self) -> None:
        """Focus the first row."""
        if self._messages:
            self._focus_row(0)

    def _update_rows(self, messages: tuple[WaitingMessage, ...]) -> None:
        focused = next((index for index, row in enumerate(self.rows) if row.hasFocus()), None)
        focused_id = None if focused is None else self._messages[focused].id
        grew = len(messages) > len(self._messages)
        self._messages = messages
        for removed_id in set(self._rows) - {message.id for message in messages}:
            row = self._rows.pop(removed_id)
            self._return_draft(row)
            remove_widget(self._list.column, row)
        for index, message in enumerate(messages):
            row = self._rows.get(message.id)
            if row is None:
                row = self._rows[message.id] = QueuedMessageRow(self._themes, message, self)
            row.show_message(message, is_first=index == 0, is_last=index == len(messages) - 1)
            if self._list.column.indexOf(row) != index:
                self._list.column.insertWidget(index, row)
                row.show()
        self._title.setText(self.tr("Waiting messages: {0}").format(len(messages)))
        if grew:
            announce(self, self._title.text())
        if focused is not None and focused_id not in self._rows:
            self._focus_row(min(focused, len(messages) - 1))

    def _return_draft(self, row: QueuedMessageRow) -> None:
        if row.changed_text is not None:
            self.draft_returned.emit(row.changed_text)

    def _index_of(self, message_id: str) -> int:
        return next(index for index, message in enumerate(self._messages) if message.id == message_id)

    def move_message(self, message_id: str, by: int) -> None:
        """Move a message by so many positions, unless it is at the end."""
        index = self._index_of(message_id) + by
        if 0 <= index < len(self._messages):
            self.moved.emit(message_id, index)

    def navigate(self, message_id: str, by: int) -> None:
        """Go to another row, so many positions from this one."""
        self._focus_row(self._index_of(message_id) + by)

    def _focus_row(self, index: int) -> None:
        if index >= len(self._messages) or not self._messages:
            self.navigated_out.emit()
        elif index >= 0:
            row = self._rows[self._messages[index].id]
            row.setFocus(Qt.FocusReason.OtherFocusReason)
            self._list.ensureWidgetVisible(row)

    def _build_layout(self) -> None:
        self.setAccessibleName(self.tr("Waiting messages"))
        head = hbox(self._title, self._send, margins=(SPACE_S, 0, SPACE_S, 0), grow=self._title)
        vbox(head, self._list, parent=self, spacing=SPACE_XS, margins=0)
