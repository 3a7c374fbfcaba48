"""Measure text in UTF-16 units, as Qt does, and split long paragraphs into pieces."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise


def utf16_length(text: str) -> int:
    """Length in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


PIECE = 4000
"""Characters. A text of this length is still one piece, unless it is full of signs."""

_MAX_MARKS = 600
"""Signs of emphasis and links in one piece: each of them costs as much as a line of bare words."""

_SIGNS = "*_~["
_NEXT_SIGN = re.compile(r"[*_~\[]")
_LONGEST_CLUSTER = 64
_JOINER = "\u200d"


def split_long_text(text: str) -> Iterator[tuple[str | None, str]]:
    """The pieces of a text, each with what stood before it: a line end, a space, or nothing in the middle of a word.

    The first piece has None. Joined again they are the text. Where a piece ends depends on the text up to there
    alone: a text that grows keeps its earlier pieces.
    """
    separator, start = None, 0
    while len(text) > (most := _max_piece_end(text, start)):
        least = (start + most) // 2
        end = text.rfind("\n", least, most)
        end = end if end >= 0 else text.rfind(" ", least, most)
        if end >= 0:
            yield separator, text[start:end]
            separator, start = text[end], end + 1
        else:
            end = _between_clusters(text, most)
            yield separator, text[start:end]
            separator, start = "", end
    yield separator, text[start:]


def _max_piece_end(text: str, start: int) -> int:
    """Where the piece that begins here ends at the latest."""
    most = start + PIECE
    if len(text) - start <= _MAX_MARKS or sum(text.count(sign, start, most) for sign in _SIGNS) <= _MAX_MARKS:
        return most
    signs = _NEXT_SIGN.finditer(text, start, most)
    return next(islice(signs, _MAX_MARKS, None)).start()


def _between_clusters(text: str, at: int) -> int:
    """The nearest place before `at` that does not tear apart what is seen as one character; `at` if none is near."""
    return next((position for position in range(at, at - _LONGEST_CLUSTER, -1) if not _is_joined(text, position)), at)


def _is_joined(text: str, at: int) -> bool:
    before, after = text[at - 1], text[at]
    if _JOINER in (before, after) or unicodedata.category(after).startswith("M"):
        return True
    # Skin tones, and flags, which are pairs of letters of their own.
    return "\U0001f3fb" <= after <= "\U0001f3ff" or all(
        "\U0001f1e6" <= each <= "\U0001f1ff" for each in (before, after)
    )


class Utf16Offsets:
    """The places of characters in UTF-16 units, for a list of characters that gets longer."""

    def __init__(self, line: str, starts: Sequence[int]) -> None:
        self._line = line
        self._starts = starts
        self.size = utf16_length(line)
        self._units = [0]

    def append(self, line: str, more: str, kept: int) -> None:
        """The line has more at its end, and so many of its places are the same."""
        self._line, self.size = line, self.size + utf16_length(more)
        del self._units[kept:]

    @property
    def offsets(self) -> Sequence[int]:
        """One for each character."""
        if self.size == len(self._line):
            return self._starts
        for first, end in pairwise(self._starts[len(self._units) - 1 :]):
            self._units.append(self._units[-1] + utf16_length(self._line[first:end]))
        return self._units
