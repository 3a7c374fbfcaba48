"""Containers that adapt to their width, rows that wrap and a column that scrolls, and the order in which Tab goes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import cast

from PySide6.QtCore import QEvent, QObject, QPoint, QSize
from PySide6.QtGui import QFocusEvent, QMoveEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QLabel,
    QLayout,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QWidget,
)

from ui.style.boxes import hbox, parts_of, vbox
from ui.style.controls import PushButton, set_by_name, set_style_property
from ui.style.theme import SPACE_M, SPACE_S

# Show too: changes of items while hidden are missed, and the size may stay the same.
_RELAYOUT_EVENTS = {QEvent.Type.LayoutRequest, QEvent.Type.Show, QEvent.Type.LayoutDirectionChange}
_CHANGING_EVENTS = {*_RELAYOUT_EVENTS, QEvent.Type.StyleChange, QEvent.Type.FontChange}


class PartFocus(QObject):
    """Passes the focus that a widget is given on to a part of it.

    With a focus proxy, Tab would go from the widget to the part as well, and skip all that is between them.
    """

    def __init__(self, widget: QWidget, part: QWidget) -> None:
        super().__init__(widget)
        self.part = part
        widget.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QFocusEvent) and event.type() == QEvent.Type.FocusIn:
            self.part.setFocus(event.reason())
        return False


class WrappingRows(QWidget):
    """Controls in rows that are made anew for each width, without a layout. Subclasses choose the rows."""

    def __init__(self, gap: int) -> None:
        super().__init__()
        self._items: list[QWidget] = []
        self._gap = gap
        self._heights: dict[int, int] = {}
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    @property
    def items(self) -> Sequence[QWidget]:
        return tuple(self._items)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        """Measure the items anew only after one of them changed: layouts ask for a few widths again and again."""
        # A layout whose margins are wider than its room asks for a negative width.
        width = max(width, 0)
        if not self.isVisible():  # no event says that an item changed
            self._heights.clear()
        if width not in self._heights:
            rows = self._rows(width)
            self._heights[width] = sum(self._height_of(row) for row in rows) + self._gap * max(len(rows) - 1, 0)
        return self._heights[width]

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def event(self, event: QEvent) -> bool:
        """Lay out again when a control changes its size, comes or goes."""
        kind = event.type()
        if kind in _CHANGING_EVENTS:
            self._heights.clear()
        if kind in _RELAYOUT_EVENTS:
            self._place()
            self.updateGeometry()
        return super().event(event)

    def _shown(self) -> list[QWidget]:
        return [item for item in self._items if not item.isHidden()]

    def _rows(self, width: int) -> list[list[QWidget]]:
        raise NotImplementedError

    def _place(self) -> None:
        raise NotImplementedError

    def _height_of(self, row: Sequence[QWidget]) -> int:
        return max((_height_of_item(item) for item in row), default=0)

    def _put(self, item: QWidget, start: int, width: int, top: int, height: int) -> None:
        """Place an item in the middle of a row of this height, `start` pixels from the leading edge."""
        # Not QStyle.visualRect: its first use makes Python types of all of QStyle, before the first paint.
        left = self.width() - start - width if self.isRightToLeft() else start
        own_height = _height_of_item(item)
        item.setGeometry(left, top + (height - own_height) // 2, width, own_height)


class FlowRows(WrappingRows):
    """Rows at the leading or the trailing edge. `wide` takes the rest of its row, or a row of its own."""

    def __init__(
        self,
        items: Iterable[QWidget],
        *,
        wide: QWidget | None = None,
        trailing: bool = False,
        apart: QWidget | None = None,
        last_apart: QWidget | None = None,
        gap: int = SPACE_S,
    ) -> None:
        """`apart` is the first one; it is at the leading edge while the others are at the trailing one.

        `last_apart` is the last one; it is at the trailing edge while the others are at the leading one.
        """
        super().__init__(gap)
        self._wide, self._trailing, self._leading = wide, trailing, apart
        self._last_apart = last_apart
        self._items += items
        for item in self._items:
            item.setParent(self)

    def rows_for(self, width: int) -> int:
        """Return the number of rows at this width."""
        return len(self._rows(width))

    def sizeHint(self) -> QSize:
        shown = self._shown()
        width = sum(_whole_width(item) for item in shown) + self._gap * max(len(shown) - 1, 0)
        return QSize(width, self._height_of(shown))

    def minimumSizeHint(self) -> QSize:
        width = max((_minimum_width(item) for item in self._shown() if item is not self._wide), default=0)
        return QSize(width, self._height_of(self._shown()))

    def _width_of(self, item: QWidget, room: int) -> int:
        width = _readable_width(item) if item is self._wide else item.sizeHint().width()
        return min(max(width, item.minimumWidth()), room)

    def _rows(self, width: int) -> list[list[QWidget]]:
        shown, rows = self._shown(), list[list[QWidget]]()
        remaining = -1
        whole = sum(self._width_of(item, width) + self._gap for item in shown) - self._gap
        alone = self._wide if whole > width else None
        for item in shown:
            item_width = self._width_of(item, width)
            if remaining < item_width + self._gap or item is alone:
                rows.append([])
                remaining = width + self._gap
            rows[-1].append(item)
            remaining = -1 if item is alone else remaining - item_width - self._gap
        return rows

    def _place(self) -> None:
        width, top = self.width(), 0
        for item in self._items:
            # Not buttons that show more than their words, such as one with its keys.
            if isinstance(item, QPushButton) and type(item) in {QPushButton, PushButton}:
                break_words(item, width)
        for row in self._rows(width):
            height = self._height_of(row)
            widths = [self._width_of(item, width) for item in row]
            remaining = width - sum(widths) - self._gap * (len(row) - 1)
            if self._wide in row:
                widths[row.index(self._wide)] += remaining
                remaining = 0
            start = remaining if self._trailing and row[0] is not self._leading else 0
            for item, item_width in zip(row, widths, strict=True):
                start += remaining if item is self._last_apart else 0
                self._put(item, start, item_width, top, height)
                start += item_width + self._gap + (remaining if item is self._leading else 0)
            top += height + self._gap


def _readable_width(item: QWidget) -> int:
    """Return the minimum width; for a field without one of its own, that of its placeholder."""
    min_width = item.minimumSizeHint().width()
    if not isinstance(item, QLineEdit) or item.minimumWidth():
        return min_width
    metrics = item.fontMetrics()
    # Qt's least width has room for the widest letter.
    return max(min_width, min_width - metrics.maxWidth() + metrics.horizontalAdvance(item.placeholderText()) + 1)


def break_words(button: QPushButton, room: int) -> None:
    """Break the text of a button into lines if it is wider than `room` pixels; join them again if it is not."""
    text = button.text()
    if "\n" not in text and button.sizeHint().width() <= room:
        return
    padding = button.sizeHint().width() - _text_width(button, text)
    first, *words = text.replace("\n", " ").split(" ")
    lines = [first]
    for word in words:
        longer = f"{lines[-1]} {word}"
        if _text_width(button, longer) + padding <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    button.setText("\n".join(lines))


def _height_of_item(item: QWidget) -> int:
    return max(item.sizeHint().height(), item.minimumHeight())


def _whole_width(item: QWidget) -> int:
    """Return the wanted width; for a button whose text is broken into lines, the one for its text on a single line."""
    width = item.sizeHint().width()
    if isinstance(item, QPushButton) and "\n" in item.text():
        text = item.text()
        width += _text_width(item, text.replace("\n", " ")) - _text_width(item, text)
    return width


def _text_width(button: QPushButton, text: str) -> int:
    """Measure a text as its button does: a pixel more or less would break its words in another way each time."""
    # Named late: see `set_by_name`.
    from PySide6.QtCore import Qt

    return button.fontMetrics().size(Qt.TextFlag.TextShowMnemonic, text).width()


def _minimum_width(item: QWidget) -> int:
    return max(item.minimumSizeHint().width(), item.minimumWidth())


_MIN_HEIGHT = 60
"""Pixels: enough for two lines of text."""


_FOOT_SHARE = 4
"""A foot floats only if the scroll area is more than this many times as high."""


def scroll_area_of(widget: QWidget) -> QScrollArea | None:
    """Return the scroll area that a widget is in."""
    area = widget.parentWidget()
    while area is not None and not isinstance(area, QScrollArea):
        area = area.parentWidget()
    return area


class FocusFollower(QObject):
    """Scrolls an area to what gets the keyboard from code or assistive technology. Qt does so for Tab alone."""

    def __init__(self, area: QScrollArea) -> None:
        super().__init__(area)
        self._area = area
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._show_focused)

    def _show_focused(self, _before: QWidget | None, now: QWidget | None) -> None:
        # What is clicked must not move away before the button is released.
        if now is not None and not QApplication.mouseButtons() and self._area.isAncestorOf(now):
            for text in self._area.findChildren(QLabel):
                # The stubs do not say that there may be none.
                buddy = cast("QWidget | None", text.buddy())
                if buddy is not None and (buddy is now or buddy.isAncestorOf(now)):
                    self._area.ensureWidgetVisible(text, 0, SPACE_S)
            self._area.ensureWidgetVisible(now, 0, SPACE_S)
            feet = (foot for foot in self._area.findChildren(StickyFoot) if not foot.isAncestorOf(now))
            covered = max((foot.height() for foot in feet if foot.is_floating), default=0)
            if covered:
                # The margins of ensureWidgetVisible hold only for what is out of sight.
                bar, view = self._area.verticalScrollBar(), self._area.viewport()
                bottom = now.mapTo(view, QPoint(0, now.height())).y() + SPACE_S + covered
                bar.setValue(bar.value() + max(0, bottom - view.height()))


class StickyFoot(QFrame):
    """The last row of a frame that may be higher than the scroll area it is in, such as Cancel and Save of a form.

    While its place is out of sight, it floats over the lower edge of the visible part of the frame.
    """

    def __init__(self, frame: QWidget, buttons: Iterable[QWidget], notes: Iterable[QWidget] = ()) -> None:
        """`frame` is a widget with a layout, in which this comes last. `notes` are what to read before a press."""
        super().__init__(frame)
        self._frame = frame
        self.setProperty("kind", "foot")
        self._area: QScrollArea | None = None
        row = hbox(*buttons, spacing=SPACE_S, start_stretch=True)
        vbox(*notes, row, parent=self, spacing=SPACE_S, margins=(0, SPACE_S, 0, SPACE_S))

    @property
    def is_floating(self) -> bool:
        """Whether it is not in its place but over other parts of the frame."""
        return self.isVisible() and self.y() < self._place()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._area is None and (area := scroll_area_of(self)) is not None:
            self._area = area
            bar = area.verticalScrollBar()
            bar.valueChanged.connect(self._float)
            bar.rangeChanged.connect(self._float)
        self._float()

    def moveEvent(self, event: QMoveEvent) -> None:
        """Float again: the layout of the frame has put it in its place."""
        super().moveEvent(event)
        self._float()

    def _place(self) -> int:
        layout = self._frame.layout()
        below = 0 if layout is None else layout.contentsMargins().bottom()
        return self._frame.height() - below - self.height()

    def _float(self) -> None:
        resting_y = y = self._place()
        if self._area is not None and self._area.viewport().height() > _FOOT_SHARE * self.height():
            view = self._area.viewport()
            lowest = self._frame.mapFrom(view, QPoint(0, view.height())).y() - self.height()
            # Do not cover the first field of a frame of which only the beginning is in sight.
            y = min(resting_y, max(lowest, 2 * self.height()))
        floats = y < resting_y
        is_card = self._frame.property("kind") == "card"
        self._span_frame(y, is_whole=floats and is_card)
        self.raise_()
        set_style_property(self, "floats", "false" if not floats else "card" if is_card else "true")

    def _span_frame(self, y: int, *, is_whole: bool) -> None:
        """Move it to this y; floating in a card it spans the card's width, with its buttons where they were."""
        layout, own_layout = self._frame.layout(), self.layout()
        if layout is None or own_layout is None:
            return
        margins = layout.contentsMargins()
        left, right = (0, 0) if is_whole else (margins.left(), margins.right())
        own_layout.setContentsMargins(margins.left() - left, SPACE_S, margins.right() - right, SPACE_S)
        self.setGeometry(left, y, self._frame.width() - left - right, self.height())


