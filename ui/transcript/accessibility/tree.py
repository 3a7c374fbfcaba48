"""The transcript for assistive technology: all rows in their order, each made when it is asked for."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QPoint, QRect
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QAccessibleWidget, QWidget

from desktop_agent.conversation.items import Change, Updated
from ui.transcript.accessibility.node import AccessibleNode, AccessibleNodeInterface, child_at
from ui.transcript.accessibility.parts import BlockNode
from ui.transcript.accessibility.reach import AccessibilityContext, ViewActions
from ui.transcript.accessibility.readables import AccessibleRowText
from ui.transcript.row_changes import index_after
from ui.transcript.rows.body.replacing import BlockReplacement
from ui.transcript.surface.screen import RowViewport

_KEPT_NODES = 600
"""Rows that stay known to assistive technology at once; the ones asked for longest ago are given up."""


class RowNode(AccessibleNode):
    """A row, by its item. Its children are its blocks."""

    def __init__(self, tree: "AccessibleTree", item_id: str, index: int) -> None:
        super().__init__(tree.view, tree.viewport, QAccessible.Role.ListItem)
        self.item_id = item_id
        self._tree = tree
        self._index = index
        self._block_nodes: dict[int, BlockNode] = {}

    def index(self) -> int:
        """Where it stands now, or -1."""
        rows, count = self.viewport.rows, self._tree.context.count
        if not (0 <= self._index < count and rows.transcript[self._index].id == self.item_id):
            found = (at for at in range(count) if rows.transcript[at].id == self.item_id)
            self._index = next(found, -1)
        return self._index

    def name(self) -> str:
        """Who said it, or what it is."""
        row = self._tree.context.row(self.index())
        return row.label if row else ""

    def readable(self) -> AccessibleRowText:
        """All of its text."""
        return AccessibleRowText(self._tree.context, self.index())

    def child_nodes(self) -> Sequence[AccessibleNode]:
        """All blocks; ask for one where one is enough."""
        return [self.block_node(number) for number in range(self.block_count())]

    def block_count(self) -> int:
        """How many blocks it has."""
        row = self._tree.context.row(self.index())
        return len(row.blocks) if row else 0

    def block_node(self, number: int) -> BlockNode:
        """One block."""
        found = self._block_nodes.get(number)
        if found is None:
            found = self._block_nodes[number] = BlockNode(self, self._tree.context, self.index, number)
        return found

    def drop_block_nodes(self) -> None:
        """Other blocks stand there now."""
        for each in self._block_nodes.values():
            each.dispose()
        self._block_nodes = {}

    def box(self) -> QRect:
        """Where it is in the viewport."""
        return self._tree.context.row_box(self.index())

    def has_keyboard_focus(self) -> bool:
        """When the walk through messages is there."""
        return self.viewport.focused == (self.index(), "")

    def focus(self) -> Callable[[], None]:
        """Walk to it."""
        return lambda: self._tree.focus_row(self.index())

    def dispose(self) -> None:
        """With its blocks."""
        self.drop_block_nodes()
        super().dispose()


class AccessibleTree(QObject):
    """The accessible children of one view: all rows, then the widgets over it that are visible."""

    def __init__(
        self,
        view: QWidget,
        viewport: RowViewport,
        widgets: list[QWidget],
        actions: ViewActions,
        focus_row: Callable[[int], None],
    ) -> None:
        super().__init__(view)
        self.view = view
        self.viewport = viewport
        self.context = AccessibilityContext(viewport, actions)
        self.focus_row = focus_row
        self.interface: QAccessibleInterface | None = None
        self._widgets = widgets
        self._rows: OrderedDict[str, RowNode] = OrderedDict()
        viewport.on_replaced.append(self._on_replaced)
        _install_factory()

    def visible_widgets(self) -> list[QWidget]:
        """What is visible beside the rows."""
        return [each for each in self._widgets if each.isVisible()]

    def row_node(self, index: int) -> RowNode | None:
        """The node of a row, wherever it stands."""
        if not 0 <= index < self.context.count:
            return None
        item_id = self.viewport.rows.transcript[index].id
        found = self._rows.get(item_id)
        if found is None:
            found = self._rows[item_id] = RowNode(self, item_id, index)
            if len(self._rows) > _KEPT_NODES:
                self._rows.popitem(last=False)[1].dispose()
        self._rows.move_to_end(item_id)
        return found

    def apply(self, changes: Sequence[Change]) -> None:
        """What was made for reading items that changed is not true any more."""
        transcript = self.viewport.rows.transcript
        for position, change in enumerate(changes, start=1):
            there = index_after(change.index, changes[position:]) if isinstance(change, Updated) else None
            if there is not None:
                self.context.forget_item(transcript[there].id)

    def clear(self) -> None:
        """Other rows are shown, or the same in another look."""
        self.context.forget()
        for each in self._rows.values():
            each.dispose()
        self._rows.clear()

    def _on_replaced(self, row: int, replacement: BlockReplacement) -> None:
        del replacement
        # Between a change of the transcript and its being taken in, the number is not that of the item.
        known = self.viewport.rows.existing_row(row)
        if known and (node := self._rows.get(known.item.id)):
            node.drop_block_nodes()


class _AccessibleTreeInterface(QAccessibleWidget):
    """The view itself."""

    def __init__(self, tree: AccessibleTree) -> None:
        super().__init__(tree.view, QAccessible.Role.List, tree.view.accessibleName())
        self._tree = tree

    def childCount(self) -> int:
        return self._tree.context.count + len(self._tree.visible_widgets())

    def child(self, index: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # Qt allows none
        count, widgets = self._tree.context.count, self._tree.visible_widgets()
        if 0 <= index < count:
            node = self._tree.row_node(index)
            return QAccessible.queryAccessibleInterface(node) if node else None
        found = widgets[index - count] if count <= index < count + len(widgets) else None
        return QAccessible.queryAccessibleInterface(found) if found else None

    def indexOfChild(self, child: QAccessibleInterface, /) -> int:
        found = child.object()
        if isinstance(found, RowNode):
            return found.index()
        widgets = self._tree.visible_widgets()
        return next((self._tree.context.count + at for at, each in enumerate(widgets) if each is found), -1)

    def childAt(self, x: int, y: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        if found := child_at(self._tree.visible_widgets(), x, y):
            return found
        viewport = self._tree.viewport
        point = viewport.viewport.mapFromGlobal(QPoint(x, y))
        if not viewport.viewport.rect().contains(point) or not self._tree.context.count:
            return None
        node = self._tree.row_node(viewport.rows.row_at(viewport.rows.top + point.y()))
        return QAccessible.queryAccessibleInterface(node) if node and node.box().contains(point) else None

    def focusChild(self) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        position = self._tree.context.actions.caret()
        node = self._tree.row_node(position.row if position else self._tree.viewport.focused[0])
        found = node.block_node(position.block) if node and position else node
        return QAccessible.queryAccessibleInterface(found) if found else None


class _AccessibleRowInterface(AccessibleNodeInterface):
    """Answers for one block without making all of them."""

    def __init__(self, node: RowNode) -> None:
        super().__init__(node)
        self._row_node = node

    def childCount(self) -> int:
        return self._row_node.block_count()

    def child(self, index: int, /) -> QAccessibleInterface | None:
        is_there = 0 <= index < self._row_node.block_count()
        return QAccessible.queryAccessibleInterface(self._row_node.block_node(index)) if is_there else None


def _make_interface(key: str, thing: QObject | None) -> QAccessibleInterface | None:
    """Qt asks for every class name of every object; only ours are answered."""
    del key
    if isinstance(thing, AccessibleNode):
        thing.interface = (
            _AccessibleRowInterface(thing) if isinstance(thing, RowNode) else AccessibleNodeInterface(thing)
        )
        return thing.interface
    tree = getattr(thing, "accessible_tree", None) if isinstance(thing, QWidget) else None
    if isinstance(tree, AccessibleTree):
        tree.interface = _AccessibleTreeInterface(tree)
        return tree.interface
    return None


_installed: list[bool] = []


def _install_factory() -> None:
    """Once for the process: Qt offers no way to take a Python factory back."""
    if not _installed:
        _installed.append(True)
        QAccessible.installFactory(_make_interface)
