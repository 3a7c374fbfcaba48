"""The editor of a message: it grows with its text, and turns pictures and very long texts into attachments."""

import sys
from collections.abc import Callable
from functools import cache
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QMimeData, Signal
from PySide6.QtGui import QContextMenuEvent, QDropEvent, QFocusEvent, QKeyEvent, QResizeEvent, QTextLayout
from PySide6.QtWidgets import QPlainTextEdit

from ui.style.controls import TextAlignment, set_by_name
from ui.style.theme import SPACE_S, ThemeSource, body_font

if TYPE_CHECKING:
    from PySide6.QtCore import Qt

MAX_LINES = 10
# Beyond either, layout takes too long for typing: the text becomes an attachment.
MAX_TEXT_LENGTH = 1_000_000
MAX_LINE_LENGTH = 50_000


def is_too_long(text: str) -> bool:
    """Return whether the editor would freeze on a text."""
    if len(text) > MAX_TEXT_LENGTH:
        return True
    return len(text) > MAX_LINE_LENGTH and any(len(line) > MAX_LINE_LENGTH for line in text.split("\n"))


def is_picture(data: QMimeData) -> bool:
    """Return whether pasted or dropped content is a picture.

    A browser adds the address of the picture. Other text beside a picture, such as that of a table, is what is meant.
    """
    return data.hasImage() and (data.hasUrls() or not data.text())


def accept_drop(event: QDropEvent) -> None:
    """Accept what is dragged as a copy: whoever moves something into a message would lose it where it was."""
    # Late: the window is drawn before anything is dragged.
    from PySide6.QtCore import Qt

    if event.possibleActions() & Qt.DropAction.CopyAction:
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
    else:
        event.acceptProposedAction()


