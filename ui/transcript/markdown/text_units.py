"""Measure text in UTF-16 units, as Qt does."""

from collections.abc import Sequence
from itertools import pairwise


def utf16_length(text: str) -> int:
    """Return the length of the text in UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


class Utf16Offsets:
    """The UTF-16 offsets of some characters of a growing line, whose indices are `starts`."""

    def __init__(self, line: str, starts: Sequence[int]) -> None:
        self._line = line
        self._starts = starts
        self.size = utf16_length(line)
        self._units = [0]

    def append(self, line: str, more: str, kept: int) -> None:
        """Extend the line by `more`; the first `kept` offsets stay the same."""
        self._line, self.size = line, self.size + utf16_length(more)
        del self._units[kept:]

    @property
    def offsets(self) -> Sequence[int]:
        """The offset of each of these characters."""
        if self.size == len(self._line):
            return self._starts
        for first, end in pairwise(self._starts[len(self._units) - 1 :]):
            self._units.append(self._units[-1] + utf16_length(self._line[first:end]))
        return self._units
