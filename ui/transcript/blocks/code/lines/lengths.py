"""Lengths in UTF-16 units, quickly for long lines."""

from collections.abc import Sequence
from itertools import pairwise


def unit_length(text: str) -> int:
    """Length in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


class UnitStarts:
    """The places of characters in UTF-16 units, for a list of characters that only gets longer."""

    def __init__(self, line: str, starts: Sequence[int]) -> None:
        self._line = line
        self._starts = starts
        self.size = unit_length(line)
        self._units = [0]

    @property
    def known(self) -> Sequence[int]:
        """One for each character."""
        if self.size == len(self._line):
            return self._starts
        for first, end in pairwise(self._starts[len(self._units) - 1 :]):
            self._units.append(self._units[-1] + unit_length(self._line[first:end]))
        return self._units
