"""What was just opened is brought into sight."""

from functools import partial

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QScrollArea, QWidget

from ui.look.theme import SPACE_M


def bring_into_sight(panel: QWidget) -> None:
    """Scroll the page so that as much of it is seen as there is room for, once it has its place."""
    QTimer.singleShot(0, panel, partial(_scroll_to, panel))


def _scroll_to(panel: QWidget) -> None:
    parent = panel.parentWidget()
    while parent is not None and not isinstance(parent, QScrollArea):
        parent = parent.parentWidget()
    page = parent.widget() if isinstance(parent, QScrollArea) else None
    if not isinstance(parent, QScrollArea) or page is None:
        return
    bar = parent.verticalScrollBar()
    top = panel.mapTo(page, panel.rect().topLeft()).y() - SPACE_M
    bottom = top + panel.height() + 2 * SPACE_M - parent.viewport().height()
    bar.setValue(max(0, min(top, max(bar.value(), bottom))))
