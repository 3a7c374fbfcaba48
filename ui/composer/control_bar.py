"""The bar of controls under the message editor, with the Send/Stop button at its end."""

from collections.abc import Sequence
from itertools import pairwise

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QAbstractButton, QMenu, QSizePolicy, QWidget

from ui.style.boxes import hbox
from ui.style.controls import IconButton, PushButton, open_menu_at, set_keys_tooltip
from ui.style.layouts import WrappingRows
from ui.style.theme import SPACE_XS, ThemeSource, icon

_GAP = SPACE_XS


class ControlBar(WrappingRows):
    """Controls with or without their text (`minimumSizeHint`); the first ones keep it longest.

    A control whose horizontal policy is Maximum can be elided as well. `end` is at the end of the last row, which keeps
    room for its largest width, so that no row is added. Only when it needs more than usual do the last texts give way.
    """

    def __init__(self, end: "SendStopButton", *items: QWidget) -> None:
        super().__init__(_GAP)
        self._end = end
        end.setParent(self)
        for item in items:
            self._append(item)

    def add(self, item: QWidget) -> None:
        """Add a control behind the others and before the end."""
        from PySide6.QtCore import Qt

        self._append(item)
        # A visible parent does not show new children. One that was hidden on purpose stays hidden.
        if not item.testAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide):
            item.show()

    def _append(self, item: QWidget) -> None:
        item.setParent(self)
        # The order of children is that of assistive technology; the Tab order follows below.
        self._end.raise_()
        for first, second in pairwise([*self._items[-1:], item, *self._end.findChildren(QAbstractButton)]):
            QWidget.setTabOrder(first, second)
        self._items.append(item)
        self.updateGeometry()

    def enable(self, enabled: bool, but: QWidget) -> None:  # noqa: FBT001  # a slot
        """Enable or disable all controls except `but` and the end."""
        for item in self._items:
            item.setEnabled(enabled or item is but)

    def sizeHint(self) -> QSize:
        row = [*self._shown(), self._end]
        width = _total_width([_full_width(item) for item in row[:-1]]) + _GAP + self._end.max_width()
        return QSize(width, self._height_of(row))

    def minimumSizeHint(self) -> QSize:
        """Return the widest control without text, but only the height of one row.

        Qt's layouts take the height for this width where they have to give less.
        """
        row = [*self._shown(), self._end]
        return QSize(max(_min_width(widget) for widget in row), self._height_of(row))

    def _rows(self, width: int) -> list[list[QWidget]]:
        """Keep the order; the last row has room for the end."""
        shown, rows = self._shown(), list[list[QWidget]]()
        # Measure each item once: Qt asks for the rows very often.
        min_widths, full_widths = [_min_width(item) for item in shown], list[int]()
        last, first = width - self._end.max_width() - _GAP, 0
        while first < len(shown) and _total_width(min_widths[first:]) > last:
            full_widths = full_widths or [_full_width(item) for item in shown]
            unfolded, folded = _fitting(full_widths[first:], width), _fitting(min_widths[first:], width)
            # Keep their text if the rest then has room beside the end.
            count = next(
                (count for count in range(unfolded, folded) if _total_width(min_widths[first + count :]) <= last),
                folded,
            )
            rows.append(shown[first : first + count])
            first += count
        return [*rows, [*shown[first:], self._end]]

    def _place(self) -> None:
        width, top = self.width(), 0
        rows = self._rows(width)
        end_width = min(self._end.sizeHint().width(), width)
        beside_end = width - max(end_width, self._end.usual_width()) - _GAP
        for row in rows:
            height = self._height_of(row)
            is_last = row is rows[-1]
            items = row[:-1] if is_last else row
            x = 0
            for item, item_width in zip(items, _share_width(items, beside_end if is_last else width), strict=True):
                self._put(item, x, item_width, top, height)
                x += item_width + _GAP
            if is_last:
                self._put(self._end, width - end_width, end_width, top, height)
            top += height + _GAP


def _share_width(items: Sequence[QWidget], room: int) -> list[int]:
    """Share the room of a row: controls get their text back in order."""
    widths = [_min_width(item) for item in items]
    remaining = room - sum(widths) - _GAP * max(len(widths) - 1, 0)
    for index, item in enumerate(items):
        missing = _full_width(item) - widths[index]
        can_have_part = item.sizePolicy().horizontalPolicy() is QSizePolicy.Policy.Maximum
        if missing > remaining and not can_have_part:
            continue
        widths[index] += max(min(missing, remaining), 0)
        remaining -= max(min(missing, remaining), 0)
    return widths


def _full_width(item: QWidget) -> int:
    return max(item.sizeHint().width(), item.minimumWidth())


def _min_width(item: QWidget) -> int:
    return max(item.minimumSizeHint().width(), item.minimumWidth())


