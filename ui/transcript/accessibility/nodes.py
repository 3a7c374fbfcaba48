"""The base class of the accessible nodes, and the interfaces through which Qt asks them."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import shiboken6
from PySide6.QtCore import QObject, QPoint, QRect
from PySide6.QtGui import (
    QAccessible,
    QAccessibleActionInterface,
    QAccessibleAttributesInterface,
    QAccessibleInterface,
    QAccessibleObject,
    QAccessibleTextInterface,
)
from PySide6.QtWidgets import QWidget

from ui.transcript.accessibility.text import AccessibilityContext, AccessibleText

_NOTHING = cast("int", shiboken6.VoidPtr(0))
_PRESS = QAccessibleActionInterface.pressAction()
_LEVEL = QAccessible.Attribute.Level


class AccessibleNode(QObject):
    """An accessible node. It owns its children, and its `interface`, of which Qt owns only the C++ half."""

    def __init__(self, above: QObject, context: AccessibilityContext, role: QAccessible.Role) -> None:
        super().__init__(above)
        self.parent_node = above
        self.context = context
        self._role = role
        self.interface: QAccessibleInterface | None = None
        self._children: dict[tuple[str, int], AccessibleNode] = {}

    @property
    def role(self) -> QAccessible.Role:
        return self._role

    def name(self) -> str:
        """Return the accessible name."""
        return ""

    def description(self) -> str:
        """Return the text of the node, if it has one."""
        text = self.text()
        return text.whole() if text else ""

    def text(self) -> AccessibleText | None:
        """Return the text, if it can be read piece by piece."""
        return None

    def child_nodes(self) -> Sequence[QObject]:
        """Return the children."""
        return ()

    def child_count(self) -> int:
        """Return the number of children."""
        return len(self.child_nodes())

    def child_node(self, index: int) -> QObject:
        """Return the child at an index."""
        return self.child_nodes()[index]

    def child(self, kind: str, number: int, make: Callable[[], "AccessibleNode"]) -> "AccessibleNode":
        """Return the child of this kind and number, which is made once."""
        node = self._children.get((kind, number))
        if node is None:
            node = self._children[kind, number] = make()
        return node

    def box(self) -> QRect:
        """Return the box in the viewport."""
        return QRect()

    def press(self) -> Callable[[], None] | None:
        """Return what pressing the node does."""
        return None

    def focus(self) -> Callable[[], None] | None:
        """Return what moves the focus here."""
        return None

    def has_keyboard_focus(self) -> bool:
        """Return whether the node has the focus."""
        return False

    def is_disabled(self) -> bool:
        """Return whether it is a button that cannot be pressed now."""
        return False

    def level(self) -> int:
        """Return the level of a heading, or 0."""
        return 0


class AccessibleNodeInterface(QAccessibleObject):
    """The interface through which Qt reads one node."""

    def __init__(self, node: AccessibleNode) -> None:
        super().__init__(node)
        self._node = node
        self._actions: _Actions | None = None
        self._attributes: _Attributes | None = None

    def role(self) -> QAccessible.Role:
        """Return the role of the node."""
        return self._node.role

    def text(self, t: QAccessible.Text, /) -> str:
        """Return the name or the description."""
        if t == QAccessible.Text.Name:
            return self._node.name()
        is_description = t in {QAccessible.Text.Description, QAccessible.Text.Value}
        return self._node.description() if is_description else ""

    def setText(self, t: QAccessible.Text, text: str, /) -> None:
        pass

    def state(self) -> QAccessible.State:
        """Return whether the node is visible, focused, and a text."""
        state = QAccessible.State()
        viewport = self._node.context.viewport.widget
        on_screen = viewport.rect().intersects(self._node.box())
        state.invisible = not viewport.isVisible()  # pyright: ignore[reportAttributeAccessIssue]  # bit fields are missing in the stub
        state.offscreen = not on_screen  # pyright: ignore[reportAttributeAccessIssue]
        state.focusable = self._node.focus() is not None  # pyright: ignore[reportAttributeAccessIssue]
        view = viewport.parentWidget()
        state.focused = self._node.has_keyboard_focus() and view is not None and view.hasFocus()  # pyright: ignore[reportAttributeAccessIssue]
        state.disabled = self._node.is_disabled()  # pyright: ignore[reportAttributeAccessIssue]
        state.readOnly = True  # pyright: ignore[reportAttributeAccessIssue]
        state.multiLine = self._node.text() is not None  # pyright: ignore[reportAttributeAccessIssue]
        return state

    def isValid(self) -> bool:
        return shiboken6.isValid(self._node)

    def parent(self) -> QAccessibleInterface:
        """Return the interface of the parent node."""
        return QAccessible.queryAccessibleInterface(self._node.parent_node)

    def childCount(self) -> int:
        return self._node.child_count()

    def child(self, index: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # Qt allows none
        """Return the child at an index, or None."""
        is_there = 0 <= index < self._node.child_count()
        return QAccessible.queryAccessibleInterface(self._node.child_node(index)) if is_there else None

    def indexOfChild(self, child: QAccessibleInterface, /) -> int:
        node = child.object()
        return next((index for index, candidate in enumerate(self._node.child_nodes()) if candidate is node), -1)

    def childAt(self, x: int, y: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return child_at(self._node.child_nodes(), x, y)

    def focusChild(self) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return None

    def rect(self) -> QRect:
        """Return the box on the screen."""
        return self._node.box().translated(self._node.context.viewport.widget.mapToGlobal(QPoint(0, 0)))

    def interface_cast(self, t: QAccessible.InterfaceType, /) -> int:
        """Return the address of the text, action or attributes interface."""
        kinds, node = QAccessible.InterfaceType, self._node
        if t == kinds.TextInterface and (text := node.text()):
            return _interface_address(text)
        if t == kinds.ActionInterface and (node.press() or node.focus()):
            self._actions = self._actions or _Actions(node)
            return _interface_address(self._actions)
        if t == kinds.AttributesInterface and node.level():
            self._attributes = self._attributes or _Attributes(node)
            return _interface_address(self._attributes)
        return _NOTHING


class _Actions(QAccessibleActionInterface):
    def __init__(self, node: AccessibleNode) -> None:
        super().__init__()
        self._node = node

    def actionNames(self) -> list[str]:
        names = [_PRESS] if self._node.press() else []
        return [*names, *([self.setFocusAction()] if self._node.focus() else [])]

    def doAction(self, actionName: str, /) -> None:  # noqa: N803  Qt's name
        callback = self._node.press() if actionName == _PRESS else self._node.focus()
        if callback:
            callback()

    def keyBindingsForAction(self, actionName: str, /) -> list[str]:  # noqa: N803
        del actionName
        return []


class _Attributes(QAccessibleAttributesInterface):
    def __init__(self, node: AccessibleNode) -> None:
        super().__init__()
        self._node = node

    def attributeKeys(self) -> list[QAccessible.Attribute]:
        return [_LEVEL]

    def attributeValue(self, key: QAccessible.Attribute, /) -> Any:
        return self._node.level() if key == _LEVEL else None


def child_at(children: Sequence[QObject], x: int, y: int) -> QAccessibleInterface | None:
    """Return the topmost of these children under a point of the screen."""
    for child in reversed(children):
        interface = QAccessible.queryAccessibleInterface(child)
        if interface and interface.rect().contains(x, y) and (not isinstance(child, QWidget) or child.isVisible()):
            return interface
    return None


def _interface_address(
    interface: QAccessibleTextInterface | QAccessibleActionInterface | QAccessibleAttributesInterface,
) -> int:
    # A plain integer would be taken for a Python object's address; only VoidPtr is passed on as the pointer it holds.
    return cast("int", shiboken6.VoidPtr(shiboken6.getCppPointer(interface)[0]))
