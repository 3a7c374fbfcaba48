"""Follow links: to the browser, or from a footnote's sign to its text and back."""

from collections import OrderedDict
from collections.abc import Callable, Iterator

from PySide6.QtCore import QPoint

from desktop_agent.markdown.link_targets import safe_target
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import BACK_TARGET, MarkdownTextBlock
from ui.transcript.markdown.elements import Container
from ui.transcript.markdown.inline import FOOTNOTE_TARGET
from ui.transcript.markdown.misleading_links import link_tooltip
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.rows.block_factory import LazySection
from ui.transcript.rows.row import Row
from ui.transcript.viewport.positions import scroll_to_text
from ui.transcript.viewport.scroll_controller import ScrollController
from ui.transcript.viewport.viewport import RowViewport
from ui.transcript.words import tr

_MAX_TOOLTIP_LENGTH = 400
"""Characters of a footnote in a tooltip."""

_MAX_BACK_POSITIONS = 100
"""Visited footnotes that are remembered."""


class LinkNavigator:
    """Follows links; `open_address` gets a web or mail address, and never anything else."""

    def __init__(self, viewport: RowViewport, scroller: ScrollController, open_address: Callable[[str], None]) -> None:
        self._viewport = viewport
        self._scroller = scroller
        self._open_address = open_address
        # The number of the reference that the person came from, by item and label.
        self._back_positions: OrderedDict[tuple[str, str], int] = OrderedDict()

    def follow(self, href: str, index: int) -> None:
        """Follow a link of the row at this index."""
        if href.startswith("#") and not 0 <= index < len(self._viewport.rows):
            return
        if href.startswith(FOOTNOTE_TARGET):
            self._go_to_footnote(index, href[len(FOOTNOTE_TARGET) :])
        elif href.startswith(BACK_TARGET):
            self._go_back(index, href[len(BACK_TARGET) :])
        elif target := safe_target(href):
            self._open_address(target)

    def tooltip_at(self, point: QPoint) -> str:
        """Return the tooltip at a point of the viewport: the whole target of a link, or the text of a footnote."""
        hit = self._viewport.hit(point)
        if hit is None:
            return ""
        link = hit.link
        if link.startswith(BACK_TARGET):
            return tr("Back to the text")
        if link.startswith(FOOTNOTE_TARGET):
            return self._footnote_text(self._viewport.rows.row(hit.row), link[len(FOOTNOTE_TARGET) :])
        return hit.block.tooltip_at(hit.point) or (link_tooltip(link) if link else "")

    def _footnote_text(self, row: Row, label: str) -> str:
        number = next(_footnote_blocks(row, label), None)
        text = row.blocks[number].plain() if number is not None else ""
        return f"{text[:_MAX_TOOLTIP_LENGTH]}…" if len(text) > _MAX_TOOLTIP_LENGTH else text

    def _go_to_footnote(self, index: int, label: str) -> None:
        row = self._viewport.rows.row(index)
        _read_until(row, f"[^{label}]:")
        number = next(_footnote_blocks(row, label), None)
        if number is not None:
            self._back_positions[row.item.id, label] = self._reference_near(row, label)
            self._back_positions.move_to_end((row.item.id, label))
            if len(self._back_positions) > _MAX_BACK_POSITIONS:
                self._back_positions.popitem(last=False)
            scroll_to_text(self._viewport, self._scroller, index, ((number, 0), (number, 1)))

    def _reference_near(self, row: Row, label: str) -> int:
        """Return which reference to a footnote is visible, or the first one."""
        top = self._viewport.rows.top - self._viewport.rows.row_top(self._viewport.rows.index_of(row.item.id) or 0)
        for number, (block_index, _) in enumerate(_references(row, label)):
            if row.stack.block_top(block_index) + row.stack.block_box(block_index).height() > top:
                return number
        return 0

    def _go_back(self, index: int, label: str) -> None:
        row = self._viewport.rows.row(index)
        references = list(_references(row, label))
        if not references:
            _read_until(row, f"[^{label}]")
            references = list(_references(row, label))
        if references:
            number = self._back_positions.get((row.item.id, label), 0)
            block_index, offset = references[min(number, len(references) - 1)]
            scroll_to_text(self._viewport, self._scroller, index, ((block_index, offset), (block_index, offset + 1)))


def _footnote_blocks(row: Row, label: str) -> Iterator[int]:
    container = Container("footnote", label)
    return (number for number, block in enumerate(row.blocks) if container in block.containers)


def _references(row: Row, label: str) -> Iterator[tuple[int, int]]:
    target, source = f"{FOOTNOTE_TARGET}{label}", f"[^{label}]"
    for number, block in enumerate(row.blocks):
        if isinstance(block, MarkdownTextBlock) and source in block.leaf.text:
            line = block.line()
            yield from ((number, line.to_plain(span.start)) for span in line.spans if span.href == target)
        elif isinstance(block, TableBlock) and any(source in cell for cells in block.leaf.cells for cell in cells):
            yield number, utf16_length(block.plain().partition(f"[{label}]")[0])


def _read_until(row: Row, words: str) -> None:
    index = 0
    while index < len(row.blocks):
        block = row.blocks[index]
        if isinstance(block, LazySection) and block.contains_text(words):
            # Stay at this index: the sections that replace this one may begin with one that has these words.
            row.stack.read(index)
        else:
            index += 1
