"""The transcript for assistive technology: rows near the screen are children with names, texts and buttons.

Each row and button is a small QObject. Qt asks our factory for its interface, owns that interface, and deletes it
with the object; Python must hold a reference as long, or virtual calls end in the void. Nothing exists before it is
asked for.
"""

from typing import cast

import shiboken6
from PySide6.QtCore import QObject, QPoint, QRect
from PySide6.QtGui import (
    QAccessible,
    QAccessibleActionInterface,
    QAccessibleInterface,
    QAccessibleObject,
    QAccessibleTextInterface,
)
from PySide6.QtWidgets import QAccessibleWidget, QWidget

from ui.transcript.blocks.block import Control
from ui.transcript.rows.row import SPOKEN, Row
from ui.transcript.surface.screen import Screen

_NOTHING = cast("int", shiboken6.VoidPtr(0))
_PRESS = QAccessibleActionInterface.pressAction()


class Node(QObject):
    """One accessible child. `interface` is kept here because Qt keeps only the C++ half."""

    interface: QAccessibleInterface | None = None

    def __init__(self, tree: "Tree") -> None:
        super().__init__(tree)
        self.tree = tree


class RowNode(Node):
    """A row, by its item."""

    def __init__(self, tree: "Tree", item_id: str) -> None:
        super().__init__(tree)
        self.item_id = item_id
        self.buttons: dict[str, ButtonNode] = {}

    def index(self) -> int | None:
        """Where it stands now."""
        return self.tree.screen.rows.index_of(self.item_id)

    def row(self) -> Row | None:
        """The row, while it is there."""
        index = self.index()
        return None if index is None else self.tree.screen.rows.row(index)

    def children_now(self) -> "list[ButtonNode]":
        """What can be pressed in it."""
        row = self.row()
        found: list[ButtonNode] = []
        for block, control in row.controls() if row else ():
            key = f"{block}/{control.name}"
            node = self.buttons.get(key)
            if node is None:
                node = self.buttons[key] = ButtonNode(self, key)
            found.append(node)
        return found


class ButtonNode(Node):
    """Something to press in a row, by its key."""

    def __init__(self, row_node: RowNode, key: str) -> None:
        super().__init__(row_node.tree)
        self.row_node = row_node
        self.key = key

    @property
    def name(self) -> str:
        """What it is called."""
        return self.key.partition("/")[2]

    def find(self) -> tuple[int, Control] | None:
        """The control, while it is there."""
        row = self.row_node.row()
        for block, control in row.controls() if row else ():
            if f"{block}/{control.name}" == self.key:
                return block, control
        return None


class Tree(QObject):
    """The accessible children of one view: rows near the screen, then the widgets over it."""

    def __init__(self, view: QWidget, screen: Screen, widgets: list[QWidget]) -> None:
        super().__init__(view)
        self.view = view
        self.screen = screen
        self._widgets = widgets
        self.interface: QAccessibleInterface | None = None
        self._rows: dict[str, RowNode] = {}
        _install()

    def children_now(self) -> list[QObject]:
        """Rows on one screen above to one below, and what is visible beside them."""
        rows = self.screen.rows
        near = [row.item.id for _, row, _ in rows.between(rows.top - rows.view, rows.top + 2 * rows.view)]
        self._drop_others(set(near))
        for item_id in near:
            if item_id not in self._rows:
                self._rows[item_id] = RowNode(self, item_id)
        return [*(self._rows[item_id] for item_id in near), *(each for each in self._widgets if each.isVisible())]

    def row_node(self, index: int) -> RowNode | None:
        """The node of a row near the screen."""
        item_id = self.screen.rows.row(index).item.id
        self.children_now()
        return self._rows.get(item_id)

    def clear(self) -> None:
        """Other rows are shown."""
        self._drop_others(set())

    def _drop_others(self, near: set[str]) -> None:
        for item_id in [each for each in self._rows if each not in near]:
            node = self._rows.pop(item_id)
            for button in node.buttons.values():
                button.deleteLater()
            node.deleteLater()


