"""Tab walks a page as it is read, although cards and rows are made later than what stands below them."""

from collections.abc import Iterator
from itertools import pairwise

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QLayout, QScrollArea, QWidget

from ui.look.parts.flow_rows import FlowRows


class TabOrder(QObject):
    """Keeps the keys' way through a page in the order of its layouts, right after `before`."""

    def __init__(self, before: QWidget, page: QWidget) -> None:
        super().__init__(page)
        self._before = before
        self._page = page
        self._chain: list[QWidget] = []
        page.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Something came, went or moved."""
        if event.type() == QEvent.Type.LayoutRequest and watched is self._page:
            self._update()
        return False

    def _update(self) -> None:
        chain = [self._before, *_tab_stops(self._page)]
        if chain == self._chain:
            return
        self._chain = chain
        for first, second in pairwise(chain):
            QWidget.setTabOrder(first, second)


def _tab_stops(widget: QWidget) -> Iterator[QWidget]:
    """It and all in it that Tab stops at."""
    if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.focusProxy() is None:
        yield widget
    layout = widget.layout()
    inside = widget.widget() if isinstance(widget, QScrollArea) else None
    if inside is not None:
        yield from _tab_stops(inside)
    elif isinstance(widget, FlowRows):
        for each in widget.items:
            yield from _tab_stops(each)
    elif layout is not None:
        yield from _tab_stops_in_layout(layout)


def _tab_stops_in_layout(layout: QLayout) -> Iterator[QWidget]:
    for place in range(layout.count()):
        item = layout.itemAt(place)
        widget, inner = (item.widget(), item.layout()) if item is not None else (None, None)
        if widget is not None:
            yield from _tab_stops(widget)
        elif inner is not None:
            yield from _tab_stops_in_layout(inner)
