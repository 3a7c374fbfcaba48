"""The base of all accessible children of the transcript, and the interfaces by which Qt asks them, text included."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

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

from ui.transcript.markdown.inline import slice_utf16
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.viewport.viewport import RowViewport


class AccessibleText(Protocol):
    """A text and its places on the screen, in global pixels."""

    def text(self) -> str:
        """All of it."""
        ...

    def caret(self) -> int:
        """Where the caret is in it, or -1."""
        ...

    def set_caret(self, offset: int) -> None:
        """Stand there."""
        ...

    def select(self, start: int, end: int) -> None:
        """Select a part; nothing, when both are the same."""
        ...

    def character_rect(self, offset: int) -> QRect:
        """Where a character stands."""
        ...

    def offset_at(self, point: QPoint) -> int:
        """The character at a point, or -1."""
        ...

    def scroll_to(self, offset: int) -> None:
        """Scroll to a place."""
        ...


class HasAccessibleText(Protocol):
    """Whose text it is."""

    @property
    def readable(self) -> Callable[[], AccessibleText | None]:
        """The text now."""
        ...


class AccessibleTextInterface(QAccessibleTextInterface):
    """Of one node."""

    def __init__(self, node: HasAccessibleText) -> None:
        super().__init__()
        self._node = node

    def characterCount(self) -> int:
        """In UTF-16 units."""
        readable = self._node.readable()
        return utf16_length(readable.text()) if readable else 0

    def text(self, startOffset: int, endOffset: int, /) -> str:  # noqa: N803  Qt's names
        """A part of it."""
        readable = self._node.readable()
        text = readable.text() if readable else ""
        return slice_utf16(text, max(0, startOffset), endOffset if endOffset >= 0 else utf16_length(text))

    def cursorPosition(self) -> int:
        """Where the caret is, or -1."""
        readable = self._node.readable()
        return readable.caret() if readable else -1

    def setCursorPosition(self, position: int, /) -> None:
        """Put the caret."""
        if readable := self._node.readable():
            readable.set_caret(position)

    def selectionCount(self) -> int:
        """None: see above."""
        return 0

    def addSelection(self, startOffset: int, endOffset: int, /) -> None:  # noqa: N803
        """Select."""
        if readable := self._node.readable():
            readable.select(startOffset, endOffset)

    def removeSelection(self, selectionIndex: int, /) -> None:  # noqa: N803
        """Select nothing."""
        del selectionIndex
        if readable := self._node.readable():
            readable.select(0, 0)

    def setSelection(self, selectionIndex: int, startOffset: int, endOffset: int, /) -> None:  # noqa: N803
        """Select something else."""
        del selectionIndex
        self.addSelection(startOffset, endOffset)

    def characterRect(self, offset: int, /) -> QRect:
        """Where a character stands."""
        readable = self._node.readable()
        return readable.character_rect(offset) if readable else QRect()

    def offsetAtPoint(self, point: QPoint, /) -> int:
        """The character at a point, or -1."""
        readable = self._node.readable()
        return readable.offset_at(point) if readable else -1

    def scrollToSubstring(self, startIndex: int, endIndex: int, /) -> None:  # noqa: N803
        """Bring a place into sight."""
        del endIndex
        if readable := self._node.readable():
            readable.scroll_to(startIndex)


_NOTHING = cast("int", shiboken6.VoidPtr(0))
_PRESS = QAccessibleActionInterface.pressAction()
_LEVEL = QAccessible.Attribute.Level


class AccessibleNode(QObject):
    """One accessible child. `interface` is kept here because Qt keeps only the C++ half."""

    def __init__(self, above: QObject, viewport: RowViewport, role: QAccessible.Role) -> None:
        super().__init__(above)
        self.parent_node = above
        self.viewport = viewport
        self.role = role
        self.interface: QAccessibleInterface | None = None

    def name(self) -> str:
        """What it is called."""
        return ""

    def description(self) -> str:
        """What more there is to say about it; its text, where it has one."""
        readable = self.readable()
        return readable.text() if readable else ""

    def readable(self) -> AccessibleText | None:
        """Its text, if it is one that can be read piece by piece."""
        return None

    def child_nodes(self) -> Sequence[QObject]:
        """What is in it."""
        return ()

    def box(self) -> QRect:
        """Where it is in the viewport."""
        return QRect()

    def press(self) -> Callable[[], None] | None:
        """What happens when it is pressed."""
        return None

    def focus(self) -> Callable[[], None] | None:
        """How it gets the keyboard."""
        return None

    def has_keyboard_focus(self) -> bool:
        """Whether keys go to it."""
        return False

    def level(self) -> int:
        """Of a heading; else 0."""
        return 0

    def dispose(self) -> None:
        """Nobody needs it any more."""
        self.deleteLater()


class AccessibleNodeInterface(QAccessibleObject):
    """Asks its node."""

    def __init__(self, node: AccessibleNode) -> None:
        super().__init__(node)
        self._node = node
        self._text: AccessibleTextInterface | None = None
        self._actions: _Actions | None = None
        self._attributes: _Attributes | None = None

    def role(self) -> QAccessible.Role:
        """What kind of thing it is."""
        return self._node.role

    def text(self, t: QAccessible.Text, /) -> str:
        """What it is called, and what there is to say about it."""
        if t == QAccessible.Text.Name:
            return self._node.name()
        wanted = t in {QAccessible.Text.Description, QAccessible.Text.Value}
        return self._node.description() if wanted else ""

    def setText(self, t: QAccessible.Text, text: str, /) -> None:
        """Nothing here can be written."""

    def state(self) -> QAccessible.State:
        """Whether it is seen, and what it can."""
        state = QAccessible.State()
        viewport = self._node.viewport.viewport
        on_screen = viewport.rect().intersects(self._node.box())
        state.invisible = not viewport.isVisible()  # pyright: ignore[reportAttributeAccessIssue]  # bit fields are missing in the stub
        state.offscreen = not on_screen  # pyright: ignore[reportAttributeAccessIssue]
        state.focusable = self._node.focus() is not None  # pyright: ignore[reportAttributeAccessIssue]
        view = viewport.parentWidget()
        state.focused = self._node.has_keyboard_focus() and view is not None and view.hasFocus()  # pyright: ignore[reportAttributeAccessIssue]
        state.readOnly = True  # pyright: ignore[reportAttributeAccessIssue]
        state.multiLine = self._node.readable() is not None  # pyright: ignore[reportAttributeAccessIssue]
        return state

    def isValid(self) -> bool:
        """Whether it is still there."""
        return shiboken6.isValid(self._node)

    def parent(self) -> QAccessibleInterface:
        """What it is in."""
        return QAccessible.queryAccessibleInterface(self._node.parent_node)

    def childCount(self) -> int:
        """How many are in it."""
        return len(self._node.child_nodes())

    def child(self, index: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # Qt allows none
        """One of them."""
        children = self._node.child_nodes()
        return QAccessible.queryAccessibleInterface(children[index]) if 0 <= index < len(children) else None

    def indexOfChild(self, child: QAccessibleInterface, /) -> int:
        """Which one it is."""
        found = child.object()
        return next((at for at, each in enumerate(self._node.child_nodes()) if each is found), -1)

    def childAt(self, x: int, y: int, /) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Which one is at a point of the screen."""
        return child_at(self._node.child_nodes(), x, y)

    def focusChild(self) -> QAccessibleInterface | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """None has the keyboard by itself."""
        return None

    def rect(self) -> QRect:
        """Where it is on the screen."""
        return self._node.box().translated(self._node.viewport.viewport.mapToGlobal(QPoint(0, 0)))

    def interface_cast(self, t: QAccessible.InterfaceType, /) -> int:
        """What more it can: text, actions, a level."""
        kinds, node = QAccessible.InterfaceType, self._node
        if t == kinds.TextInterface and node.readable():
            self._text = self._text or AccessibleTextInterface(node)
            return _interface_address(self._text)
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
    """The last of these that is under a point of the screen."""
    for each in reversed(children):
        found = QAccessible.queryAccessibleInterface(each)
        if found and found.rect().contains(x, y) and (not isinstance(each, QWidget) or each.isVisible()):
            return found
    return None


def _interface_address(
    interface: QAccessibleTextInterface | QAccessibleActionInterface | QAccessibleAttributesInterface,
) -> int:
    # A plain integer would be taken for a Python object's address; only VoidPtr is passed on as the pointer it holds.
    return cast("int", shiboken6.VoidPtr(shiboken6.getCppPointer(interface)[0]))
