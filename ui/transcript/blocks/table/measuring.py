"""How wide the cells of a table want to be."""

import re

from PySide6.QtGui import QFont, QFontMetricsF

from ui.transcript.blocks.inline_object import InlineObjects
from ui.transcript.markdown.inline import OBJECT, Line

MEASURED_LENGTH = 400
"""Characters of a cell that say how wide it wants to be."""

_STYLED = 1.12
"""Bold text and code are wider than the font of the body."""

_UNKERNED = 1.02
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:[ \t][^()]*)?\)")
_MARKS = re.compile(r"[*`]+|~~|\\(?=[|*`_\\])")
_MAY_BE_STYLED = re.compile(r"[*`~\[\\]")


class CellRuler:
    """Of one font. A guess takes a fraction of the time of measuring, and needs no text to be read."""

    def __init__(self, font: QFont) -> None:
        self._metrics = QFontMetricsF(font)
        self._advances = _Advances(self._metrics)

    def measure(self, line: Line, objects: InlineObjects | None = None) -> float:
        """What a cell that was read needs, in pixels."""
        text = line.text[:MEASURED_LENGTH]
        wide = sum(each.width for each in objects.values()) if objects else 0.0
        if OBJECT in text:
            text = text.replace(OBJECT, "")
        return wide + self._metrics.horizontalAdvance(text) * (_STYLED if line.spans else 1.0) + 2

    def estimate(self, cell: str) -> float:
        """About the same from a cell's Markdown; rather more than less."""
        factor = _UNKERNED
        if _MAY_BE_STYLED.search(cell):
            factor = _STYLED
            cell = _MARKS.sub("", _LINK.sub(_words_of, cell))
        return sum(map(self._advances.__getitem__, cell[:MEASURED_LENGTH])) * factor + 2


def _words_of(link: re.Match[str]) -> str:
    # A template would be looked up by an import for each cell, and imports are slow beside Qt.
    return link[1]


def cell_ruler(font: QFont) -> CellRuler:
    """The same one for the same font."""
    key = font.key()
    if key not in _RULERS:
        if len(_RULERS) >= _MAX_RULERS:
            _RULERS.clear()
        _RULERS[key] = CellRuler(font)
    return _RULERS[key]


class _Advances(dict[str, float]):
    def __init__(self, metrics: QFontMetricsF) -> None:
        super().__init__()
        self._metrics = metrics

    def __missing__(self, char: str) -> float:
        found = self[char] = self._metrics.horizontalAdvance(char)
        return found


_MAX_RULERS = 16
_RULERS: dict[str, CellRuler] = {}
