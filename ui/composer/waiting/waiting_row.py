"""One message that waits: what it says, when it is sent, and what can be done with it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from ui.bridge.conduct.conduct import WaitingMessage
from ui.composer.waiting.message_line import QueuedMessageLine
from ui.composer.waiting.row_controls import QueuedMessageControls
from ui.look.controls import ElidedLabel, button
from ui.look.parts.few_lines import SmallTextEdit
from ui.look.theme import SPACE_S, SPACE_XS, ThemeSource

EDITOR_LINES = 4


class QueuedMessageRow(QFrame):
    """Takes the focus as a whole: Enter edits, Delete removes, Alt+Up and Alt+Down move, Up and Down walk.

    Ctrl+Enter changes when it is sent.
    """

    text_edited = Signal(str)
    """The new text."""
    removed = Signal()
    when_chosen = Signal(str)
    """The other moment."""
    moved = Signal(int)
    """By so many places."""
    navigated = Signal(int)

    def __init__(self, themes: ThemeSource, message: WaitingMessage, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._message = message
        self._editor: SmallTextEdit | None = None
        self._unchanged = ""
        """What the editor said at first: not always letter by letter what the message says."""
        self._editor_panel: QWidget | None = None
        self._text = ElidedLabel()
        self._controls = QueuedMessageControls(themes)
        self._main_layout = QVBoxLayout(self)
        self._build_layout()
        self.show_message(message, is_first=True, is_last=True)

    @property
    def changed_text(self) -> str | None:
        """What is being written instead; None while nothing else is."""
        text = self._unchanged if self._editor is None else self._editor.toPlainText()
        return None if text == self._unchanged else text

    def show_message(self, message: WaitingMessage, *, is_first: bool, is_last: bool) -> None:
        """What it says now, and whether it can go up or down."""
        self._message = message
        words = " ".join(message.text.split()) or self.tr("Only pictures")
        self._text.show_text(words)
        self._controls.show_message(message, is_first=is_first, is_last=is_last)
        self.setAccessibleName(self.tr("Waiting message: {0}").format(words))
        facts = (self._controls.pictures_text, self._controls.when_text)
        self.setAccessibleDescription(" · ".join(filter(None, facts)))

    def begin_editing(self) -> None:
        """Change the text in place."""
        if self._editor is not None:
            return
        self._editor = SmallTextEdit(self.tr("Text of the waiting message"), EDITOR_LINES)
        self._editor.setPlainText(self._message.text)
        self._unchanged = self._editor.toPlainText()
        self._editor.moveCursor(self._editor.textCursor().MoveOperation.End)
        self._editor.given.connect(self._save_text)
        foot = QHBoxLayout()
        foot.addStretch(1)
        foot.addWidget(button(self.tr("Cancel"), self.end_editing))
        foot.addWidget(button(self.tr("Save"), self._save_text, "primary"))
        self._editor_panel = QWidget()
        below = QVBoxLayout(self._editor_panel)
        below.setContentsMargins(0, 0, 0, 0)
        below.setSpacing(SPACE_XS)
        below.addWidget(self._editor)
        below.addLayout(foot)
        self._main_layout.addWidget(self._editor_panel)
        # What a layout shows later takes no focus now.
        self._editor_panel.show()
        self._editor.setFocus()

    def end_editing(self) -> None:
        """Forget what is being written instead."""
        if self._editor_panel is None:
            return
        focused = QApplication.focusWidget()
        if focused is not None and self._editor_panel.isAncestorOf(focused):
            self.setFocus()
        self._main_layout.removeWidget(self._editor_panel)
        self._editor_panel.hide()
        self._editor_panel.deleteLater()
        self._editor, self._editor_panel = None, None

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The keys of the row."""
        alt = bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        match event.key():
            case Qt.Key.Key_Return | Qt.Key.Key_Enter if control:
                self._toggle_when()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter | Qt.Key.Key_F2:
                self.begin_editing()
            case Qt.Key.Key_Escape if self._editor is not None:
                self.end_editing()
            case Qt.Key.Key_Delete | Qt.Key.Key_Backspace:
                self.removed.emit()
            case Qt.Key.Key_Up:
                (self.moved if alt else self.navigated).emit(-1)
            case Qt.Key.Key_Down:
                (self.moved if alt else self.navigated).emit(1)
            case _:
                super().keyPressEvent(event)

    def _toggle_when(self) -> None:
        self.when_chosen.emit("idle" if self._message.when == "soon" else "soon")

    def _save_text(self) -> None:
        text = self.changed_text
        self.end_editing()
        if text is not None:
            self.text_edited.emit(text)

    def _build_layout(self) -> None:
        self.setProperty("kind", "chip")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        # Where there is no room for all rows they scroll; they never shrink.
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self._main_layout.setContentsMargins(SPACE_S, 2, SPACE_XS, 2)
        self._main_layout.setSpacing(SPACE_XS)
        self._main_layout.addWidget(QueuedMessageLine(self._text, self._controls))
        self._controls.when_pressed.connect(self._toggle_when)
        self._controls.moved.connect(self.moved)
        self._controls.edit_pressed.connect(self.begin_editing)
        self._controls.remove_pressed.connect(self.removed)
