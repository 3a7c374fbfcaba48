"""Highlight the matches that are visible, looking only at the text around what is visible."""

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from PySide6.QtCore import QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from ui.transcript.blocks.block import WHOLE_TEXT, Block, TextRange
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.find.matches import Query
from ui.transcript.find.searchable_text import TextRun, continues_paragraph, searchable_text_of, text_run_of
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.rows.row import Row, RowSelection
from ui.transcript.style import RenderStyle
from ui.transcript.viewport.positions import text_boxes

_PART_LENGTH = 4000
"""Characters of a part of a long text, which is searched at once."""

_SHORT_TEXT = 2 * _PART_LENGTH
"""Characters of a text that is searched as a whole."""

_LOOKBACK = 12
"""Parts to go back at most for a seam that no match crosses. Only a query that overlaps itself, as "aa", needs more."""

_MAX_KEPT_TEXTS = 8
"""Long texts in the cache."""


class _LongText:
    """The text of a code block, and the offsets of its parts, computed on demand."""

    def __init__(self, block: CodeBlock) -> None:
        self.block = block
        self.text = searchable_text_of(block)
        self._last = block.paragraph_at(WHOLE_TEXT[1])
        self._starts = [0]

    def is_of(self, block: CodeBlock) -> bool:
        """Return whether this is still the text of the block; joining the lines of a long one costs a frame."""
        return self.block is block and self._last == block.paragraph_at(WHOLE_TEXT[1])

    def number_at(self, position: int) -> int:
        if self.text.isascii():
            return min(position, max(0, len(self.text) - 1)) // _PART_LENGTH
        while self._starts[-1] <= position and len(self._starts) * _PART_LENGTH < len(self.text):
            self._add_start()
        return bisect_right(self._starts, position) - 1

    def start_of(self, number: int) -> int:
        return number * _PART_LENGTH if self.text.isascii() else self._starts[number]

    def _add_start(self) -> None:
        start = (len(self._starts) - 1) * _PART_LENGTH
        self._starts.append(self._starts[-1] + utf16_length(self.text[start : start + _PART_LENGTH]))


