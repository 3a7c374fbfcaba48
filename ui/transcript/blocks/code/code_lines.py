"""The lines of a code block: heights by arithmetic, layouts only for what is looked at."""

from collections.abc import Iterator
from dataclasses import replace

from PySide6.QtCore import QPointF, QRect, Qt
from PySide6.QtGui import QPainter, QTextCharFormat

from ui.transcript.blocks.block import Span
from ui.transcript.blocks.code.lines.advances import advances_of
from ui.transcript.blocks.code.lines.code_text import CodeText
from ui.transcript.blocks.code.lines.cut_line import Area, CutLine, Setting
from ui.transcript.blocks.code.lines.inks import Inks
from ui.transcript.blocks.code.lines.row_counts import RowCounts
from ui.transcript.blocks.code.lines.side_line import SideLine
from ui.transcript.blocks.code.lines.wrapped_line import WrappedLine
from ui.transcript.look import Look

_KEPT = 400
"""Lines whose layouts are kept at once."""


class CodeLines(CodeText):
    """Without wrapping all lines are equally high."""

    def __init__(self, text: str, *, wraps: bool) -> None:
        super().__init__(text)
        self.wraps = wraps
        self.rows = RowCounts()
        self._cut: dict[int, CutLine] = {}
        self._line_height = 1
        self._width = 0
        self._scrolled = 0
        self._reach = 0
        self._setting: Setting | None = None

    @property
    def height(self) -> int:
        """Of all lines."""
        return self.top(len(self))

    def top(self, index: int) -> int:
        """Where a line begins."""
        return self._line_height * (self.rows.top(index) if self.wraps else index)

    def _recoloured(self, index: int) -> None:
        if found := self._made(index):
            found.recolour(self.words_of(index))

    def _grew(self, index: int, more: str) -> None:
        if found := self._made(index):
            found.grow(self._lines[index], more)
        self.rows.line_changed(index)

    def _made(self, index: int) -> CutLine | None:
        return self._cut.get(index) or self.rows.counting.get(index)

    def lay(self, width: int, look: Look) -> None:
        """Take the width; count rows only when lines wrap."""
        self._line_height, self._width = look.mono_line, width
        setting = self._set(width, look)
        if self.wraps:
            self.rows.count(self._lines, width, advances_of(look), lambda index: self._to_count(index, setting))
        else:
            self._reach = 0
            self._widen(self._longest)
        self._scrolled = min(self._scrolled, self._most())

    def _set(self, width: int, look: Look) -> Setting:
        """Forget what was laid out for something else."""
        setting = self._setting
        if setting is None or (setting.look, setting.wraps) != (look, self.wraps):
            setting = Setting(look, Inks(look), self.wraps, width)
            self.forget()
        elif setting.width != width:
            setting = replace(setting, width=width)
            if self.wraps:
                self._cut.clear()
                self.rows.forget_rows()
        self._setting = setting
        return setting

    def _to_count(self, index: int, setting: Setting) -> WrappedLine:
        """Kept if it is the last one, which may grow."""
        found = self._made(index)
        if isinstance(found, WrappedLine):
            return found
        made = WrappedLine(self._lines[index], setting, self.words_of(index))
        if index == len(self) - 1:
            self._keep(index, made)
        return made

    def _widen(self, index: int) -> None:
        """A line may reach further than was known."""
        if self._setting:
            width = self._cut_line(index, self._setting).width
            self._reach = max(self._reach, int(width) + self._setting.look.px(8))

    def forget(self) -> None:
        """All layouts."""
        self._cut.clear()
        self.rows.forget()

    def paint(self, painter: QPainter, look: Look, clip: QRect, selection: Span | None) -> None:
        """The lines inside the clip, from the painter's origin."""
        marked = QTextCharFormat()
        marked.setBackground(look.color("selection"))
        painter.setPen(look.color("text"))
        for index, line in self._seen(clip):
            if isinstance(line, SideLine) and self._scrolled:
                # What was a guess becomes exact to the left of the screen: what is on it stays where it is.
                self._scrolled = max(0, self._scrolled + round(line.settle_at(clip.left() + self._scrolled)))
            part = self._part(index, selection) or (0, 0)
            for piece in line.between(self._area(index, clip)):
                first, end = line.span(piece.number)
                chosen = max(part[0], first) - first, min(part[1], end) - first
                at = QPointF(piece.left - self._scrolled, self.top(index) + piece.row * self._line_height)
                line.piece(piece.number).draw(painter, at, chosen if chosen[0] < chosen[1] else None, marked)
            if not self.wraps:
                self._widen(index)

    def _seen(self, clip: QRect) -> Iterator[tuple[int, CutLine]]:
        """The lines inside the clip."""
        if self._setting:
            for index in range(self._index_at(clip.top()), self._index_at(clip.bottom()) + 1):
                yield index, self._cut_line(index, self._setting)

    def _area(self, index: int, clip: QRect) -> Area:
        """What of a line is inside the clip."""
        top, high = self.top(index), self._line_height
        last = min((clip.bottom() - top) // high, (self.top(index + 1) - top) // high - 1)
        return Area(clip.left() + self._scrolled, clip.right() + self._scrolled, (clip.top() - top) // high, last)

    def paint_bar(self, painter: QPainter, look: Look, track: QRect) -> None:
        """How far a long line was moved."""
        if not self._most():
            return
        wide = min(track.width(), max(look.px(16), int(track.width() * self._width / self._reach)))
        left = track.left() + int((track.width() - wide) * self._scrolled / self._most())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.color("border"))
        painter.drawRoundedRect(QRect(left, track.top(), wide, track.height()), 2, 2)

    def scroll_sideways(self, pixels: int) -> bool:
        """Answers whether anything moved."""
        wanted = max(0, min(self._scrolled + pixels, self._most()))
        moved, self._scrolled = wanted != self._scrolled, wanted
        return moved

    def _most(self) -> int:
        return 0 if self.wraps else max(0, self._reach - self._width)

    def _index_at(self, y: int) -> int:
        row = y // self._line_height
        return max(0, min(self.rows.line_at(row) if self.wraps else row, len(self) - 1))

    def _cut_line(self, index: int, setting: Setting) -> CutLine:
        found = self._made(index)
        if found is None:
            made = WrappedLine if self.wraps else SideLine
            found = made(self._lines[index], setting, self.words_of(index))
            self._keep(index, found)
        if isinstance(found, WrappedLine):
            self.rows.seen(index, found)
        return found

    def _keep(self, index: int, line: CutLine) -> None:
        if len(self._cut) >= _KEPT:
            del self._cut[next(iter(self._cut))]
        self._cut[index] = line
