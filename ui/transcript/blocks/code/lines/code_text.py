"""The text of a code block by its lines, with the kinds of its words."""

from bisect import bisect_right

from ui.transcript.blocks.block import TextRange
from ui.transcript.blocks.code.lines.lengths import unit_length
from ui.transcript.blocks.colouring.coloured import StyledWord


class CodeText:
    """Appending costs what the new text costs. Places are UTF-16 units."""

    def __init__(self, text: str) -> None:
        self.words: list[list[StyledWord]] = []
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + unit_length(line) + 1)
        self._longest = max(range(len(self._lines)), key=lambda index: len(self._lines[index]))

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self._lines)

    @property
    def size(self) -> int:
        """Of all lines."""
        return self._starts[-1] - 1

    def lines_between(self, first: int, last: int) -> str:
        """Whole lines, each with its end."""
        return "".join(f"{line}\n" for line in self._lines[first:last])

    def words_of(self, index: int) -> list[StyledWord]:
        """The words of a line, as far as they are known."""
        return self.words[index] if index < len(self.words) else []

    def highlight(self, first: int, words: list[list[StyledWord]]) -> int | None:
        """Words of the lines from `first` on; answers the first line that looks different."""
        self.words += [[] for _ in range(len(self.words), first)]
        old = self.words[first : first + len(words)]
        self.words[first : first + len(words)] = words
        old += [[] for _ in range(len(old), len(words))]
        changed = [index for index, (new, before) in enumerate(zip(words, old, strict=True), first) if new != before]
        for index in changed:
            self._on_highlighted(index)
        return changed[0] if changed else None

    def append(self, text: str) -> int:
        """Add text at the end; answers the first line that changed."""
        first = len(self._lines) - 1
        head, *more = text.split("\n")
        self._lines[-1] += head
        self._starts[-1] += unit_length(head)
        for line in more:
            self._lines.append(line)
            self._starts.append(self._starts[-1] + unit_length(line) + 1)
        added = range(first, len(self._lines))
        self._longest = max(self._longest, *added, key=lambda index: len(self._lines[index]))
        self._on_line_grown(first, head)
        return first

    def _on_highlighted(self, index: int) -> None:
        """The words of a line are others."""

    def _on_line_grown(self, index: int, more: str) -> None:
        """A line has more text at its end, and there may be lines behind it."""

    def line_span(self, offset: int) -> TextRange:
        """The line around a place."""
        index = self._line_of(offset)
        return self._starts[index], self._starts[index + 1] - 1

    def _line_of(self, offset: int) -> int:
        return max(0, min(bisect_right(self._starts, offset) - 1, len(self._lines) - 1))

    def _range_in_line(self, index: int, span: TextRange | None) -> TextRange | None:
        """Start and end of what of a span is in a line."""
        if not span:
            return None
        start = max(span[0], self._starts[index])
        end = min(span[1], self._starts[index + 1] - 1)
        return (start - self._starts[index], end - self._starts[index]) if end > start else None
