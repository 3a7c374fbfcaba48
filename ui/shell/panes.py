"""The list of conversations beside the page that is open, with banners above; where it is narrow, one of the two."""

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSplitter, QStackedWidget, QVBoxLayout, QWidget

from ui.look.theme import SPACE_S, ThemeSource
from ui.shell.banners import BannerArea
from ui.shell.page_frame import PageFrame
from ui.sidebar.conversation_list import ConversationList

SIDEBAR_WIDTH = 260
PAGE_WIDTH = 320
"""Pixels at 100 % zoom: less of a page is no use."""
WINDOW_WIDTH = 1180


class WindowLayout(QWidget):
    """The sidebar, and the pages with the banners above whichever of them is shown.

    A button brings the list back wherever it is out of sight.
    """

    def __init__(self, themes: ThemeSource, sidebar: ConversationList, frame: PageFrame, banners: BannerArea) -> None:
        super().__init__()
        self._themes = themes
        self._sidebar = sidebar
        self._frame = frame
        self._banners = banners
        self.pages = QStackedWidget()
        self._page_side = QWidget()
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._list_buttons: list[QWidget] = []
        self._is_narrow = False
        self._shows_list = True
        self._build()
        themes.changed.connect(self._fit)

    def show_page(self, page: QWidget) -> None:
        """Turn to this page; a list that takes its room goes."""
        self.pages.setCurrentWidget(page)
        if self._is_narrow:
            self._shows_list = False
        self._update_visibility()

    def toggle_list(self) -> None:
        """Show the list of conversations, or hide it."""
        self._shows_list = not self._shows_list
        self._update_visibility()
        if self._shows_list:
            self._sidebar.focus_list()
        elif (page := self.pages.currentWidget()) is not None:
            page.setFocus(Qt.FocusReason.OtherFocusReason)

    def show_list(self) -> None:
        """Show the list of conversations: something in it is wanted."""
        self._shows_list = True
        self._update_visibility()

    def save_splitter(self) -> QByteArray:
        """Return where the edge between the two is."""
        return self._splitter.saveState()

    def restore_splitter(self, place: QByteArray) -> None:
        """Put the edge between the two where it was."""
        self._splitter.restoreState(place)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width may have room for both, or for one of them."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        least = self._sidebar.minimumSizeHint().width() + PAGE_WIDTH * self._themes.zoom // 100
        is_narrow = self.width() < least
        if is_narrow != self._is_narrow:
            self._is_narrow = is_narrow
            self._shows_list = not is_narrow
            self._place_banners()
            self._update_visibility()

    def _update_visibility(self) -> None:
        self._sidebar.setVisible(self._shows_list)
        self._page_side.setVisible(not (self._is_narrow and self._shows_list))
        is_wanted = self._is_narrow or not self._shows_list
        if is_wanted and not self._list_buttons:
            self._add_list_buttons()
        in_bar, in_heading = self._list_buttons or (None, None)
        if in_bar is not None and in_heading is not None:
            has_heading = self.pages.currentWidget() is self._frame and not self._page_side.isHidden()
            in_heading.setVisible(is_wanted and has_heading)
            in_bar.setVisible(is_wanted and not has_heading)

    def _add_list_buttons(self) -> None:
        """In the heading of a conversation; over what has none, in a row of its own."""
        bar = QWidget()
        row = QHBoxLayout(bar)
        row.setContentsMargins(SPACE_S, SPACE_S, SPACE_S, 0)
        row.addWidget(self._create_list_button())
        row.addStretch(1)
        self._column.insertWidget(0, bar)
        bar.lower()
        in_heading = self._create_list_button()
        self._frame.add_before_title(in_heading)
        in_heading.stackUnder(self._frame.title)
        QWidget.setTabOrder(in_heading, self._frame.title)
        self._list_buttons = [bar, in_heading]

    def _create_list_button(self) -> QWidget:
        # Late: most windows are wide.
        from ui.look.controls import IconButton

        made = IconButton(self._themes, "sidebar", self.tr("Show or hide the conversations"))
        made.clicked.connect(self.toggle_list)
        return made

    def _build(self) -> None:
        self._splitter.addWidget(self._sidebar)
        self._splitter.addWidget(self._page_side)
        self.pages.addWidget(self._frame)
        self._page_column = QVBoxLayout(self._page_side)
        self._page_column.setContentsMargins(0, 0, 0, 0)
        self._page_column.setSpacing(0)
        self._page_column.addWidget(self.pages, 1)
        # In little room the list of conversations gets narrower first.
        self._page_side.setMinimumWidth(PAGE_WIDTH)
        self._splitter.setStretchFactor(1, 1)
        self._splitter.setSizes([SIDEBAR_WIDTH, WINDOW_WIDTH - SIDEBAR_WIDTH])
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setHandleWidth(1)
        self._splitter.handle(1).setAccessibleName(self.tr("Width of the sidebar"))
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addWidget(self._splitter, 1)
        self._place_banners()

    def _place_banners(self) -> None:
        """Beside the list; where that takes turns with the page, above both: the list too deletes and offers undo."""
        if self._is_narrow:
            self._column.insertWidget(self._column.indexOf(self._splitter), self._banners)
            self._banners.stackUnder(self._splitter)
        else:
            self._page_column.insertWidget(0, self._banners)
            self._banners.lower()
