"""The dialog for what MCP servers ask of the person."""

import logging
from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QListWidget, QListWidgetItem, QStackedWidget, QVBoxLayout, QWidget

from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.mcp.asking import ElicitationAnswer
from ui.approval.asking.answer_bar import AnswerBar
from ui.approval.asking.asked_page import ServerRequestPage
from ui.approval.asking.page_view import UrlElicitationView
from ui.approval.parts.dialog_room import NARROW_WIDTH
from ui.approval.parts.key_guard import INPUT_DELAY_MS, GuardedDialog, is_typing_in
from ui.bridge.mcp.asking import McpRequest, PendingElicitation
from ui.look.controls import announce, button, label
from ui.look.rows import RowDelegate, RowRole
from ui.look.sentences import translate_sentence
from ui.look.theme import SPACE_L, SPACE_S, ThemeSource

_log = logging.getLogger(__name__)

DIALOG_WIDTH, DIALOG_HEIGHT, SMALL_DIALOG_HEIGHT = 620, 600, 440
LIST_WIDTH = 200
"""Pixels at 100 % zoom."""
TITLE_BAR_HEIGHT = 40


class ServerRequestDialog(GuardedDialog):
    """Window-modal, shown with `open()`. Closing it answers the question on the screen with nothing, and no other."""

    answered = Signal(str, object)
    """A question's id, and an ElicitationAnswer, or yes or no."""
    open_page_requested = Signal(str)
    """An address that the person wants opened."""
    stop_requested = Signal()

    def __init__(
        self, themes: ThemeSource, parent: QWidget | None = None, input_delay_ms: int = INPUT_DELAY_MS
    ) -> None:
        super().__init__(parent)
        self._themes = themes
        self._settle_ms = input_delay_ms
        self._pages: dict[str, ServerRequestPage] = {}
        self._count = label(kind="muted", wrap=True)
        self._list = QListWidget()
        self._main_layout = QHBoxLayout(self)
        self._list_panel = QWidget()
        self._stack = QStackedWidget()
        self._stop = button(self.tr("Stop the agent"), self.stop_requested.emit, "link")
        self._build_layout()
        self._list.currentItemChanged.connect(self._on_selected)

    @property
    def current(self) -> ServerRequestPage | None:
        """The question on the screen."""
        page = self._stack.currentWidget()
        return page if isinstance(page, ServerRequestPage) else None

    @property
    def bar(self) -> AnswerBar | None:
        """Yes and no."""
        return self.current.bar if self.current is not None else None

    @property
    def initial_focus(self) -> QWidget:
        """The server's words, or the form once something can be typed in it."""
        return self.current.initial_focus if self.current is not None else self

    def set_requests(self, waiting: Sequence[McpRequest]) -> None:
        """These wait now, oldest first. With none left the dialog closes. What cannot be shown is declined."""
        before, was_writing = self.current, self.isVisible() and is_typing_in(self.focusWidget())
        for gone in set(self._pages) - {each.id for each in waiting}:
            self._remove_page(self._pages.pop(gone))
        unshown = [each for each in waiting if each.id not in self._pages and not self._add_page(each)]
        self._show_requests([each for each in waiting if each not in unshown], before, was_writing=was_writing)
        for each in unshown:
            self.answered.emit(each.id, ElicitationAnswer("decline") if isinstance(each, PendingElicitation) else False)

    def _show_requests(
        self, waiting: Sequence[McpRequest], before: ServerRequestPage | None, *, was_writing: bool
    ) -> None:
        if not waiting:
            if self.isVisible():
                self.accept()
            return
        still = before is not None and before.asked.id in self._pages
        self._show_page(self._pages[before.asked.id if before is not None and still else waiting[0].id])
        if not still and self.isVisible() and self.current is not None:
            self.current.bar.start_input_delay()
            self.set_initial_focus(was_writing=was_writing)
            announce(self, self.current.title)
        self._rebuild_list(waiting)

    def set_can_stop(self, can_stop: bool) -> None:  # noqa: FBT001  # a setter, like Qt's own
        """Whether there is work to be stopped."""
        self._stop.setVisible(can_stop)

    def setVisible(self, visible: bool) -> None:  # noqa: FBT001  # Qt's signature
        """Sized before Qt puts it over the middle of the window; a question that appears rests."""
        appears = visible and not self.isVisible()
        if appears:
            self._resize_to(DIALOG_WIDTH + (LIST_WIDTH if len(self._pages) > 1 else 0))
        super().setVisible(visible)
        if appears and self.current is not None:
            self.current.bar.start_input_delay()
            self.set_initial_focus()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width, another place for the list."""
        super().resizeEvent(event)
        self._arrange_list(self.width())

    def _arrange_list(self, width: int) -> None:
        """Where there is hardly room beside what is asked, it stands above that."""
        zoom = self._themes.zoom
        is_above = width < NARROW_WIDTH * zoom // 100
        self._main_layout.setDirection(
            QHBoxLayout.Direction.TopToBottom if is_above else QHBoxLayout.Direction.LeftToRight
        )
        self._list_panel.setMinimumWidth(0 if is_above else LIST_WIDTH * zoom // 100)
        self._list_panel.setMaximumWidth(self.maximumWidth() if is_above else LIST_WIDTH * zoom // 100)
        self._list_panel.setMaximumHeight(4 * self.fontMetrics().height() if is_above else self.maximumHeight())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape answers as other keys do: not while it may have been meant for something else."""
        is_early = self.is_blocking_keys or (self.bar is not None and self.bar.is_input_delayed)
        if event.key() == Qt.Key.Key_Escape and is_early:
            event.accept()
        else:
            super().keyPressEvent(event)

    def reject(self) -> None:
        """Escape and the window's own button: no answer to this question; the others go on waiting."""
        if self.current is not None:
            self.current.dismiss()

    def _resize_to(self, width: int) -> None:
        is_small = all(page.is_small for page in self._pages.values())
        wanted = QSize(width, SMALL_DIALOG_HEIGHT if is_small else DIALOG_HEIGHT) * (self._themes.zoom / 100)
        window, screen = self.parentWidget(), self.screen().availableGeometry()
        size = wanted.boundedTo(QSize((window or screen).width(), screen.height() - TITLE_BAR_HEIGHT))
        # Before Qt asks how narrow it can be.
        self._arrange_list(size.width())
        self.resize(size)

    def show_open_error(self, sentence: Sentence) -> None:
        """The page that was wanted last could not be opened."""
        page = self._stack.currentWidget()
        if isinstance(page, ServerRequestPage) and isinstance(page.view, UrlElicitationView):
            page.view.show_open_error(translate_sentence(sentence))

    def _add_page(self, asked: McpRequest) -> bool:
        """Whether it can be shown: what a server sends must not keep others from being asked."""
        try:
            self._pages[asked.id] = self._create_page(asked)
        except Exception as error:  # noqa: BLE001 - nobody knows all that can be wrong with what a server sends
            name = type(error).__name__
            _log.warning("a question of the MCP server “%s” cannot be shown (%s): declined", asked.request.server, name)
            return False
        return True

    def _create_page(self, asked: McpRequest) -> ServerRequestPage:
        page = ServerRequestPage(self._themes, asked, self._settle_ms)
        # Who answers has done with what they were writing there.
        page.answered.connect(page.setFocus)
        page.answered.connect(partial(self.answered.emit, asked.id))
        page.open_page_requested.connect(self.open_page_requested)
        self._stack.addWidget(page)
        self.setTabOrder(page.bar.last_in_tab_order, self._stop)
        return page

    def _remove_page(self, page: ServerRequestPage) -> None:
        self._stack.removeWidget(page)
        page.hide()
        page.deleteLater()

    def _show_page(self, page: ServerRequestPage) -> None:
        self._stack.setCurrentWidget(page)
        self.setWindowTitle(page.title)
        self.setAccessibleDescription(page.title)

    def _on_selected(self, item: QListWidgetItem | None) -> None:
        page = self._pages.get(str(item.data(Qt.ItemDataRole.UserRole))) if item is not None else None
        if page is not None and page is not self.current:
            self._show_page(page)
            page.bar.start_input_delay()

    def _rebuild_list(self, waiting: Sequence[McpRequest]) -> None:
        blocker = QSignalBlocker(self._list)
        self._list.clear()
        for each in waiting:
            page = self._pages[each.id]
            item = QListWidgetItem(page.server, self._list)
            item.setData(Qt.ItemDataRole.UserRole, each.id)
            item.setData(RowRole.SUBTITLE, page.short_title)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, page.title)
            if page is self.current:
                self._list.setCurrentItem(item)
        blocker.unblock()
        self._count.setText(self.tr("{0} questions are waiting").format(len(waiting)))
        if len(waiting) > 1 and self._list_panel.isHidden() and self.isVisible():
            self._resize_to(DIALOG_WIDTH + LIST_WIDTH)
        self._list_panel.setVisible(len(waiting) > 1)

    def _build_layout(self) -> None:
        self.setAccessibleName(self.tr("An MCP server asks"))
        self.setWindowTitle(self.tr("An MCP server asks"))
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self._list.setAccessibleName(self.tr("Waiting questions"))
        self._list.setItemDelegate(RowDelegate(self._themes, self._list))
        self._list.setMouseTracking(True)
        beside = QVBoxLayout(self._list_panel)
        beside.setContentsMargins(0, 0, 0, 0)
        beside.setSpacing(SPACE_S)
        beside.addWidget(self._count)
        beside.addWidget(self._list, 1)
        self._list_panel.hide()
        self._stop.hide()
        detail = QVBoxLayout()
        detail.setSpacing(SPACE_S)
        detail.addWidget(self._stack, 1)
        detail.addWidget(self._stop, 0, Qt.AlignmentFlag.AlignLeft)
        self._main_layout.setContentsMargins(SPACE_L, SPACE_L, SPACE_L, SPACE_L)
        self._main_layout.setSpacing(SPACE_L)
        self._main_layout.addWidget(self._list_panel)
        self._main_layout.addLayout(detail, 1)
