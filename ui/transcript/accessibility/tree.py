"""The transcript for assistive technology: all rows in their order, each made when it is asked for."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QPoint, QRect
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget, QWidget

from desktop_agent.conversation.items import Change, Updated
from ui.transcript.accessibility.node import Node, NodeInterface, child_at
from ui.transcript.accessibility.parts import PartNode
from ui.transcript.accessibility.reach import Doing, Reach
from ui.transcript.accessibility.readables import RowText
from ui.transcript.row_changes import number_after
from ui.transcript.rows.body.replacing import Replacement
from ui.transcript.surface.screen import Screen

_KEPT = 600
"""Rows that stay known to assistive technology at once; the ones asked for longest ago are given up."""


class RowNode(Node):
    """A row, by its item. Its children are its blocks."""

    def __init__(self, tree: "Tree", item_id: str, index: int) -> None:
        super().__init__(tree.view, tree.screen, QAccessible.Role.ListItem)
        self.item_id = item_id
        self._tree = tree
        self._index = index
        self._parts: dict[int, PartNode] = {}

    def index(self) -> int:
        """Where it stands now, or -1."""
        rows, count = self.screen.rows, self._tree.reach.count
        if not (0 <= self._index < count and rows.transcript[self._index].id == self.item_id):
            found = (at for at in range(count) if rows.transcript[at].id == self.item_id)
            self._index = next(found, -1)
        return self._index

    def name(self) -> str:
        """Who said it, or what it is."""
        row = self._tree.reach.row(self.index())
        return row.label if row else ""

    def readable(self) -> RowText:
        """All of its text."""
        return RowText(self._tree.reach, self.index())

    def children_now(self) -> Sequence[Node]:
        """All blocks; ask for one where one is enough."""
        return [self.part(number) for number in range(self.part_count())]

    def part_count(self) -> int:
        """How many blocks it has."""
        row = self._tree.reach.row(self.index())
        return len(row.blocks) if row else 0

    def part(self, number: int) -> PartNode:
        """One block."""
        found = self._parts.get(number)
        if found is None:
            found = self._parts[number] = PartNode(self, self._tree.reach, self.index, number)
        return found

    def drop_parts(self) -> None:
        """Other blocks stand there now."""
        for each in self._parts.values():
            each.end()
        self._parts = {}

    def box(self) -> QRect:
        """Where it is in the viewport."""
        return self._tree.reach.row_box(self.index())

    def has_keyboard(self) -> bool:
        """When the walk through messages is there."""
        return self.screen.focused == (self.index(), "")

    def focus(self) -> Callable[[], None]:
        """Walk to it."""
        return lambda: self._tree.focus_row(self.index())

    def end(self) -> None:
        """With its blocks."""
        self.drop_parts()
        super().end()


class Tree(QObject):
    """The accessible children of one view: all rows, then the widgets over it that are visible."""

    def __init__(
        self, view: QWidget, screen: Screen, widgets: list[QWidget], doing: Doing, focus_row: Callable[[int], None]
    ) -> None:
        super().__init__(view)
        self.view = view
        self.screen = screen
        self.reach = Reach(screen, doing)
        self.focus_row = focus_row
        self.interface: QAccessibleInterface | None = None
        self._widgets = widgets
        self._rows: OrderedDict[str, RowNode] = OrderedDict()
        screen.on_replaced.append(self._on_replaced)
        _install()

    def widgets_now(self) -> list[QWidget]:
        """What is visible beside the rows."""
        return [each for each in self._widgets if each.isVisible()]

    def row_node(self, index: int) -> RowNode | None:
        """The node of a row, wherever it stands."""
        if not 0 <= index < self.reach.count:
            return None
        item_id = self.screen.rows.transcript[index].id
        found = self._rows.get(item_id)
        if found is None:
            found = self._rows[item_id] = RowNode(self, item_id, index)
            if len(self._rows) > _KEPT:
                self._rows.popitem(last=False)[1].end()
        self._rows.move_to_end(item_id)
        return found

    def apply(self, changes: Sequence[Change]) -> None:
        """What was made for reading items that changed is not true any more."""
        transcript = self.screen.rows.transcript
        for position, change in enumerate(changes, start=1):
            there = number_after(change.index, changes[position:]) if isinstance(change, Updated) else None
            if there is not None:
                self.reach.forget_item(transcript[there].id)

    def clear(self) -> None:
        """Other rows are shown, or the same in another look."""
        self.reach.forget()
        for each in self._rows.values():
            each.end()
        self._rows.clear()

    def _on_replaced(self, row: int, replacement: Replacement) -> None:
        del replacement
        # Between a change of the transcript and its being taken in, the number is not that of the item.
        known = self.screen.rows.known(row)
        if known and (node := self._rows.get(known.item.id)):
            node.drop_parts()


class _TreeInterface(QAccessibleWidget):
    """The view itself."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree.view, QAccessible.Role.List, tree.view.accessibleName())
        self._tree = tree

    def childCount(self) -> int:
        return self._tree.reach.count + len(self._tree.widgets_now())

    def child(self, index: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # Qt allows none
        count, widgets = self._tree.reach.count, self._tree.widgets_now()
        if 0 <= index < count:
            node = self._tree.row_node(index)
            return QAccessible.queryAccessibleInterface(node) if node else None
        found = widgets[index - count] if count <= index < count + len(widgets) else None
        return QAccessible.queryAccessibleInterface(found) if found else None

    def indexOfChild(self, child: QAccessibleInterface, /) -> int:
        found = child.object()
        if isinstance(found, RowNode):
            return found.index()
        widgets = self._tree.widgets_now()
        return next((self._tree.reach.count + at for at, each in enumerate(widgets) if each is found), -1)

    def childAt(self, x: int, y: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        if found := child_at(self._tree.widgets_now(), x, y):
            return found
        screen = self._tree.screen
        point = screen.viewport.mapFromGlobal(QPoint(x, y))
        if not screen.viewport.rect().contains(point) or not self._tree.reach.count:
            return None
        node = self._tree.row_node(screen.rows.row_at(screen.rows.top + point.y()))
        return QAccessible.queryAccessibleInterface(node) if node and node.box().contains(point) else None

    def focusChild(self) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        place = self._tree.reach.doing.caret()
        node = self._tree.row_node(place.row if place else self._tree.screen.focused[0])
        found = node.part(place.block) if node and place else node
        return QAccessible.queryAccessibleInterface(found) if found else None


class _RowInterface(NodeInterface):
    """Answers for one block without making all of them."""

    def __init__(self, node: RowNode) -> None:
        super().__init__(node)
        self._row_node = node

    def childCount(self) -> int:
        return self._row_node.part_count()

    def child(self, index: int, /) -> QAccessibleInterface | None:
        is_there = 0 <= index < self._row_node.part_count()
        return QAccessible.queryAccessibleInterface(self._row_node.part(index)) if is_there else None


def _interface_for(key: str, thing: QObject | None) -> QAccessibleInterface | None:
    """Qt asks for every class name of every object; only ours are answered."""
    del key
    if isinstance(thing, Node):
        thing.interface = _RowInterface(thing) if isinstance(thing, RowNode) else NodeInterface(thing)
        return thing.interface
    tree = getattr(thing, "accessible_tree", None) if isinstance(thing, QWidget) else None
    if isinstance(tree, Tree):
        tree.interface = _TreeInterface(tree)
        return tree.interface
    return None


_installed: list[bool] = []


def _install() -> None:
    """Once for the process: Qt offers no way to take a Python factory back."""
    if not _installed:
        _installed.append(True)
        QAccessible.installFactory(_interface_for)
