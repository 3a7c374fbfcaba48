"""The views of URL-mode elicitation (a page to open) and of sampling (a request to a model, and its answer)."""

from collections import Counter
from dataclasses import replace

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtGui import QColor, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QTextEdit, QWidget

from desktop_agent.types.blocks import ToolResult, ToolUse
from desktop_agent.types.mcp import (
    ElicitationRequest,
    SamplingAnswer,
    SamplingContent,
    SamplingModel,
    SamplingRequest,
    tool_result_text,
)
from ui.approval.server_requests.form_fields import FieldValue
from ui.approval.untrusted_text import ServerText, ServerTextFrame, parse_address, quote_name, unusual_letters
from ui.style.boxes import hbox, vbox
from ui.style.controls import announce, button, label, set_style_property
from ui.style.layouts import ScrollColumn
from ui.style.text import format_dollars, format_number, format_price, join_names, join_sentences, show_hidden
from ui.style.text_display import arguments_as_json
from ui.style.theme import SPACE_L, SPACE_M, SPACE_S, SPACE_XS, ThemeSource


class RequestView(ScrollColumn):
    """The content of a request. `changed`: `can_accept` and `hint` may have changed."""

    changed = Signal()
    message_box: ServerText | None = None
    is_small = False
    """Whether there is little to read and to fill in."""
    can_accept = False
    hint = ""
    """What is still missing before the request can be accepted."""

    @property
    def initial_focus(self) -> QWidget | None:
        return self.message_box

    @property
    def content(self) -> dict[str, FieldValue] | None:
        """The values that are sent when the request is accepted."""
        return None


class UrlElicitationView(RequestView):
    """A URL to visit. It opens and fetches nothing by itself."""

    open_requested = Signal(str)
    """The URL, which is safe to open."""
    action_row: QWidget
    """The button, to be placed below the view, where it is always visible."""

    def __init__(self, themes: ThemeSource, request: ElicitationRequest) -> None:
        super().__init__(SPACE_M, trailing=SPACE_S)
        self._themes = themes
        address = parse_address(request.url or "")
        self._address = replace(address, is_safe=address.is_safe and request.may_open_url)
        self.message_box = ServerText(self.tr("Message from the server"))
        self.message_box.show_text(request.message)
        message_frame = ServerTextFrame(self.tr("“{0}” says (not verified):").format(quote_name(request.server)))
        message_frame.column.addWidget(self.message_box)
        self._host = label(self._host_text(), "heading", wrap=True)
        self._address_box = ServerText(self.tr("Address"))
        self._address_box.show_text(request.url or "")
        self._note = label(self._note_text(), "muted" if self._address.is_safe else "error", wrap=True)
        self._lookalike_label = label(self._lookalike_warning(), "warning", wrap=True)
        self._lookalike_label.setVisible(bool(self._lookalike_label.text()))
        kind = "primary" if self._address.is_safe else ""
        self.open_button = button(self.tr("Open the page"), self._request_open, kind)
        self.open_button.setEnabled(self._address.is_safe)
        self._open_result = label(kind="ok", wrap=True)
        self._open_result.hide()
        self.action_row = QWidget()
        parts = (self.open_button, self._open_result)
        row = hbox(*parts, parent=self.action_row, spacing=SPACE_M, margins=0, grow=self._open_result)
        row.addStretch()
        for widget in (message_frame, self._host, self._lookalike_label, self._address_box, self._note):
            self.column.addWidget(widget)
        self.column.addStretch(1)
        themes.follow(self._highlight_host)
        self.is_small = not self._address.is_idn
        self.hint = self.tr("Open the page first.") if self._address.is_safe else ""

    def _host_text(self) -> str:
        host, ascii_host = self._address.host, self._address.ascii_host
        if not host:
            return self.tr("Not clear where this leads")
        return self.tr("Leads to {0}").format(show_hidden(ascii_host or host))

    def _lookalike_warning(self) -> str:
        if not self._address.is_idn:
            return ""
        advice = self.tr(
            "Such letters can look like others. Compare the name with the one that you know, or type the "
            "name that you know into your browser."
        )
        if not self._address.unicode_host:
            return join_sentences((self.tr("This name has unusual letters that cannot be shown."), advice))
        words = self.tr("This name has unusual letters: it reads “{0}”, with {1}.")
        letters = join_names(f"{letter} ({name})" for letter, name in unusual_letters(self._address.unicode_host))
        return join_sentences((words.format(show_hidden(self._address.unicode_host), letters), advice))

    def _note_text(self) -> str:
        if not self._address.is_safe:
            return self.tr(
                "This address is not opened. Only https addresses are opened, and http on this computer, "
                "if nothing in them is ambiguous and they do not lead into a private network that the "
                "server is not in. Decline, and report the address to the maker of the server."
            )
        if self._address.user:
            return self.tr("The text “{0}@” before the host can look like another host.").format(
                show_hidden(self._address.user)
            )
        return self.tr(
            "It opens in your browser. What you enter there goes to that page, not to this program. Come back when you "
            "are done."
        )

    def show_opened(self) -> None:
        """Show that the page is open in the browser."""
        set_style_property(self.open_button, "kind", "")
        set_style_property(self._open_result, "kind", "ok")
        self._open_result.setText(self.tr("Opened in your browser."))
        self._open_result.show()
        self.can_accept, self.hint = True, ""
        self.changed.emit()

    def show_open_error(self, words: str) -> None:
        """Show why the page could not be opened."""
        set_style_property(self._open_result, "kind", "error")
        self._open_result.setText(words)
        self._open_result.show()
        announce(self, words)

    def _request_open(self) -> None:
        self.open_requested.emit(self._address.text)

    def _highlight_host(self) -> None:
        shown, host = self._address_box.toPlainText(), show_hidden(self._address.host)
        start = shown.lower().find(host.lower(), max(0, self._address.host_start)) if host else -1
        if start < 0:
            return
        mark = QTextCharFormat()
        mark.setBackground(QColor(self._themes.theme.selection))
        cursor = QTextCursor(self._address_box.document())
        cursor.setPosition(start)
        cursor.setPosition(start + len(host), QTextCursor.MoveMode.KeepAnchor)
        extra = QTextEdit.ExtraSelection()
        extra.cursor, extra.format = cursor, mark
        self._address_box.setExtraSelections([extra])


