"""The layout of the window: the sidebar beside the page, and the frame of the conversation's page."""

from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPoint, QTimer, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QApplication, QLabel, QScrollArea, QSplitter, QStackedWidget, QWidget

from ui.composer.composer import Composer
from ui.shell.banners import BannerArea
from ui.sidebar.conversation_list import ConversationList
from ui.style.boxes import hbox, vbox
from ui.style.controls import ElidedLabel, label, set_by_name
from ui.style.layouts import ScrollColumn
from ui.style.text import one_line, writes_text
from ui.style.theme import SPACE_L, SPACE_M, SPACE_S, ThemeSource

if TYPE_CHECKING:
    from desktop_agent.conversation.picture_preparation import ImportedPicture
    from ui.composer.attachment_chips import Attachment
    from ui.shell.context_usage import UsageMeter


# A shorter title says nothing; the meter beside it shrinks first.
TITLE_WIDTH = 110
MIN_READING_HEIGHT = 120
"""Pixels."""
_MAX_PROGRAM = 60
"""Characters of the name of a program, which may come from a file."""


class PageFrame(QWidget):
    """The heading, the area for the transcript, and the composer. ConversationPage fills it.

    It holds messages that are sent before that.
    """

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self._early: list[tuple[str, list[Attachment]]] = []
        self.title = _Title()
        self.composer = Composer(themes, _import_picture, opens_focused=True)
        self._notice: QWidget | None = None
        self._usage_meter: UsageMeter | None = None
        self._origin: QLabel | None = None
        self._heading_buttons: list[QWidget] = []
        self._above_composer: tuple[QWidget, ...] = ()
        self._layout_timer = QTimer(self, singleShot=True, interval=0)
        self._heading = hbox(self.title, spacing=SPACE_M, margins=(SPACE_L, SPACE_M, SPACE_L, SPACE_S), grow=self.title)
        self._composer_scroll = ScrollColumn(0, trailing=SPACE_S, most=self._max_composer_height)
        self._composer_column = self._composer_scroll.column
        self._placeholder = QScrollArea()
        self._column = vbox(self._heading, self._placeholder, parent=self, spacing=0, margins=0, grow=self._placeholder)
        self._build()
        themes.changed.connect(self._fit)
        self.composer.send_requested.connect(self._hold_early_message)

    def set_content(self, meter: "UsageMeter", find_bar: QWidget, transcript: QWidget, *above: QWidget) -> None:
        """Add the meter in the heading, the find bar, the transcript, and the controls over the composer."""
        # Late: the first paint comes before.
        from ui.composer.file_drops import FileDrops

        FileDrops(self, self.composer)
        self._heading.addWidget(meter)
        self._usage_meter = meter
        self._fit_heading()
        index = self._column.indexOf(self._placeholder)
        self._column.removeWidget(self._placeholder)
        self._placeholder.deleteLater()
        self._column.insertWidget(index, find_bar)
        self._column.insertWidget(index + 1, transcript, 1)
        self._above_composer = above
        for index, widget in enumerate(above):
            self._composer_column.insertWidget(index, widget)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._show_focused)
        _set_tab_order([self.title, meter, find_bar, transcript, *above, self.composer])

    def event(self, event: QEvent) -> bool:
        """Fit the heading after a change of layout, and the composer after one of the style."""
        if event.type() in {QEvent.Type.LayoutRequest, QEvent.Type.Resize}:
            self._fit_heading()
        elif event.type() == QEvent.Type.StyleChange:
            self._fit_to_scroll_bar()
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Pass text that the focused widget does not handle to the composer, while its editor is visible."""
        editor = self.composer.editor
        if writes_text(event) and editor.isVisible() and not editor.hasFocus():
            editor.setFocus()
            QCoreApplication.sendEvent(editor, event)
        else:
            super().keyPressEvent(event)

    def add_before_title(self, button: QWidget) -> None:
        """Put a button before the title."""
        self._heading.insertWidget(0, button)
        self._heading_buttons.append(button)

    def add_below_heading(self, bar: QWidget) -> None:
        """Put a bar between the heading and the transcript."""
        self._column.insertLayout(1, hbox(bar, margins=(SPACE_L, 0, SPACE_L, SPACE_S), grow=bar))

    def show_heading(self, title: str, program: str) -> None:
        """Show the title, and below it from which program the conversation came; nothing for ""."""
        self.title.show_text(title)
        if self._origin is None:
            if not program:
                return
            self._origin = label(kind="small", wrap=True)
            self.add_below_heading(self._origin)
        self._origin.setText(self.tr("From {0}").format(one_line(program, _MAX_PROGRAM)))
        self._origin.setVisible(bool(program))

    def take_back_composer(self) -> None:
        """Put the composer below the transcript again, after an earlier message was edited in place."""
        self._composer_column.insertWidget(len(self._above_composer), self.composer)
        # At once: a hidden widget takes no focus.
        self.composer.show()

    def add_in_place_of_composer(self, bar: QWidget) -> None:
        """Add a bar that is shown instead of the composer when nothing can be written."""
        bar.hide()
        self._composer_column.addWidget(bar)

    def take_early_messages(self) -> list[tuple[str, "list[Attachment]"]]:
        """Return the messages sent so far. Later ones go to the caller's slot."""
        self.composer.send_requested.disconnect(self._hold_early_message)
        early, self._early = self._early, []
        return early

    def return_messages(self) -> None:
        """Return early messages to the composer, now and from now on: the start failed, so nothing will send them."""
        for text, attached in self.take_early_messages():
            self.composer.restore_message(text, attached)
        self.composer.send_requested.connect(self.composer.restore_message)

    def hold_messages_again(self) -> None:
        """Take early messages again: the start is tried once more."""
        self.composer.send_requested.disconnect(self.composer.restore_message)
        self.composer.send_requested.connect(self._hold_early_message)

    @property
    def has_unsaved_text(self) -> bool:
        """Whether there is text, an attachment or an early message that is saved nowhere else."""
        composer = self.composer
        return bool(self._early or composer.draft()[0] or composer.attachments.chips)

    def _hold_early_message(self, text: str, attached: "list[Attachment]") -> None:
        self._early.append((text, attached))

    def _build(self) -> None:
        self.title.setProperty("kind", "strong")
        set_by_name(self._placeholder, focusPolicy="NoFocus")
        self._composer_column.addWidget(self.composer)
        self._composer_scroll.verticalScrollBar().rangeChanged.connect(self._show_composer)
        self._layout_timer.timeout.connect(self._show_composer)
        self.composer.notice_shown.connect(self._show_notice)
        self.composer.editor.textChanged.connect(self._clear_notice)
        self._centred = hbox(start_stretch=True, end_stretch=True)
        self._centred.insertWidget(1, self._composer_scroll, 1000)
        self._column.addLayout(self._centred)
        self._fit_to_scroll_bar()
        self._fit()

    def _fit_to_scroll_bar(self) -> None:
        """Put the composer right below the transcript's text, which has a scroll bar beside it."""
        bar = self._composer_scroll.verticalScrollBar().sizeHint().width()
        self._centred.setContentsMargins(SPACE_L, 0, SPACE_L + bar, SPACE_L)

    def _fit(self) -> None:
        """Make the composer as wide as the transcript's text. Larger text needs a wider title."""
        self._fit_heading()
        self._composer_scroll.setMaximumWidth(self._themes.reading_width + 2 * SPACE_L)

    def _fit_heading(self) -> None:
        """Give the title its least width and the meter the rest; the title grows into what the meter does not use."""
        edges, gap = self._heading.contentsMargins(), self._heading.spacing()
        widgets = (widget for widget in self._heading_buttons if not widget.isHidden())
        room = self.width() - edges.left() - edges.right() - sum(widget.sizeHint().width() + gap for widget in widgets)
        meter, title_width = self._usage_meter, self._themes.scaled(TITLE_WIDTH)
        if meter is None:
            self.title.setMinimumWidth(title_width)
            return
        # A window can be too narrow for both where everything is large.
        title_width = max(0, min(title_width, room - gap - meter.minimumSizeHint().width()))
        self.title.setMinimumWidth(title_width)
        meter.set_room(room - gap - title_width)

    def _max_composer_height(self) -> int:
        """Return the pixels that leave room for the transcript; in a low window the composer scrolls."""
        return max(self.height() - self._heading.sizeHint().height() - MIN_READING_HEIGHT, MIN_READING_HEIGHT)

    def _show_composer(self) -> None:
        """Scroll to the editor at the end; or to the beginning of the newest notice, until the text changes."""
        bar, notice = self._composer_scroll.verticalScrollBar(), self._notice
        if notice is None or not notice.isVisible() or not self._composer_scroll.isAncestorOf(notice):
            bar.setValue(bar.maximum())
        else:
            bar.setValue(bar.value() + notice.mapTo(self._composer_scroll.viewport(), QPoint(0, 0)).y())

    def _show_notice(self, notice: QWidget) -> None:
        self._notice = notice
        # The notice is placed with the next layout.
        self._layout_timer.start()

    def _clear_notice(self) -> None:
        if self._notice is not None:
            self._notice = None
            self._show_composer()

    def _show_focused(self, _previous: QWidget | None, current: QWidget | None) -> None:
        if current is not None:
            # Before any widget had the focus, the frame was painted as if the editor had it.
            self.composer.frame.mark_focus(focused=current is self.composer.editor)
        if current is not None and self._composer_scroll.isAncestorOf(current):
            self._composer_scroll.ensureWidgetVisible(current, 0, SPACE_S)


