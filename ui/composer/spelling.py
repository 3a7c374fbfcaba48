"""Underline wrong words in the message editor, and offer others for them in its context menu."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QObject, QPoint, QTimer, Slot
from PySide6.QtGui import QAction, QColor, QContextMenuEvent, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QMenu, QTextEdit

from ui.bridge.spelling.spell_checker import SpellChecker
from ui.bridge.spelling.words import is_fence, prose_words
from ui.composer.message_editor import MAX_LINES, MessageEditor
from ui.style.theme import ThemeSource

_MAX_LENGTH = 100_000
"""Characters of a text that is checked: a longer one was hardly typed."""
_MAX_MARKS = 300
_DELAY_MS = 100
_MENU_MS = 800
"""Milliseconds to wait for suggestions before the menu opens without them."""
# Between the blocks of a raw text.
_PARAGRAPH = "\u2029"


@dataclass(frozen=True, slots=True)
class _PlacedWord:
    """A word with its position in the document, in UTF-16 units."""

    start: int
    end: int
    text: str


class SpellingMarks(QObject):
    """Checks what is visible in an editor. Its marks are no part of the text: nothing counts as changed by them."""

    def __init__(self, themes: ThemeSource, editor: MessageEditor, checker: SpellChecker) -> None:
        super().__init__(editor)
        self._themes = themes
        self._editor = editor
        self._checker = checker
        self._typing_position = -1
        """The position of the caret at the last change of the text; -1 once it was moved."""
        self._timer = QTimer(self, singleShot=True, interval=_DELAY_MS)
        self._timer.timeout.connect(self.update_marks)
        editor.textChanged.connect(self._on_text_changed)
        editor.cursorPositionChanged.connect(self._on_caret_moved)
        for signal in (editor.verticalScrollBar().valueChanged, editor.focus_changed):
            signal.connect(self._start_timer)
        checker.changed.connect(self._start_timer)
        themes.changed.connect(self._start_timer)
        editor.show_context_menu = self.show_menu
        self._start_timer()

    def update_marks(self) -> None:
        """Mark the wrong words that are visible, except the one that is being typed."""
        words = [*self._visible_words()]
        wrong = self._checker.wrong({word.text for word in words})
        caret = self._editor.textCursor().position()
        typed = caret if caret == self._typing_position and self._editor.hasFocus() else -1
        marked = [word for word in words if word.text in wrong and not word.start <= typed <= word.end]
        self._show(marked[:_MAX_MARKS])

    def show_menu(self, event: QContextMenuEvent) -> None:
        """Open the context menu, at the caret if a key asked for it; with suggestions if the word there is wrong."""
        event.accept()
        editor = self._editor
        if event.reason() is QContextMenuEvent.Reason.Keyboard:
            point = editor.viewport().mapToGlobal(editor.cursorRect().bottomLeft())
            self._show_menu(editor.textCursor().position(), point, by_key=True)
        else:
            self._show_menu(editor.cursorForPosition(event.pos()).position(), event.globalPos(), by_key=False)

    def _show_menu(self, position: int, point: QPoint, *, by_key: bool) -> None:
        editor, word = self._editor, self._wrong_word_at(position)
        if word is None:
            _open_menu(editor.createStandardContextMenu(), point, by_key=by_key)
            return
        cursor = QTextCursor(editor.document())
        cursor.setPosition(word.start)
        cursor.setPosition(word.end, QTextCursor.MoveMode.KeepAnchor)
        _SpellingMenu(editor, self._checker, cursor, word.text).open_at(point, by_key=by_key)

    def _on_text_changed(self) -> None:
        self._typing_position = self._editor.textCursor().position()
        self._start_timer()

    def _on_caret_moved(self) -> None:
        if self._editor.textCursor().position() != self._typing_position:
            self._typing_position = -1
        self._start_timer()

    def _start_timer(self, *_: object) -> None:
        if not self._timer.isActive():
            self._timer.start()

    def _visible_words(self) -> Iterator[_PlacedWord]:
        document = self._editor.document()
        if document.characterCount() > _MAX_LENGTH:
            return
        lines = document.toRawText().split(_PARAGRAPH)
        first = self._editor.firstVisibleBlock().blockNumber()
        is_code = False
        for number, line in enumerate(lines[: first + MAX_LINES + 2]):
            if is_fence(line):
                is_code = not is_code
            elif not is_code and number >= first:
                start = document.findBlockByNumber(number).position()
                for word in prose_words(line):
                    begin, end = _utf16_offset(line, word.start), _utf16_offset(line, word.end)
                    yield _PlacedWord(start + begin, start + end, word.text)

    def _wrong_word_at(self, position: int) -> _PlacedWord | None:
        words = [word for word in self._visible_words() if word.start <= position <= word.end]
        wrong = self._checker.wrong({word.text for word in words})
        return next((word for word in words if word.text in wrong), None)

    def _show(self, words: list[_PlacedWord]) -> None:
        colour = QColor(self._themes.theme.danger)
        shown = [
            (mark.cursor.selectionStart(), mark.cursor.selectionEnd(), mark.format.underlineColor())
            for mark in self._editor.extraSelections()
        ]
        if shown == [(word.start, word.end, colour) for word in words]:
            return
        underline = QTextCharFormat()
        underline.setUnderlineStyle(QTextCharFormat.UnderlineStyle.SpellCheckUnderline)
        underline.setUnderlineColor(colour)
        marks: list[QTextEdit.ExtraSelection] = []
        for word in words:
            mark = QTextEdit.ExtraSelection()
            cursor = QTextCursor(self._editor.document())
            cursor.setPosition(word.start)
            cursor.setPosition(word.end, QTextCursor.MoveMode.KeepAnchor)
            mark.cursor, mark.format = cursor, underline
            marks.append(mark)
        self._editor.setExtraSelections(marks)


class _SpellingMenu(QObject):
    """The context menu of an editor over a wrong word. It opens when there are suggestions, or after a moment."""

    def __init__(self, editor: MessageEditor, checker: SpellChecker, cursor: QTextCursor, word: str) -> None:
        """`cursor` has selected the word, which is `word` for the checker."""
        super().__init__(editor)
        self._editor = editor
        self._checker = checker
        self._cursor = cursor
        self._word = word
        self._point, self._by_key = QPoint(), False
        self._timer = QTimer(self, singleShot=True, interval=_MENU_MS)
        self._timer.timeout.connect(partial(self._open, None))

    def open_at(self, point: QPoint, *, by_key: bool) -> None:
        """Open it at a point of the screen."""
        self._point, self._by_key = point, by_key
        self._checker.suggested.connect(self._on_suggested)
        self._timer.start()
        self._checker.suggest(self._word)

    @Slot(str, list)
    def _on_suggested(self, word: str, suggestions: list[str]) -> None:
        if word == self._word and self._timer.isActive():
            self._timer.stop()
            self._open(suggestions)

    def _open(self, suggestions: list[str] | None) -> None:
        """Open it with these suggestions; with None, they did not come in time and are not mentioned."""
        menu = self._editor.createStandardContextMenu()
        self.setParent(menu)
        before = menu.actions()[0]

        def add(words: str) -> QAction:
            action = QAction(words, menu)
            menu.insertAction(before, action)
            return action

        for suggestion in suggestions or ():
            # In a menu an ampersand marks a key.
            replace = partial(_replace, self._cursor, self._cursor.selectedText(), suggestion)
            add(suggestion.replace("&", "&&")).triggered.connect(replace)
        if suggestions == []:
            add(self.tr("No suggestions")).setEnabled(False)
        if suggestions is not None:
            menu.insertSeparator(before)
        add(self.tr("Add to dictionary")).triggered.connect(partial(self._checker.add, self._word))
        add(self.tr("Ignore")).triggered.connect(partial(self._checker.ignore, self._word))
        menu.insertSeparator(before)
        _open_menu(menu, self._point, by_key=self._by_key)


def _open_menu(menu: QMenu, point: QPoint, *, by_key: bool) -> None:
    menu.aboutToHide.connect(menu.deleteLater)
    menu.popup(point)
    if by_key:
        menu.setActiveAction(next((action for action in menu.actions() if action.isEnabled()), menu.actions()[0]))


def _replace(cursor: QTextCursor, old: str, new: str, *_: object) -> None:
    """Replace the word, unless something else is in its place now."""
    if cursor.selectedText() == old:
        cursor.insertText(new)


def _utf16_offset(line: str, position: int) -> int:
    """Return how many UTF-16 units are before a character."""
    return position if line.isascii() else len(line[:position].encode("utf-16-le", "surrogatepass")) // 2
