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
        index, key = self._tree.screen.focused
        node = self._tree.row_node(index) if QAccessible.isActive() else None
        if node is not None:
            block, _, name = key.partition("/")
            found = node.block_node(int(block)).find_child(name) if name else None
            QAccessible.updateAccessibility(QAccessibleEvent(found or node, QAccessible.Event.Focus))

    def notify_caret(self, place: TextPosition | None) -> None:
        """The caret moved, and what is selected with it; in another block, that block has the keyboard now."""
        before, self._caret = self._caret, place
        row = self._tree.row_node(place.row) if place and QAccessible.isActive() else None
        if row is None or place is None:
            return
        part = row.block_node(place.block)
        if before is None or (before.row, before.block) != (place.row, place.block):
            QAccessible.updateAccessibility(QAccessibleEvent(part, QAccessible.Event.Focus))
        QAccessible.updateAccessibility(QAccessibleTextCursorEvent(part, place.offset))
        start, end = self._tree.screen.selection.ordered
        if start != end and (start.row, start.block) == (end.row, end.block) == (place.row, place.block):
            QAccessible.updateAccessibility(QAccessibleTextSelectionEvent(part, start.offset, end.offset))
