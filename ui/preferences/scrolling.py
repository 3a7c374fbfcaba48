"""Keeps what opens on a page of the settings in sight."""

from PySide6.QtCore import QPoint, QTimer
from PySide6.QtWidgets import QScrollArea, QWidget

from ui.look.theme import SPACE_M


def scroll_into_view(widget: QWidget) -> None:
    """Scroll the page so that this begins at its top, as far as it can, once it is laid out."""
    QTimer.singleShot(0, widget, lambda: _scroll_to(widget))


def _scroll_to(widget: QWidget) -> None:
    area: QWidget | None = widget.parentWidget()
    while area is not None and not isinstance(area, QScrollArea):
        area = area.parentWidget()
    page = area.widget() if isinstance(area, QScrollArea) else None
    if page is None or not isinstance(area, QScrollArea):
        return
    layout = page.layout()
    if layout is not None:
        layout.activate()
    top = widget.mapTo(page, QPoint(0, 0)).y()
    bar = area.verticalScrollBar()
    below = top + widget.height() > bar.value() + area.viewport().height()
    if top < bar.value() or below:
        bar.setValue(max(0, top - SPACE_M))
