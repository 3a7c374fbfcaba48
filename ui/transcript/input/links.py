"""Where links lead: to the person's browser, or from a footnote's sign to its text and back."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QObject, QPoint, Signal

from ui.transcript.blocks.block import Block
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import BACK_TARGET, LeafText
from ui.transcript.markdown.inline import tip_of, units
from ui.transcript.markdown.inline.lines import FOOTNOTE_TARGET
from ui.transcript.markdown.inline.links import safe_target
from ui.transcript.markdown.leaves import Inside
from ui.transcript.rows.body.unread import UnreadBlock
from ui.transcript.rows.row import Row
from ui.transcript.surface.places import show_place
from ui.transcript.surface.screen import Screen
from ui.transcript.surface.scroller import Scroller

_SHOWN = 400
"""Characters of a footnote in a tip."""

_REMEMBERED = 100
"""Footnotes to which the person went."""


@dataclass(frozen=True, slots=True)
class Under:
    """What is under a point: a row, the index of its block, and the point in that block."""

    row: int
    at: int
    block: Block
    point: QPoint


def under(screen: Screen, point: QPoint) -> Under | None:
    """The laid out block at a point of the viewport."""
    rows = screen.rows
    if not len(rows):
        return None
    y = rows.top + point.y()
    index = rows.row_at(y)
    row = rows.row(index)
    inside = QPoint(point.x() - screen.column, y - rows.row_top(index))
    if not row.blocks or not 0 <= inside.y() < row.height:
        return None
    at = row.block_at(inside.y())
    block = row.blocks[at]
    return Under(index, at, block, inside - row.block_box(at).topLeft()) if block.laid else None


class Links(QObject):
    """`opened` carries an address of the web or of mail, and nothing else ever."""

    opened = Signal(str)

    def __init__(self, screen: Screen, scroller: Scroller, parent: QObject) -> None:
        super().__init__(parent)
        self._screen = screen
        self._scroller = scroller
        # By item and label: where the person came from.
        self._came_from: OrderedDict[tuple[str, str], int] = OrderedDict()

    def follow(self, href: str, index: int) -> None:
        """Go where a link in the row at this index leads."""
        if href.startswith("#") and not 0 <= index < len(self._screen.rows):
            return
        if href.startswith(FOOTNOTE_TARGET):
            self._to_note(index, href[len(FOOTNOTE_TARGET) :])
        elif href.startswith(BACK_TARGET):
            self._back(index, href[len(BACK_TARGET) :])
        elif target := safe_target(href):
            self.opened.emit(target)

    def tip_at(self, point: QPoint) -> str:
        """What is said about a point of the viewport: the whole target of a link, the text of a footnote."""
        found = under(self._screen, point)
        if found is None:
            return ""
        link = found.block.link_at(found.point)
        if link.startswith(BACK_TARGET):
            return QCoreApplication.translate("Transcript", "Back to the text")
        if link.startswith(FOOTNOTE_TARGET):
            return self._note_text(self._screen.rows.row(found.row), link[len(FOOTNOTE_TARGET) :])
        return found.block.tip_at(found.point) or (tip_of(link) if link else "")

    def _note_text(self, row: Row, label: str) -> str:
        at = next(_notes(row, label), None)
        text = row.blocks[at].plain() if at is not None else ""
        return f"{text[:_SHOWN]}…" if len(text) > _SHOWN else text

    def _to_note(self, index: int, label: str) -> None:
        row = self._screen.rows.row(index)
        _read_until(row, f"[^{label}]:")
        at = next(_notes(row, label), None)
        if at is not None:
            self._came_from[row.item.id, label] = self._reference_near(row, label)
            self._came_from.move_to_end((row.item.id, label))
            if len(self._came_from) > _REMEMBERED:
                self._came_from.popitem(last=False)
            show_place(self._screen, self._scroller, index, ((at, 0), (at, 1)))

    def _reference_near(self, row: Row, label: str) -> int:
        """Which of the references to a footnote is on the screen; the first one, if none is."""
        top = self._screen.rows.top - self._screen.rows.row_top(self._screen.rows.index_of(row.item.id) or 0)
        for number, (at, _) in enumerate(_references(row, label)):
            if row.block_top(at) + row.block_box(at).height() > top:
                return number
        return 0

    def _back(self, index: int, label: str) -> None:
        row = self._screen.rows.row(index)
        found = list(_references(row, label))
        if not found:
            _read_until(row, f"[^{label}]")
            found = list(_references(row, label))
        if found:
            number = self._came_from.get((row.item.id, label), 0)
            at, offset = found[min(number, len(found) - 1)]
            show_place(self._screen, self._scroller, index, ((at, offset), (at, offset + 1)))


def _notes(row: Row, label: str) -> Iterator[int]:
    """The blocks with which a footnote of this label begins."""
    begins = Inside("footnote", label)
    return (at for at, block in enumerate(row.blocks) if begins in block.inside)


def _references(row: Row, label: str) -> Iterator[tuple[int, int]]:
    """Blocks, and places in their text, that refer to a footnote."""
    target, written = f"{FOOTNOTE_TARGET}{label}", f"[^{label}]"
    for at, block in enumerate(row.blocks):
        if isinstance(block, LeafText) and written in block.leaf.text:
            line = block.line()
            yield from ((at, line.to_plain(span.start)) for span in line.spans if span.href == target)
        elif isinstance(block, TableBlock) and any(written in cell for each in block.leaf.cells for cell in each):
            yield at, units(block.plain().partition(f"[{label}]")[0])


def _read_until(row: Row, words: str) -> None:
    """Read those parts of a long text that have these words."""
    at = 0
    while at < len(row.blocks):
        block = row.blocks[at]
        if isinstance(block, UnreadBlock) and block.holds(words):
            # What stands here now may be sections, of which the first one may have these words.
            row.read(at)
        else:
            at += 1
