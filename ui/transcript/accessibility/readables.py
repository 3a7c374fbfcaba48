"""The texts of rows and of blocks, with their places."""

from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect

from ui.transcript.accessibility.reach import AccessibilityContext
from ui.transcript.blocks.block import Block
from ui.transcript.blocks.rule import RuleBlock
from ui.transcript.markdown.inline import utf16_length
from ui.transcript.rows.row import MAX_SPOKEN, Row
from ui.transcript.surface.selection import TextPosition


class AccessibleBlockText:
    """The text of one block as it is copied; the words for it, where there is nothing to copy."""

    def __init__(self, context: AccessibilityContext, index: int, block: int) -> None:
        self._context = context
        self._index, self._block = index, block

    def _find_block(self) -> Block | None:
        row = self._context.row(self._index)
        return row.blocks[self._block] if row and self._block < len(row.blocks) else None

    def text(self) -> str:
        """All of it."""
        block = self._find_block()
        return _text_of(block) if block else ""

    def caret(self) -> int:
        """Where the caret is in it, or -1."""
        position = self._context.actions.caret()
        is_here = position is not None and (position.row, position.block) == (self._index, self._block)
        return position.offset if position and is_here else -1

    def set_caret(self, offset: int) -> None:
        """Stand there."""
        self._context.actions.set_caret(self._position_at(offset))

    def select(self, start: int, end: int) -> None:
        """Select a part; nothing, when both are the same."""
        self._context.viewport.select(self._position_at(start), self._position_at(end))

    def _position_at(self, offset: int) -> TextPosition:
        return TextPosition(self._index, self._block, offset)

    def character_rect(self, offset: int) -> QRect:
        """Where a character stands; its block, where nobody has looked yet."""
        box = self._context.block_box(self._index, self._block)
        block = self._find_block()
        if block and block.is_laid_out and self._context.is_shown(self._index):
            boxes = block.boxes(offset, offset + 1)
            caret = block.caret_rect_at(offset) if not boxes else None
            found = boxes[0] if boxes else caret
            if found is not None:
                return self._context.to_global(found.toAlignedRect().translated(box.topLeft()))
        return self._context.to_global(box)

    def offset_at(self, point: QPoint) -> int:
        """The character at a point, or -1."""
        viewport = self._context.viewport
        position = viewport.place_at(viewport.viewport.mapFromGlobal(point))
        return position.offset if (position.row, position.block) == (self._index, self._block) else -1

    def scroll_to(self, offset: int) -> None:
        """Scroll to a place."""
        self._context.actions.show(self._index, ((self._block, offset), (self._block, offset + 1)))


def _text_of(block: Block) -> str:
    return "" if isinstance(block, RuleBlock) else block.plain() or block.spoken_text()


@dataclass(frozen=True, slots=True)
class _BlockStart:
    start: int
    block: int


class AccessibleRowText:
    """The texts of all blocks of a row, one on each line; its beginning, when there is very much of it."""

    def __init__(self, context: AccessibilityContext, index: int) -> None:
        self._context = context
        self._index = index

    def _row(self) -> Row | None:
        return self._context.row(self._index)

    def text(self) -> str:
        """All of it; what is folded away too."""
        row = self._row()
        if row is None:
            return ""
        if not bool(getattr(row, "unfolded", True)):
            return row.spoken_text()[:MAX_SPOKEN]
        return self._joined(row)[0]

    def _joined(self, row: Row) -> tuple[str, list[_BlockStart]]:
        parts: list[str] = []
        pieces: list[_BlockStart] = []
        at = length = 0
        for number, block in enumerate(row.blocks):
            if text := _text_of(block):
                pieces.append(_BlockStart(at, number))
                parts.append(text)
                at += utf16_length(text) + 1
                length += len(text) + 1
            if length > MAX_SPOKEN:
                break
        return "\n".join(parts)[:MAX_SPOKEN], pieces

    def _pieces(self) -> list[_BlockStart]:
        row = self._row()
        return self._joined(row)[1] if row and bool(getattr(row, "unfolded", True)) else []

    def _at(self, offset: int) -> tuple[AccessibleBlockText, int] | None:
        found = [piece for piece in self._pieces() if piece.start <= offset]
        return (
            (AccessibleBlockText(self._context, self._index, found[-1].block), offset - found[-1].start)
            if found
            else None
        )

    def caret(self) -> int:
        """Where the caret is in it, or -1."""
        position = self._context.actions.caret()
        if position is None or position.row != self._index:
            return -1
        starts = {piece.block: piece.start for piece in self._pieces()}
        return starts[position.block] + position.offset if position.block in starts else -1

    def set_caret(self, offset: int) -> None:
        """Stand there."""
        if found := self._at(offset):
            found[0].set_caret(found[1])

    def select(self, start: int, end: int) -> None:
        """From one place to another, over several blocks too."""
        pieces = self._pieces()
        places = [
            TextPosition(self._index, piece.block, offset - piece.start)
            for offset in (start, end)
            for piece in [each for each in pieces if each.start <= offset][-1:]
        ]
        if len(places) == 2:
            self._context.viewport.select(*places)

    def character_rect(self, offset: int) -> QRect:
        """Where a character stands; the row, where nobody has looked yet."""
        found = self._at(offset)
        return (
            found[0].character_rect(found[1]) if found else self._context.to_global(self._context.row_box(self._index))
        )

    def offset_at(self, point: QPoint) -> int:
        """The character at a point, or -1."""
        viewport = self._context.viewport
        position = viewport.place_at(viewport.viewport.mapFromGlobal(point))
        starts = {piece.block: piece.start for piece in self._pieces()}
        return (
            starts[position.block] + position.offset if position.row == self._index and position.block in starts else -1
        )

    def scroll_to(self, offset: int) -> None:
        """Scroll to a place."""
        if found := self._at(offset):
            found[0].scroll_to(found[1])
