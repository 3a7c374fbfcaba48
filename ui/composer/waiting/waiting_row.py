"""One message that waits: what it says, when it is sent, and what can be done with it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QSizePolicy, QVBoxLayout, QWidget

from ui.bridge.conduct.conduct import WaitingMessage
from ui.look.controls import ElidedLabel, IconButton, button, label
from ui.look.parts.flow_rows import FlowRows
from ui.look.theme import SPACE_S, SPACE_XS, ThemeSource

EDITOR_LINES = 4
LEAST_LETTERS = 24


class RewordEditor(QPlainTextEdit):
    """The text of a message that waits. Enter keeps it, Shift+Enter makes a new line, Escape leaves it as it was."""

    kept = Signal()
    left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Text of the waiting message"))
        self.setTabChangesFocus(True)
        self.setFixedHeight(self.fontMetrics().lineSpacing() * EDITOR_LINES + 2 * SPACE_S)

    def keyPressEvent(self, e: QKeyEvent) -> None:
        """Enter and Escape."""
        shift = bool(e.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if e.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            if shift:
                self.insertPlainText("\n")
            else:
                self.kept.emit()
        elif e.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(e)


class WaitingRow(QFrame):
    """Takes the focus as a whole: Enter edits, Delete removes, Alt+Up and Alt+Down move, Up and Down walk.

    Ctrl+Enter changes when it is sent.
    """

    reworded = Signal(str)
    """The new text."""
    removed = Signal()
    when_chosen = Signal(str)
    """The other moment."""
    moved = Signal(int)
    """By so many places."""
    walked = Signal(int)
    resized = Signal()
    """It is edited now, or no more."""

    def __init__(self, themes: ThemeSource, message: WaitingMessage, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._message = message
        self._editor: RewordEditor | None = None
        self._below: QWidget | None = None
        self._text = ElidedLabel()
        self._pictures = label(kind="small")
        self._when = button("", self._change_when, "quiet")
        self._up = IconButton(themes, "chevron-up", self.tr("Send earlier"))
        self._down = IconButton(themes, "chevron-down", self.tr("Send later"))
        self._edit = IconButton(themes, "pencil", self.tr("Edit"))
        self._remove = IconButton(themes, "trash", self.tr("Remove"))
        self._box = QVBoxLayout(self)
        self._build()
        self.show_message(message, is_first=True, is_last=True)

    @property
    def text(self) -> str | None:
        """What is being written instead; None while nothing is."""
        return None if self._editor is None else self._editor.toPlainText()

    def show_message(self, message: WaitingMessage, *, is_first: bool, is_last: bool) -> None:
        """What it says now, and whether it can go up or down."""
        self._message = message
        words = " ".join(message.text.split()) or self.tr("Only pictures")
        self._text.show_text(words)
        soon, idle = self.tr("As soon as possible"), self.tr("When the agent is done")
        when, other = (soon, idle) if message.when == "soon" else (idle, soon)
        self._when.setText(when)
        self._when.setAccessibleName(self.tr("Sent: {0}. Press to change it to: {1}").format(when, other))
        self._when.setToolTip(self.tr("Change to: {0}").format(other) + " (Ctrl+Enter)")
        pictures = self.tr("Pictures: {0}").format(message.pictures) if message.pictures else ""
        self._pictures.setText(pictures)
        self._pictures.setVisible(bool(pictures))
        self.setAccessibleName(self.tr("Waiting message: {0}").format(words))
        self.setAccessibleDescription(" · ".join(filter(None, (pictures, when))))
        self._up.setEnabled(not is_first)
        self._down.setEnabled(not is_last)

    def begin_editing(self) -> None:
        """Change the text in place."""
        if self._editor is not None:
            return
        self._editor = RewordEditor()
        self._editor.setPlainText(self._message.text)
        self._editor.moveCursor(self._editor.textCursor().MoveOperation.End)
        self._editor.kept.connect(self._keep)
        self._editor.left.connect(self._leave)
        foot = QHBoxLayout()
        foot.addStretch(1)
        foot.addWidget(button(self.tr("Cancel"), self._leave))
        foot.addWidget(button(self.tr("Save"), self._keep, "primary"))
        self._below = QWidget()
        below = QVBoxLayout(self._below)
        below.setContentsMargins(0, 0, 0, 0)
        below.setSpacing(SPACE_XS)
        below.addWidget(self._editor)
        below.addLayout(foot)
        self._box.addWidget(self._below)
        # What a layout shows later takes no focus now.
        self._below.show()
        self.resized.emit()
        self._editor.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The keys of the row."""
        alt = bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        match event.key():
            case Qt.Key.Key_Return | Qt.Key.Key_Enter if control:
                self._change_when()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter | Qt.Key.Key_F2:
                self.begin_editing()
            case Qt.Key.Key_Delete | Qt.Key.Key_Backspace:
                self.removed.emit()
            case Qt.Key.Key_Up:
                (self.moved if alt else self.walked).emit(-1)
            case Qt.Key.Key_Down:
                (self.moved if alt else self.walked).emit(1)
            case _:
                super().keyPressEvent(event)

    def _change_when(self) -> None:
        self.when_chosen.emit("idle" if self._message.when == "soon" else "soon")

    def _on_remove(self) -> None:
        self.removed.emit()

    def _keep(self) -> None:
        if self._editor is not None:
            text = self._editor.toPlainText()
            self._leave()
            if text != self._message.text:
                self.reworded.emit(text)

    def _leave(self) -> None:
        if self._below is not None:
            self.setFocus()
            self._box.removeWidget(self._below)
            self._below.hide()
            self._below.deleteLater()
            self._editor, self._below = None, None
            self.resized.emit()

    def _build(self) -> None:
        self.setProperty("kind", "chip")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        # Where there is no room for all rows they scroll; they never shrink.
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        # Narrower than that it has a row of its own.
        self._text.setMinimumWidth(self._text.fontMetrics().averageCharWidth() * LEAST_LETTERS)
        doing = (self._up, self._down, self._edit, self._remove)
        row = FlowRows((self._text, self._pictures, self._when, *doing), wide=self._text, trailing=True, gap=SPACE_XS)
        self._box.setContentsMargins(SPACE_S, 2, SPACE_XS, 2)
        self._box.setSpacing(SPACE_XS)
        self._box.addWidget(row)
        self._up.clicked.connect(lambda: self.moved.emit(-1))
        self._down.clicked.connect(lambda: self.moved.emit(1))
        self._edit.clicked.connect(self.begin_editing)
        self._remove.clicked.connect(self._on_remove)
