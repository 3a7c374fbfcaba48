"""The size of the approval dialog: what its parts need, over its window, and never beyond the screen."""

from PySide6.QtCore import QObject, QRect, Qt, QTimer
from PySide6.QtWidgets import QBoxLayout, QDialog, QHBoxLayout, QSizePolicy, QStyle, QWidget

from ui.approval.parts.middle import ShrinkingScrollArea
from ui.look.parts.scrolled_column import ScrollColumn
from ui.look.theme import SPACE_L, SPACE_M, ThemeSource

_MAX_WIDGET_SIZE = 16_777_215
"""QWIDGETSIZE_MAX."""

WIDTH, MIN_WIDTH = 864, 480
LIST_WIDTH, MIN_LIST_WIDTH = 220, 120
MIN_CONTENT_HEIGHT = 60
"""Pixels that the buttons leave to what they are about; where they do not fit under that, they scroll."""
NARROW_WIDTH = 440
"""Pixels at 100 % zoom: in a dialog that is less wide the calls stand above the one on the screen."""


class DialogSizer(QObject):
    """Lets a dialog grow with its `middle`. It never becomes lower by itself: the buttons would jump."""

    def __init__(
        self, themes: ThemeSource, dialog: QDialog, beside: QWidget, middle: ShrinkingScrollArea, bar: QWidget
    ) -> None:
        super().__init__(dialog)
        self.foot = ScrollColumn(0, most=self._max_bar_height)
        middle.setMinimumHeight(MIN_CONTENT_HEIGHT)
        # What it is about gives way first.
        self.foot.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.foot.column.addWidget(bar)
        self._list_height = 0
        self.main_layout = QHBoxLayout()
        """The calls, and beside them or under them the one on the screen."""
        self._themes, self._dialog = themes, dialog
        self._list_panel, self._scroll_area, self._bar = beside, middle, bar
        self.soon = QTimer(self, singleShot=True, interval=0)
        self.soon.timeout.connect(self.grow)
        middle.needs_changed.connect(self.soon.start)

    def set_initial_width(self) -> None:
        """Before it is shown: its width, so that the height can be told."""
        self._dialog.ensurePolished()
        self._dialog.resize(self._preferred_width(), 1)

    def fit_height(self) -> None:
        """As high as all parts need, or as the screen is."""
        room = self.available_rect()
        width = max(min(self._dialog.width(), room.width()), self._preferred_width())
        beside, above = self._arrange_list(width)
        self._list_height = above
        inside = width - 2 * SPACE_L - beside
        # A bar would take width from the buttons, for which they would want more height, and so would stay.
        scrolls = self._bar.heightForWidth(inside) > self._max_bar_height()
        policy = Qt.ScrollBarPolicy.ScrollBarAsNeeded if scrolls else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        self.foot.setVerticalScrollBarPolicy(policy)
        around = self._bar.heightForWidth(inside) + SPACE_M + 2 * SPACE_L + above
        wanted = max(self._scroll_area.preferred_height(inside) + around, self._dialog.height())
        self._dialog.resize(width, min(wanted, room.height()))

    def grow(self) -> None:
        """Fit, and stay where it can be seen."""
        if not self._dialog.isVisible():
            return
        before = self._dialog.size()
        self.fit_height()
        # Where it stands is not known at once after it was shown: only what grew is moved.
        if self._dialog.size() != before:
            self._move_onto_screen(is_wider=self._dialog.width() > before.width())
        self._scroll_area.reveal_pending()

    def _arrange_list(self, width: int) -> tuple[int, int]:
        """Put the calls beside or above; return how many pixels they take there from the width and the height."""
        is_above = width < NARROW_WIDTH * self._themes.zoom // 100
        across, down = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
        self.main_layout.setDirection(down if is_above else across)
        height = 5 * self._list_panel.fontMetrics().height()
        self._list_panel.setMaximumHeight(height if is_above else _MAX_WIDGET_SIZE)
        self._list_panel.setMinimumWidth(0 if is_above else self._list_width(width))
        self._list_panel.setMaximumWidth(_MAX_WIDGET_SIZE if is_above else self._list_width(width))
        if self._list_panel.isHidden():
            return 0, 0
        return (0, height + SPACE_L) if is_above else (self._list_width(width) + SPACE_L, 0)

    def _max_bar_height(self) -> int:
        return max(
            self.available_rect().height() - MIN_CONTENT_HEIGHT - 2 * SPACE_L - SPACE_M - self._list_height,
            MIN_CONTENT_HEIGHT,
        )

    def available_rect(self) -> QRect:
        """What the dialog may cover of its window's screen, without its own title bar and edge."""
        dialog = self._dialog
        title = dialog.geometry().top() - dialog.frameGeometry().top()
        title = max(title, dialog.style().pixelMetric(QStyle.PixelMetric.PM_TitleBarHeight))
        edge = max(dialog.frameGeometry().bottom() - dialog.geometry().bottom(), 0)
        return (dialog.parentWidget() or dialog).screen().availableGeometry().adjusted(0, title, 0, -edge)

    def _preferred_width(self) -> int:
        """No wider than the window, as long as that has some width."""
        usual = WIDTH * self._themes.zoom // 100
        if not self._list_panel.isHidden():
            usual += self._list_width(usual) + SPACE_L
        window = self._dialog.parentWidget()
        most = usual if window is None else max(window.width(), MIN_WIDTH)
        return min(usual, most, self.available_rect().width())

    def _list_width(self, dialog_width: int) -> int:
        return max(MIN_LIST_WIDTH, min(LIST_WIDTH * self._themes.zoom // 100, dialog_width // 4))

    def _move_onto_screen(self, *, is_wider: bool) -> None:
        """What grew goes back over its window, if that is large enough, and in any case onto the screen."""
        area, room, window = self._dialog.geometry(), self.available_rect(), self._dialog.parentWidget()
        if window is not None and is_wider:
            area.moveLeft(window.geometry().center().x() - area.width() // 2)
        for around in (room if window is None else window.geometry(), room):
            area.moveRight(min(area.right(), around.right()))
            area.moveBottom(min(area.bottom(), around.bottom()))
            area.moveLeft(max(area.left(), around.left()))
            area.moveTop(max(area.top(), around.top()))
        if area != self._dialog.geometry():
            self._dialog.setGeometry(area)
