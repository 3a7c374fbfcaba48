"""What of a row is looked at for one painting: the text around what is seen, however long the text is."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator

from PySide6.QtCore import QRect

from ui.transcript.blocks.block import Block, TextRange
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.markdown.inline import utf16_length
from ui.transcript.rows.row import Row
from ui.transcript.surface.finding.needle import Query
from ui.transcript.surface.finding.texts import TextRun, continues_paragraph, searchable_text_of, text_run_of

_PART_LENGTH = 4000
"""Characters of a long text that are looked at together."""

_SHORT_TEXT = 2 * _PART_LENGTH
"""Characters of a text that is looked at as a whole."""

_LOOKBACK = 12
"""Parts to go back at most for a seam with no match over it. Only what overlaps itself, as "aa", needs more."""

_MAX_KEPT_TEXTS = 8
"""Long texts that are kept."""

_END = 1 << 28
"""Units: behind the end of any text."""


class _LongText:
    """The text of a block of code, and where its parts begin, as far as that was asked for."""

    def __init__(self, block: CodeBlock) -> None:
        self.block = block
        self.text = searchable_text_of(block)
        self._last = block.paragraph_at(_END)
        self._places = [0]

    def is_of(self, block: CodeBlock) -> bool:
        """Whether this is still the text of a block. Joining the lines of a long one costs a frame."""
        return self.block is block and self._last == block.paragraph_at(_END)

    def number_at(self, position: int) -> int:
        """The part that a place is in."""
        if self.text.isascii():
            return min(position, max(0, len(self.text) - 1)) // _PART_LENGTH
        while self._places[-1] <= position and len(self._places) * _PART_LENGTH < len(self.text):
            self._know_one_more()
        return bisect_right(self._places, position) - 1

    def place_of(self, number: int) -> int:
        """Where a part begins."""
        return number * _PART_LENGTH if self.text.isascii() else self._places[number]

    def _know_one_more(self) -> None:
        start = (len(self._places) - 1) * _PART_LENGTH
        self._places.append(self._places[-1] + utf16_length(self.text[start : start + _PART_LENGTH]))


class VisibleText:
    """For one needle: each text is long enough that what is found of what is seen is found as in the whole."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._long: OrderedDict[tuple[str, int], _LongText] = OrderedDict()

    def forget(self, item_id: str) -> None:
        """An item changed."""
        for key in [key for key in self._long if key[0] == item_id]:
            del self._long[key]

    def text_runs(self, row: Row, clip: QRect) -> Iterator[TextRun]:
        """What is seen in a part of a row, with what stands around it."""
        blocks = row.blocks
        index, last = row.block_at(clip.top()), row.block_at(clip.bottom())
        while index <= last:
            end = index + 1
            while end <= last and continues_paragraph(blocks[end]):
                end += 1
            block = blocks[index]
            if isinstance(block, CodeBlock) and block.is_laid_out:
                seen = block.visible_ranges(clip.translated(-row.block_box(index).topLeft()))
                yield from self._parts_of(self._text(row, index, block), index, seen)
            else:
                found = text_run_of(blocks, *self._paragraph_around(blocks, index, end))
                if found.text:
                    yield found
            index = end

    def _paragraph_around(self, blocks: list[Block], index: int, end: int) -> TextRange:
        """The pieces of a paragraph around some of them."""
        first = index
        while continues_paragraph(blocks[first]) and index - first < _LOOKBACK:
            is_apart = first < index and self._are_independent(blocks[first - 1], blocks[first])
            if is_apart:
                break
            first -= 1
        behind = 0
        while end < len(blocks) and continues_paragraph(blocks[end]) and behind < self._query.lookahead:
            behind += len(searchable_text_of(blocks[end]))
            end += 1
        return first, end

    def _are_independent(self, before: Block, block: Block) -> bool:
        return self._query.has_no_match_across(
            searchable_text_of(before) + (block.separator or ""), searchable_text_of(block)
        )

    def _text(self, row: Row, index: int, block: CodeBlock) -> _LongText:
        key = (row.item.id, index)
        if block.paragraph_at(_END)[1] <= _SHORT_TEXT:
            return _LongText(block)
        known = self._long.get(key)
        if known is None or not known.is_of(block):
            known = self._long[key] = _LongText(block)
            if len(self._long) > _MAX_KEPT_TEXTS:
                self._long.popitem(last=False)
        return known

    def _parts_of(self, long: _LongText, index: int, seen: list[TextRange]) -> Iterator[TextRun]:
        text = long.text
        if len(text) <= _SHORT_TEXT:
            if text:
                yield TextRun(index, text)
            return
        for first, last in _merge_ranges([(long.number_at(start), long.number_at(end)) for start, end in seen]):
            begin = max(0, first - 1)
            while begin and first - begin < _LOOKBACK and not self._is_seam(text, begin * _PART_LENGTH):
                begin -= 1
            end = (last + 1) * _PART_LENGTH + self._query.lookahead
            yield TextRun(index, text[begin * _PART_LENGTH : end], (-long.place_of(begin),))

    def _is_seam(self, text: str, at: int) -> bool:
        most = self._query.lookahead
        return self._query.has_no_match_across(text[max(0, at - most) : at], text[at : at + most])


def _merge_ranges(spans: list[TextRange]) -> Iterator[TextRange]:
    """From the first to the last number of each run of neighbours, overlapping ones together."""
    run: TextRange | None = None
    for first, last in sorted(spans):
        if run and first <= run[1] + 1:
            run = run[0], max(run[1], last)
            continue
        if run:
            yield run
        run = first, last
    if run:
        yield run