class ScrollColumn(QScrollArea):
    """A scrolling column with its parent's background. Its parts wrap; it never scrolls sideways."""

    def __init__(self, spacing: int, *, trailing: int = 0, most: Callable[[], int] | None = None) -> None:
        """`spacing` pixels are between the parts, and `trailing` ones between them and the scroll bar.

        With `most` it is as high as its parts, up to the pixels that this returns, or lower if there is less room;
        otherwise it has the height that it is given.
        """
        super().__init__()
        self._max_height = most
        self._trailing = trailing
        if most is not None:
            self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        # A viewport of its own: the first call of `viewport()` makes Python types of all kinds of widgets (ADR 0012),
        # and this is drawn in the first paint.
        self.setViewport(QWidget())
        self._content = content = QWidget()
        self.column = vbox(parent=content, spacing=spacing, margins=0)
        self.setWidget(content)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        set_by_name(self, focusPolicy="NoFocus", horizontalScrollBarPolicy="ScrollBarAlwaysOff")
        # After setWidget, which turns the background on.
        content.setAutoFillBackground(False)
        # Otherwise a word that cannot be broken would make all lines too wide.
        content.setMinimumWidth(SPACE_M)

    def sizeHint(self) -> QSize:
        hint = super().sizeHint()
        if self._max_height is None:
            return hint
        return QSize(hint.width(), min(self._height_without_bar(), self._max_height()))

    def minimumSizeHint(self) -> QSize:
        """Return one line of text, lower than Qt would have it."""
        hint = super().minimumSizeHint()
        return hint if self._max_height is None else QSize(hint.width(), min(self.sizeHint().height(), _MIN_HEIGHT))

    def _height_without_bar(self) -> int:
        """Return the height of the parts over the whole width."""
        column = self.column
        width = max(self.width(), 1) + column.contentsMargins().right()
        return column.heightForWidth(width) if column.hasHeightForWidth() else column.sizeHint().height()

    def _choose_bar(self) -> None:
        """Hide the bar where there is room without it: beside it the parts may be so high that it would stay."""
        fits = self._height_without_bar() <= self.height()
        self.column.setContentsMargins(0, 0, 0 if fits else self._trailing, 0)
        set_by_name(self, verticalScrollBarPolicy="ScrollBarAlwaysOff" if fits else "ScrollBarAsNeeded")

    def resizeEvent(self, e: QResizeEvent) -> None:
        """Ask for another height, later: here it would be set while another one is being set."""
        super().resizeEvent(e)
        self._choose_bar()
        self.updateGeometry()

    def event(self, e: QEvent) -> bool:
        """Update the height when its parts want another."""
        if e.type() == QEvent.Type.LayoutRequest:
            self._choose_bar()
            self.updateGeometry()
        return super().event(e)

    def showEvent(self, event: QShowEvent) -> None:
        """Lay the parts out beside a bar that came while they were being shown: Qt drops that resize."""
        super().showEvent(event)
        if self.column.geometry() != (room := self._content.rect()):
            self.column.setGeometry(room)


