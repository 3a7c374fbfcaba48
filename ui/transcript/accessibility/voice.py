"""Speaks to whoever listens over the platform's accessibility interface."""

from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QAccessibleEvent,
    QAccessibleTextCursorEvent,
    QAccessibleTextSelectionEvent,
)

from ui.transcript.accessibility.tree import AccessibleTree
from ui.transcript.surface.selection import TextPosition


class AccessibilityNotifier:
    """Of one view; silent while nobody listens."""

    def __init__(self, tree: AccessibleTree) -> None:
        self._tree = tree
        self._caret: TextPosition | None = None

    def announce(self, words: str, urgent: bool) -> None:  # noqa: FBT001  what the announcer's callback carries
        """Announce; urgent words interrupt."""
        event = QAccessibleAnnouncementEvent(self._tree.view, words)
        if urgent:
            event.setPoliteness(QAccessible.AnnouncementPoliteness.Assertive)
        QAccessible.updateAccessibility(event)

    def notify_focus(self) -> None:
        """The keyboard is on another message, or on a link or button of it: that is what should be read now."""
        index, key = self._tree.viewport.focused
        node = self._tree.row_node(index) if QAccessible.isActive() else None
        if node is not None:
            block, _, name = key.partition("/")
            found = node.block_node(int(block)).find_child(name) if name else None
            QAccessible.updateAccessibility(QAccessibleEvent(found or node, QAccessible.Event.Focus))

    def notify_caret(self, position: TextPosition | None) -> None:
        """The caret moved, and what is selected with it; in another block, that block has the keyboard now."""
        before, self._caret = self._caret, position
        row = self._tree.row_node(position.row) if position and QAccessible.isActive() else None
        if row is None or position is None:
            return
        block_node = row.block_node(position.block)
        if before is None or (before.row, before.block) != (position.row, position.block):
            QAccessible.updateAccessibility(QAccessibleEvent(block_node, QAccessible.Event.Focus))
        QAccessible.updateAccessibility(QAccessibleTextCursorEvent(block_node, position.offset))
        start, end = self._tree.viewport.selection.ordered
        if start != end and (start.row, start.block) == (end.row, end.block) == (position.row, position.block):
            QAccessible.updateAccessibility(QAccessibleTextSelectionEvent(block_node, start.offset, end.offset))
