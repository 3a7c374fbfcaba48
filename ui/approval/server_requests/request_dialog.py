"""The dialog for requests of MCP servers to the person: elicitation (form or URL mode) and sampling."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QStackedWidget, QWidget

from desktop_agent.types.errors import Sentence
from desktop_agent.types.mcp import ElicitationAnswer
from ui.approval.dialog_layout import NARROW_WIDTH
from ui.approval.guarded_dialog import INPUT_DELAY_MS, GuardedDialog, ShortcutBar, is_typing_in
from ui.approval.server_requests.form_view import ElicitationForm
from ui.approval.server_requests.request_texts import request_texts
from ui.approval.server_requests.request_views import RequestView, SamplingView, UrlElicitationView
from ui.approval.untrusted_text import quote_name
from ui.approval.waiting_list import WaitingList
from ui.bridge.mcp.requests import McpRequest, PendingElicitation, PendingSampling, RequestOrigin
from ui.style.boxes import hbox, vbox
from ui.style.controls import announce, button, label, show_words
from ui.style.entry_list import Entry
from ui.style.removal import remove_widget
from ui.style.text import translate_sentence
from ui.style.theme import SPACE_L, SPACE_M, SPACE_S, SPACE_XS, ThemeSource
from ui.style.widgets import TextWithButtons


class AnswerBar(ShortcutBar):
    """The buttons to accept and to decline. Each request has its own."""

    yes_pressed = Signal()
    no_pressed = Signal()

    def __init__(self, themes: ThemeSource, input_delay_ms: int, yes: tuple[str, str], no: tuple[str, str]) -> None:
        super().__init__(themes, input_delay_ms)
        self._can_accept = True
        self._hint: QLabel = label(kind="small", wrap=True)
        self._no = self._create_button(*no, "danger", self._emit_no)
        self._yes = self.last_in_tab_order = self._create_button(*yes, "primary", self._emit_yes)
        buttons = TextWithButtons(self._hint, (self._no, self._yes))
        vbox(self._typing_hint, buttons, parent=self, spacing=SPACE_S, margins=0)

    def set_can_accept(self, can: bool, hint: str = "") -> None:  # noqa: FBT001  # a setter, like Qt's own
        """Set whether the request can be accepted, and a hint about what is missing."""
        self._can_accept = can
        self._hint.setText(hint or self.tr("Esc closes without an answer."))
        self._refresh()

    def _emit_yes(self) -> None:
        if not self.is_input_delayed and self._can_accept:
            self.yes_pressed.emit()

    def _emit_no(self) -> None:
        if not self.is_input_delayed:
            self.no_pressed.emit()

    def _refresh(self) -> None:
        ready = not self.is_input_delayed
        self._yes.setEnabled(ready and self._can_accept)
        self._no.setEnabled(ready)


class ServerRequestPage(QWidget):
    """One request, which keeps its input while it waits. `answered` carries an ElicitationAnswer or a bool."""

    answered = Signal(object)
    open_page_requested = Signal(str)

    def __init__(self, themes: ThemeSource, request: McpRequest, input_delay_ms: int) -> None:
        super().__init__()
        self.asked = request
        self.view = _create_view(themes, request)
        self.server = quote_name(request.request.server)
        texts = request_texts(request)
        self.title, self.short_title = texts.title, texts.short_title
        self.origin = RequestOrigin()
        self._origin_label: QLabel = label(kind="strong", wrap=True)
        self._origin_label.hide()
        self.bar = AnswerBar(themes, input_delay_ms, texts.yes, texts.no)
        self._build_layout(texts.subtitle)
        self.bar.yes_pressed.connect(self._accept)
        self.bar.no_pressed.connect(self._decline)
        self.bar.input_delay_ended.connect(self._focus_form)
        self.view.changed.connect(self._refresh)
        if isinstance(self.view, UrlElicitationView):
            self.view.open_requested.connect(self._open_page)
        self._refresh()

    @property
    def description(self) -> str:
        """Who asks for what, and in which conversation if that is not in view."""
        place = self._origin_label.text()
        return self.tr("{0} · {1}").format(self.title, place) if place else self.title

    @property
    def waiting_item(self) -> Entry:
        """Its row in the list of waiting requests."""
        place = quote_name(self.origin.title)
        subtitle = self.tr("{0} · {1}").format(self.short_title, place) if place else self.short_title
        about = self.description
        return Entry(id=self.asked.id, title=self.server, subtitle=subtitle, spoken=about, tip=about)

    def set_origin(self, origin: RequestOrigin) -> None:
        """Show the conversation that the request belongs to."""
        self.origin = origin
        place = self.tr("In the conversation “{0}”.").format(quote_name(origin.title)) if origin.title else ""
        show_words(self._origin_label, place)

    @property
    def initial_focus(self) -> QWidget:
        """The message while input is delayed: text typed for another place must not go into a form."""
        if not self.bar.is_input_delayed:
            return self.view.initial_focus or self
        return self.view.message_box or self

    def dismiss(self) -> None:
        """Answer that the person did not decide."""
        if not self.bar.is_input_delayed:
            self._answer("cancel")

    def _accept(self) -> None:
        self._answer("accept")

    def _decline(self) -> None:
        self._answer("decline")

    def _answer(self, action: Literal["accept", "decline", "cancel"]) -> None:
        if isinstance(self.asked, PendingSampling):
            self.answered.emit(action == "accept")
        else:
            self.answered.emit(ElicitationAnswer(action, self.view.content if action == "accept" else None))

    def _open_page(self, address: str) -> None:
        if self.bar.is_input_delayed or not isinstance(self.view, UrlElicitationView):
            self.bar.extend_input_delay()
            return
        self.view.show_opened()
        self.open_page_requested.emit(address)

    def _refresh(self) -> None:
        self.bar.set_can_accept(self.view.can_accept, self.view.hint)

    def _focus_form(self) -> None:
        box = self.view.message_box
        if isinstance(self.view, ElicitationForm) and self.isVisible() and box is not None and box.hasFocus():
            (self.view.initial_focus or box).setFocus(Qt.FocusReason.TabFocusReason)

    def _build_layout(self, subtitle: str) -> None:
        titles = (label(self.title, "heading", wrap=True), self._origin_label, label(subtitle, "muted", wrap=True))
        layout = vbox(self.view, parent=self, spacing=SPACE_M, margins=0, grow=self.view)
        # Inside the view, so that the titles scroll if room is scarce; the window's title says the same.
        self.view.column.insertLayout(0, vbox(*titles, spacing=SPACE_XS))
        for title in reversed(titles):
            # Screen readers read in the order of creation.
            title.lower()
        if isinstance(self.view, UrlElicitationView):
            layout.addWidget(self.view.action_row)
        layout.addWidget(self.bar)


def _create_view(themes: ThemeSource, request: McpRequest) -> RequestView:
    if isinstance(request, PendingSampling):
        return SamplingView(request.request, request.answer)
    if request.request.url is None:
        return ElicitationForm(request.request)
    return UrlElicitationView(themes, request.request)


_log = logging.getLogger(__name__)

DIALOG_WIDTH, DIALOG_HEIGHT, SMALL_DIALOG_HEIGHT = 620, 600, 440
LIST_WIDTH = 200
"""Pixels at 100 % zoom."""
TITLE_BAR_HEIGHT = 40


class ServerRequestDialog(GuardedDialog):
    """Window-modal, shown with `open()`. Closing it dismisses only the shown request."""

    answered = Signal(str, object)
    """A request's id, and an ElicitationAnswer or a bool."""
    open_page_requested = Signal(str)
    """A URL to open."""
    stop_requested = Signal(str)
    """The id of a request whose run the person wants to stop."""

    def __init__(
        self, themes: ThemeSource, parent: QWidget | None = None, input_delay_ms: int = INPUT_DELAY_MS
    ) -> None:
        super().__init__(parent)
        self._themes = themes
        self._input_delay_ms = input_delay_ms
        self._pages: dict[str, ServerRequestPage] = {}
        self._list = WaitingList(themes, self.tr("Waiting questions"), self.tr("{0} questions are waiting"))
        self._main_layout = hbox(parent=self, spacing=SPACE_L, margins=SPACE_L)
        self._stack = QStackedWidget()
        self._stop = button(self.tr("Stop the agent"), self._emit_stop, "edge-link")
        self._build_layout()
        self._list.chosen.connect(self._on_selected)

    @property
    def current(self) -> ServerRequestPage | None:
        """The shown page."""
        page = self._stack.currentWidget()
        return page if isinstance(page, ServerRequestPage) else None

    @property
    def bar(self) -> AnswerBar | None:
        return self.current.bar if self.current is not None else None

    @property
    def initial_focus(self) -> QWidget:
        return self.current.initial_focus if self.current is not None else self

    def set_requests(self, waiting: Sequence[McpRequest]) -> None:
        """Show the requests that wait, oldest first; close without any. Decline those that cannot be shown."""
        old_page, was_writing = self.current, self.isVisible() and is_typing_in(self.focusWidget())
        for removed_id in set(self._pages) - {request.id for request in waiting}:
            remove_widget(self._stack, self._pages.pop(removed_id))
        unshown = [request for request in waiting if request.id not in self._pages and not self._add_page(request)]
        shown = [request for request in waiting if request not in unshown]
        self._show_requests(shown, old_page, was_writing=was_writing)
        for request in unshown:
            answer = ElicitationAnswer("decline") if isinstance(request, PendingElicitation) else False
            self.answered.emit(request.id, answer)

    def _show_requests(
        self, waiting: Sequence[McpRequest], old_page: ServerRequestPage | None, *, was_writing: bool
    ) -> None:
        if not waiting:
            if self.isVisible():
                self.accept()
            return
        old_id = old_page.asked.id if old_page is not None else ""
        still_waits = old_id in self._pages
        self._show_page(self._pages[old_id if still_waits else waiting[0].id])
        if not still_waits and self.isVisible() and self.current is not None:
            self.current.bar.start_input_delay()
            self.set_initial_focus(was_writing=was_writing)
            announce(self, self.current.title)
        self._rebuild_list(waiting)

    def show_request(self, request_id: str) -> None:
        """Show this request, if it waits."""
        if request_id in self._pages:
            self._on_selected(request_id)
            self._rebuild_list([page.asked for page in self._pages.values()])

    def set_origins(self, origins: Mapping[str, RequestOrigin]) -> None:
        """Set the conversation of each request, by the request's id."""
        pages = [page for request_id, page in self._pages.items() if request_id in origins]
        if all(page.origin == origins[page.asked.id] for page in pages):
            return
        for page in pages:
            page.set_origin(origins[page.asked.id])
        self._rebuild_list([page.asked for page in pages])
        if self.current is not None:
            self._show_page(self.current)

    def _emit_stop(self) -> None:
        if self.current is not None:
            self.stop_requested.emit(self.current.asked.id)

    def setVisible(self, visible: bool) -> None:  # noqa: FBT001  # Qt's signature
        """Set the size first: Qt centres the dialog over its window. Input is delayed when it appears."""
        appears = visible and not self.isVisible()
        if appears:
            self._resize_to(DIALOG_WIDTH + (LIST_WIDTH if len(self._pages) > 1 else 0))
        super().setVisible(visible)
        if appears and self.current is not None:
            self.current.bar.start_input_delay()
            self.set_initial_focus()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange_list(self.size())

    def _arrange_list(self, size: QSize) -> None:
        zoom = self._themes.zoom
        is_above = size.width() < NARROW_WIDTH * zoom // 100
        # With large text, little room is left for the request itself.
        height = min(4 * self.fontMetrics().height(), size.height() // 5)
        self._list.arrange(self._main_layout, LIST_WIDTH * zoom // 100, height, is_above=is_above)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape is ignored during the input delay, as other shortcuts are."""
        is_early = self.is_blocking_keys or (self.bar is not None and self.bar.is_input_delayed)
        if event.key() == Qt.Key.Key_Escape and is_early:
            event.accept()
        else:
            super().keyPressEvent(event)

    def reject(self) -> None:
        """Dismiss the shown request; the others still wait."""
        if self.current is not None:
            self.current.dismiss()

    def _resize_to(self, width: int) -> None:
        is_small = all(page.view.is_small for page in self._pages.values())
        preferred = QSize(width, SMALL_DIALOG_HEIGHT if is_small else DIALOG_HEIGHT) * (self._themes.zoom / 100)
        window, screen = self.parentWidget(), self.screen().availableGeometry()
        size = preferred.boundedTo(QSize((window or screen).width(), screen.height() - TITLE_BAR_HEIGHT))
        # Before Qt queries the minimum width.
        self._arrange_list(size)
        self.resize(size)

    def show_open_error(self, sentence: Sentence) -> None:
        """Show that the page that was requested last could not be opened."""
        page = self.current
        if page is not None and isinstance(page.view, UrlElicitationView):
            page.view.show_open_error(translate_sentence(sentence))

    def _add_page(self, request: McpRequest) -> bool:
        """Return whether the request can be shown: a broken one must not block the others."""
        try:
            self._pages[request.id] = self._create_page(request)
        except Exception as error:  # noqa: BLE001 - a server may send anything
            server, kind = request.request.server, type(error).__name__
            _log.warning("a request of the MCP server “%s” cannot be shown (%s): declined", server, kind)
            return False
        return True

    def _create_page(self, request: McpRequest) -> ServerRequestPage:
        page = ServerRequestPage(self._themes, request, self._input_delay_ms)
        # After an answer the person no longer types on this page.
        page.answered.connect(page.setFocus)
        page.answered.connect(partial(self.answered.emit, request.id))
        page.open_page_requested.connect(self.open_page_requested)
        self._stack.addWidget(page)
        self.setTabOrder(page.bar.last_in_tab_order, self._stop)
        return page

    def _show_page(self, page: ServerRequestPage) -> None:
        self._stack.setCurrentWidget(page)
        self.setWindowTitle(page.title)
        self.setAccessibleDescription(page.description)
        self._stop.setVisible(page.origin.can_stop)

    def _on_selected(self, request_id: str) -> None:
        page = self._pages[request_id]
        if page is not self.current:
            self._show_page(page)
            page.bar.start_input_delay()

    def _rebuild_list(self, waiting: Sequence[McpRequest]) -> None:
        pages = [self._pages[request.id] for request in waiting]
        items = [page.waiting_item for page in pages]
        if len(waiting) > 1 and self._list.isHidden() and self.isVisible():
            self._resize_to(DIALOG_WIDTH + LIST_WIDTH)
        self._list.show_items(items, self.current.asked.id if self.current is not None else None)

    def _build_layout(self) -> None:
        self.setAccessibleName(self.tr("An MCP server asks"))
        self.setWindowTitle(self.tr("An MCP server asks"))
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self._stop.hide()
        detail = vbox(self._stack, spacing=SPACE_S, grow=self._stack)
        detail.addWidget(self._stop, 0, Qt.AlignmentFlag.AlignLeft)
        self._main_layout.addWidget(self._list)
        self._main_layout.addLayout(detail, 1)
