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
from ui.approval.asking.asked_page import AskedPage
from ui.approval.asking.page_view import PageView
from ui.approval.parts.dialog_room import NARROW
from ui.approval.parts.key_guard import SETTLE_MS, GuardedDialog, is_written_in
from ui.bridge.mcp.asking import Asked, AskedElicitation
from ui.look.controls import announce, button, label
from ui.look.rows import RowDelegate, RowRole
from ui.look.sentences import spoken
from ui.look.theme import SPACE_L, SPACE_S, ThemeSource

_log = logging.getLogger(__name__)

WIDTH, HEIGHT, SMALL_HEIGHT = 620, 600, 440
LIST_WIDTH = 200
"""Pixels at 100 % zoom."""
TITLE_BAR = 40


class AskingDialog(GuardedDialog):
    """Window-modal, shown with `open()`. Closing it answers the question on the screen with nothing, and no other."""

    answered = Signal(str, object)
    """A question's id, and an ElicitationAnswer, or yes or no."""
    page_wanted = Signal(str)
    """An address that the person wants opened."""
    stop_requested = Signal()

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None, settle_ms: int = SETTLE_MS) -> None:
        super().__init__(parent)
        self._themes = themes
        self._settle_ms = settle_ms
        self._pages: dict[str, AskedPage] = {}
        self._count = label(kind="muted", wrap=True)
        self._list = QListWidget()
        self._line = QHBoxLayout(self)
        self._beside = QWidget()
        self._stack = QStackedWidget()
        self._stop = button(self.tr("Stop the agent"), self.stop_requested.emit, "link")
        self._build()
        self._list.currentItemChanged.connect(self._turn_to)

    @property
    def current(self) -> AskedPage | None:
        """The question on the screen."""
        page = self._stack.currentWidget()
        return page if isinstance(page, AskedPage) else None

    @property
    def bar(self) -> AnswerBar | None:
        """Yes and no."""
        return self.current.bar if self.current is not None else None

    @property
    def first(self) -> QWidget:
        """The server's words, or the form once something can be typed in it."""
        return self.current.first if self.current is not None else self

    def set_asked(self, waiting: Sequence[Asked]) -> None:
        """These wait now, oldest first. With none left the dialog closes. What cannot be shown is declined."""
        before, was_writing = self.current, self.isVisible() and is_written_in(self.focusWidget())
        for gone in set(self._pages) - {each.id for each in waiting}:
            self._take_away(self._pages.pop(gone))
        unshown = [each for each in waiting if each.id not in self._pages and not self._add(each)]
        self._show_asked([each for each in waiting if each not in unshown], before, was_writing=was_writing)
        for each in unshown:
            self.answered.emit(each.id, ElicitationAnswer("decline") if isinstance(each, AskedElicitation) else False)

    def _show_asked(self, waiting: Sequence[Asked], before: AskedPage | None, *, was_writing: bool) -> None:
        if not waiting:
            if self.isVisible():
                self.accept()
            return
        still = before is not None and before.asked.id in self._pages
        self._show(self._pages[before.asked.id if before is not None and still else waiting[0].id])
        if not still and self.isVisible() and self.current is not None:
            self.current.bar.settle()
            self.give_keys(was_writing=was_writing)
            announce(self, self.current.title)
        self._fill(waiting)

    def set_can_stop(self, can_stop: bool) -> None:  # noqa: FBT001  # a setter, like Qt's own
        """Whether there is work to be stopped."""
        self._stop.setVisible(can_stop)

    def setVisible(self, visible: bool) -> None:  # noqa: FBT001  # Qt's signature
        """Sized before Qt puts it over the middle of the window; a question that appears rests."""
        appears = visible and not self.isVisible()
        if appears:
            self._resize(WIDTH + (LIST_WIDTH if len(self._pages) > 1 else 0))
        super().setVisible(visible)
        if appears and self.current is not None:
            self.current.bar.settle()
            self.give_keys()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width, another place for the list."""
        super().resizeEvent(event)
        self._arrange_list(self.width())

    def _arrange_list(self, width: int) -> None:
        """Where there is hardly room beside what is asked, it stands above that."""
        zoom = self._themes.zoom
        is_above = width < NARROW * zoom // 100
        self._line.setDirection(QHBoxLayout.Direction.TopToBottom if is_above else QHBoxLayout.Direction.LeftToRight)
        self._beside.setMinimumWidth(0 if is_above else LIST_WIDTH * zoom // 100)
        self._beside.setMaximumWidth(self.maximumWidth() if is_above else LIST_WIDTH * zoom // 100)
        self._beside.setMaximumHeight(4 * self.fontMetrics().height() if is_above else self.maximumHeight())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape answers as other keys do: not while it may have been meant for something else."""
        is_early = self.is_guarding or (self.bar is not None and self.bar.is_resting)
        if event.key() == Qt.Key.Key_Escape and is_early:
            event.accept()
        else:
            super().keyPressEvent(event)

    def reject(self) -> None:
        """Escape and the window's own button: no answer to this question; the others go on waiting."""
        if self.current is not None:
            self.current.leave()

    def _resize(self, width: int) -> None:
        is_small = all(page.is_small for page in self._pages.values())
        wanted = QSize(width, SMALL_HEIGHT if is_small else HEIGHT) * (self._themes.zoom / 100)
        window, screen = self.parentWidget(), self.screen().availableGeometry()
        size = wanted.boundedTo(QSize((window or screen).width(), screen.height() - TITLE_BAR))
        # Before Qt asks how narrow it can be.
        self._arrange_list(size.width())
        self.resize(size)

    def show_unopened(self, sentence: Sentence) -> None:
        """The page that was wanted last could not be opened."""
        page = self._stack.currentWidget()
        if isinstance(page, AskedPage) and isinstance(page.view, PageView):
            page.view.show_unopened(spoken(sentence))

    def _add(self, asked: Asked) -> bool:
        """Whether it can be shown: what a server sends must not keep others from being asked."""
        try:
            self._pages[asked.id] = self._made(asked)
        except Exception as error:  # noqa: BLE001 - nobody knows all that can be wrong with what a server sends
            name = type(error).__name__
            _log.warning("a question of the MCP server “%s” cannot be shown (%s): declined", asked.request.server, name)
            return False
        return True

    def _made(self, asked: Asked) -> AskedPage:
        page = AskedPage(self._themes, asked, self._settle_ms)
        # Who answers has done with what they were writing there.
        page.answered.connect(page.setFocus)
        page.answered.connect(partial(self.answered.emit, asked.id))
        page.page_wanted.connect(self.page_wanted)
        self._stack.addWidget(page)
        self.setTabOrder(page.bar.last, self._stop)
        return page

    def _take_away(self, page: AskedPage) -> None:
        self._stack.removeWidget(page)
        page.hide()
        page.deleteLater()

    def _show(self, page: AskedPage) -> None:
        self._stack.setCurrentWidget(page)
        self.setWindowTitle(page.title)
        self.setAccessibleDescription(page.title)

    def _turn_to(self, item: QListWidgetItem | None) -> None:
        page = self._pages.get(str(item.data(Qt.ItemDataRole.UserRole))) if item is not None else None
        if page is not None and page is not self.current:
            self._show(page)
            page.bar.settle()

    def _fill(self, waiting: Sequence[Asked]) -> None:
        blocker = QSignalBlocker(self._list)
        self._list.clear()
        for each in waiting:
            page = self._pages[each.id]
            item = QListWidgetItem(page.server, self._list)
            item.setData(Qt.ItemDataRole.UserRole, each.id)
            item.setData(RowRole.UNDER, page.short)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, page.title)
            if page is self.current:
                self._list.setCurrentItem(item)
        blocker.unblock()
        self._count.setText(self.tr("{0} questions are waiting").format(len(waiting)))
        if len(waiting) > 1 and self._beside.isHidden() and self.isVisible():
            self._resize(WIDTH + LIST_WIDTH)
        self._beside.setVisible(len(waiting) > 1)

    def _build(self) -> None:
        self.setAccessibleName(self.tr("An MCP server asks"))
        self.setWindowTitle(self.tr("An MCP server asks"))
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self._list.setAccessibleName(self.tr("Waiting questions"))
        self._list.setItemDelegate(RowDelegate(self._themes, self._list))
        self._list.setMouseTracking(True)
        beside = QVBoxLayout(self._beside)
        beside.setContentsMargins(0, 0, 0, 0)
        beside.setSpacing(SPACE_S)
        beside.addWidget(self._count)
        beside.addWidget(self._list, 1)
        self._beside.hide()
        self._stop.hide()
        detail = QVBoxLayout()
        detail.setSpacing(SPACE_S)
        detail.addWidget(self._stack, 1)
        detail.addWidget(self._stop, 0, Qt.AlignmentFlag.AlignLeft)
        self._line.setContentsMargins(SPACE_L, SPACE_L, SPACE_L, SPACE_L)
        self._line.setSpacing(SPACE_L)
        self._line.addWidget(self._beside)
        self._line.addLayout(detail, 1)