class MessageEditor(QPlainTextEdit):
    """A plain-text editor of one to ten visible lines. Emits what keys and pastes mean."""

    send_pressed = Signal()
    control_send_pressed = Signal()
    """Ctrl+Enter."""
    edit_last_pressed = Signal()
    navigate_pressed = Signal(int)
    """To the previous (-1) or next (1) message in the transcript."""
    focus_changed = Signal()
    files_inserted = Signal(list)
    """Paths of files, and of folders."""
    picture_inserted = Signal(object)
    """Bytes or a QImage."""
    long_text_inserted = Signal(str)

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self._is_fitting = False
        self.enter_sends = True
        """Enter sends and Shift+Enter makes a new line; else Enter makes one and Ctrl+Enter sends."""
        self.show_context_menu: Callable[[QContextMenuEvent], object] | None = None
        """Shows a context menu in place of the usual one."""
        self._is_dropping = False
        self.setAccessibleName(self.tr("Message"))
        self.setPlaceholderText(self.tr("Write a message"))
        self.setProperty("kind", "bare")
        set_by_name(self, horizontalScrollBarPolicy="ScrollBarAlwaysOff")
        self.setTabChangesFocus(True)
        self.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        self.document().setDocumentMargin(0)
        TextAlignment(self)
        self.textChanged.connect(self._fit_height)
        themes.changed.connect(self._on_theme_changed)
        self._apply_theme()

    def keyPressEvent(self, e: QKeyEvent) -> None:
        from PySide6.QtCore import Qt

        steps = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
        modifiers = e.modifiers() & _modifiers()
        if not e.text() and self.textCursor().block().layout().preeditAreaText():
            # Qt (6.11) would move the cursor into what is composed, which is no text yet, and crash at the next key.
            e.ignore()
        elif e.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self._on_enter(e.modifiers())
        elif e.key() in steps and self.document().isEmpty() and modifiers == Qt.KeyboardModifier.ControlModifier:
            self.navigate_pressed.emit(steps[Qt.Key(e.key())])
        elif e.key() == Qt.Key.Key_Up and self.document().isEmpty() and not modifiers:
            self.edit_last_pressed.emit()
        elif e.key() == Qt.Key.Key_Escape:
            e.ignore()
        elif (e.key(), modifiers) == (Qt.Key.Key_F10, Qt.KeyboardModifier.ShiftModifier) and not _makes_menu_events():
            self._open_menu_at_caret()
        else:
            super().keyPressEvent(e)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasImage() or source.hasUrls() or source.hasHtml() or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Insert pasted or dropped content. Files and a text too long for the editor are emitted instead."""
        self._insert(source)

    def _insert(self, source: QMimeData, before_text: str = "") -> None:
        files = [Path(url.toLocalFile()) for url in source.urls() if url.isLocalFile()]
        if files and len(files) == len(source.urls()):
            self.files_inserted.emit(files)
            return
        if is_picture(source):
            from ui.composer.attachment_items import picture_from_mime

            picture = picture_from_mime(source)
            if picture is not None:
                self.picture_inserted.emit(picture)
                return
        text = source.text() if source.hasText() else _text_of_html(source)
        if text:
            self.insert_text(before_text + text)

    def dropEvent(self, e: QDropEvent) -> None:
        self._is_dropping = True
        super().dropEvent(e)
        self._is_dropping = False
        self._take_keyboard()

    def insert_dropped(self, data: QMimeData) -> None:
        """Insert what was dropped elsewhere, apart from what is written before it, and take the keyboard."""
        cursor = self.textCursor()
        cursor.setPosition(cursor.selectionStart())
        written = cursor.block().text()[: cursor.positionInBlock()]
        self._insert(data, "\n" if written.strip() else "")
        self._take_keyboard()

    def _take_keyboard(self) -> None:
        # Take it from the program that something was dragged from: the person writes here next.
        self.activateWindow()
        self.setFocus()

    def insert_path(self, path: str) -> None:
        """Insert a line with the path of a folder, which cannot be attached."""
        self.insert_text(f"{path}\n")

    def insert_text(self, text: str) -> None:
        """Insert at the cursor, or emit `long_text_inserted` where it is too long."""
        if is_too_long(text) or self.document().characterCount() + len(text) > MAX_TEXT_LENGTH:
            self.long_text_inserted.emit(text)
        else:
            self.insertPlainText(text)
            # Qt inserts dropped text in an edit block, and until its end the lines are those of the old text. Qt (6.11)
            # crashes when it looks for the cursor in them; it scrolls by itself afterwards.
            if not self._is_dropping:
                self.ensureCursorVisible()

    def contextMenuEvent(self, e: QContextMenuEvent) -> None:
        if self.show_context_menu is None:
            super().contextMenuEvent(e)
        else:
            self.show_context_menu(e)

    def resizeEvent(self, e: QResizeEvent) -> None:
        super().resizeEvent(e)
        self._fit_height()

    def focusInEvent(self, e: QFocusEvent) -> None:
        super().focusInEvent(e)
        self.focus_changed.emit()

    def focusOutEvent(self, e: QFocusEvent) -> None:
        super().focusOutEvent(e)
        self.focus_changed.emit()

    def _open_menu_at_caret(self) -> None:
        point = self.cursorRect().bottomLeft()
        global_point = self.viewport().mapToGlobal(point)
        self.contextMenuEvent(QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, point, global_point))

    def _on_enter(self, modifiers: "Qt.KeyboardModifier") -> None:
        from PySide6.QtCore import Qt

        if modifiers & Qt.KeyboardModifier.ControlModifier:
            self.control_send_pressed.emit()
        elif self.enter_sends and not modifiers & Qt.KeyboardModifier.ShiftModifier:
            self.send_pressed.emit()
        else:
            # Qt's own Shift+Enter inserts U+2028, which only looks like a line break.
            self.insertPlainText("\n")
            self.ensureCursorVisible()

    def _fit_height(self) -> None:
        if self._is_fitting:
            # A scroll bar that appears or disappears changes the width, which calls this again, perhaps without end.
            return
        self._is_fitting = True
        try:
            lines, margins = min(self._fit_scroll_bar(), MAX_LINES), self.viewportMargins()
            # One pixel more: otherwise it could be scrolled past the last line.
            self.setFixedHeight(lines * self._line_height() + 1 + margins.top() + margins.bottom())
        finally:
            self._is_fitting = False

    def _fit_scroll_bar(self) -> int:
        """Show the scroll bar where there are too many lines. Return how many there are."""
        self._show_scroll_bar(is_shown=self._count_lines() > MAX_LINES)
        # A bar that left no room made each paragraph count as one line: it was hidden, and must come back.
        lines = self._count_lines()
        if lines > MAX_LINES:
            self._show_scroll_bar(is_shown=True)
        return lines

    def _count_lines(self) -> int:
        """Count them until there are too many. The document counts one for each paragraph that is not yet laid out."""
        if self.document().isEmpty():
            return 1
        lines, block = 0, self.document().firstBlock()
        while block.isValid() and lines <= MAX_LINES:
            self.blockBoundingRect(block)
            lines += block.lineCount()
            block = block.next()
        return lines

    def _show_scroll_bar(self, *, is_shown: bool) -> None:
        # Not as needed: one that appears only until the height follows would make the text jump.
        set_by_name(self, verticalScrollBarPolicy="ScrollBarAlwaysOn" if is_shown else "ScrollBarAlwaysOff")

    def _line_height(self) -> int:
        """Measure a laid-out line, which is higher than the line spacing of the font."""
        layout = QTextLayout("x", self.font())
        layout.beginLayout()
        line = layout.createLine()
        line.setLineWidth(self.width())
        layout.endLayout()
        return ceil(line.height())

    def _on_theme_changed(self) -> None:
        self._apply_theme()
        # A sheet that came before gave it a font of its own, in which the placeholder is drawn. Not before the first
        # paint: the first call of `viewport()` makes Python types of all kinds of widgets (ADR 0012).
        self.viewport().setFont(self.font())

    def _apply_theme(self) -> None:
        self.setFont(body_font(self._themes.zoom, 1.05))
        room = self._themes.space(SPACE_S)
        # Around the viewport: document margins scroll away and would show a sliver of the next line.
        self.setViewportMargins(SPACE_S, room, SPACE_S, 2 * room - 2)
        self._fit_height()


def _text_of_html(source: QMimeData) -> str:
    """Return the words of a copied piece of a page that came without plain text; "" without one."""
    if not source.hasHtml():
        return ""
    from PySide6.QtGui import QTextDocumentFragment

    # Pictures are one character each.
    return QTextDocumentFragment.fromHtml(source.html()).toPlainText().replace("\ufffc", "").strip()


def _makes_menu_events() -> bool:
    """Return whether the platform sends a context menu event for Shift+F10, as all do for the menu key."""
    return sys.platform in {"win32", "darwin"}


@cache
def _modifiers() -> "Qt.KeyboardModifier":
    """Return the modifiers that change the meaning of Up; that of the number pad does not."""
    from PySide6.QtCore import Qt

    modifier = Qt.KeyboardModifier
    return modifier.ControlModifier | modifier.AltModifier | modifier.ShiftModifier | modifier.MetaModifier
