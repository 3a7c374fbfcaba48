"""One question of a server on the screen: who asks, what, and the answer."""

from typing import Literal

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from desktop_agent.vocabulary.mcp.asking import ElicitationAnswer
from ui.approval.asking.answer_bar import AnswerBar
from ui.approval.asking.form_view import ElicitationForm
from ui.approval.asking.page_view import UrlElicitationView
from ui.approval.asking.sampling_view import SamplingView
from ui.approval.asking.server_part import quote_name
from ui.bridge.mcp.asking import McpRequest, PendingElicitation, PendingSampling
from ui.look.controls import label
from ui.look.theme import SPACE_M, SPACE_XS, ThemeSource

MAX_SMALL_FORM_FIELDS = 2
"""Fields of a small form."""


class ServerRequestPage(QWidget):
    """Keeps what is being filled in as long as it waits. `answered` carries an ElicitationAnswer, or yes or no."""

    answered = Signal(object)
    open_page_requested = Signal(str)

    def __init__(
        self, themes: ThemeSource, asked: McpRequest, input_delay_ms: int, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.asked = asked
        self.view = self._create_view(themes, asked)
        yes, no = self._button_texts()
        self.bar = AnswerBar(themes, input_delay_ms, yes, no)
        self.title = self._title_text()
        self._build_layout()
        self._connect_signals()

    @property
    def server(self) -> str:
        """Who asks, as it can be read."""
        return quote_name(self.asked.request.server)

    @property
    def is_small(self) -> bool:
        """Whether there is little to be read and filled in."""
        match self.view:
            case UrlElicitationView():
                return not self.view.is_idn
            case ElicitationForm():
                return len(self.view.rows) <= MAX_SMALL_FORM_FIELDS
            case _:
                return False

    @property
    def initial_focus(self) -> QWidget:
        """Where nothing can be typed yet: words on their way elsewhere must not land in a form."""
        if isinstance(self.view, ElicitationForm) and not self.bar.is_input_delayed:
            return self.view.initial_focus
        return self.view.message_box or self

    def dismiss(self) -> None:
        """The person does not answer."""
        if not self.bar.is_input_delayed:
            is_form = isinstance(self.asked, PendingElicitation)
            self.answered.emit(ElicitationAnswer("cancel") if is_form else False)

    @property
    def _kind(self) -> Literal["form", "page", "request", "answer"]:
        if isinstance(self.asked, PendingElicitation):
            return "form" if self.asked.request.url is None else "page"
        return "request" if self.asked.answer is None else "answer"

    def _create_view(
        self, themes: ThemeSource, asked: McpRequest
    ) -> ElicitationForm | UrlElicitationView | SamplingView:
        if isinstance(asked, PendingSampling):
            return SamplingView(asked.request, asked.answer)
        return (
            ElicitationForm(asked.request) if asked.request.url is None else UrlElicitationView(themes, asked.request)
        )

    def _button_texts(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Yes and no, each with its key. Letters alone are keys where nothing is typed."""
        return {
            "form": ((self.tr("Send"), "Ctrl+Enter"), (self.tr("Decline"), "Ctrl+D")),
            "page": ((self.tr("I am done"), "Ctrl+Enter"), (self.tr("Decline"), "Ctrl+D")),
            "request": ((self.tr("Allow once"), "A"), (self.tr("Deny"), "D")),
            "answer": ((self.tr("Send"), "S"), (self.tr("Do not send"), "D")),
        }[self._kind]

    def _title_text(self) -> str:
        return {
            "form": self.tr("“{0}” asks you to fill in a form"),
            "page": self.tr("“{0}” asks you to open a page"),
            "request": self.tr("“{0}” wants a model to answer"),
            "answer": self.tr("Send this answer to “{0}”?"),
        }[self._kind].format(self.server)

    @property
    def short_title(self) -> str:
        """What it is, in a list."""
        return {
            "form": self.tr("A form"),
            "page": self.tr("A page to open"),
            "request": self.tr("A question to a model"),
            "answer": self.tr("A model's answer"),
        }[self._kind]

    def _subtitle(self) -> str:
        return {
            "form": self.tr("What you send goes to this MCP server. Do not enter a password or a key."),
            "page": self.tr("This MCP server wants you to do something in your browser."),
            "request": self.tr("The server wrote what stands below; it would be sent to your model in your name."),
            "answer": self.tr("Look whether something stands in it that this server should not have."),
        }[self._kind]

    def _connect_signals(self) -> None:
        view, bar = self.view, self.bar
        bar.yes_pressed.connect(self._accept)
        bar.no_pressed.connect(self._decline)
        bar.input_delay_ended.connect(self._focus_form)
        if isinstance(view, ElicitationForm):
            view.changed.connect(self._refresh)
        elif isinstance(view, UrlElicitationView):
            view.open_requested.connect(self._open_page)
        self._refresh()

    def _open_page(self, address: str) -> None:
        if self.bar.is_input_delayed or not isinstance(self.view, UrlElicitationView):
            self.bar.extend_input_delay()
            return
        self.view.show_opened()
        self.open_page_requested.emit(address)
        self.bar.set_can_accept(True)

    def _refresh(self) -> None:
        match self.view:
            case ElicitationForm():
                missing = ", ".join(self.tr("“{0}”").format(quote_name(each)) for each in self.view.problems)
                hint = self.tr("Not right yet: {0}").format(missing) if missing else ""
                self.bar.set_can_accept(self.view.can_send, hint)
            case UrlElicitationView():
                hint = self.tr("Open the page first.") if self.view.can_open else ""
                self.bar.set_can_accept(False, hint)
            case _:
                asked = self.asked
                can_answer = isinstance(asked, PendingSampling) and asked.request.answering_model is not None
                self.bar.set_can_accept(can_answer)

    def _accept(self) -> None:
        match self.view:
            case ElicitationForm():
                self.answered.emit(ElicitationAnswer("accept", self.view.content))
            case UrlElicitationView():
                self.answered.emit(ElicitationAnswer("accept"))
            case _:
                self.answered.emit(True)

    def _decline(self) -> None:
        is_form = isinstance(self.asked, PendingElicitation)
        self.answered.emit(ElicitationAnswer("decline") if is_form else False)

    def _focus_form(self) -> None:
        if isinstance(self.view, ElicitationForm) and self.isVisible() and self.view.message_box.hasFocus():
            self.view.initial_focus.setFocus(Qt.FocusReason.TabFocusReason)

    def _build_layout(self) -> None:
        head = QVBoxLayout()
        head.setSpacing(SPACE_XS)
        titles = (label(self.title, "heading", wrap=True), label(self._subtitle(), "muted", wrap=True))
        for each in titles:
            head.addWidget(each)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        # Where there is hardly room it scrolls, too; the window's title says the same.
        self.view.column.insertLayout(0, head)
        for each in reversed(titles):
            # Screen readers read in the order in which parts were made.
            each.lower()
        layout.addWidget(self.view, 1)
        if isinstance(self.view, UrlElicitationView):
            layout.addWidget(self.view.action_row)
        layout.addWidget(self.bar)
