"""Split long paragraphs into pieces that are parsed one by one."""

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice

PIECE = 4000
"""The maximum length in characters of one piece, unless it has too many markup characters."""

_MAX_MARKS = 600
"""The maximum number of emphasis and link characters in a piece: each costs as much as a line of plain words."""

_SIGNS = "*_~["
_NEXT_SIGN = re.compile(r"[*_~\[]")
_LONGEST_CLUSTER = 64
_JOINER = "\u200d"


def split_long_text(text: str) -> Iterator[tuple[str | None, str]]:
    """Split a text into pieces, each with the line end, space or nothing that separates it from the piece before.

    The separator of the first piece is None. The end of a piece depends only on the text before it, so a growing text
    keeps its earlier pieces.
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
    most = start + PIECE
    if len(text) - start <= _MAX_MARKS or sum(text.count(sign, start, most) for sign in _SIGNS) <= _MAX_MARKS:
        return most
    signs = _NEXT_SIGN.finditer(text, start, most)
    return next(islice(signs, _MAX_MARKS, None)).start()


def _between_clusters(text: str, offset: int) -> int:
    return next(
        (position for position in range(offset, offset - _LONGEST_CLUSTER, -1) if not _is_joined(text, position)),
        offset,
    )


def _is_joined(text: str, offset: int) -> bool:
    before, after = text[offset - 1], text[offset]
    if _JOINER in (before, after) or unicodedata.category(after).startswith("M"):
        return True
    # Skin tones, and flags, which are pairs of regional indicator letters.
    return "\U0001f3fb" <= after <= "\U0001f3ff" or all(
        "\U0001f1e6" <= char <= "\U0001f1ff" for char in (before, after)
    )
