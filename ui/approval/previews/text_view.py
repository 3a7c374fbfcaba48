"""The effect of a call as words, or as a file before and after."""

from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from desktop_agent.vocabulary.tool_calls import DiffPreview, TextPreview
from ui.approval.parts.middle import Shrinkable
from ui.approval.previews.code_view import CodeView
from ui.approval.previews.diff_lines import DiffLine, count_lines, diff_texts, whole_file_lines
from ui.approval.visible_text import MAX_CHARACTERS, MAX_LINES, fold_lines, truncate_text
from ui.look.theme import ThemeSource
from ui.look.visible_text import show_hidden
from ui.look.written.order import isolate_untrusted

MIN_ROWS, MAX_ROWS = 6, 100
MAX_TOTAL_ROWS = 3 * MAX_LINES


class TextView(QWidget):
    """Each `show_` answers with the heading above it."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view = CodeView(themes, self.tr("Preview of the effect"), MIN_ROWS, MAX_ROWS)
        # Blanks must not carry the end of a line out of sight.
        self._view.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._view)

    @property
    def shrinkable(self) -> Shrinkable:
        """What can be lower."""
        return self._view

    @property
    def initial_focus(self) -> QWidget:
        """Where reading begins."""
        return self._view

    @property
    def accessible_text(self) -> str:
        """What stands there, without numbers and signs."""
        return self._view.text

    def show_text(self, preview: TextPreview) -> str:
        """Words that the tool found for it."""
        text, left_out = truncate_text(show_hidden(preview.text))
        self._view.show_lines([], [fold_lines(text)])
        if left_out:
            return self.tr("What will happen. Not all of it is shown: {0} characters more").format(f"{left_out:,}")
        return self.tr("What will happen")

    def show_diff(self, preview: DiffPreview) -> str:
        """A file that is new, changes or goes."""
        heading, lines = self._heading_and_lines(preview)
        lines, words = _fold_long_lines(lines)
        pairs = zip(lines, words, strict=True)
        self._view.show_lines(lines, [self._line_text(line, text) for line, text in pairs])
        if any(line.kind == "more" for line in lines):
            return self.tr("{0}. Not all of it is shown.").format(heading)
        return heading

    def _line_text(self, line: DiffLine, text: str) -> str:
        if line.kind == "gap":
            return self._gap_text(line.text)
        return self.tr("{0} more lines, not shown").format(line.text) if line.kind == "more" else text

    def _gap_text(self, count: str) -> str:
        return self.tr("1 unchanged line") if count == "1" else self.tr("{0} unchanged lines").format(count)

    def _heading_and_lines(self, preview: DiffPreview) -> tuple[str, list[DiffLine]]:
        path = isolate_untrusted(preview.path)
        if preview.before is None:
            lines = whole_file_lines("added", preview.after or "")
            return self.tr("New file: {0}").format(path), lines
        if preview.after is None:
            lines = whole_file_lines("removed", preview.before)
            count = count_lines(lines, "removed")
            words = self.tr("Deletes {0}: 1 line") if count == 1 else self.tr("Deletes {0}: {1} lines")
            return words.format(path, count), lines
        lines = diff_texts(preview.before, preview.after)
        added, removed = count_lines(lines, "added"), count_lines(lines, "removed")
        return self._change_summary(added, removed).format(path, added, removed), lines

    def _change_summary(self, added: int, removed: int) -> str:
        if not added and not removed:
            return self.tr("{0}: no change")
        return self.tr("{0}: 1 line added, {2} removed") if added == 1 else self.tr("{0}: {1} lines added, {2} removed")


def _fold_long_lines(lines: list[DiffLine]) -> tuple[list[DiffLine], list[str]]:
    """Very long lines over several rows; the rows after the first have no number. So many as can be shown at once."""
    rows: list[DiffLine] = []
    words: list[str] = []
    characters = 0
    for at, line in enumerate(lines):
        if line.kind != "more" and (len(rows) >= MAX_TOTAL_ROWS or characters >= MAX_CHARACTERS):
            left = sum(int(each.text) if each.kind == "more" else each.kind != "gap" for each in lines[at:])
            return [*rows, DiffLine("more", str(left))], [*words, ""]
        pieces = fold_lines(show_hidden(line.text)).split("\n")
        rows += [line, *(DiffLine(line.kind, "") for _ in pieces[1:])]
        words += pieces
        characters += len(line.text)
    return rows, words
