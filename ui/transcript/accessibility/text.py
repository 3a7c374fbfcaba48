"""Text that assistive technology reads piece by piece, with the caret in it and where its characters stand.

Offsets are UTF-16 units, as all of Qt's. PySide6 hands no selection out to C++ (`selection` has no Python half), so
none is counted; that it changed is said by an event. Words and sentences are found by Qt itself, in the text.
"""

from collections.abc import Callable
from typing import Protocol

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QAccessibleTextInterface

from ui.transcript.markdown.inline import slice_utf16, utf16_length


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
