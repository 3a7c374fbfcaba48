"""The accessible children of a row: its blocks, and in them links, buttons, the rows and cells of tables."""

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QCoreApplication, QRect
from PySide6.QtGui import QAccessible

from ui.transcript.accessibility.node import Node
from ui.transcript.accessibility.reach import Reach
from ui.transcript.accessibility.readables import BlockText
from ui.transcript.blocks.block import Block, Control
from ui.transcript.blocks.buttons import ButtonsBlock
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.rule import RuleBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import LeafText, TextBlock
from ui.transcript.markdown.inline import Line, tip_of
from ui.transcript.surface.stops import Link, links_of

_Role = QAccessible.Role
_INSIDE = {"item": _Role.ListItem, "quote": _Role.BlockQuote, "footnote": _Role.Note}
_KINDS: tuple[tuple[type[Block], QAccessible.Role], ...] = (
    (TableBlock, _Role.Table),
    (CodeBlock, _Role.Section),
    (MathBlock, _Role.Equation),
    (RuleBlock, _Role.Separator),
    (ButtonsBlock, _Role.Grouping),
    (TextBlock, _Role.Paragraph),
)


class PartNode(Node):
    """A block of a row, by its number; `index` says where its row stands now."""

    def __init__(self, row_node: Node, reach: Reach, index: Callable[[], int], block: int) -> None:
        row = reach.row(index())
        found = row.blocks[block] if row and block < len(row.blocks) else None
        super().__init__(row_node, reach.screen, _role_of(found) if found else _Role.Grouping)
        self._reach, self._index, self._number = reach, index, block
        self._kept: dict[tuple[str, int], Node] = {}

    def block(self) -> Block | None:
        """The block, while it is there."""
        row = self._reach.row(self._index())
        return row.blocks[self._number] if row and self._number < len(row.blocks) else None

    def name(self) -> str:
        """Its words, after the marker of its list; or what kind of thing it is."""
        block = self.block()
        if isinstance(block, CodeBlock):
            return _code_name(block)
        if self.role in {_Role.Separator, _Role.Grouping}:
            return ""
        if block is None or isinstance(block, TableBlock):
            return QCoreApplication.translate("Transcript", "Table") if block else ""
        marker = block.inside[-1].marker if block.inside else ""
        words = block.spoken()
        return f"{marker} {words}" if marker and words else words

    def readable(self) -> BlockText | None:
        """Nothing where nothing can be read: lines, rows of buttons."""
        block = self.block()
        if block is None or self.role in {_Role.Separator, _Role.Grouping}:
            return None
        return BlockText(self._reach, self._index(), self._number)

    def has_keyboard(self) -> bool:
        """While the caret is in it."""
        place = self._reach.doing.caret()
        return place is not None and (place.row, place.block) == (self._index(), self._number)

    def has_focus(self, name: str) -> bool:
        """Whether a link or button of this name has the keyboard."""
        return self.screen.focused == (self._index(), f"{self._number}/{name}")

    def level(self) -> int:
        """Of a heading."""
        block = self.block()
        is_heading = isinstance(block, LeafText) and self.role == _Role.Heading
        return block.leaf.level if isinstance(block, LeafText) and is_heading else 0

    def box(self) -> QRect:
        """Where it is in the viewport."""
        return self._reach.block_box(self._index(), self._number)

    def children_now(self) -> Sequence[Node]:
        """Rows of a table; else links, then buttons."""
        block = self.block()
        if block is None:
            return ()
        if isinstance(block, TableBlock):
            rows = range(len(block.cells.lines()))
            return [self._child("row", at, partial(TableRowNode, self, at)) for at in rows]
        links = list(links_of(block.line())) if isinstance(block, TextBlock) else []
        controls = enumerate(block.controls())
        return [
            *(self._child(link.name, 0, partial(LinkNode, self, self, link, 0)) for link in links),
            *(self._child(each.name, number, partial(ButtonNode, self, number, each)) for number, each in controls),
        ]

    def child_named(self, name: str) -> Node | None:
        """The link or button of this name."""
        self.children_now()
        return next((node for (kind, _), node in self._kept.items() if kind == name), None)

    def open(self, target: str) -> None:
        """Follow a link."""
        self._reach.doing.open_link(target, self._index())

    def _child(self, kind: str, number: int, make: Callable[[], Node]) -> Node:
        found = self._kept.get((kind, number))
        if found is None:
            found = self._kept[kind, number] = make()
        return found

    def boxes_of(self, start: int, end: int) -> QRect:
        """Where a part of its text is in the viewport."""
        block, box = self.block(), self.box()
        found = QRect()
        if block and block.laid and self._reach.is_shown(self._index()):
            for each in block.boxes(start, end):
                found = found.united(each.toAlignedRect().translated(box.topLeft()))
        return box if found.isEmpty() else found

    def end(self) -> None:
        """With all that is in it."""
        for each in self._kept.values():
            each.end()
        super().end()


