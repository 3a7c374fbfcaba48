"""A read-only code view with line numbers and diff colours, as high as its text needs."""

from collections.abc import Sequence
from math import ceil

from PySide6.QtCore import QEvent, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent, QResizeEvent, QTextBlock, QTextCursor, QWheelEvent
from PySide6.QtWidgets import QPlainTextEdit, QScrollArea, QSizePolicy, QTextEdit, QWidget

from desktop_agent.types.line_diff import DiffLine
from ui.style.text_display import LogicalOrderText, displayed_positions
from ui.style.theme import ThemeSource, mono_font

_PREFERRED_WIDTH = 240
# Without it a scroll bar appears when the last line just fits.
_SLACK = 2


class AutoHeightText(LogicalOrderText):
    """A text as high as its rows, at most `most`, that can shrink to `least` rows when room is scarce.

    The rest scrolls inside. The wheel scrolls the area around it first, unless the text has the focus.
    """

    def __init__(self, least: int, most: int, name: str = "", *, is_read_only: bool = True) -> None:
        """`name` is the accessible name."""
        super().__init__()
        self.setAccessibleName(name)
        self.setReadOnly(is_read_only)
        self.setUndoRedoEnabled(not is_read_only)
        if is_read_only:
            self.setTextInteractionFlags(
                Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )
        self._min_rows, self._max_rows = least, most
        self._requested = (0, 0)
        self._shrunk = 0
        # Code, paths and JSON run from left to right in every language.
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.setTabChangesFocus(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.textChanged.connect(self.update_height)

    @property
    def spare_height(self) -> int:
        """Pixels by which it can shrink."""
        rows = self._row_count()
        return self._height_of_rows(rows) - self._height_of_rows(min(rows, self._min_rows))

    @property
    def shrunk_height(self) -> int:
        """Pixels by which it is lower than its rows now."""
        return min(self._shrunk, self.spare_height)

    def shrink_by(self, pixels: int) -> None:
        """Make the text lower than its rows by this many pixels."""
        self._shrunk = pixels
        self.update_height()

    def sizeHint(self) -> QSize:
        """Return the height of all rows, or of `most`, minus the pixels by which it shrank."""
        return QSize(_PREFERRED_WIDTH, self._height_of_rows(self._row_count()) - self.shrunk_height)

    def minimumSizeHint(self) -> QSize:
        return QSize(_PREFERRED_WIDTH // 2, self.sizeHint().height())

    def resizeEvent(self, e: QResizeEvent) -> None:
        super().resizeEvent(e)
        self.update_height()

    def changeEvent(self, e: QEvent) -> None:
        super().changeEvent(e)
        if e.type() in {QEvent.Type.FontChange, QEvent.Type.StyleChange}:
            self.update_height()

    def wheelEvent(self, e: QWheelEvent) -> None:
        if not self.hasFocus() and self._parent_can_scroll(e.angleDelta().y() or e.pixelDelta().y()):
            e.ignore()
            return
        super().wheelEvent(e)

    def update_height(self) -> None:
        """Ask the layout for the height that the text needs now."""
        hint = (self.spare_height, self.sizeHint().height())
        if hint != self._requested:
            self._requested = hint
            self.updateGeometry()

    def _row_count(self) -> int:
        """Count the rows, but lay out no more than `most`."""
        rows, block = 0, self.document().firstBlock()
        while block.isValid() and rows < self._max_rows:
            self.blockBoundingRect(block)
            rows += block.lineCount()
            block = block.next()
        return max(1, min(rows, self._max_rows))

    def _height_of_rows(self, rows: int) -> int:
        first = self.document().firstBlock().layout().lineAt(0)
        # A laid-out line is higher than the line spacing of the font.
        line = ceil(first.height()) if first.isValid() else self.fontMetrics().lineSpacing()
        frame = 2 * self.frameWidth() + _SLACK
        scroll_bar = self.horizontalScrollBar()
        is_wrapping = self.lineWrapMode() is not QPlainTextEdit.LineWrapMode.NoWrap
        bar_height = 0 if is_wrapping or scroll_bar.maximum() <= 0 else scroll_bar.sizeHint().height()
        return rows * line + 2 * round(self.document().documentMargin()) + frame + bar_height

    def _parent_can_scroll(self, delta: int) -> bool:
        area = scroll_area_around(self)
        if area is None:
            return False
        bar = area.verticalScrollBar()
        return bar.value() > bar.minimum() if delta > 0 else bar.value() < bar.maximum()


def scroll_area_around(widget: QWidget) -> QScrollArea | None:
    """Return the nearest scroll area that a widget is in."""
    area = widget.parentWidget()
    while area is not None and not isinstance(area, QScrollArea):
        area = area.parentWidget()
    return area


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
        themes.changed.connect(self._apply_theme)
        self._apply_theme()

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
