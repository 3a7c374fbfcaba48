"""The controls under the editor: in one row, in two where that one has no room, and always all of them."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from ui.look.parts.flow_rows import WrappingRows
from ui.look.theme import SPACE_XS

_GAP = SPACE_XS


class ControlBar(WrappingRows):
    """Controls have their words or none (`minimumSizeHint`); words of the first ones stay longest.

    A control whose horizontal policy is Maximum can also have a part of them. `end` stands at the end of the last row;
    `reserved` are the pixels that it may come to want, so that nothing moves when it does.
    """

    def __init__(self, end: QWidget, reserved: Callable[[], int]) -> None:
        super().__init__(_GAP)
        self._end = end
        self._reserved_width = reserved
        end.setParent(self)

    def add(self, item: QWidget) -> None:
        """One more, behind the others and before the end."""
        item.setParent(self)
        # Whoever is shown already shows no new child by itself, and nobody wants one that was hidden on purpose.
        if not item.testAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide):
            item.show()
        # For assistive technology, and for the Tab key.
        self._end.raise_()
        for one, next_one in pairwise([*self._items[-1:], item, *self._end.findChildren(QAbstractButton)]):
            QWidget.setTabOrder(one, next_one)
        self._items.append(item)
        self.updateGeometry()

    def enable(self, enabled: bool, but: QWidget) -> None:  # noqa: FBT001  # a slot
        """Let all of them be used or none, but for one that can be in any case, and the end."""
        for each in self._items:
            each.setEnabled(enabled or each is but)

    def sizeHint(self) -> QSize:
        """All in one row, with their words."""
        row = [*self._shown(), self._end]
        return QSize(_total_width(self._shown(), _full_width) + self._end_width(), self._height_of(row))

    def minimumSizeHint(self) -> QSize:
        """As wide as the widest of them without words.

        No more: Qt's layouts take the height for this width where they have to give less.
        """
        row = [*self._shown(), self._end]
        return QSize(max(_min_width(each) for each in row), self._height_of(row))

    def _end_width(self) -> int:
        return self._reserved_width() + _GAP

    def _rows(self, width: int) -> list[list[QWidget]]:
        """Their order stays; the last row has room for the end."""
        shown, rows = self._shown(), list[list[QWidget]]()
        full, least = cache(_full_width), cache(_min_width)  # asked again and again, and Qt measures each time
        last = width - self._end_width()
        while shown and _total_width(shown, least) > last:
            counts = range(1, len(shown) + 1)
            whole = max((at for at in counts if _total_width(shown[:at], full) <= width), default=1)
            folded = max((at for at in counts if _total_width(shown[:at], least) <= width), default=1)
            # With their words if the rest then has room beside the end.
            count = next((at for at in range(whole, folded) if _total_width(shown[at:], least) <= last), folded)
            rows.append(shown[:count])
            shown = shown[count:]
        return [*rows, [*shown, self._end]]

    def _place(self) -> None:
        width, top = self.width(), 0
        rows = self._rows(width)
        for row in rows:
            height = self._height_of(row)
            is_last = row is rows[-1]
            items = row[:-1] if is_last else row
            at = 0
            for each, own in zip(
                items, _share_width(items, width - (self._end_width() if is_last else 0)), strict=True
            ):
                self._put(each, at, own, top, height)
                at += own + _GAP
            if is_last:
                own = min(self._end.sizeHint().width(), width)
                self._put(self._end, width - own, own, top, height)
            top += height + _GAP


def _share_width(items: Sequence[QWidget], room: int) -> list[int]:
    """Widths in one row: words come back in order as far as there is room."""
    widths = [_min_width(each) for each in items]
    left = room - sum(widths) - _GAP * max(len(widths) - 1, 0)
    for at, each in enumerate(items):
        wanted = _full_width(each) - widths[at]
        can_have_part = each.sizePolicy().horizontalPolicy() is QSizePolicy.Policy.Maximum
        if wanted > left and not can_have_part:
            continue
        widths[at] += max(min(wanted, left), 0)
        left -= max(min(wanted, left), 0)
    return widths


def _full_width(item: QWidget) -> int:
    return max(item.sizeHint().width(), item.minimumWidth())


def _min_width(item: QWidget) -> int:
    return max(item.minimumSizeHint().width(), item.minimumWidth())


def _total_width(items: Sequence[QWidget], width_of: Callable[[QWidget], int]) -> int:
    return sum(width_of(each) for each in items) + _GAP * max(len(items) - 1, 0)
