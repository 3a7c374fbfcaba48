"""A read-only code view with line numbers and diff colours, as high as its text needs."""

from collections.abc import Sequence

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent, QResizeEvent, QTextBlock, QTextCursor
from PySide6.QtWidgets import QTextEdit, QWidget

from desktop_agent.types.line_diff import DiffLine
from ui.style.auto_height_text import AutoHeightText
from ui.style.text_display import displayed_positions
from ui.style.theme import ThemeSource, mono_font

_SIGNS = {"same": " ", "added": "+", "removed": "\u2212", "gap": "⋯", "more": "⋯"}


class CodeView(AutoHeightText):
    """Read-only lines with a coloured background and line numbers in the margin."""

    def __init__(self, themes: ThemeSource, name: str, least: int, most: int) -> None:
        super().__init__(least, most, name)
        self._themes = themes
        self._lines: list[DiffLine] = []
        self._highlights: list[tuple[int, int, bool]] = []
        self._margin = _LineNumbers(self)
        self.setProperty("kind", "code")
        self.cursorPositionChanged.connect(self._show_cursor)
        self.updateRequest.connect(self._scroll_margin)
        themes.follow(self._apply_theme)

    def show_lines(self, lines: list[DiffLine], words: list[str]) -> None:
        """Show these lines; `words` is the text of each on the screen."""
        self._lines = lines
        self._highlights = []
        self.set_text("\n".join(words))
        # The view gets the initial focus; a blinking caret would look editable.
        self.setCursorWidth(0)
        self._apply_theme()

    def highlight(self, spans: Sequence[tuple[int, int, bool]]) -> None:
        """Colour these spans (start, end, is severe) of `text`, which are in rising order."""
        positions = displayed_positions(self.text, [offset for start, end, _ in spans for offset in (start, end)])
        severities = [is_severe for _, _, is_severe in spans]
        self._highlights = list(zip(positions[::2], positions[1::2], severities, strict=True))
        self._apply_highlights()

    def margin_width(self) -> int:
        """Return the width of the two columns of line numbers and the sign, in pixels."""
        if not self._lines:
            return 0
        digits = len(str(max((line.new or line.old or 0) for line in self._lines)))
        return self.fontMetrics().horizontalAdvance("0") * (2 * digits + 6)

    def paintEvent(self, e: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        for block, area in self._visible_blocks():
            painter.fillRect(area, self._background(block.blockNumber()))
        painter.end()
        super().paintEvent(e)

    def resizeEvent(self, e: QResizeEvent) -> None:
        super().resizeEvent(e)
        self._place_margin()

    def _place_margin(self) -> None:
        area = self.contentsRect()
        self._margin.setGeometry(QRect(area.left(), area.top(), self.margin_width(), area.height()))

    def paint_margin(self, event: QPaintEvent) -> None:
        """Paint the line numbers of both files, and the sign."""
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
            right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignAbsolute
            painter.drawText(first, right, str(line.old or ""))
            painter.drawText(first.translated(column + cell, 0), right, str(line.new or ""))
            painter.drawText(first.translated(column + 5 * cell // 2, 0), right, _SIGNS[line.kind])

    def _visible_blocks(self) -> list[tuple[QTextBlock, QRect]]:
        blocks: list[tuple[QTextBlock, QRect]] = []
        block = self.firstVisibleBlock()
        while block.isValid():
            area = self.blockBoundingGeometry(block).translated(self.contentOffset()).toAlignedRect()
            if area.top() > self.viewport().height():
                break
            blocks.append((block, QRect(0, area.top(), self.viewport().width(), area.height())))
            block = block.next()
        return blocks

    def _background(self, number: int) -> QColor:
        theme = self._themes.theme
        kind = self._lines[number].kind if number < len(self._lines) else "same"
        backgrounds = {"added": theme.added_background, "removed": theme.removed_background, "gap": theme.hover}
        backgrounds["more"] = backgrounds["gap"]
        return QColor(backgrounds[kind]) if kind in backgrounds else QColor(Qt.GlobalColor.transparent)

    def _show_cursor(self) -> None:
        self.setCursorWidth(1)

    def _scroll_margin(self, area: QRect, scrolled: int) -> None:
        if scrolled:
            self._margin.scroll(0, scrolled)
        else:
            self._margin.update(0, area.y(), self._margin.width(), area.height())

    def _apply_theme(self) -> None:
        self.setFont(mono_font(self._themes.zoom))
        width = self.margin_width()
        self.setViewportMargins(width, 0, 0, 0)
        self._margin.setVisible(width > 0)
        self._place_margin()
        self._apply_highlights()
        self.viewport().update()

    def _apply_highlights(self) -> None:
        theme = self._themes.theme
        selections: list[QTextEdit.ExtraSelection] = []
        for start, end, is_severe in self._highlights:
            selection = QTextEdit.ExtraSelection()
            selection.cursor = QTextCursor(self.document())
            selection.cursor.setPosition(start)
            selection.cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
            selection.format.setForeground(QColor(theme.danger if is_severe else theme.warning))
            selection.format.setFontWeight(QFont.Weight.DemiBold)
            selections.append(selection)
        self.setExtraSelections(selections)


class _LineNumbers(QWidget):
    def __init__(self, view: CodeView) -> None:
        super().__init__(view)
        self._view = view

    def paintEvent(self, event: QPaintEvent) -> None:
        self._view.paint_margin(event)
