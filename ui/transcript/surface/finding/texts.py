"""What of a row can be found: the text of its blocks, folded ones too, and whether it is worth a look."""

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from desktop_agent.conversation.items import (
    AnswerItem,
    Item,
    NoticeItem,
    ServerStepItem,
    ThinkingItem,
    ToolCallItem,
    UserItem,
)
from desktop_agent.vocabulary.blocks import Text
from ui.transcript.blocks.block import Block
from ui.transcript.blocks.head_block import HeaderBlock
from ui.transcript.blocks.rule import RuleBlock
from ui.transcript.blocks.text_block import TextBlock
from ui.transcript.markdown.inline import slice_utf16, utf16_length
from ui.transcript.rows.body.unread import LazySection
from ui.transcript.rows.chooser import make_row
from ui.transcript.rows.row import Row, RowSelection
from ui.transcript.rows.stage import RenderContext, ViewChoices
from ui.transcript.surface.screen import RowViewport

UNFOLDED_KEY = "unfolded"
"""What the choice to see all of a row is called."""

_MAX_QUERY_LENGTH = 200
"""Characters."""

FOLDABLE_ITEMS = (ThinkingItem, ToolCallItem, ServerStepItem, NoticeItem)


class _AllUnfolded(ViewChoices):
    def get(self, item_id: str, what: str, *, default: bool) -> bool:
        del item_id
        return default or what in {UNFOLDED_KEY, "sources"}


@dataclass(frozen=True, slots=True)
class TextRun:
    """Blocks that are pieces of one paragraph, mostly one: their text, and where in it each of them begins.

    Of a part of a long block, the text is that part alone: the block begins before it, at a negative place.
    """

    first: int
    text: str
    starts: tuple[int, ...] = (0,)

    def selection(self, start: int, end: int) -> RowSelection:
        """A part of the text as places of the row."""
        return self._position_of(start), self._position_of(end)

    def _position_of(self, offset: int) -> tuple[int, int]:
        at = bisect_right(self.starts, offset) - 1 if len(self.starts) > 1 else 0
        return self.first + at, offset - self.starts[at]


def make_unfolded_row(item: Item, render_context: RenderContext) -> Row:
    """A row with everything unfolded, for reading alone: it has no width."""
    return make_row(item, replace(render_context, choices=_AllUnfolded()), 0)


def is_fully_unfolded(row: Row) -> bool:
    """Whether nothing of a row is folded away."""
    return not isinstance(row.item, FOLDABLE_ITEMS) or bool(getattr(row, UNFOLDED_KEY, True))


def iter_text_runs(row: Row, first: int = 0) -> Iterator[TextRun]:
    """What can be found in a row, from a block on; blocks without text are left out."""
    blocks = row.blocks
    index = first
    while index < len(blocks):
        end = index + 1
        while end < len(blocks) and continues_paragraph(blocks[end]):
            end += 1
        found = text_run_of(blocks, index, end)
        if found.text:
            yield found
        index = end


def text_run_of(blocks: Sequence[Block], first: int, end: int) -> TextRun:
    """Some pieces of one paragraph, or a block alone."""
    parts, starts, length = [searchable_text_of(blocks[first])], [0], 0
    for block in blocks[first + 1 : end]:
        separator = block.separator or ""
        length += utf16_length(parts[-1]) + utf16_length(separator)
        starts.append(length)
        parts[-1] += separator
        parts.append(searchable_text_of(block))
    return TextRun(first, "".join(parts), tuple(starts))


def first_piece_of(row: Row, index: int) -> int:
    """Where the stretch begins that a block belongs to."""
    while continues_paragraph(row.blocks[index]):
        index -= 1
    return index


def continues_paragraph(block: Block) -> bool:
    """Whether a block is a piece of the paragraph that the block before it belongs to."""
    # Pieces of a table share no words.
    return block.separator is not None and isinstance(block, TextBlock)


def searchable_text_of(block: Block) -> str:
    """The text that is found: what is copied, or else the words that are seen."""
    if isinstance(block, HeaderBlock):
        # The names of tools, but not how long the model thought.
        return block.header.title if block.header.strong or block.header.icon == "globe" else ""
    if isinstance(block, LazySection | RuleBlock):
        return ""
    return block.plain() or block.spoken_text()


def selected_query(viewport: RowViewport) -> str:
    """The selected text, when it is short and on one line: what somebody may want to find again."""
    start, end = viewport.selection.ordered
    if (start.row, start.block) != (end.row, end.block) or not 0 < end.offset - start.offset <= _MAX_QUERY_LENGTH:
        return ""
    row = viewport.rows.row(start.row)
    text = row.blocks[start.block].plain() if start.block < len(row.blocks) else ""
    words = slice_utf16(text, start.offset, end.offset).strip()
    return "" if "\n" in words else words


def raw_text_of(item: Item) -> str | None:
    """The text behind a row, cheap; None where that does not tell what the row shows."""
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
            return f"{item.name}\n{item.text}"
        case _:
            return None


def _raw_text_of_call(call: ToolCallItem) -> str | None:
    content = call.result.content if call.result else ()
    texts = [part.text for part in content if isinstance(part, Text)]
    if len(texts) < len(content):
        return None
    given = json.dumps([call.input, call.effective_input], ensure_ascii=False)
    return "\n".join([call.name, given, str(call.arguments), str(call.output), *texts])
