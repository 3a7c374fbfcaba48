"""The effect of a call as words, or as a file before and after."""

from PySide6.QtWidgets import QPlainTextEdit, QVBoxLayout, QWidget

from desktop_agent.vocabulary.tool_calls import DiffPreview, TextPreview
from ui.approval.parts.middle import GivesWay
from ui.approval.previews.code_view import CodeView
from ui.approval.previews.diff_lines import DiffLine, all_lines, diff_lines, lines_in
from ui.approval.visible_text import MOST_CHARACTERS, MOST_LINES, beginning, folded
from ui.look.theme import ThemeSource
from ui.look.visible_text import with_hidden_shown
from ui.look.written.order import shown_apart

LEAST_ROWS, MOST_ROWS = 6, 100
MOST_ROWS_IN_ALL = 3 * MOST_LINES


class TextView(QWidget):
    """Each `show_` answers with the heading above it."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view = CodeView(themes, self.tr("Preview of the effect"), LEAST_ROWS, MOST_ROWS)
        # Blanks must not carry the end of a line out of sight.
        self._view.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._view)

    @property
    def giver(self) -> GivesWay:
        """What can be lower."""
        return self._view

    @property
    def first(self) -> QWidget:
        """Where reading begins."""
        return self._view

    @property
    def words(self) -> str:
        """What stands there, without numbers and signs."""
        return self._view.text

    def show_text(self, preview: TextPreview) -> str:
        """Words that the tool found for it."""
        text, left_out = beginning(with_hidden_shown(preview.text))
        self._view.show_lines([], [folded(text)])
        if left_out:
            return self.tr("What will happen. Not all of it is shown: {0} characters more").format(f"{left_out:,}")
        return self.tr("What will happen")

    def show_diff(self, preview: DiffPreview) -> str:
        """A file that is new, changes or goes."""
        heading, lines = self._lines_of(preview)
        lines, words = _fold(lines)
        pairs = zip(lines, words, strict=True)
        self._view.show_lines(lines, [self._words_of(line, text) for line, text in pairs])
        if any(line.kind == "more" for line in lines):
            return self.tr("{0}. Not all of it is shown.").format(heading)
        return heading

    def _words_of(self, line: DiffLine, text: str) -> str:
        if line.kind == "gap":
            return self._gap(line.text)
        return self.tr("{0} more lines, not shown").format(line.text) if line.kind == "more" else text

    def _gap(self, count: str) -> str:
        return self.tr("1 unchanged line") if count == "1" else self.tr("{0} unchanged lines").format(count)

    def _lines_of(self, preview: DiffPreview) -> tuple[str, list[DiffLine]]:
        path = shown_apart(preview.path)
        if preview.before is None:
            lines = all_lines("added", preview.after or "")
            return self.tr("New file: {0}").format(path), lines
        if preview.after is None:
            lines = all_lines("removed", preview.before)
            count = lines_in(lines, "removed")
            words = self.tr("Deletes {0}: 1 line") if count == 1 else self.tr("Deletes {0}: {1} lines")
            return words.format(path, count), lines
        lines = diff_lines(preview.before, preview.after)
        added, removed = lines_in(lines, "added"), lines_in(lines, "removed")
        return self._changed(added, removed).format(path, added, removed), lines

    def _changed(self, added: int, removed: int) -> str:
        if not added and not removed:
            return self.tr("{0}: no change")
        return self.tr("{0}: 1 line added, {2} removed") if added == 1 else self.tr("{0}: {1} lines added, {2} removed")


def _fold(lines: list[DiffLine]) -> tuple[list[DiffLine], list[str]]:
    """Very long lines over several rows; the rows after the first have no number. So many as can be shown at once."""
    rows: list[DiffLine] = []
    words: list[str] = []
    characters = 0
    for at, line in enumerate(lines):
        if line.kind != "more" and (len(rows) >= MOST_ROWS_IN_ALL or characters >= MOST_CHARACTERS):
            left = sum(int(each.text) if each.kind == "more" else each.kind != "gap" for each in lines[at:])
            return [*rows, DiffLine("more", str(left))], [*words, ""]
        pieces = folded(with_hidden_shown(line.text)).split("\n")
        rows += [line, *(DiffLine(line.kind, "") for _ in pieces[1:])]
        words += pieces
        characters += len(line.text)
    return rows, words
