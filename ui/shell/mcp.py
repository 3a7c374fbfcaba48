"""MCP servers in the window: elicitation and sampling requests, prompts and resources for a message, notices."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from desktop_agent.types.errors import Sentence
from desktop_agent.types.mcp import McpPrompt, McpPromptArgument, McpResource, McpResourceTemplate
from desktop_agent.types.messages import AttachedText
from desktop_agent.types.tool_calls import UntrustedSource
from ui.bridge.conversation import OpenConversation
from ui.bridge.desktop.opening import AddressOpener
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.library import ConversationLibrary
from ui.bridge.mcp.requests import McpCatalog, McpRequest, RequestOrigin
from ui.bridge.mcp.servers import McpNotices
from ui.composer.attachment_items import AttachmentFetch, ServerPicture
from ui.composer.completions import (
    CompletionItem,
    CompletionKind,
    CompletionTriggers,
    expand_template,
    template_variables,
)
from ui.shell.approvals import DialogOpening
from ui.shell.banners import Banner, BannerButton
from ui.shell.drafts import to_draft
from ui.shell.window import MainWindow
from ui.style.controls import IconButton, set_keys_tooltip
from ui.style.text import title_or_new, translate_sentence

if TYPE_CHECKING:
    from ui.approval.server_requests.request_dialog import ServerRequestDialog
    from ui.composer.completion_popup import CompletionPopup, PromptArgumentsDialog


OpenWindow = tuple[QWidget, OpenConversation | None]
"""A window, and the conversation that it shows."""


class ElicitationPresenter(QObject):
    """One dialog for all requests, whichever conversation is open: one server may serve several.

    It opens over the window that shows the conversation for which the server asks, else over the active one. Closing it
    dismisses only the shown request, so it stays open as long as requests wait that the person has seen.
    """

    side_windows: Callable[[], Sequence[OpenWindow]] = staticmethod(tuple)
    """The windows beside the main one."""

    def __init__(self, library: ConversationLibrary, window: MainWindow) -> None:
        super().__init__(window)
        self._library = library
        self._requests = library.requests
        self._window = window
        self._over: QWidget = window
        self._created_dialog: ServerRequestDialog | None = None
        self._opener = AddressOpener(self)
        self._opener.failed.connect(self._show_open_error)
        self._opening = DialogOpening(self._refresh, self)
        library.requests.changed.connect(self._refresh)
        library.activity.changed.connect(self._show_origins)
        library.opened.connect(self._show_origins)

    def show_request(self, request_id: str) -> None:
        """Show the dialog for this request, if it still waits."""
        self._opening.wanted = request_id
        self._refresh()

    def _refresh(self) -> None:
        waiting = self._requests.waiting
        if not waiting and self._created_dialog is None:
            return
        dialog = self._dialog
        dialog.set_requests(waiting)
        # The dialog declined what it cannot show.
        shown = {request.id for request in self._requests.waiting}
        if not dialog.isVisible():
            self._move_to(self._find_window(self._first_shown()))
        self._show_origins()
        self._opening.update(dialog, shown, dialog.show_request)
        # Another window of the program may be in front.
        is_seen = self._over.isActiveWindow() or dialog.isActiveWindow()
        if shown and not is_seen and self._over.isVisible():
            self._over.windowHandle().alert(0)

    def _first_shown(self) -> str | None:
        """Return the id of the conversation whose request the dialog shows when it opens."""
        chosen = (request for request in self._requests.waiting if request.id == self._opening.wanted)
        page = self._dialog.current
        request = next(chosen, None if page is None else page.asked)
        return None if request is None else request.request.conversation_id

    def _find_window(self, conversation_id: str | None) -> QWidget:
        """Return the window that shows this conversation, else the active one, else the main one."""
        windows = [
            (window, conversation)
            for window, conversation in self._windows
            if not (window.isHidden() or window.isMinimized())
        ]
        active = _active_window()
        showing = [
            window
            for window, conversation in windows
            if conversation is not None and conversation.id == conversation_id
        ]
        candidates = showing or [window for window, _ in windows if window is active]
        return active if active in candidates else next(iter(candidates), self._window)

    @property
    def _windows(self) -> list[OpenWindow]:
        return [(self._window, self._library.current), *self.side_windows()]

    def _move_to(self, window: QWidget) -> None:
        if window is self._over:
            return
        dialog = self._dialog
        was_visible = dialog.isVisible()
        self._over.removeEventFilter(self)
        window.installEventFilter(self)
        self._over = window
        dialog.setParent(window, dialog.windowFlags())
        self._show_origins()
        if was_visible:
            dialog.open()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Move the dialog to another window before its own is hidden or closed, so that text in it is not lost."""
        is_hidden = event.type() is QEvent.Type.Hide and not event.spontaneous()
        if is_hidden and self._created_dialog is not None:
            page = self._created_dialog.current
            self._move_to(self._find_window(None if page is None else page.asked.request.conversation_id))
        return super().eventFilter(watched, event)

    def _show_origins(self) -> None:
        if self._created_dialog is not None:
            waiting = self._requests.waiting
            self._created_dialog.set_origins({request.id: self._origin(request) for request in waiting})

    def _origin(self, request: McpRequest) -> RequestOrigin:
        conversation_id = request.request.conversation_id
        if conversation_id is None:
            return RequestOrigin()
        activity = self._library.activity
        shown = next((conversation for window, conversation in self._windows if window is self._over), None)
        is_in_view = shown is not None and shown.id == conversation_id
        title = "" if is_in_view else title_or_new(activity.title(conversation_id))
        return RequestOrigin(title, can_stop=activity.is_working(conversation_id))

    @property
    def _dialog(self) -> "ServerRequestDialog":
        if self._created_dialog is None:
            from ui.approval.server_requests.request_dialog import ServerRequestDialog

            self._created_dialog = ServerRequestDialog(self._window.themes, self._over)
            self._over.installEventFilter(self)
            self._created_dialog.answered.connect(self._requests.answer)
            self._created_dialog.open_page_requested.connect(self._opener.open_page)
            self._created_dialog.stop_requested.connect(self._stop)
        return self._created_dialog

    def _show_open_error(self, sentence: Sentence) -> None:
        if self._created_dialog is not None:
            self._created_dialog.show_open_error(sentence)

    def _stop(self, request_id: str) -> None:
        for request in self._requests.waiting:
            if request.id == request_id and request.request.conversation_id is not None:
                self._library.activity.stop(request.request.conversation_id)


