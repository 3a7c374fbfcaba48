"""The effect of a call before it happens: a diff with line numbers, a new file, or words."""

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent, QTextBlock
from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from desktop_agent.vocabulary.tool_calls import DiffPreview, Preview
from ui.approval.diff_lines import DiffLine, diff_lines
from ui.approval.visible_text import folded
from ui.look.controls import label
from ui.look.fonts import mono_font
from ui.look.theme import SPACE_S, SPACE_XS, ThemeSource
from ui.look.visible_text import with_hidden_shown

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


class PreviewView(QWidget):
    """A heading that says what will change, and the change."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._heading = label(kind="strong", wrap=True)
        self._view = CodeView(themes, self.tr("Preview of the effect"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self._heading)
        layout.addSpacing(SPACE_S - SPACE_XS)
        layout.addWidget(self._view, 1)

    @property
    def heading(self) -> str:
        """What will change, in words."""
        return self._heading.text()

    @property
    def shown_text(self) -> str:
        """What the view shows, without numbers and signs."""
        return self._view.toPlainText()

    def show_preview(self, preview: Preview | None) -> None:
        """Show this effect; None hides the view: this tool cannot say beforehand what it will do."""
        self.setVisible(preview is not None)
        if preview is None:
            return
        if isinstance(preview, DiffPreview):
            self._show_diff(preview)
            return
        self._heading.setText(self.tr("What will happen"))
        self._view.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self._view.show_lines([], [folded(with_hidden_shown(preview.text))])

    def show_waiting(self, *, valid: bool) -> None:
        """The arguments were edited; the effect of the new ones is not known yet, or they cannot be used."""
        if valid:
            self._heading.setText(self.tr("Updating the preview for the edited arguments…"))
        else:
            self._heading.setText(self.tr("The edited arguments cannot be used yet; this is the last preview"))

    def _show_diff(self, preview: DiffPreview) -> None:
        path = with_hidden_shown(preview.path)
        if preview.before is None:
            self._heading.setText(self.tr("New file: {0}").format(path))
            texts = preview.after.split("\n")
            lines = [DiffLine("added", text, None, number) for number, text in enumerate(texts, 1)]
        else:
            lines = diff_lines(preview.before, preview.after)
            added = sum(line.kind == "added" for line in lines)
            removed = sum(line.kind == "removed" for line in lines)
            words = self.tr("{0}: {1} lines added, {2} removed") if added or removed else self.tr("{0}: no change")
            self._heading.setText(words.format(path, added, removed))
        self._view.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        lines, words_of_lines = _fold(lines)
        gap = self.tr("{0} unchanged lines")
        self._view.show_lines(
            lines,
            [
                gap.format(line.text) if line.kind == "gap" else text
                for line, text in zip(lines, words_of_lines, strict=True)
            ],
        )


def _fold(lines: list[DiffLine]) -> tuple[list[DiffLine], list[str]]:
    """Very long lines over several rows; the rows after the first have no number."""
    rows: list[DiffLine] = []
    words: list[str] = []
    for line in lines:
        pieces = folded(with_hidden_shown(line.text)).split("\n")
        rows += [line, *(DiffLine(line.kind, "") for _ in pieces[1:])]
        words += pieces
    return rows, words