class VisibleText:
    """The text around what is visible, long enough that its visible matches are those of the whole text."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._long: OrderedDict[tuple[str, int], _LongText] = OrderedDict()

    def forget(self, item_id: str) -> None:
        """Drop the text of a changed item."""
        for key in [key for key in self._long if key[0] == item_id]:
            del self._long[key]

    def text_runs(self, row: Row, clip: QRect) -> Iterator[TextRun]:
        """Yield the text in the clip, with the text around it."""
        blocks = row.blocks
        index, last = row.stack.block_at(clip.top()), row.stack.block_at(clip.bottom())
        while index <= last:
            end = index + 1
            while end <= last and continues_paragraph(blocks[end]):
                end += 1
            block = blocks[index]
            if isinstance(block, CodeBlock) and block.is_laid_out:
                visible = block.visible_ranges(clip.translated(-row.stack.block_box(index).topLeft()))
                yield from self._parts_of(self._text(row, index, block), index, visible)
            else:
                text_run = text_run_of(blocks, *self._paragraph_around(blocks, index, end))
                if text_run.text:
                    yield text_run
            index = end

    def _paragraph_around(self, blocks: list[Block], index: int, end: int) -> TextRange:
        """Return the range of pieces around some pieces of a paragraph."""
        first = index
        while continues_paragraph(blocks[first]) and index - first < _LOOKBACK:
            is_apart = first < index and self._are_independent(blocks[first - 1], blocks[first])
            if is_apart:
                break
            first -= 1
        length = 0
        while end < len(blocks) and continues_paragraph(blocks[end]) and length < self._query.lookahead:
            length += len(searchable_text_of(blocks[end]))
            end += 1
        return first, end

    def _are_independent(self, before: Block, block: Block) -> bool:
        return self._query.has_no_match_across(
            searchable_text_of(before) + (block.separator or ""), searchable_text_of(block)
        )

    def _text(self, row: Row, index: int, block: CodeBlock) -> _LongText:
        key = (row.item.id, index)
        if block.paragraph_at(WHOLE_TEXT[1])[1] <= _SHORT_TEXT:
            return _LongText(block)
        known = self._long.get(key)
        if known is None or not known.is_of(block):
            known = self._long[key] = _LongText(block)
            if len(self._long) > _MAX_KEPT_TEXTS:
                self._long.popitem(last=False)
        return known

    def _parts_of(self, long: _LongText, index: int, visible: list[TextRange]) -> Iterator[TextRun]:
        text = long.text
        if len(text) <= _SHORT_TEXT:
            if text:
                yield TextRun(index, text)
            return
        for first, last in _merge_ranges([(long.number_at(start), long.number_at(end)) for start, end in visible]):
            begin = max(0, first - 1)
            while begin and first - begin < _LOOKBACK and not self._is_seam(text, begin * _PART_LENGTH):
                begin -= 1
            end = (last + 1) * _PART_LENGTH + self._query.lookahead
            yield TextRun(index, text[begin * _PART_LENGTH : end], (-long.start_of(begin),))

    def _is_seam(self, text: str, offset: int) -> bool:
        lookahead = self._query.lookahead
        return self._query.has_no_match_across(
            text[max(0, offset - lookahead) : offset], text[offset : offset + lookahead]
        )


def _merge_ranges(spans: list[TextRange]) -> Iterator[TextRange]:
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


_MAX_KEPT_RUNS = 100
"""Texts whose matches are cached: more than a screen shows."""

_FEW_MATCHES = 30
"""Matches in a text run that are painted without asking which of them are visible."""

_FAR_AWAY = 1 << 20
"""Pixels left and right of every line, so that the nearest offset is an end of the line."""


class MatchHighlights:
    """The visible matches of one query, cached as long as the text is the same."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._visible_text = VisibleText(query)
        self._known: OrderedDict[tuple[str, int, int], tuple[str, list[TextRange]]] = OrderedDict()

    def forget(self, item_id: str) -> None:
        """Drop the text of a changed item."""
        self._visible_text.forget(item_id)

    def matches_in_row(self, row: Row, clip: QRect) -> Iterator[list[RowSelection]]:
        """Yield the matches in the clip, by text run; a few of them may be just outside."""
        if not row.blocks:
            return
        for text_run in self._visible_text.text_runs(row, clip):
            spans, visible = self._spans(row, text_run), list[TextRange]()
            number = 0
            for first, end in _visible_ranges(row, text_run, clip, len(spans)):
                number = max(number, bisect_left(spans, (first, 0)) - 1)
                while number < len(spans) and spans[number][0] <= end:
                    visible.append(spans[number])
                    number += 1
            if visible:
                yield [text_run.selection(*span) for span in visible]

    def _spans(self, row: Row, text_run: TextRun) -> list[TextRange]:
        key = (row.item.id, text_run.first, text_run.starts[0])
        text, spans = self._known.get(key, ("", []))
        if text != text_run.text:
            spans = self._query.find_all(text_run.text)
            self._known[key] = text_run.text, spans
            if len(self._known) > _MAX_KEPT_RUNS:
                self._known.popitem(last=False)
        return spans


def _visible_ranges(row: Row, text_run: TextRun, clip: QRect, count: int) -> Sequence[TextRange]:
    """Return the parts of a text run in the clip; all of it for a few matches."""
    block, box = row.blocks[text_run.first], row.stack.block_box(text_run.first)
    if count < _FEW_MATCHES:
        return [WHOLE_TEXT] if count else []
    if isinstance(block, CodeBlock) and block.is_laid_out:
        start = text_run.starts[0]
        return [(start + first, start + end) for first, end in block.visible_ranges(clip.translated(-box.topLeft()))]
    last = min(row.stack.block_at(clip.bottom()), text_run.first + len(text_run.starts) - 1)
    ranges: list[TextRange] = []
    for index in range(max(row.stack.block_at(clip.top()), text_run.first), last + 1):
        start = text_run.starts[index - text_run.first]
        ranges += [(start + first, start + end) for first, end in _visible_ranges_of_block(row, index, clip)]
    return ranges