def _active_window() -> QWidget | None:
    """Return the active window; for a dialog, the window that it belongs to."""
    window = QApplication.activeWindow()
    while window is not None and (parent := window.parentWidget()) is not None:
        window = parent.window()
    return window


INSERT_SHORTCUT = "Ctrl+Shift+I"


class McpCatalogControls(QObject):
    """A button in the composer, and typed characters that open the same list. Hidden while no server is enabled."""

    settings_requested = Signal()
    """The person wants the settings of the servers."""

    def __init__(
        self, catalog: McpCatalog, tasks: BackgroundTasks, library: ConversationLibrary, window: MainWindow
    ) -> None:
        super().__init__(window)
        self._composer = composer = window.page.composer
        self._catalog = catalog
        self._tasks = tasks
        self._library = library
        self._window = window
        self._created_popup: CompletionPopup | None = None
        self.button = IconButton(window.themes, "server", self.tr("Insert from a server"))
        set_keys_tooltip(self.button, self.tr("Insert from an MCP server"), INSERT_SHORTCUT)
        self._typed_triggers = CompletionTriggers(composer.editor)
        composer.controls.add(self.button)
        self.button.clicked.connect(self.open)
        self._typed_triggers.triggered.connect(self._on_trigger)
        catalog.changed.connect(self._show_catalog)
        catalog.outdated.connect(self._refresh_server)
        self._show_catalog()

    def open(self) -> None:
        """Open the list of everything offered."""
        self._open("all")

    def _on_trigger(self, sign: str) -> None:
        if self._catalog.has_enabled_server:
            self._open("prompts" if sign == "/" else "resources")

    def _open(self, kind: CompletionKind) -> None:
        if not self._catalog.has_enabled_server:
            return
        self._refresh_catalog()
        self._popup.open_above(self._composer, kind)

    def _refresh_catalog(self) -> None:
        conversation = self._library.current
        self._catalog.refresh(conversation.workspace if conversation is not None else None)

    def _refresh_server(self, server_id: str) -> None:
        if self._created_popup is not None and self._created_popup.isVisible():
            self._catalog.refresh_server(server_id)

    def _show_catalog(self) -> None:
        self.button.setVisible(self._catalog.has_enabled_server)
        if self._created_popup is not None:
            self._created_popup.set_groups(self._catalog.groups)

    @property
    def _popup(self) -> "CompletionPopup":
        if self._created_popup is None:
            from ui.composer.completion_popup import CompletionPopup

            self._created_popup = CompletionPopup(self._window.themes, self._window)
            self._created_popup.chosen.connect(self._on_chosen)
            self._created_popup.left.connect(self._on_dismissed)
            self._created_popup.refresh_requested.connect(self._refresh_catalog)
            self._created_popup.link_followed.connect(self.settings_requested)
            self._created_popup.set_groups(self._catalog.groups)
        return self._created_popup

    def _on_dismissed(self, typed: str) -> None:
        self._typed_triggers.continue_typing(typed)
        self._composer.editor.setFocus(Qt.FocusReason.OtherFocusReason)

    def _on_chosen(self, row: CompletionItem) -> None:
        self._typed_triggers.remove_trigger()
        self._composer.editor.setFocus(Qt.FocusReason.OtherFocusReason)
        # Another conversation may be open by the time all arguments are written.
        conversation = self._library.current
        if conversation is None:
            return
        match row.offered:
            case McpPrompt(name=name, arguments=arguments) if arguments:
                self._ask_arguments(row, name, arguments, partial(self._insert, conversation, row, name))
            case McpPrompt(name=name):
                self._insert(conversation, row, name, {})
            case McpResource(uri=uri):
                self._attach(conversation, row, uri)
            case McpResourceTemplate(uri_template=template):
                variables = tuple(
                    McpPromptArgument(variable, "", required=True) for variable in template_variables(template)
                )
                self._ask_arguments(
                    row,
                    template,
                    variables,
                    lambda values: self._attach(conversation, row, expand_template(template, values)),
                )
            case None:
                pass

    def _ask_arguments(
        self,
        row: CompletionItem,
        reference: str,
        arguments: tuple[McpPromptArgument, ...],
        on_submitted: Callable[[dict[str, str]], None],
    ) -> None:
        from ui.composer.completion_popup import PromptArgumentsDialog

        description = row.offered.description if row.offered is not None else ""
        dialog = PromptArgumentsDialog(row.text, description, arguments, self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

        def complete(name: str, written: str) -> None:
            self._tasks.start(self._complete(dialog, row, reference, name, written))

        dialog.completion_requested.connect(complete)
        dialog.arguments_submitted.connect(on_submitted)
        dialog.open()

    async def _complete(
        self, dialog: "PromptArgumentsDialog", row: CompletionItem, reference: str, name: str, written: str
    ) -> None:
        suggestions = await self._catalog.complete(row.server_id, reference, name, {**dialog.values, name: written})
        # The dialog may have been closed and deleted meanwhile.
        if isValid(dialog) and dialog.isVisible():
            dialog.show_completions(name, suggestions)

    def _insert(self, conversation: OpenConversation, row: CompletionItem, name: str, values: dict[str, str]) -> None:
        self._tasks.start(self._insert_prompt(conversation, row, name, values))

    async def _insert_prompt(
        self, conversation: OpenConversation, row: CompletionItem, name: str, values: dict[str, str]
    ) -> None:
        text, pictures = await self._catalog.prompt(row.server_id, name, values)
        fetching = [
            self._composer.attachments.create_picture_fetch(ServerPicture(row.server, row.text, data, row.server_id))
            for data in pictures
        ]
        await self._add(
            conversation, text, [UntrustedSource("mcp", row.server, row.server_id)] if text else [], fetching
        )

    def _attach(self, conversation: OpenConversation, row: CompletionItem, uri: str) -> None:
        async def read() -> list[AttachedText | ServerPicture]:
            parts = await self._catalog.read(row.server_id, row.text, uri)
            return [
                AttachedText(row.text, part, uri, row.server, row.server_id)
                if isinstance(part, str)
                else ServerPicture(row.server, row.text, part, row.server_id)
                for part in parts
            ]

        fetching = self._composer.attachments.create_fetch(row.text, read)
        self._tasks.start(self._add(conversation, "", [], [fetching]))

    async def _add(
        self,
        conversation: OpenConversation,
        text: str,
        sources: Sequence[UntrustedSource],
        fetches: Sequence[AttachmentFetch],
    ) -> None:
        """Add to the draft of this conversation, which need not be open any more."""
        fetched = [] if self._is_shown(conversation) else [await fetch.result() for fetch in fetches]
        if self._is_shown(conversation):
            if text:
                self._composer.restore_message(text, sources)
            self._composer.attachments.add_fetches(fetches)
            return
        items = [item for content in fetched for item in content.items]
        await self._library.drafts.add(conversation, to_draft(text, [*sources, *items]))
        for problem in (problem for content in fetched for problem in content.problems):
            raise problem

    def _is_shown(self, conversation: OpenConversation) -> bool:
        current = self._library.current
        return current is not None and current.id == conversation.id


NOTICES_KEY = "mcp-notices"


class McpPresenter(QObject):
    """Connects the MCP servers with the composer and one banner of a window."""

    def __init__(
        self,
        catalog: McpCatalog,
        notices: McpNotices,
        tasks: BackgroundTasks,
        library: ConversationLibrary,
        window: MainWindow,
    ) -> None:
        super().__init__(window)
        self._banners = window.banners
        self.elicitation = ElicitationPresenter(library, window)
        self.catalog = McpCatalogControls(catalog, tasks, library, window)
        self._notices: list[Sentence] = []
        """Those in the banner, oldest first."""
        window.banners.closed.connect(self._on_banner_closed)
        notices.noticed.connect(self._add_notice)
        notices.outdated.connect(self._remove_notice)
        notices.notify_all()
        insert = QAction(self.tr("Insert from a server"), window)
        insert.setShortcut(QKeySequence(INSERT_SHORTCUT))
        insert.triggered.connect(self.catalog.open)
        window.addAction(insert)

    def _add_notice(self, sentence: Sentence) -> None:
        self._notices = [*(notice for notice in self._notices if notice != sentence), sentence]
        buttons = (BannerButton(self.tr("MCP servers…"), self.catalog.settings_requested.emit),)
        self._banners.show_banner(Banner(NOTICES_KEY, self._joined_notices(), level="notice", buttons=buttons))

    def _remove_notice(self, sentence: Sentence) -> None:
        self._notices = [notice for notice in self._notices if notice != sentence]
        if self._notices:
            self._banners.update_sentence(NOTICES_KEY, self._joined_notices())
        else:
            self._banners.remove(NOTICES_KEY)

    def _on_banner_closed(self, key: str) -> None:
        if key == NOTICES_KEY:
            self._notices.clear()

    def _joined_notices(self) -> Sentence:
        """Return all notices, each in a line of its own: several servers may fail at once."""
        return Sentence("{text}", {"text": "\n".join(translate_sentence(notice) for notice in self._notices)})