class _Title(ElidedLabel):
    double_clicked = Signal()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        super().mouseDoubleClickEvent(event)
        self.double_clicked.emit()


async def _import_picture(data: bytes, name: str) -> "ImportedPicture":
    # Late: nothing is attached before the first paint.
    from desktop_agent.conversation.picture_preparation import import_picture_async

    return await import_picture_async(data, name)


def _set_tab_order(parts: list[QWidget]) -> None:
    """Order by position, not by time of creation, for the Tab key and assistive technology."""
    for part in parts:
        part.raise_()
    # Tab reaches a proxy at its widget's place in the chain, but Qt moves only widgets that take the focus themselves.
    proxies = [(part, proxy, proxy.focusPolicy()) for part in parts if (proxy := part.focusProxy()) is not None]
    for part, _, policy in proxies:
        part.setFocusPolicy(policy)
    widgets = (widget for part in parts for widget in (part, *part.findChildren(QWidget)))
    for previous, following in pairwise(widget for widget in widgets if _takes_focus(widget, parts[0].window())):
        QWidget.setTabOrder(previous, following)
    for part, proxy, policy in proxies:
        # Qt passes the policy on to the proxy.
        set_by_name(part, focusPolicy="NoFocus")
        proxy.setFocusPolicy(policy)


def _takes_focus(widget: QWidget, window: QWidget) -> bool:
    from PySide6.QtCore import Qt

    # Popups are other windows.
    return widget.focusPolicy() != Qt.FocusPolicy.NoFocus and widget.window() is window