def _visible_ranges_of_block(row: Row, index: int, clip: QRect) -> Sequence[TextRange]:
    block, box = row.blocks[index], row.stack.block_box(index)
    if not block.is_laid_out:
        return [WHOLE_TEXT]
    corners = (QPoint(x, y - box.top()) for y in (clip.top(), clip.bottom()) for x in (-_FAR_AWAY, _FAR_AWAY))
    ends = [block.offset_at(corner) for corner in corners]
    first, last = min(ends), max(ends)
    if isinstance(block, TableBlock) and not searchable_text_of(block).isascii():
        # The corners lie in two cells, and what is written from right to left begins at the right of its cell.
        return [(block.paragraph_at(first)[0], block.paragraph_at(last)[1])]
    return [(first, last)]


def paint_highlights(
    painter: QPainter,
    style: RenderStyle,
    row: Row,
    clip: QRect,
    highlights: Iterator[list[RowSelection]],
    current: RowSelection | None,
) -> None:
    """Paint the highlights behind the letters; the painter's origin is that of the row."""
    area = QRectF(clip)
    painter.save()
    for matches in highlights:
        other_boxes = [box for match, boxes in distinct_matches(row, matches) if match != current for box in boxes]
        _paint_boxes(painter, style, other_boxes, area, is_current=False)
    if current:
        _paint_boxes(painter, style, text_boxes(row, current), area, is_current=True)
    painter.restore()


def distinct_matches(row: Row, matches: Sequence[RowSelection]) -> Iterator[tuple[RowSelection, list[QRectF]]]:
    """Yield the matches that cover boxes of their own, with these boxes.

    A block without boxes for its text, such as a formula, is covered as a whole: one of its matches is enough.
    """
    ends = [(0, len(matches) - 1)] if matches else []
    known: dict[int, list[QRectF]] = {}
    block_boxes: dict[int, QRectF] = {}
    while ends:
        first, last = ends.pop()
        for number in (first, last):
            if number not in known:
                known[number] = _match_boxes(row, matches[number], block_boxes)
        if first == last or known[first] == known[last]:
            yield matches[first], known[first]
        else:
            middle = (first + last) // 2
            ends += [(middle + 1, last), (first, middle)]


def _match_boxes(row: Row, match: RowSelection, block_boxes: dict[int, QRectF]) -> list[QRectF]:
    """Return the boxes of a match; `block_boxes` caches the boxes of blocks, which may have thousands of matches."""
    (index, start), (last, end) = match
    if index != last or not row.blocks[index].is_laid_out:
        return list(text_boxes(row, match))
    if index not in block_boxes:
        block_boxes[index] = QRectF(row.stack.block_box(index))
    box = block_boxes[index]
    boxes = row.blocks[index].boxes(start, end) or [QRectF(0, 0, box.width(), box.height())]
    return [rect.translated(box.topLeft()) for rect in boxes]


def _paint_boxes(
    painter: QPainter, style: RenderStyle, boxes: Iterable[QRectF], area: QRectF, *, is_current: bool
) -> None:
    visible = [box for box in boxes if box.intersects(area)]
    mode = QPainter.CompositionMode
    painter.setCompositionMode(mode.CompositionMode_Lighten if style.theme.is_dark else mode.CompositionMode_Darken)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(style.color("current_match" if is_current else "match"))
    for box in visible:
        painter.drawRoundedRect(box, 3, 3)
    _outline_boxes(painter, style, visible, is_current=is_current)


def _outline_boxes(painter: QPainter, style: RenderStyle, boxes: Sequence[QRectF], *, is_current: bool) -> None:
    color = style.faded("warning", 1 if is_current else 0.35)
    painter.setPen(QPen(color, style.px(2) if is_current else 1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    margin = 0 if is_current else 0.5
    for box in boxes:
        painter.drawRoundedRect(box.adjusted(-margin, 0, margin, 0), 3, 3)
