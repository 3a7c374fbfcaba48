"""The titles and buttons of requests of MCP servers, in their dialog and in notifications."""

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from ui.approval.untrusted_text import quote_name
from ui.bridge.mcp.requests import McpRequest, PendingSampling


@dataclass(frozen=True, slots=True)
class RequestTexts:
    """The texts of one request. `title` names the server; `yes` and `no` are texts and shortcuts of the buttons.

    Letters are shortcuts only if the request has no field to type in.
    """

    title: str
    short_title: str
    subtitle: str
    yes: tuple[str, str]
    no: tuple[str, str]


def request_texts(request: McpRequest) -> RequestTexts:
    """Return the texts of a request."""
    server = quote_name(request.request.server)
    if isinstance(request, PendingSampling) and request.answer is None:
        return RequestTexts(
            _tr("“{0}” wants a model to answer").format(server),
            _tr("A question to a model"),
            _tr("The server wrote the text below. It would be sent to your model in your name."),
            (_tr("Allow once"), "A"),
            (_tr("Deny"), "D"),
        )
    if isinstance(request, PendingSampling):
        return RequestTexts(
            _tr("Send this answer to “{0}”?").format(server),
            _tr("A model's answer"),
            _tr("Check that the answer contains nothing that this server should not have."),
            (_tr("Send"), "S"),
            (_tr("Do not send"), "D"),
        )
    decline = (_tr("Decline"), "Ctrl+D")
    if request.request.url is None:
        return RequestTexts(
            _tr("“{0}” asks you to fill in a form").format(server),
            _tr("A form"),
            _tr("What you send goes to this MCP server. Do not enter a password or a key."),
            (_tr("Send"), "Ctrl+Enter"),
            decline,
        )
    return RequestTexts(
        _tr("“{0}” asks you to open a page").format(server),
        _tr("A page to open"),
        _tr("This MCP server wants you to do something in your browser."),
        (_tr("I am done"), "Ctrl+Enter"),
        decline,
    )


def _tr(text: str) -> str:
    return QCoreApplication.translate("ServerRequestPage", text)
