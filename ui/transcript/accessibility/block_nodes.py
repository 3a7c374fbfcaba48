"""The accessible children of a row: its blocks, and in them links, buttons, the rows and cells of tables."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from PySide6.QtCore import QRect
from PySide6.QtGui import QAccessible

from ui.style.text import join_names
from ui.transcript.accessibility.nodes import AccessibleNode
from ui.transcript.accessibility.text import AccessibilityContext, AccessibleText
from ui.transcript.blocks.block import Block, Control
from ui.transcript.blocks.buttons import ButtonRowBlock
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import MarkdownTextBlock, RuleBlock, TextBlock
from ui.transcript.markdown.inline import Line
from ui.transcript.markdown.misleading_links import link_tooltip
from ui.transcript.viewport.positions import Link, links_of
from ui.transcript.words import tr

_Role = QAccessible.Role
_CONTAINER_ROLES = {"item": _Role.ListItem, "quote": _Role.BlockQuote, "footnote": _Role.Note}
_BLOCK_ROLES: tuple[tuple[type[Block], QAccessible.Role], ...] = (
    (TableBlock, _Role.Table),
    (CodeBlock, _Role.Section),
    (MathBlock, _Role.Equation),
    (RuleBlock, _Role.Separator),
    (ButtonRowBlock, _Role.Grouping),
    (TextBlock, _Role.Paragraph),
)


class BlockNode(AccessibleNode):
    """A block of a row, by its number; `index` returns the current index of the row."""

    def __init__(
        self, row_node: AccessibleNode, context: AccessibilityContext, index: Callable[[], int], number: int
    ) -> None:
        super().__init__(row_node, context, _Role.Grouping)
        self._index, self._number = index, number
        self._text = AccessibleText(context, index, number)

    @property
    def role(self) -> QAccessible.Role:
        """The role of the block that has this number now: a rebuilt row may have a block of another kind there."""
        block = self.block()
        return _role_of(block) if block else self._role

    def block(self) -> Block | None:
        """Return the block, if it still exists."""
        return self.context.block(self._index(), self._number)

    def controls(self) -> Sequence[Control]:
        """Return the buttons of the block."""
        return self.context.controls(self._index(), self._number)

    def table(self) -> TableBlock | None:
        """Return the block if it is a table."""
        block = self.block()
        return block if isinstance(block, TableBlock) else None

    def name(self) -> str:
        """Return the words after the marker of the list, or what kind of block it is."""
        block = self.block()
        if isinstance(block, CodeBlock):
            return block.label
        if self.role in {_Role.Separator, _Role.Grouping}:
            return block.group_name if block else ""
        if block is None or isinstance(block, TableBlock):
            return tr("Table") if block else ""
        marker = block.containers[-1].marker if block.containers else ""
        words = block.spoken_text()
        return f"{marker} {words}" if marker and words else words

    def text(self) -> AccessibleText | None:
        """Return None where there is nothing to read: rules, rows of buttons."""
        return None if self.block() is None or self.role in {_Role.Separator, _Role.Grouping} else self._text

    def has_keyboard_focus(self) -> bool:
        """Return whether the caret is in this block."""
        position = self.context.caret.position
        return position is not None and (position.row, position.block) == (self._index(), self._number)

    def target(self, name: str) -> tuple[int, str]:
        """Return the link or button of this name, as in `RowViewport.focused`."""
        return self._index(), f"{self._number}/{name}"

    def level(self) -> int:
        block = self.block()
        return block.leaf.level if isinstance(block, MarkdownTextBlock) and self.role == _Role.Heading else 0

    def box(self) -> QRect:
        return self.context.block_box(self._index(), self._number)

    def child_nodes(self) -> Sequence[AccessibleNode]:
        """Return the rows of a table; else links, then buttons."""
        block = self.block()
        if isinstance(block, TableBlock):
            rows = range(len(block.leaf.cells))
            return [self.child("row", number, partial(TableRowNode, self, number)) for number in rows]
        links = list(links_of(block.line())) if isinstance(block, TextBlock) else []
        controls = enumerate(self.controls())
        return [
            *(self.child(link.name, 0, partial(LinkNode, self, self, link, 0)) for link in links),
            *(
                self.child(control.name, number, partial(ButtonNode, self, number, control))
                for number, control in controls
            ),
        ]

    def find_child(self, name: str) -> AccessibleNode | None:
        """Return the link or button of this name, also in a cell of a table."""
        return next((node for node in _stops_in(self) if node.stop_name == name), None)

    def open_link(self, target: str) -> None:
        """Follow a link."""
        self.context.open_link(target, self._index())

    def boxes_of(self, start: int, end: int) -> QRect:
        """Return the bounding box of a part of the text, in the viewport."""
        block, box = self.context.visible_block(self._index(), self._number), self.box()
        bounds = QRect()
        for rect in block.boxes(start, end) if block else ():
            bounds = bounds.united(rect.toAlignedRect().translated(box.topLeft()))
        return box if bounds.isEmpty() else bounds


class FocusStopNode(AccessibleNode):
    """A link or button that Tab stops at; `stop_name` is its name among those of its block."""

    def __init__(self, above: AccessibleNode, block_node: BlockNode, role: QAccessible.Role, stop_name: str) -> None:
        super().__init__(above, block_node.context, role)
        self._block_node = block_node
        self.stop_name = stop_name

    def has_keyboard_focus(self) -> bool:
        return self.context.viewport.focused == self._block_node.target(self.stop_name)

    def focus(self) -> Callable[[], None]:
        return lambda: self.context.focus(*self._block_node.target(self.stop_name))


class LinkNode(FocusStopNode):
    """A link in a text that begins at an offset of its block."""

    def __init__(self, above: AccessibleNode, block_node: BlockNode, link: Link, start: int) -> None:
        self._link = Link(start + link.start, start + link.end, link.words, link.target)
        super().__init__(above, block_node, _Role.Link, self._link.name)

    def name(self) -> str:
        return self._link.words

    def description(self) -> str:
        return "" if self._link.target.startswith("#") else link_tooltip(self._link.target)

    def box(self) -> QRect:
        return self._block_node.boxes_of(self._link.start, self._link.end)

    def press(self) -> Callable[[], None]:
        return partial(self._block_node.open_link, self._link.target)


class ButtonNode(FocusStopNode):
    """A control of a block, by its number and name."""

    def __init__(self, block_node: BlockNode, number: int, control: Control) -> None:
        role = _Role.Link if control.is_link else _Role.Button
        super().__init__(block_node, block_node, role, control.name)
        self._number = number
        self._accessible_name = control.accessible_name or control.name

    def _control(self) -> Control | None:
        controls = self._block_node.controls()
        control = controls[self._number] if self._number < len(controls) else None
        return control if control and control.name == self.stop_name else None

    def name(self) -> str:
        """Return the name of the control, which also says to what kind of message it belongs."""
        return self._accessible_name

    def description(self) -> str:
        """Return why it is disabled, or else what it is about."""
        control, block = self._control(), self._block_node.block()
        return control.refusal or block.subject() if control and block else ""

    def is_disabled(self) -> bool:
        control = self._control()
        return control is not None and bool(control.refusal)

    def box(self) -> QRect:
        control = self._control()
        return control.box.translated(self._block_node.box().topLeft()) if control else QRect()

    def press(self) -> Callable[[], None] | None:
        control = self._control()
        return control.press if control else None


class TableRowNode(AccessibleNode):
    """A row of a table."""

    def __init__(self, block_node: BlockNode, number: int) -> None:
        super().__init__(block_node, block_node.context, _Role.Row)
        self._block_node, self._number = block_node, number

    def name(self) -> str:
        return join_names(cell.name() for cell in self.child_nodes())

    def child_nodes(self) -> Sequence[AccessibleNode]:
        table = self._block_node.table()
        if table is None or self._number >= len(table.leaf.cells):
            return ()
        role = _Role.ColumnHeader if table.cells.is_head(self._number) else _Role.Cell
        return [
            self.child("cell", column, partial(CellNode, self, self._block_node, (self._number, column), role))
            for column in range(len(table.leaf.aligns))
        ]

    def box(self) -> QRect:
        box = QRect()
        for cell in self.child_nodes():
            box = box.united(cell.box())
        return box


class CellNode(AccessibleNode):
    """A cell of a table, by its row and column."""

    def __init__(
        self, above: AccessibleNode, block_node: BlockNode, position: tuple[int, int], role: QAccessible.Role
    ) -> None:
        super().__init__(above, block_node.context, role)
        self._block_node, self._position = block_node, position

    def _line(self) -> tuple[Line, int]:
        table, (row, column) = self._block_node.table(), self._position
        if table is None or row >= len(table.leaf.cells) or column >= len(table.leaf.aligns):
            return Line(""), 0
        return table.cells.line(row, column), table.cells.offset_of(row, column)

    def name(self) -> str:
        return self._line()[0].plain()

    def child_nodes(self) -> Sequence[AccessibleNode]:
        line, start = self._line()
        return [
            self.child("link", number, partial(LinkNode, self, self._block_node, link, start))
            for number, link in enumerate(links_of(line))
        ]

    def box(self) -> QRect:
        line, start = self._line()
        return self._block_node.boxes_of(start, start + max(1, len(line.plain())))


def _stops_in(node: AccessibleNode) -> Iterator[FocusStopNode]:
    for child in node.child_nodes():
        if isinstance(child, FocusStopNode):
            yield child
        elif isinstance(child, AccessibleNode):
            yield from _stops_in(child)


def _role_of(block: Block) -> QAccessible.Role:
    if isinstance(block, MarkdownTextBlock) and block.leaf.kind == "heading":
        return _Role.Heading
    if block.containers and isinstance(block, TextBlock):
        return _CONTAINER_ROLES[block.containers[-1].kind]
    for kind, role in _BLOCK_ROLES:
        if isinstance(block, kind):
            return role
    return _Role.StaticText if block.spoken_text() else _Role.Grouping