SIDEBAR_WIDTH = 296
PAGE_WIDTH = 440
"""The least width beside the sidebar, in pixels at 100 % zoom; with less, only one of the two is shown."""
WINDOW_WIDTH = 1180


KEY_STEP = 16
"""Pixels that an arrow key moves the edge of the sidebar."""
_FOCUSED_HANDLE = 3
"""Pixels; without the focus the handle is 1 pixel wide."""


class _Splitter(QSplitter):
    """Its handle takes the focus by Tab, and the arrow keys move it.

    An event filter on Qt's own handle does this: creating a handle needs an orientation, which loads all enumerations
    of `Qt`.
    """

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes

    def watch_handle(self) -> None:
        """Make the handle focusable. Call it when both sides are added."""
        handle = self.handle(1)
        set_by_name(handle, focusPolicy="TabFocus")
        handle.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind in {QEvent.Type.FocusIn, QEvent.Type.FocusOut}:
            self.setHandleWidth(_FOCUSED_HANDLE if kind == QEvent.Type.FocusIn else 1)
        elif isinstance(watched, QWidget) and watched.hasFocus():
            if kind == QEvent.Type.Paint:
                QPainter(watched).fillRect(watched.contentsRect(), QColor(self._themes.theme.accent))
                return True
            return isinstance(event, QKeyEvent) and kind == QEvent.Type.KeyPress and self._move(watched, event)
        return False

    def _move(self, handle: QWidget, event: QKeyEvent) -> bool:
        from PySide6.QtCore import Qt

        steps = {Qt.Key.Key_Left: -KEY_STEP, Qt.Key.Key_Right: KEY_STEP}
        if event.key() not in steps:
            return False
        # The handle is wider than the line that it draws.
        self.moveSplitter(handle.x() + handle.contentsMargins().left() + steps[Qt.Key(event.key())], 1)
        return True