class _TreeInterface(QAccessibleWidget):
    """The view itself."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree.view, QAccessible.Role.List, tree.view.accessibleName())
        self._tree = tree

    def childCount(self) -> int:
        return len(self._tree.children_now())

    def child(self, index: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # Qt allows none
        children = self._tree.children_now()
        return QAccessible.queryAccessibleInterface(children[index]) if 0 <= index < len(children) else None

    def indexOfChild(self, child: QAccessibleInterface, /) -> int:
        children = self._tree.children_now()
        found = child.object()
        return next((index for index, each in enumerate(children) if each is found), -1)

    def childAt(self, x: int, y: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _at(self._tree.children_now(), x, y)

    def focusChild(self) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        index = self._tree.screen.focused[0]
        node = self._tree.row_node(index) if index >= 0 else None
        return QAccessible.queryAccessibleInterface(node) if node else None


class _NodeInterface(QAccessibleObject):
    """What rows and buttons have in common."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self._node = node

    def state(self) -> QAccessible.State:
        state = QAccessible.State()
        box = self.rect()
        view = self._node.tree.view
        on_screen = QRect(view.mapToGlobal(QPoint(0, 0)), view.size()).intersects(box)
        state.invisible = not view.isVisible()  # pyright: ignore[reportAttributeAccessIssue]  # bit fields are missing in the stub
        state.offscreen = not on_screen  # pyright: ignore[reportAttributeAccessIssue]
        state.focusable = True  # pyright: ignore[reportAttributeAccessIssue]
        return state

    def isValid(self) -> bool:
        return shiboken6.isValid(self._node)

    def setText(self, t: QAccessible.Text, text: str, /) -> None:
        """Nothing here can be written."""

    def childCount(self) -> int:
        return 0

    def child(self, index: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        del index
        return None

    def indexOfChild(self, child: QAccessibleInterface, /) -> int:
        del child
        return -1

    def childAt(self, x: int, y: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        del x, y
        return None

    def focusChild(self) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return None


class _RowInterface(_NodeInterface):
    def __init__(self, node: RowNode) -> None:
        super().__init__(node)
        self._row_node = node
        self._texts = _RowText(node)

    def role(self) -> QAccessible.Role:
        return QAccessible.Role.ListItem

    def text(self, t: QAccessible.Text, /) -> str:
        row = self._row_node.row()
        if row is None:
            return ""
        if t == QAccessible.Text.Name:
            return row.label
        wanted = t in {QAccessible.Text.Description, QAccessible.Text.Value}
        return row.spoken()[:SPOKEN] if wanted else ""

    def parent(self) -> QAccessibleInterface:
        return QAccessible.queryAccessibleInterface(self._node.tree.view)

    def childCount(self) -> int:
        return len(self._row_node.children_now())

    def child(self, index: int, /) -> QAccessibleInterface | None:
        children = self._row_node.children_now()
        return QAccessible.queryAccessibleInterface(children[index]) if 0 <= index < len(children) else None

    def indexOfChild(self, child: QAccessibleInterface, /) -> int:
        found = child.object()
        return next((at for at, each in enumerate(self._row_node.children_now()) if each is found), -1)

    def childAt(self, x: int, y: int, /) -> QAccessibleInterface | None:
        return _at([*self._row_node.children_now()], x, y)

    def rect(self) -> QRect:
        index = self._row_node.index()
        return QRect() if index is None else _global(self._node, self._node.tree.screen.row_box(index))

    def interface_cast(self, t: QAccessible.InterfaceType, /) -> int:
        return _address(self._texts) if t == QAccessible.InterfaceType.TextInterface else _NOTHING


class _RowText(QAccessibleTextInterface):
    """The text of a row, to be read piece by piece."""

    def __init__(self, node: RowNode) -> None:
        super().__init__()
        self._row_node = node

    def _all(self) -> str:
        row = self._row_node.row()
        return row.spoken()[:SPOKEN] if row else ""

    def characterCount(self) -> int:
        return len(self._all())

    def text(self, startOffset: int, endOffset: int, /) -> str:  # noqa: N803  Qt's names
        text = self._all()
        return text[startOffset : endOffset if endOffset >= 0 else len(text)]

    def cursorPosition(self) -> int:
        return 0

    def setCursorPosition(self, position: int, /) -> None:
        """There is no cursor in a row."""

    def selectionCount(self) -> int:
        return 0

    def addSelection(self, startOffset: int, endOffset: int, /) -> None:  # noqa: N803
        """Selecting is the mouse's."""

    def removeSelection(self, selectionIndex: int, /) -> None:  # noqa: N803
        """Selecting is the mouse's."""

    def setSelection(self, selectionIndex: int, startOffset: int, endOffset: int, /) -> None:  # noqa: N803
        """Selecting is the mouse's."""

    def characterRect(self, offset: int, /) -> QRect:
        del offset
        index = self._row_node.index()
        return QRect() if index is None else _global(self._row_node, self._row_node.tree.screen.row_box(index))

    def offsetAtPoint(self, point: QPoint, /) -> int:
        del point
        return -1

    def scrollToSubstring(self, startIndex: int, endIndex: int, /) -> None:  # noqa: N803
        """Rows are scrolled to, not parts of them."""


class _ButtonInterface(_NodeInterface):
    def __init__(self, node: ButtonNode) -> None:
        super().__init__(node)
        self._button = node
        self._actions = _ButtonActions(node)

    def role(self) -> QAccessible.Role:
        return QAccessible.Role.Button

    def text(self, t: QAccessible.Text, /) -> str:
        return self._button.name if t == QAccessible.Text.Name else ""

    def parent(self) -> QAccessibleInterface:
        return QAccessible.queryAccessibleInterface(self._button.row_node)

    def rect(self) -> QRect:
        node = self._button.row_node
        found, index, row = self._button.find(), node.index(), node.row()
        if found is None or index is None or row is None:
            return QRect()
        block, control = found
        inside = control.box.translated(row.block_box(block).topLeft())
        return _global(node, inside.translated(node.tree.screen.row_box(index).topLeft()))

    def interface_cast(self, t: QAccessible.InterfaceType, /) -> int:
        return _address(self._actions) if t == QAccessible.InterfaceType.ActionInterface else _NOTHING


class _ButtonActions(QAccessibleActionInterface):
    def __init__(self, node: ButtonNode) -> None:
        super().__init__()
        self._button = node

    def actionNames(self) -> list[str]:
        return [_PRESS]

    def doAction(self, actionName: str, /) -> None:  # noqa: N803  Qt's name
        found = self._button.find()
        if found and actionName == _PRESS:
            found[1].press()

    def keyBindingsForAction(self, actionName: str, /) -> list[str]:  # noqa: N803
        del actionName
        return []


def _address(interface: QAccessibleTextInterface | QAccessibleActionInterface) -> int:
    # A plain integer would be taken for a Python object's address; only VoidPtr is passed on as the pointer it holds.
    return cast("int", shiboken6.VoidPtr(shiboken6.getCppPointer(interface)[0]))


def _global(node: Node, box: QRect) -> QRect:
    return box.translated(node.tree.screen.viewport.mapToGlobal(QPoint(0, 0)))


def _at(children: list[QObject], x: int, y: int) -> QAccessibleInterface | None:
    for each in children:
        interface = QAccessible.queryAccessibleInterface(each)
        if interface and interface.rect().contains(x, y):
            return interface
    return None


def _interface_for(key: str, thing: QObject | None) -> QAccessibleInterface | None:
    """Qt asks for every class name of every object; only ours are answered."""
    del key
    if isinstance(thing, RowNode):
        thing.interface = _RowInterface(thing)
        return thing.interface
    if isinstance(thing, ButtonNode):
        thing.interface = _ButtonInterface(thing)
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
