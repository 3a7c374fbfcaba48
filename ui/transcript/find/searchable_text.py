"""The searchable text of rows, folded text too, parsed in steps and cached while a search runs."""

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from desktop_agent.conversation.items import AnswerItem, Item, ServerStepItem, ThinkingItem, ToolCallItem, UserItem
from desktop_agent.types.blocks import Outcome, Text
from ui.style.tool_labels import server_step_title, tool_title
from ui.transcript.blocks.block import Block
from ui.transcript.blocks.buttons import HeaderBlock
from ui.transcript.blocks.text_block import RuleBlock, TextBlock
from ui.transcript.markdown.inline import slice_utf16
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.rows.block_factory import LazySection
from ui.transcript.rows.render_context import ViewChoices
from ui.transcript.rows.row import UNFOLDED_KEY, Row, RowSelection
from ui.transcript.rows.row_factory import make_row
from ui.transcript.viewport.row_list import RowList
from ui.transcript.viewport.viewport import RowViewport

_MAX_QUERY_LENGTH = 200
"""Characters."""


class _AllUnfolded(ViewChoices):
    def get(self, item_id: str, what: str, *, default: bool) -> bool:
        del item_id
        return default or what in {UNFOLDED_KEY, "sources"}


@dataclass(frozen=True, slots=True)
class TextRun:
    """The text of the pieces of one paragraph, mostly one block, and the offset of each block in it.

    The text may be only a part of a long block, which then begins at a negative offset.
    """

    first: int
    text: str
    starts: tuple[int, ...] = (0,)

    def selection(self, start: int, end: int) -> RowSelection:
        """Return the range of the row that a part of the text covers."""
        return self._position_of(start), self._position_of(end)

    def _position_of(self, offset: int) -> tuple[int, int]:
        number = bisect_right(self.starts, offset) - 1 if len(self.starts) > 1 else 0
        return self.first + number, offset - self.starts[number]


def iter_text_runs(row: Row, first: int = 0) -> Iterator[TextRun]:
    """Yield the text runs of a row from a block on, without empty ones."""
    blocks = row.blocks
    index = first
    while index < len(blocks):
        end = index + 1
        while end < len(blocks) and continues_paragraph(blocks[end]):
            end += 1
        text_run = text_run_of(blocks, index, end)
        if text_run.text:
            yield text_run
        index = end


def text_run_of(blocks: Sequence[Block], first: int, end: int) -> TextRun:
    """Join the pieces of a paragraph."""
    parts, starts, length = [searchable_text_of(blocks[first])], [0], 0
    for block in blocks[first + 1 : end]:
        separator = block.separator or ""
        length += utf16_length(parts[-1]) + utf16_length(separator)
        starts.append(length)
        parts[-1] += separator
        parts.append(searchable_text_of(block))
    return TextRun(first, "".join(parts), tuple(starts))


def first_piece_of(row: Row, index: int) -> int:
    """Return the first piece of the paragraph that a block belongs to."""
    while continues_paragraph(row.blocks[index]):
        index -= 1
    return index


def continues_paragraph(block: Block) -> bool:
    """Return whether a block is a further piece of a paragraph."""
    # Pieces of a table share no words.
    return block.separator is not None and isinstance(block, TextBlock)


def searchable_text_of(block: Block) -> str:
    """Return the text as it is copied, or else the visible words."""
    if isinstance(block, HeaderBlock):
        # The names of tools and files, but not how long the model thought.
        return block.header.title if block.header.strong or block.header.icon in {"globe", "document"} else ""
    if isinstance(block, LazySection | RuleBlock):
        return ""
    return block.plain() or block.spoken_text()


def selected_query(viewport: RowViewport) -> str:
    """Return the selected text if it is short and on one line, as a query that the person may want."""
    start, end = viewport.selection.ordered
    if (start.row, start.block) != (end.row, end.block) or not 0 < end.offset - start.offset <= _MAX_QUERY_LENGTH:
        return ""
    row = viewport.rows.row(start.row)
    text = row.blocks[start.block].plain() if start.block < len(row.blocks) else ""
    words = slice_utf16(text, start.offset, end.offset).strip()
    return "" if "\n" in words else words


