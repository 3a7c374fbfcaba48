"""Speaks to whoever listens over the platform's accessibility interface."""

from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAccessibleEvent

from ui.transcript.accessibility.tree import Tree


class Voice:
    """Of one view; silent while nobody listens."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def say(self, words: str, urgent: bool) -> None:  # noqa: FBT001  what the announcer's callback carries
        """Announce; urgent words interrupt."""
        event = QAccessibleAnnouncementEvent(self._tree.view, words)
        if urgent:
            event.setPoliteness(QAccessible.AnnouncementPoliteness.Assertive)
        QAccessible.updateAccessibility(event)

    def focus(self) -> None:
        """The keyboard is on another message: that is what should be read now."""
        index = self._tree.screen.focused[0]
        node = self._tree.row_node(index) if QAccessible.isActive() and index >= 0 else None
        if node is not None:
            QAccessible.updateAccessibility(QAccessibleEvent(node, QAccessible.Event.Focus))
