"""One question of a server on the screen: who asks, what, and the answer."""

from typing import Literal

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from desktop_agent.vocabulary.mcp.asking import ElicitationAnswer
from ui.approval.asking.answer_bar import AnswerBar
from ui.approval.asking.form_view import FormView
from ui.approval.asking.page_view import PageView
from ui.approval.asking.sampling_view import SamplingView
from ui.approval.asking.server_part import named
from ui.bridge.mcp.asking import Asked, AskedElicitation, AskedSampling
from ui.look.controls import label
from ui.look.theme import SPACE_M, SPACE_XS, ThemeSource

FEW = 2
"""Fields of a small form."""


class AskedPage(QWidget):
    """Keeps what is being filled in as long as it waits. `answered` carries an ElicitationAnswer, or yes or no."""

    answered = Signal(object)
    page_wanted = Signal(str)

    def __init__(self, themes: ThemeSource, asked: Asked, settle_ms: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.asked = asked
        self.view = self._viewed(themes, asked)
        yes, no = self._commands()
        self.bar = AnswerBar(themes, settle_ms, yes, no)
        self.title = self._titled()
        self._build()
        self._connect()

    @property
    def server(self) -> str:
        """Who asks, as it can be read."""
        return named(self.asked.request.server)

    @property
    def is_small(self) -> bool:
        """Whether there is little to be read and filled in."""
        match self.view:
            case PageView():
                return not self.view.is_unusual
            case FormView():
                return len(self.view.rows) <= FEW
            case _:
                return False

    @property
    def first(self) -> QWidget:
        """Where nothing can be typed yet: words on their way elsewhere must not land in a form."""
        if isinstance(self.view, FormView) and not self.bar.is_resting:
            return self.view.first
        return self.view.words or self

    def leave(self) -> None:
        """The person does not answer."""
        if not self.bar.is_resting:
            is_form = isinstance(self.asked, AskedElicitation)
            self.answered.emit(ElicitationAnswer("cancel") if is_form else False)

    @property
    def _kind(self) -> Literal["form", "page", "request", "answer"]:
        if isinstance(self.asked, AskedElicitation):
            return "form" if self.asked.request.url is None else "page"
        return "request" if self.asked.answer is None else "answer"

    def _viewed(self, themes: ThemeSource, asked: Asked) -> FormView | PageView | SamplingView:
        if isinstance(asked, AskedSampling):
            return SamplingView(asked.request, asked.answer)
        return FormView(asked.request) if asked.request.url is None else PageView(themes, asked.request)

    def _commands(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Yes and no, each with its key. Letters alone are keys where nothing is typed."""
        return {
            "form": ((self.tr("Send"), "Ctrl+Enter"), (self.tr("Decline"), "Ctrl+D")),
            "page": ((self.tr("I am done"), "Ctrl+Enter"), (self.tr("Decline"), "Ctrl+D")),
            "request": ((self.tr("Allow once"), "A"), (self.tr("Deny"), "D")),
            "answer": ((self.tr("Send"), "S"), (self.tr("Do not send"), "D")),
        }[self._kind]

    def _titled(self) -> str:
        return {
            "form": self.tr("“{0}” asks you to fill in a form"),
            "page": self.tr("“{0}” asks you to open a page"),
            "request": self.tr("“{0}” wants a model to answer"),
            "answer": self.tr("Send this answer to “{0}”?"),
        }[self._kind].format(self.server)

    @property
    def short(self) -> str:
        """What it is, in a list."""
        return {
            "form": self.tr("A form"),
            "page": self.tr("A page to open"),
            "request": self.tr("A question to a model"),
            "answer": self.tr("A model's answer"),
        }[self._kind]

    def _under(self) -> str:
        return {
            "form": self.tr("What you send goes to this MCP server. Do not enter a password or a key."),
            "page": self.tr("This MCP server wants you to do something in your browser."),
            "request": self.tr("The server wrote what stands below; it would be sent to your model in your name."),
            "answer": self.tr("Look whether something stands in it that this server should not have."),
        }[self._kind]

    def _connect(self) -> None:
        view, bar = self.view, self.bar
        bar.yes_pressed.connect(self._agree)
        bar.no_pressed.connect(self._refuse)
        bar.rested.connect(self._go_to_first)
        if isinstance(view, FormView):
            view.changed.connect(self._refresh)
        elif isinstance(view, PageView):
            view.open_requested.connect(self._open)
        self._refresh()

    def _open(self, address: str) -> None:
        if self.bar.is_resting or not isinstance(self.view, PageView):
            self.bar.still_arriving()
            return
        self.view.show_opened()
        self.page_wanted.emit(address)
        self.bar.set_can_say_yes(True)

    def _refresh(self) -> None:
        match self.view:
            case FormView():
                missing = ", ".join(self.tr("“{0}”").format(named(each)) for each in self.view.problems)
                hint = self.tr("Not right yet: {0}").format(missing) if missing else ""
                self.bar.set_can_say_yes(self.view.can_send, hint)
            case PageView():
                hint = self.tr("Open the page first.") if self.view.can_open else ""
                self.bar.set_can_say_yes(False, hint)
            case _:
                asked = self.asked
                can_answer = isinstance(asked, AskedSampling) and asked.request.answered_by is not None
                self.bar.set_can_say_yes(can_answer)

    def _agree(self) -> None:
        match self.view:
            case FormView():
                self.answered.emit(ElicitationAnswer("accept", self.view.content))
            case PageView():
                self.answered.emit(ElicitationAnswer("accept"))
            case _:
                self.answered.emit(True)

    def _refuse(self) -> None:
        is_form = isinstance(self.asked, AskedElicitation)
        self.answered.emit(ElicitationAnswer("decline") if is_form else False)

    def _go_to_first(self) -> None:
        if isinstance(self.view, FormView) and self.isVisible() and self.view.words.hasFocus():
            self.view.first.setFocus(Qt.FocusReason.TabFocusReason)

    def _build(self) -> None:
        head = QVBoxLayout()
        head.setSpacing(SPACE_XS)
        titles = (label(self.title, "heading", wrap=True), label(self._under(), "muted", wrap=True))
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
        if isinstance(self.view, PageView):
            layout.addWidget(self.view.step)
        layout.addWidget(self.bar)