# An estimate.
_CHARACTERS_PER_TOKEN = 4
_MAX_LINES = 14


class SamplingView(RequestView):
    """A sampling request; if there is an answer, it comes first."""

    def __init__(self, request: SamplingRequest, answer: SamplingAnswer | None = None) -> None:
        super().__init__(SPACE_L, trailing=SPACE_S)
        about = vbox(spacing=SPACE_XS)
        self.column.addLayout(about)
        facts = describe_model(request) if answer is None else describe_answer(request, answer)
        for index, words in enumerate(facts):
            about.addWidget(label(words, "strong" if index == 0 else "muted", wrap=True))
        self.can_accept = request.answering_model is not None
        self._tool_names: dict[str, str] = {}
        self._names: Counter[str] = Counter()
        if answer is not None:
            self._add_answer(answer)
        if request.system_prompt:
            self._add_text(self.tr("The server's instructions to the model"), request.system_prompt)
        for role, content in request.messages:
            self._add_message(role, content)
        for tool in request.tools:
            name = self.tr("The server's tool “{0}”, which the model may call").format(quote_name(tool.name))
            self._add_text(name, "\n\n".join(filter(None, (tool.description, arguments_as_json(tool.input_schema)))))
        self.column.addStretch(1)

    def _add_answer(self, answer: SamplingAnswer) -> None:
        if answer.text or not answer.calls:
            self._add_text(self.tr("The model's answer"), answer.text)
        for call in answer.calls:
            name = self.tr("The model calls the server's tool “{0}”").format(quote_name(call.name))
            self._add_text(name, arguments_as_json(call.input))

    def _add_message(self, role: str, content: SamplingContent) -> None:
        match content:
            case str():
                name = (
                    self.tr("The server asks")
                    if role == "user"
                    else self.tr("Answer of a model, according to the server")
                )
                self._add_text(name, content)
            case ToolUse():
                self._tool_names[content.id] = quote_name(content.name)
                name = self.tr("Call of “{0}” by a model, according to the server")
                self._add_text(name.format(self._tool_names[content.id]), arguments_as_json(content.input))
            case ToolResult():
                failed, came = (
                    self.tr("Error of “{0}”, according to the server"),
                    self.tr("Result of “{0}”, according to the server"),
                )
                name = (failed if content.is_error else came).format(self._tool_names.get(content.tool_use_id, ""))
                self._add_text(name, tool_result_text(content))

    def _add_text(self, name: str, text: str) -> None:
        box = ServerText(name, _MAX_LINES)
        box.show_text(text)
        self._names[name] += 1
        if self._names[name] > 1:
            box.setAccessibleName(f"{name} {self._names[name]}")
        self.column.addLayout(vbox(label(name, "small", wrap=True), box, spacing=SPACE_XS))
        self.message_box = self.message_box or box


def describe_model(request: SamplingRequest) -> list[str]:
    """Return who would answer, and what it may cost."""
    model = request.answering_model
    if model is None:
        return [
            QCoreApplication.translate("Sampling", "No model is chosen to answer."),
            QCoreApplication.translate("Sampling", "Deny this, choose a model, and let the server ask again."),
        ]
    names = (show_hidden(model.title), show_hidden(model.endpoint))
    return [
        QCoreApplication.translate("Sampling", "{0} on {1} would answer").format(*names),
        join_sentences((_describe_tokens(request), _describe_cost(request, model))),
    ]


def describe_answer(request: SamplingRequest, answer: SamplingAnswer) -> list[str]:
    """Return who answered, and what it cost."""
    title = request.answering_model.title if request.answering_model is not None else answer.model
    headline = [QCoreApplication.translate("Sampling", "{0} answered").format(show_hidden(title))]
    facts: list[str] = []
    if answer.usage is not None and answer.usage.cost is not None:
        facts.append(QCoreApplication.translate("Sampling", "It cost {0}.").format(format_dollars(answer.usage.cost)))
    if answer.is_truncated:
        facts.append(QCoreApplication.translate("Sampling", "The answer was cut off before its end."))
    facts.append(QCoreApplication.translate("Sampling", "Nothing has been sent to the server yet."))
    return [*headline, join_sentences(facts)]


def _describe_tokens(request: SamplingRequest) -> str:
    tokens = format_number(request.max_tokens)
    if not request.tools:
        words = QCoreApplication.translate("Sampling", "The answer has at most {0} tokens; no tools are used.")
        return words.format(tokens)
    words = QCoreApplication.translate(
        "Sampling", "The answer has at most {0} tokens, and may ask the server to use tools of its own."
    )
    return words.format(tokens)


def _describe_cost(request: SamplingRequest, model: SamplingModel) -> str:
    price = model.price
    if price is None or price.input is None or price.output is None:
        return QCoreApplication.translate("Sampling", "The cost is not known.")
    maximum = (request.characters / _CHARACTERS_PER_TOKEN * price.input + request.max_tokens * price.output) / 1e6
    words = QCoreApplication.translate(
        "Sampling", "It costs about {0} at most ({1} in and {2} out per million tokens)."
    )
    return words.format(format_dollars(maximum), format_price(price.input), format_price(price.output))
