"""The lines of a code block: heights by arithmetic, layouts only for what is looked at."""

from bisect import bisect_right
from collections.abc import Mapping

from PySide6.QtCore import QPointF, QRect, Qt
from PySide6.QtGui import QPainter, QTextCharFormat, QTextLayout, QTextOption

from ui.transcript.blocks.block import Span
from ui.transcript.blocks.code.hidden import ShownLine, shown_line
from ui.transcript.blocks.code.syntax import Word
from ui.transcript.blocks.flow import set_colors
from ui.transcript.look import Look
from ui.transcript.markdown.inline import units

_KEPT = 400
"""Lines whose layouts are kept at once."""


class CodeLines:
    """Appending costs what the new text costs. Without wrapping all lines are equally high."""

    def __init__(self, text: str, *, wraps: bool) -> None:
        self.wraps = wraps
        self.words: list[list[Word]] = []
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + units(line) + 1)
        self._longest = max(map(len, self._lines))
        self._layouts: dict[int, QTextLayout] = {}
        self._shown: dict[int, ShownLine] = {}
        self._tops: list[int] = []
        self._line_height = 1
        self._width = 0
        self._scrolled = 0
        self._reach = 0
        self._look: Look | None = None

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self._lines)

    @property
    def size(self) -> int:
        """UTF-16 units."""
        return self._starts[-1] - 1

    @property
    def height(self) -> int:
        """Of all lines."""
        return self.top(len(self._lines))

    def top(self, index: int) -> int:
        """Where a line begins."""
        return self._tops[index] if self.wraps and self._tops else index * self._line_height

    def between(self, first: int, last: int) -> str:
        """Whole lines, each with its end."""
        return "".join(f"{line}\n" for line in self._lines[first:last])

    def colour(self, first: int, words: list[list[Word]]) -> int | None:
        """Words of the lines from `first` on; answers the first line that looks different."""
        self.words += [[] for _ in range(len(self.words), first)]
        old = self.words[first : first + len(words)]
        self.words[first : first + len(words)] = words
        old += [[] for _ in range(len(old), len(words))]
        changed = [index for index, (new, before) in enumerate(zip(words, old, strict=True), first) if new != before]
        for index in changed:
            self._layouts.pop(index, None)
            self._shown.pop(index, None)
        return changed[0] if changed else None

    def append(self, text: str) -> int:
        """Add text at the end; answers the first line that changed."""
        first = len(self._lines) - 1
        head, *more = text.split("\n")
        self._lines[-1] += head
        self._starts[-1] = self._starts[-2] + units(self._lines[-1]) + 1
        self._layouts.pop(first, None)
        self._shown.pop(first, None)
        for line in more:
            self._lines.append(line)
            self._starts.append(self._starts[-1] + units(line) + 1)
        self._longest = max(self._longest, *(len(line) for line in self._lines[first:]))
        del self._tops[first + 1 :]
        return first

    def lay(self, width: int, look: Look) -> None:
        """Take the width; break lines only when they wrap."""
        self._line_height, self._look = look.mono_line, look
        if width != self._width:
            self._width = width
            self.forget()
        self._reach = int(self._longest * look.mono_advance) + look.px(8)
        self._scrolled = min(self._scrolled, self._most())
        if self.wraps:
            self._tops = self._tops or [0]
            in_row = int((width + 0.001) / look.mono_advance) if look.mono_is_even else 0
            for index in range(len(self._tops) - 1, len(self._lines)):
                self._tops.append(self._tops[-1] + self._rows_of(index, in_row, look) * self._line_height)

    def _rows_of(self, index: int, in_row: int, look: Look) -> int:
        """On how many rows a line is broken; by counting where all its characters are equally wide."""
        line = self._lines[index]
        if in_row and line.isascii() and line.isprintable():
            return 1 if len(line) <= in_row else _counted_rows(line, in_row)
        return self._layout(index, look).lineCount()

    def forget(self) -> None:
        """All layouts."""
        self.forget_lines()
        self._tops = []

    def forget_lines(self) -> None:
        """All layouts, but not the heights."""
        self._layouts.clear()
        self._shown.clear()

    def paint(
        self,
        painter: QPainter,
        look: Look,
        clip: QRect,
        selection: Span | None,
        colors: Mapping[str, QTextCharFormat],
    ) -> None:
        """The lines inside the clip, from the painter's origin."""
        marked = QTextCharFormat()
        marked.setBackground(look.color("selection"))
        painter.setPen(look.color("text"))
        for index in range(self._index_at(clip.top()), min(len(self._lines), self._index_at(clip.bottom()) + 1)):
            layout = self._layout(index, look, colors)
            part = self._part(index, selection)
            if part and (shown := self._shown.get(index)):
                start, end = shown.to_shown(part[0]), shown.to_shown(part[0] + part[1])
                part = start, end - start
            ranges = set_colors([(*part, marked)]) if part else []
            layout.draw(painter, QPointF(-self._scrolled, self.top(index)), ranges)

    def _part(self, index: int, selection: Span | None) -> Span | None:
        """Start and length of what is selected in a line."""
        if not selection:
            return None
        start = max(selection[0], self._starts[index])
        end = min(selection[1], self._starts[index + 1] - 1)
        return (start - self._starts[index], end - start) if end > start else None

    def paint_bar(self, painter: QPainter, look: Look, track: QRect) -> None:
        """How far a long line was moved."""
        if not self._most():
            return
        share = self._width / self._reach
        left = track.left() + int(track.width() * self._scrolled / self._reach)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.color("border"))
        painter.drawRoundedRect(QRect(left, track.top(), int(track.width() * share), track.height()), 2, 2)

    def scroll_sideways(self, pixels: int) -> bool:
        """Answers whether anything moved."""
        wanted = max(0, min(self._scrolled + pixels, self._most()))
        moved, self._scrolled = wanted != self._scrolled, wanted
        return moved

    def _most(self) -> int:
        return 0 if self.wraps else max(0, self._reach - self._width)

    def _index_at(self, y: int) -> int:
        if self.wraps and self._tops:
            return max(0, min(bisect_right(self._tops, y) - 1, len(self._lines) - 1))
        return max(0, min(y // self._line_height, len(self._lines) - 1))

    def _layout(self, index: int, look: Look, colors: Mapping[str, QTextCharFormat] | None = None) -> QTextLayout:
        found = self._layouts.get(index)
        if found is not None:
            return found
        shown = shown_line(self._lines[index])
        layout = QTextLayout(shown.text if shown else self._lines[index], look.mono)
        option = QTextOption()
        option.setWrapMode(QTextOption.WrapMode.WrapAnywhere if self.wraps else QTextOption.WrapMode.NoWrap)
        option.setTabStopDistance(look.mono_advance * 4)
        layout.setTextOption(option)
        words = self.words[index] if colors and index < len(self.words) else []
        formats = [(start, length, colors[kind]) for start, length, kind in words] if colors else []
        if shown:
            self._shown[index] = shown
            formats = _spelled_out(shown, formats, look)
        if formats:
            layout.setFormats(set_colors(formats))
        layout.setCacheEnabled(True)
        layout.beginLayout()
        row = 0
        while (line := layout.createLine()).isValid():
            line.setLineWidth(self._width if self.wraps else 1 << 20)
            line.setPosition(QPointF(0, row * self._line_height + (self._line_height - line.height()) / 2))
            row += 1
        layout.endLayout()
        if colors is not None:
            if len(self._layouts) >= _KEPT:
                del self._layouts[next(iter(self._layouts))]
            self._layouts[index] = layout
        return layout


def _counted_rows(line: str, in_row: int) -> int:
    """Spaces hang over the end of a row, however many there are."""
    rows, at = 1, in_row
    while at < len(line):
        if line[at] == " ":
            at += 1
        else:
            rows, at = rows + 1, at + in_row
    return rows


def _spelled_out(
    shown: ShownLine, words: list[tuple[int, int, QTextCharFormat]], look: Look
) -> list[tuple[int, int, QTextCharFormat]]:
    """The colours of a line, moved to where its words stand, and hidden characters in the colour of a warning."""
    label = QTextCharFormat()
    label.setForeground(look.color("warning"))
    label.setBackground(look.color("warning_background"))
    moved: list[tuple[int, int, QTextCharFormat]] = []
    for start, length, form in words:
        first = shown.to_shown(start)
        moved.append((first, shown.to_shown(start + length) - first, form))
    return [*moved, *((start, length, label) for start, length in shown.labels)]
