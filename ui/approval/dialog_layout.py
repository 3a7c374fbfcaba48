"""Size and scrolling of the approval dialog: views shrink before the content scrolls; it never leaves the screen."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from PySide6.QtCore import QEvent, QObject, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QScrollArea, QSizePolicy, QStyle, QWidget

from ui.approval.waiting_list import WaitingList
from ui.style.boxes import vbox
from ui.style.layouts import ScrollColumn
from ui.style.theme import SPACE_L, SPACE_M, ThemeSource


class Shrinkable(Protocol):
    """A widget that scrolls inside, or is drawn smaller, when room is scarce.

    `spare_height` is the number of pixels by which it can shrink, `shrunk_height` that by which it has shrunk.
    """

    @property
    def spare_height(self) -> int: ...

    @property
    def shrunk_height(self) -> int: ...

    def shrink_by(self, pixels: int) -> None: ...

    def isVisible(self) -> bool: ...


class ShrinkingScrollArea(QScrollArea):
    """Shrinks its `shrinkables` in order until all parts fit; if they still do not fit, the content scrolls."""

    needs_changed = Signal()
    """A part needs another height."""

    def __init__(self, parts: Iterable[QWidget], shrinkables: Sequence[Shrinkable]) -> None:
        super().__init__()
        self._shrinkables = shrinkables
        self._pending_reveal: list[QWidget] = []
        self._content = _Content()
        # Later: the area itself is being resized.
        self._shrink_timer = QTimer(self, singleShot=True, interval=0)
        self._shrink_timer.timeout.connect(self._shrink_to_fit)
        self._content.layout_requested.connect(self._shrink_timer.start)
        self._layout = vbox(*parts, parent=self._content, spacing=SPACE_M, margins=0, end_stretch=True)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(self._content)
        self._content.setAutoFillBackground(False)
        self.viewport().setAutoFillBackground(False)

    def preferred_height(self, width: int) -> int:
        """Return the pixels that all parts need at this width if none shrinks."""
        self._layout.activate()
        shrunk = sum(shrinkable.shrunk_height for shrinkable in self._visible_shrinkables())
        return self._layout.totalHeightForWidth(width) + shrunk

    def resizeEvent(self, e: QResizeEvent) -> None:
        super().resizeEvent(e)
        self._shrink_timer.start()

    def reveal(self, parts: list[QWidget]) -> None:
        """Scroll these parts into view once they are laid out, the most important last."""
        self._pending_reveal = parts
        self.needs_changed.emit()

    def reveal_pending(self) -> None:
        """Scroll to the parts of `reveal`, now that they are laid out."""
        for part in self._pending_reveal:
            self.ensureWidgetVisible(part, 0, 0)
        self._pending_reveal = []

    def _visible_shrinkables(self) -> list[Shrinkable]:
        return [shrinkable for shrinkable in self._shrinkables if shrinkable.isVisible()]

    def _shrink_to_fit(self) -> None:
        missing = self.preferred_height(self.viewport().width()) - self.viewport().height()
        for shrinkable in self._visible_shrinkables():
            pixels = max(0, min(missing, shrinkable.spare_height))
            missing -= pixels
            if pixels != shrinkable.shrunk_height:
                shrinkable.shrink_by(pixels)
        self.needs_changed.emit()


class _Content(QWidget):
    layout_requested = Signal()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.layout_requested.emit()
        return super().event(event)


WIDTH, MIN_WIDTH = 864, 480
LIST_WIDTH, MIN_LIST_WIDTH = 220, 120
MIN_CONTENT_HEIGHT = 60
"""Pixels that the buttons leave to the content; if they do not fit below it, they scroll."""
NARROW_WIDTH = 440
"""Pixels at 100 % zoom: a narrower dialog has the list of calls above the shown one, not beside it."""


class DialogSizer(QObject):
    """Lets a dialog grow with its `middle`. It never becomes lower by itself: the buttons would jump."""

    def __init__(
        self, themes: ThemeSource, dialog: QDialog, beside: WaitingList, middle: ShrinkingScrollArea, bar: QWidget
    ) -> None:
        super().__init__(dialog)
        self.foot = ScrollColumn(0, most=self._max_bar_height)
        middle.setMinimumHeight(MIN_CONTENT_HEIGHT)
        # The content shrinks first.
        self.foot.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.foot.column.addWidget(bar)
        self._list_height = 0
        self.main_layout = QHBoxLayout()
        """The list of calls, and beside or below it the shown call."""
        self._themes, self._dialog = themes, dialog
        self._list_panel, self._scroll_area, self._bar = beside, middle, bar
        self.grow_timer = QTimer(self, singleShot=True, interval=0)
        self.grow_timer.timeout.connect(self.grow)
        middle.needs_changed.connect(self.grow_timer.start)

    def set_initial_width(self) -> None:
        """Set the width before the dialog is shown: the height depends on it."""
        self._dialog.ensurePolished()
        self._dialog.resize(self._preferred_width(), 1)

    def fit_height(self) -> None:
        """Make the dialog as high as its parts need, or as the screen is."""
        room = self.available_rect()
        width = max(min(self._dialog.width(), room.width()), self._preferred_width())
        list_width, list_height = self._arrange_list(width)
        self._list_height = list_height
        inside = width - 2 * SPACE_L - list_width
        # A scroll bar would narrow the buttons, which would then need more height and keep the bar.
        scrolls = self._bar.heightForWidth(inside) > self._max_bar_height()
        policy = Qt.ScrollBarPolicy.ScrollBarAsNeeded if scrolls else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        self.foot.setVerticalScrollBarPolicy(policy)
        frame_height = self._bar.heightForWidth(inside) + SPACE_M + 2 * SPACE_L + list_height
        height = max(self._scroll_area.preferred_height(inside) + frame_height, self._dialog.height())
        self._dialog.resize(width, min(height, room.height()))

    def grow(self) -> None:
        """Fit the height, and keep the dialog on the screen."""
        if not self._dialog.isVisible():
            return
        old_size = self._dialog.size()
        self.fit_height()
        # The position is not known right after the dialog was shown: move it only when it grew.
        if self._dialog.size() != old_size:
            self._move_onto_screen(is_wider=self._dialog.width() > old_size.width())
        self._scroll_area.reveal_pending()

    def _arrange_list(self, width: int) -> tuple[int, int]:
        """Put the list of calls beside or above; return the pixels that it takes from the width and the height."""
        is_above = width < self._themes.scaled(NARROW_WIDTH)
        height = 5 * self._list_panel.fontMetrics().height()
        self._list_panel.arrange(self.main_layout, self._list_width(width), height, is_above=is_above)
        if self._list_panel.isHidden():
            return 0, 0
        return (0, height + SPACE_L) if is_above else (self._list_width(width) + SPACE_L, 0)

    def _max_bar_height(self) -> int:
        rest = MIN_CONTENT_HEIGHT + 2 * SPACE_L + SPACE_M + self._list_height
        return max(self.available_rect().height() - rest, MIN_CONTENT_HEIGHT)

    def available_rect(self) -> QRect:
        """Return the area of its window's screen that the dialog may cover, without its title bar and frame."""
        dialog = self._dialog
        title = dialog.geometry().top() - dialog.frameGeometry().top()
        title = max(title, dialog.style().pixelMetric(QStyle.PixelMetric.PM_TitleBarHeight))
        edge = max(dialog.frameGeometry().bottom() - dialog.geometry().bottom(), 0)
        return (dialog.parentWidget() or dialog).screen().availableGeometry().adjusted(0, title, 0, -edge)

    def _preferred_width(self) -> int:
        usual = self._themes.scaled(WIDTH)
        if not self._list_panel.isHidden():
            usual += self._list_width(usual) + SPACE_L
        window = self._dialog.parentWidget()
        maximum = usual if window is None else max(window.width(), MIN_WIDTH)
        return min(usual, maximum, self.available_rect().width())

    def _list_width(self, dialog_width: int) -> int:
        return max(MIN_LIST_WIDTH, min(self._themes.scaled(LIST_WIDTH), dialog_width // 4))

    def _move_onto_screen(self, *, is_wider: bool) -> None:
        """Keep the dialog inside its window and the screen; one that became wider is centred on its window."""
        area, room, window = self._dialog.geometry(), self.available_rect(), self._dialog.parentWidget()
        if window is not None and is_wider:
            area.moveLeft(window.geometry().center().x() - area.width() // 2)
        for bounds in (room if window is None else window.geometry(), room):
            area.moveRight(min(area.right(), bounds.right()))
            area.moveBottom(min(area.bottom(), bounds.bottom()))
            area.moveLeft(max(area.left(), bounds.left()))
            area.moveTop(max(area.top(), bounds.top()))
        if area != self._dialog.geometry():
            self._dialog.setGeometry(area)
