"""How far the characters of code reach, measured once each."""

from collections.abc import Sequence
from math import ceil

from PySide6.QtGui import QFont, QFontMetricsF

from ui.transcript.blocks.code.lines.cuts import MAX_PIECE_LENGTH
from ui.transcript.blocks.code.lines.hidden import longest_label, may_be_spelled_out
from ui.transcript.look import RenderStyle

TAB = 4
"""Characters from one tab stop to the next."""

ALMOST = 0.001
"""Pixels that are no reason for another row."""

_SAMPLES = 64
_MAX_KEPT = 20_000


class Advances(dict[str, float]):
    """Pixels for each character of one font; of what is hidden, those of its label."""

    def __init__(self, font: QFont, *, is_even: bool) -> None:
        super().__init__({"\t": TAB / 2 * QFontMetricsF(font).horizontalAdvance("0")})
        self._metrics = QFontMetricsF(font)
        self.is_even = is_even
        self.plain = self._metrics.horizontalAdvance("0")
        self.wide = self._metrics.horizontalAdvance("中")
        self.label = self._metrics.horizontalAdvance(longest_label())

    def __missing__(self, character: str) -> float:
        if may_be_spelled_out(character):
            found = self._metrics.horizontalAdvance("⟨U+00000⟩")
        elif "\u3041" <= character <= "\u9fff" or "\uac00" <= character <= "\ud7a3":
            found = self.wide
        else:
            found = self._metrics.horizontalAdvance(character)
        if len(self) < _MAX_KEPT:
            self[character] = found
        return found

    def width_after(self, used: float, character: str) -> float:
        """How much of a row is used with one more character."""
        if character != "\t":
            return used + self[character]
        stop = TAB * self.plain
        return (used // stop + 1) * stop

    def is_plain(self, text: str) -> bool:
        """Whether all its characters are equally wide, and none of them is drawn as something else."""
        return self.is_even and text.isascii() and text.isprintable()

    def columns_per_row(self, width: float) -> int:
        """Plain characters that stand on one row."""
        return max(1, min(MAX_PIECE_LENGTH, int((width + ALMOST) / self.plain)))

    def columns(self, lines: Sequence[str]) -> list[int]:
        """On how many columns lines stand; negative, where that says no more than whether it is one row; 0: unknown.

        Quick: nothing is measured.
        """
        whole = "".join(lines)
        if self.is_plain(whole):
            return [len(line) or 1 for line in lines]
        if self.is_plain(whole.replace("\t", "")):
            return [-len(line.expandtabs(TAB)) if "\t" in line else len(line) or 1 for line in lines]
        return [self._columns_of(line) for line in lines]

    def _columns_of(self, line: str) -> int:
        if self.is_plain(line):
            return len(line) or 1
        return -len(line.expandtabs(TAB)) if self.is_plain(line.replace("\t", "")) else 0

    def max_columns(self, text: str) -> int:
        """Columns of a text, measured; wherever it has its tabs, it needs no more."""
        wide = sum(map(self.__getitem__, text.replace("\t", " " * TAB)))
        return max(1, ceil((wide - ALMOST) / self.plain))

    def estimate_width(self, text: str) -> float:
        """About how wide a text is; every so many of its characters are looked at."""
        if self.is_plain(text):
            return len(text) * self.plain
        # Odd: what alternates is met as often as it is there.
        every = len(text) // _SAMPLES | 1
        return sum(map(self.__getitem__, text[::every])) * every


_KNOWN: dict[str, Advances] = {}
_FONTS = 4


def advances_of(style: RenderStyle) -> Advances:
    """Those of the font of code."""
    key = style.mono.key()
    found = _KNOWN.get(key)
    if found is None:
        if len(_KNOWN) >= _FONTS:
            _KNOWN.clear()
        found = _KNOWN[key] = Advances(style.mono, is_even=style.mono_is_even)
    return found
