"""Notifications of requests of MCP servers. A request is answered in the window; a notification can only refuse it."""

from collections.abc import Callable

from PySide6.QtCore import QObject

from ui.bridge.desktop.notifications import SHOW, DesktopNotifications, is_active, on_application_state
from ui.bridge.library import ConversationLibrary
from ui.bridge.mcp.requests import McpRequest, PendingSampling
from ui.bridge.settings import Settings
from ui.shell.desktop.call_words import MAX_LENGTH
from ui.shell.desktop.notifications import shorten_title
from ui.shell.desktop.waiting_notifications import WaitingNotifications
from ui.style.text import labelled, one_line, title_or_new, truncate

_REFUSE = "refuse"


class RequestNotifier(QObject):
    """Shows a notification for each request that begins to wait while the program is not in front."""

    def __init__(
        self,
        library: ConversationLibrary,
        notifications: DesktopNotifications,
        settings: Settings,
        show_request: Callable[[McpRequest], object],
    ) -> None:
        """`show_request` raises the window and shows the dialog of a request."""
        super().__init__(library)
        self._requests = library.requests
        self._library = library
        self._show_request = show_request
        self._notices = WaitingNotifications(notifications, settings, self._notify, self)
        self._notices.activated.connect(self._on_activated)
        library.requests.changed.connect(self._on_requests)
        on_application_state(self._on_application_state)

    def _on_requests(self) -> None:
        self._notices.update({request.id: request.request.server for request in self._requests.waiting})

    def _on_application_state(self) -> None:
        if is_active():
            # The dialog shows all of them.
            for server in {request.request.server for request in self._requests.waiting}:
                self._notices.withdraw_group(server)

    def _notify(self, request_id: str) -> None:
        # Late: no server asks anything on most days.
        from ui.approval.server_requests.request_texts import request_texts

        request = self._request(request_id)
        texts = request_texts(request)
        refusal, _ = texts.no
        text = "\n".join(filter(None, (self._words(request), self._place(request.request.conversation_id))))
        self._notices.show(request_id, texts.title, text, [(SHOW, self.tr("Show")), (_REFUSE, refusal)])

    def _words(self, request: McpRequest) -> str:
        """Return the beginning of the server's message, quoted; for a sampling request, which model answers it."""
        if isinstance(request, PendingSampling):
            from ui.approval.server_requests.request_views import describe_answer, describe_model

            sampling, answer = request.request, request.answer
            return (describe_model(sampling) if answer is None else describe_answer(sampling, answer))[0]
        if self._may_be_unstored(request.request.conversation_id):
            # The desktop keeps what it has shown.
            return self.tr("A question waits for your answer.")
        message = truncate(one_line(request.request.message, MAX_LENGTH + 1), MAX_LENGTH)
        return labelled(self.tr("The server says"), message)

    def _place(self, conversation_id: str | None) -> str:
        """Return a line that names the conversation; "" if it is not known or not stored."""
        if conversation_id is None or self._may_be_unstored(conversation_id):
            return ""
        title = title_or_new(shorten_title(self._library.activity.title(conversation_id)))
        return self.tr("In the conversation “{0}”").format(title)

    def _may_be_unstored(self, conversation_id: str | None) -> bool:
        unstored = self._library.unstored
        return bool(unstored.rows) if conversation_id is None else conversation_id in unstored

    def _request(self, request_id: str) -> McpRequest:
        return next(request for request in self._requests.waiting if request.id == request_id)

    def _on_activated(self, request_id: str, action: str) -> None:
        if action == _REFUSE:
            self._requests.refuse(request_id)
        else:
            self._notices.forget(request_id)
            self._show_request(self._request(request_id))
