"""Signs in the message editor that open the offers: a slash in an empty message, an at sign before a word."""

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QPlainTextEdit

TRIGGER_CHARACTERS = {"/", "@"}


class CompletionTriggers(QObject):
    """The sign stands in the editor when it is told; `remove_trigger` removes it once something was taken."""

    triggered = Signal(str)

    def __init__(self, editor: QPlainTextEdit) -> None:
        super().__init__(editor)
        self._editor = editor
        self._character = ""
        self._position: int | None = None
        editor.installEventFilter(self)
        editor.textChanged.connect(self._on_text_changed)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Only what a key writes: nothing that is pasted or put there opens anything."""
        if watched is self._editor and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            self._character = event.text() if event.text() in TRIGGER_CHARACTERS else ""
        return super().eventFilter(watched, event)

    def remove_trigger(self) -> None:
        """Remove the sign, where it still stands."""
        at, self._position = self._position, None
        if at is None or self._editor.toPlainText()[at : at + 1] not in TRIGGER_CHARACTERS:
            return
        cursor = self._editor.textCursor()
        cursor.setPosition(at)
        cursor.deleteChar()

    def continue_typing(self, words: str) -> None:
        """Nothing was taken: what was typed meanwhile belongs behind the sign."""
        if self._position is not None and words:
            self._editor.insertPlainText(words)
        self._position = None

    def _on_text_changed(self) -> None:
        sign, self._character = self._character, ""
        at = self._editor.textCursor().position() - 1
        if not sign or at < 0:
            return
        text = self._editor.toPlainText()
        before = text[at - 1 : at]
        if text[at : at + 1] == sign and (text == sign if sign == "/" else not before or before.isspace()):
            self._position = at
            self.triggered.emit(sign)
