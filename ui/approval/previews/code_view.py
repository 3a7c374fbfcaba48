"""Read-only lines of code, with a ground by what becomes of them and their numbers in the margin."""

from collections.abc import Sequence

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent, QResizeEvent, QTextBlock, QTextCursor
from PySide6.QtWidgets import QTextEdit, QWidget

from ui.approval.parts.fitted_text import AutoHeightText
from ui.approval.previews.diff_lines import DiffLine
from ui.look.fonts import mono_font
from ui.look.theme import ThemeSource
from ui.look.written.order import displayed_positions

_SIGNS = {"same": " ", "added": "+", "removed": "\u2212", "gap": "⋯", "more": "⋯"}


class CodeView(AutoHeightText):
    """Read-only lines with a coloured ground and their numbers in the margin."""

    def __init__(self, themes: ThemeSource, name: str, least: int, most: int) -> None:
        super().__init__(least, most)
        self._themes = themes
        self._lines: list[DiffLine] = []
        self._highlights: list[tuple[int, int, bool]] = []
        self._margin = _LineNumbers(self)
        self.setAccessibleName(name)
        self.setProperty("kind", "code")
        self.setReadOnly(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setUndoRedoEnabled(False)
        self.cursorPositionChanged.connect(self._show_cursor)
        self.updateRequest.connect(self._scroll_margin)
        themes.changed.connect(self._apply_theme)
        self._apply_theme()

    def show_lines(self, lines: list[DiffLine], words: list[str]) -> None:
        """Show these lines; `words` is what each says on the screen."""
        self._lines = lines
        self._highlights = []
        self.set_text("\n".join(words))
        # It has the keyboard first; a blinking caret would say that one can write here.
        self.setCursorWidth(0)
        self._apply_theme()

    def highlight(self, passages: Sequence[tuple[int, int, bool]]) -> None:
        """Give these passages, rising places of `text`, a colour of their own; True is the grave one."""
        places = displayed_positions(self.text, [at for start, end, _ in passages for at in (start, end)])
        graves = [is_grave for _, _, is_grave in passages]
        self._highlights = list(zip(places[::2], places[1::2], graves, strict=True))
        self._apply_highlights()

    def margin_width(self) -> int:
        """Room for two columns of numbers and a sign, in pixels."""
        if not self._lines:
            return 0
        digits = len(str(max((each.new or each.old or 0) for each in self._lines)))
        return self.fontMetrics().horizontalAdvance("0") * (2 * digits + 6)

    def paintEvent(self, e: QPaintEvent) -> None:
        """Grounds first, text above."""
        painter = QPainter(self.viewport())
        for block, area in self._visible_blocks():
            painter.fillRect(area, self._background(block.blockNumber()))
        painter.end()
        super().paintEvent(e)

    def resizeEvent(self, e: QResizeEvent) -> None:
        """The margin is as high as the view."""
        super().resizeEvent(e)
        area = self.contentsRect()
        self._margin.setGeometry(QRect(area.left(), area.top(), self.margin_width(), area.height()))

    def paint_margin(self, event: QPaintEvent) -> None:
        """Numbers of the old and the new file, and the sign."""
        painter = QPainter(self._margin)
        theme = self._themes.theme
        painter.fillRect(event.rect(), QColor(theme.surface))
        painter.setFont(self.font())
        painter.setPen(QColor(theme.muted))
        cell = self.fontMetrics().horizontalAdvance("0")
        column = (self.margin_width() - 4 * cell) // 2
        for block, area in self._visible_blocks():
            line = self._lines[block.blockNumber()] if block.blockNumber() < len(self._lines) else None
            if line is None:
                continue
            painter.fillRect(
                QRect(0, area.top(), self._margin.width(), area.height()), self._background(block.blockNumber())
            )
            first = QRect(cell // 2, area.top(), column, self.fontMetrics().height())
            right = Qt.AlignmentFlag.AlignRight
            painter.drawText(first, right, str(line.old or ""))
            painter.drawText(first.translated(column + cell, 0), right, str(line.new or ""))
            painter.drawText(first.translated(column + 5 * cell // 2, 0), right, _SIGNS[line.kind])

    def _visible_blocks(self) -> list[tuple[QTextBlock, QRect]]:
        found: list[tuple[QTextBlock, QRect]] = []
        block = self.firstVisibleBlock()
        while block.isValid():
            area = self.blockBoundingGeometry(block).translated(self.contentOffset()).toAlignedRect()
            if area.top() > self.viewport().height():
                break
            found.append((block, QRect(0, area.top(), self.viewport().width(), area.height())))
            block = block.next()
        return found

    def _background(self, number: int) -> QColor:
        theme = self._themes.theme
        kind = self._lines[number].kind if number < len(self._lines) else "same"
        grounds = {"added": theme.added_background, "removed": theme.removed_background, "gap": theme.hover}
        grounds["more"] = grounds["gap"]
        return QColor(grounds[kind]) if kind in grounds else QColor(Qt.GlobalColor.transparent)

    def _show_cursor(self) -> None:
        """Somebody marks a part of it by keys or mouse."""
        self.setCursorWidth(1)

    def _scroll_margin(self, area: QRect, scrolled: int) -> None:
        if scrolled:
            self._margin.scroll(0, scrolled)
        else:
            self._margin.update(0, area.y(), self._margin.width(), area.height())

    def _apply_theme(self) -> None:
        self.setFont(mono_font(self._themes.theme, self._themes.zoom))
        width = self.margin_width()
        self.setViewportMargins(width, 0, 0, 0)
        self._margin.setVisible(width > 0)
        area = self.contentsRect()
        self._margin.setGeometry(QRect(area.left(), area.top(), width, area.height()))
        self._apply_highlights()
        self.viewport().update()

    def _apply_highlights(self) -> None:
        theme = self._themes.theme
        selections: list[QTextEdit.ExtraSelection] = []
        for start, end, is_grave in self._highlights:
            made = QTextEdit.ExtraSelection()
            made.cursor = QTextCursor(self.document())
            made.cursor.setPosition(start)
            made.cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
            made.format.setForeground(QColor(theme.danger if is_grave else theme.warning))
            made.format.setFontWeight(QFont.Weight.DemiBold)
            selections.append(made)
        self.setExtraSelections(selections)


class _LineNumbers(QWidget):
    def __init__(self, view: CodeView) -> None:
        super().__init__(view)
        self._view = view

    def sizeHint(self) -> QSize:
        return QSize(self._view.margin_width(), 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        self._view.paint_margin(event)
