"""On how many rows the lines of a code block stand when they wrap. Those of very long lines are counted bit by bit."""

from bisect import bisect_right
from collections.abc import Callable, Iterator

from ui.transcript.blocks.code.lines.wrapped_line import WrappedLine


class RowCounts:
    """`counting` are the lines that are not counted yet."""

    def __init__(self) -> None:
        self._tops = [0]
        self.counting: dict[int, WrappedLine] = {}

    def forget(self) -> None:
        """All of it."""
        self._tops = [0]
        self.counting.clear()

    def line_changed(self, index: int) -> None:
        """From this line on they are counted again."""
        del self._tops[index + 1 :]
        self.counting.pop(index, None)

    def count(self, lines: int, rows_of: Callable[[int], int | WrappedLine]) -> None:
        """Of so many lines; what is not counted yet is guessed."""
        if (misjudged := next(self._misjudged(), None)) is not None:
            del self._tops[misjudged + 1 :]
        for index in range(len(self._tops) - 1, lines):
            rows = self.counting.get(index) or rows_of(index)
            if not isinstance(rows, int):
                self.counting[index] = rows
                rows = rows.rows
            self._tops.append(self._tops[-1] + rows)
        self.counting = {index: line for index, line in self.counting.items() if not line.is_complete}

    def top(self, index: int) -> int:
        """The rows before a line; of those that were counted."""
        return self._tops[min(index, len(self._tops) - 1)]

    def line_at(self, row: int) -> int:
        """The line that a row belongs to."""
        return bisect_right(self._tops, row) - 1

    @property
    def is_misjudged(self) -> bool:
        """Whether it is known by now that there are more rows, or less."""
        return next(self._misjudged(), None) is not None

    def _misjudged(self) -> Iterator[int]:
        for index, line in sorted(self.counting.items()):
            if index + 1 < len(self._tops):
                guessed = self._tops[index + 1] - self._tops[index]
                if (line.is_complete and line.rows != guessed) or len(line.starts) > guessed:
                    yield index

    def go_on(self) -> bool:
        """Count the rows of a line for a moment; answers whether they are all known now."""
        line = next(iter(self.counting.values()))
        line.go_on()
        return line.is_complete