class TabOrder(QObject):
    """Keeps the tab order of a page in the order of its layouts, right after `before` if that is given."""

    def __init__(self, before: QWidget | None, page: QWidget) -> None:
        super().__init__(page)
        self._before = before
        self._page = page
        self._chain: list[QWidget] = []
        page.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest and watched is self._page:
            self._update()
        return False

    def _update(self) -> None:
        chain = [*([] if self._before is None else [self._before]), *_tab_stops(self._page)]
        if chain == self._chain:
            return
        self._chain = chain
        for first, second in pairwise(chain):
            QWidget.setTabOrder(first, second)


def place_before_in_tab_order(stop: QWidget, *widgets: QWidget) -> None:
    """Let Tab go through these widgets right before it comes to `stop`, wherever they were made."""
    from PySide6.QtCore import Qt

    previous = stop.previousInFocusChain() or stop
    # Qt orders only what Tab stops at.
    while previous is not stop and not previous.focusPolicy() & Qt.FocusPolicy.TabFocus:
        previous = previous.previousInFocusChain() or stop
    for first, second in pairwise((previous, *widgets)):
        QWidget.setTabOrder(first, second)


def _tab_stops(widget: QWidget) -> Iterator[QWidget]:
    """Yield the widgets that Tab stops at, in order."""
    from PySide6.QtCore import Qt

    if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.focusProxy() is None:
        yield widget
    layout = widget.layout()
    content = widget.widget() if isinstance(widget, QScrollArea) else None
    if content is not None:
        yield from _tab_stops(content)
    elif isinstance(widget, FlowRows):
        for item in widget.items:
            yield from _tab_stops(item)
    elif layout is not None:
        yield from _tab_stops_in_layout(layout)


def _tab_stops_in_layout(layout: QLayout) -> Iterator[QWidget]:
    for part in parts_of(layout):
        yield from _tab_stops_in_layout(part) if isinstance(part, QLayout) else _tab_stops(part)
