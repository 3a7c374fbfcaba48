"""Read-only lines of code, with a ground by what becomes of them and their numbers in the margin."""

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent, QTextBlock
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from ui.approval.previews.diff_lines import DiffLine
from ui.look.fonts import mono_font
from ui.look.theme import SPACE_S, ThemeSource

MOST_ROWS = 6
# Of characters; about what the dialog is wide.
_ROW_WIDTH = 80
_SIGNS = {"same": " ", "added": "+", "removed": "\u2212", "gap": "⋯"}


class CodeView(QPlainTextEdit):
    """Read-only lines with a coloured ground and their numbers in the margin."""

    def __init__(self, themes: ThemeSource, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._lines: list[DiffLine] = []
        self._margin = _Margin(self)
        self.setAccessibleName(name)
        self.setProperty("kind", "code")
        self.setReadOnly(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setTabChangesFocus(True)
        self.setUndoRedoEnabled(False)
        self.updateRequest.connect(self._follow)
        themes.changed.connect(self._dress)
        self._dress()

    def show_lines(self, lines: list[DiffLine], words: list[str]) -> None:
        """Show these lines; `words` is what each says on the screen."""
        self._lines = lines
        self.setPlainText("\n".join(words))
        self._dress()

    def fit_rows(self, text: str) -> None:
        """As high as this text needs with its lines wrapped, up to a bound; the rest scrolls."""
        rows = min(MOST_ROWS, 1 + text.count("\n") + len(text) // _ROW_WIDTH)
        self.setFixedHeight(rows * self.fontMetrics().lineSpacing() + 3 * SPACE_S)

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
            painter.fillRect(area, self._ground(block.blockNumber()))
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
                QRect(0, area.top(), self._margin.width(), area.height()), self._ground(block.blockNumber())
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

    def _ground(self, number: int) -> QColor:
        theme = self._themes.theme
        kind = self._lines[number].kind if number < len(self._lines) else "same"
        grounds = {"added": theme.added_background, "removed": theme.removed_background, "gap": theme.hover}
        return QColor(grounds[kind]) if kind in grounds else QColor(Qt.GlobalColor.transparent)

    def _follow(self, area: QRect, scrolled: int) -> None:
        if scrolled:
            self._margin.scroll(0, scrolled)
        else:
            self._margin.update(0, area.y(), self._margin.width(), area.height())

    def _dress(self) -> None:
        self.setFont(mono_font(self._themes.theme, self._themes.zoom))
        width = self.margin_width()
        self.setViewportMargins(width, 0, 0, 0)
        self._margin.setVisible(width > 0)
        area = self.contentsRect()
        self._margin.setGeometry(QRect(area.left(), area.top(), width, area.height()))
        self.viewport().update()


class _Margin(QWidget):
    def __init__(self, view: CodeView) -> None:
        super().__init__(view)
        self._view = view

    def sizeHint(self) -> QSize:
        return QSize(self._view.margin_width(), 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        self._view.paint_margin(event)