class WindowLayout(QWidget):
    """The sidebar, and the pages with the banners above the current one.

    A button brings the sidebar back wherever it is hidden.
    """

    def __init__(self, themes: ThemeSource, sidebar: ConversationList, frame: PageFrame, banners: BannerArea) -> None:
        super().__init__()
        self._themes = themes
        self._sidebar = sidebar
        self._frame = frame
        self._banners = banners
        self.pages = QStackedWidget()
        self._page_side = QWidget()
        self.splitter = _Splitter(themes)
        self._list_buttons: list[QWidget] = []
        self._is_narrow = False
        self._shows_list = True
        self._build()
        themes.changed.connect(self._fit)

    def show_page(self, page: QWidget) -> None:
        """Show this page; hide the list if it takes the page's room."""
        self.pages.setCurrentWidget(page)
        if self._is_narrow:
            self._shows_list = False
        self._update_visibility()

    def toggle_list(self) -> None:
        """Show or hide the list of conversations."""
        self._shows_list = not self._shows_list
        self._update_visibility()
        if self._shows_list:
            self._sidebar.focus_list()
        elif (page := self.pages.currentWidget()) is not None:
            page.setFocus()

    def show_list(self) -> None:
        """Show the list of conversations."""
        self._shows_list = True
        self._update_visibility()

    @property
    def shows_list(self) -> bool:
        """Whether the list is shown when it has room."""
        return self._is_narrow or self._shows_list

    def hide_list(self) -> None:
        """Hide the list of conversations."""
        self._shows_list = False
        self._update_visibility()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        page_width = self._themes.scaled(PAGE_WIDTH)
        is_narrow = self.width() < self._sidebar.minimumSizeHint().width() + page_width
        # The page keeps its width beside the sidebar, so that the sidebar shrinks first.
        self._page_side.setMinimumWidth(0 if is_narrow else page_width)
        if is_narrow != self._is_narrow:
            self._is_narrow = is_narrow
            self._shows_list = not is_narrow
            self._place_banners()
            self._update_visibility()

    def _update_visibility(self) -> None:
        self._sidebar.setVisible(self._shows_list)
        self._page_side.setVisible(not (self._is_narrow and self._shows_list))
        needs_button = self._is_narrow or not self._shows_list
        if needs_button and not self._list_buttons:
            self._add_list_buttons()
        in_bar, in_heading = self._list_buttons or (None, None)
        if in_bar is not None and in_heading is not None:
            has_heading = self.pages.currentWidget() is self._frame and not self._page_side.isHidden()
            in_heading.setVisible(needs_button and has_heading)
            in_bar.setVisible(needs_button and not has_heading)

    def _add_list_buttons(self) -> None:
        """Put the button into the heading of the conversation page, and over other pages into a separate row."""
        bar = QWidget()
        hbox(self._create_list_button(), parent=bar, margins=(SPACE_S, SPACE_S, SPACE_S, 0), end_stretch=True)
        self._column.insertWidget(0, bar)
        bar.lower()
        in_heading = self._create_list_button()
        self._frame.add_before_title(in_heading)
        in_heading.stackUnder(self._frame.title)
        QWidget.setTabOrder(in_heading, self._frame.title)
        self._list_buttons = [bar, in_heading]

    def _create_list_button(self) -> QWidget:
        # Late: most windows are wide.
        from ui.style.controls import IconButton

        button = IconButton(self._themes, "sidebar", self.tr("Show or hide the conversations"))
        button.clicked.connect(self.toggle_list)
        return button

    def _build(self) -> None:
        self.splitter.addWidget(self._sidebar)
        self.splitter.addWidget(self._page_side)
        self.pages.addWidget(self._frame)
        self._page_column = vbox(self.pages, parent=self._page_side, spacing=0, margins=0, grow=self.pages)
        self.splitter.setStretchFactor(1, 1)
        self.splitter.setSizes([SIDEBAR_WIDTH, WINDOW_WIDTH - SIDEBAR_WIDTH])
        self.splitter.setChildrenCollapsible(False)
        self.splitter.setHandleWidth(1)
        self.splitter.watch_handle()
        self.splitter.handle(1).setAccessibleName(self.tr("Width of the sidebar"))
        self._sidebar.lower()
        self._column = vbox(self.splitter, parent=self, spacing=0, margins=0, grow=self.splitter)
        self._place_banners()

    def _place_banners(self) -> None:
        """Place the banners over the page, or above both if only one is shown: the list offers undo too."""
        if self._is_narrow:
            self._column.insertWidget(self._column.indexOf(self.splitter), self._banners)
            self._banners.stackUnder(self.splitter)
        else:
            self._page_column.insertWidget(0, self._banners)
            self._banners.lower()