def _total_width(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * max(len(widths) - 1, 0)


def _fitting(widths: Sequence[int], room: int) -> int:
    """Return how many of these fit into the room, at least one."""
    counts = range(1, len(widths) + 1)
    return max((count for count in counts if _total_width(widths[:count]) <= room), default=1)


class SendStopButton(QWidget):
    """Send while idle, Stop while the agent works, with a button beside it to queue a written message."""

    send_pressed = Signal()
    queue_pressed = Signal()
    stop_requested = Signal()

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self._had_focus = False
        self._send = IconButton(themes, "send", self.tr("Send"), "primary")
        self.set_blocked("")
        self._stopping = self.tr("Stopping…")
        self._stop = PushButton(self.tr("Stop"))
        self._stop.setAccessibleName(self.tr("Stop"))
        set_keys_tooltip(self._stop, self.tr("Stop"), "Esc")
        self._stop.setAutoDefault(False)
        self._stop.hide()
        self._queue = IconButton(themes, "send", self.tr("Queue the message"))
        self._queue.hide()
        self._menu = QMenu(self)
        self._menu.setAccessibleName(self.tr("Send"))
        self._steer_action = self._menu.addAction(self.tr("Send as soon as possible"), self.send_pressed.emit)
        self._queue_action = self._menu.addAction(self.tr("Send when the agent is done"), self.queue_pressed.emit)
        self._can_send = False
        self.enter_sends = True
        """Enter sends at once and Ctrl+Enter queues; else Ctrl+Enter sends."""
        self._queue.clicked.connect(self._open_menu)
        hbox(self._queue, self._stop, self._send, parent=self, spacing=SPACE_XS, margins=0)
        self._send.clicked.connect(self.send_pressed)
        # On press, not release: assistive technology releases 100 ms later.
        self._stop.pressed.connect(self.stop)
        themes.follow(self._show_stop_icon)

    @property
    def is_working(self) -> bool:
        return not self._stop.isHidden()

    @property
    def has_focus(self) -> bool:
        return self._had_focus or self._send.hasFocus() or self._stop.hasFocus()

    def max_width(self) -> int:
        """Return the width while stopping with a message written, which is the largest, in pixels."""
        metrics, stop = self._stop.fontMetrics(), self._stop.sizeHint().width()
        more = metrics.horizontalAdvance(self._stopping) - metrics.horizontalAdvance(self._stop.text())
        return max(self._queue.sizeHint().width() + SPACE_XS + stop + more, self._send.sizeHint().width())

    def usual_width(self) -> int:
        """Return the width of the wider one of Send and Stop, in pixels: nothing moves when an answer begins."""
        return max(self._stop.sizeHint().width(), self._send.sizeHint().width())

    def show_working(self, *, working: bool) -> None:
        """Show Stop, or Send again."""
        self._stop.setText(self.tr("Stop"))
        self._stop.setEnabled(True)
        self._stop.setVisible(working)
        self._send.setVisible(not working)
        self._queue.setVisible(working and self._can_send)
        self._had_focus = False

    def set_can_send(self, *, can_send: bool) -> None:
        """Set whether there is something to send."""
        self._can_send = can_send
        self._send.setEnabled(can_send)
        self._queue.setVisible(self.is_working and can_send)

    def set_blocked(self, why: str) -> None:
        """Show in tooltip and description why nothing can be sent; empty when it can."""
        set_keys_tooltip(self._send, self.tr("Send"), "Ctrl+Enter")
        if why:
            self._send.setToolTip(why)
            self._send.setAccessibleDescription(why)

    def stop(self) -> None:
        """Request a stop, once; the button shows it at once."""
        if not self.is_working or not self._stop.isEnabled():
            return
        self._stop.setText(self._stopping)
        # A disabled button loses the focus to its neighbour.
        self._had_focus = self._stop.hasFocus()
        self._stop.setEnabled(False)
        # Now, not in the next loop: listeners may be busy for longer than a frame.
        self._stop.repaint()
        self.stop_requested.emit()

    def _open_menu(self) -> None:
        # In the rows of a menu, shortcuts are only displayed.
        from PySide6.QtGui import QKeySequence

        self._steer_action.setShortcut(QKeySequence("Enter" if self.enter_sends else "Ctrl+Enter"))
        self._queue_action.setShortcut(QKeySequence("Ctrl+Enter" if self.enter_sends else ""))
        open_menu_at(self._queue, self._menu, -self._menu.sizeHint().height())

    def _show_stop_icon(self) -> None:
        theme, side = self._themes.theme, self._themes.scaled(16)
        self._stop.setIcon(icon("stop", theme.danger, theme.muted, side))
        self._stop.setIconSize(QSize(side, side))
