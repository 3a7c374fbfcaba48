"""Lengths in UTF-16 units, quickly for long lines."""

from collections.abc import Sequence
from itertools import pairwise

from ui.transcript.markdown.units import utf16_length as unit_length


class Utf16Offsets:
    """The places of characters in UTF-16 units, for a list of characters that gets longer."""

    def __init__(self, line: str, starts: Sequence[int]) -> None:
        self._line = line
        self._starts = starts
        self.size = unit_length(line)
        self._units = [0]

    def append(self, line: str, more: str, kept: int) -> None:
        """The line has more at its end, and so many of its places are the same."""
        self._line, self.size = line, self.size + unit_length(more)
        del self._units[kept:]

    @property
    def offsets(self) -> Sequence[int]:
        """One for each character."""
        if self.size == len(self._line):
            return self._starts
        for first, end in pairwise(self._starts[len(self._units) - 1 :]):
            self._units.append(self._units[-1] + unit_length(self._line[first:end]))
        return self._units