def raw_text_of(item: Item) -> str | None:
    """Return the raw text of an item, which is cheap; None where the row may show other text."""
    match item:
        case UserItem():
            return None if item.images else item.text
        case AnswerItem():
            return None if item.citations or item.interrupted else str(item.text)
        case ThinkingItem():
            return str(item.text)
        case ToolCallItem():
            return _raw_text_of_call(item)
        case ServerStepItem():
            return f"{server_step_title(item.name)}\n{item.text}"
        case _:
            return None


def _raw_text_of_call(call: ToolCallItem) -> str | None:
    content = call.result.content if call.result else ()
    texts = [part.text for part in content if isinstance(part, Text)]
    speaks_of_person = call.result is not None and (call.outcome is Outcome.DENIED or call.result.ran_with is not None)
    if call.steps or len(texts) < len(content) or speaks_of_person:
        return None
    arguments = json.dumps([call.input, call.effective_input], ensure_ascii=False)
    return "\n".join([tool_title(call.name), arguments, str(call.arguments), str(call.output), *texts])


_MAX_CACHED_LENGTH = 6_000_000
"""Characters in the cache; each text run counts `_EXTRA_LENGTH` more."""

_EXTRA_LENGTH = 150
_STEP_SECONDS = 0.002
"""Seconds for one step of parsing a long text."""

_PATIENCE_SECONDS = 10.0
"""Seconds to wait for the worker, which may have failed."""


class SearchableTexts:
    """The text runs of the rows of one list, with everything unfolded and parsed."""

    def __init__(self, rows: RowList) -> None:
        self._rows = rows
        self._cache: dict[str, list[TextRun]] = {}
        self._size = 0
        self.is_waiting = False

    def text_runs_of(self, index: int, first: int = 0, *, waits: bool = False) -> Iterator[TextRun | None]:
        """Yield the text runs of a row from a block on, and None whenever parsing took a while.

        With `waits` it also yields None, for up to ten seconds, while the worker prepares a long text; `is_waiting` is
        true meanwhile.
        """
        item = self._rows.transcript[index]
        row, cached = self._rows.existing_row(index), self._cache.get(item.id)
        if row and row.unfolded and first_lazy_section(row) is None and not row.is_preparing:
            yield from _read_in_steps(row.blocks[first:])
            yield from iter_text_runs(row, first)
        elif cached is not None:
            yield from (text_run for text_run in cached if text_run.first >= first)
        else:
            # For its text only: it has no width.
            row = make_row(item, replace(self._rows.render_context, choices=_AllUnfolded()), 0)
            if waits and row.is_preparing:
                yield from self._wait_for(row)
            yield from self._read(row, first)

    def _wait_for(self, row: Row) -> Iterator[None]:
        deadline = perf_counter() + _PATIENCE_SECONDS
        self.is_waiting = True
        try:
            while row.is_preparing and perf_counter() < deadline:
                yield None
        finally:
            self.is_waiting = False

    def _read(self, row: Row, first: int) -> Iterator[TextRun | None]:
        index = 0
        while (section := first_lazy_section(row, index)) is not None:
            index = section
            row.stack.read(index, perf_counter() + _STEP_SECONDS)
            yield None
        yield from _read_in_steps(row.blocks)
        text_runs: list[TextRun] = []
        for text_run in iter_text_runs(row):
            text_runs.append(text_run)
            if text_run.first >= first:
                yield text_run
        size = _text_length(text_runs)
        if not (row.is_open or row.is_preparing) and self._size + size <= _MAX_CACHED_LENGTH:
            self._size += size
            self._cache[row.item.id] = text_runs

    def forget(self, item_id: str) -> None:
        """Drop the text of a changed item."""
        self._size -= _text_length(self._cache.pop(item_id, []))


def _read_in_steps(blocks: Sequence[Block]) -> Iterator[None]:
    """Parse the inline text of long paragraphs, which the blocks cache; yields whenever that took a while."""
    until = perf_counter() + _STEP_SECONDS
    for block in blocks:
        if continues_paragraph(block):
            searchable_text_of(block)
        if perf_counter() > until:
            yield None
            until = perf_counter() + _STEP_SECONDS


def _text_length(text_runs: list[TextRun]) -> int:
    return sum(len(text_run.text) + _EXTRA_LENGTH for text_run in text_runs)


def first_lazy_section(row: Row, start: int = 0) -> int | None:
    """Return the first block from an index on that is not parsed yet."""
    sections = (index for index in range(start, len(row.blocks)) if isinstance(row.blocks[index], LazySection))
    return next(sections, None)