class LinkNode(Node):
    """A link in a text that begins at a place of its block."""

    def __init__(self, above: Node, part: PartNode, link: Link, start: int) -> None:
        super().__init__(above, part.screen, _Role.Link)
        self._part = part
        self._link, self._start = link, start

    def name(self) -> str:
        """Its words."""
        return self._link.words

    def description(self) -> str:
        """Where it leads."""
        return "" if self._link.target.startswith("#") else tip_of(self._link.target)

    def has_keyboard(self) -> bool:
        """When Tab stopped at it."""
        return self._part.has_focus(Link(*self._span(), "", "").name)

    def _span(self) -> tuple[int, int]:
        return self._start + self._link.start, self._start + self._link.end

    def box(self) -> QRect:
        """Where it is in the viewport."""
        return self._part.boxes_of(*self._span())

    def press(self) -> Callable[[], None]:
        """Open it."""
        return partial(self._part.open, self._link.target)


class ButtonNode(Node):
    """Something to press in a block, by its number and its name."""

    def __init__(self, part: PartNode, number: int, control: Control) -> None:
        super().__init__(part, part.screen, _Role.Link if control.is_link else _Role.Button)
        self._part = part
        self._number, self._name = number, control.name

    def _control(self) -> Control | None:
        block = self._part.block()
        controls = block.controls() if block else ()
        found = controls[self._number] if self._number < len(controls) else None
        return found if found and found.name == self._name else None

    def name(self) -> str:
        """What it is called."""
        return self._name

    def box(self) -> QRect:
        """Where it is in the viewport."""
        control = self._control()
        return control.box.translated(self._part.box().topLeft()) if control else QRect()

    def has_keyboard(self) -> bool:
        """When Tab stopped at it."""
        return self._part.has_focus(self._name)

    def press(self) -> Callable[[], None] | None:
        """What it does."""
        control = self._control()
        return control.press if control else None


class TableRowNode(Node):
    """A row of a table."""

    def __init__(self, part: PartNode, number: int) -> None:
        super().__init__(part, part.screen, _Role.Row)
        self._part, self._number = part, number
        self._cells: list[CellNode] = []

    def lines(self) -> Sequence[Line]:
        """Its cells."""
        block = self._part.block()
        lines = block.cells.lines() if isinstance(block, TableBlock) else []
        return lines[self._number] if self._number < len(lines) else ()

    def name(self) -> str:
        """All cells."""
        return ", ".join(line.plain() for line in self.lines())

    def children_now(self) -> Sequence[Node]:
        """The cells."""
        lines, block = self.lines(), self._part.block()
        is_head = isinstance(block, TableBlock) and block.cells.is_head(self._number)
        while len(self._cells) < len(lines):
            role = _Role.ColumnHeader if is_head else _Role.Cell
            self._cells.append(CellNode(self, self._part, (self._number, len(self._cells)), role))
        return self._cells[: len(lines)]

    def box(self) -> QRect:
        """Around its cells."""
        box = QRect()
        for each in self.children_now():
            box = box.united(each.box())
        return box

    def end(self) -> None:
        """With its cells."""
        for each in self._cells:
            each.end()
        super().end()


class CellNode(Node):
    """A cell of a table, by its row and column."""

    def __init__(self, row: TableRowNode, part: PartNode, where: tuple[int, int], role: QAccessible.Role) -> None:
        super().__init__(row, part.screen, role)
        self._row, self._part = row, part
        self._where = where
        self._links: list[LinkNode] = []

    def _line(self) -> Line:
        lines = self._row.lines()
        return lines[self._where[1]] if self._where[1] < len(lines) else Line("")

    def name(self) -> str:
        """Its text."""
        return self._line().plain()

    def _start(self) -> int:
        block = self._part.block()
        return block.cells.offset_of(*self._where) if isinstance(block, TableBlock) else 0

    def children_now(self) -> Sequence[Node]:
        """Its links."""
        found = list(links_of(self._line()))
        for link in found[len(self._links) :]:
            self._links.append(LinkNode(self, self._part, link, self._start()))
        return self._links[: len(found)]

    def box(self) -> QRect:
        """Where its text is in the viewport."""
        start = self._start()
        return self._part.boxes_of(start, start + max(1, len(self.name())))

    def end(self) -> None:
        """With its links."""
        for each in self._links:
            each.end()
        super().end()


def _role_of(block: Block) -> QAccessible.Role:
    if isinstance(block, LeafText) and block.leaf.kind == "heading":
        return _Role.Heading
    if block.inside and isinstance(block, TextBlock):
        return _INSIDE[block.inside[-1].kind]
    found = next((role for kind, role in _KINDS if isinstance(block, kind)), None)
    if found is not None:
        return found
    return _Role.StaticText if block.spoken() else _Role.Grouping


def _code_name(block: CodeBlock) -> str:
    if not block.language:
        return QCoreApplication.translate("Transcript", "Code")
    return QCoreApplication.translate("Transcript", "Code: {0}").format(block.language)
