"""What a server wants a model to answer, all of it; and what the model said."""

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QVBoxLayout, QWidget

from desktop_agent.vocabulary.blocks import ToolResult, ToolUse
from desktop_agent.vocabulary.mcp.asking import (
    SamplingAnswer,
    SamplingContent,
    SamplingModel,
    SamplingRequest,
    tool_result_text,
)
from ui.approval.asking.server_part import quote_name
from ui.approval.asking.words_box import ServerText
from ui.look.controls import label
from ui.look.parts.json_text import arguments_as_json
from ui.look.parts.scrolled_column import ScrollColumn
from ui.look.sentences import format_dollars, format_price
from ui.look.theme import SPACE_L, SPACE_S, SPACE_XS
from ui.look.visible_text import show_hidden

# Four characters are about a token.
_CHARACTERS_PER_TOKEN = 4
_MAX_LINES = 14


class SamplingView(ScrollColumn):
    """With an answer, that stands first."""

    def __init__(
        self, request: SamplingRequest, answer: SamplingAnswer | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(SPACE_L, parent, trailing=SPACE_S)
        about = QVBoxLayout()
        about.setSpacing(SPACE_XS)
        self.column.addLayout(about)
        facts = describe_model(request) if answer is None else describe_answer(request, answer)
        for at, words in enumerate(facts):
            about.addWidget(label(words, "strong" if at == 0 else "muted", wrap=True))
        self.message_box: ServerText | None = None
        self._tool_names: dict[str, str] = {}
        if answer is not None:
            self._add_answer(answer)
        if request.system_prompt:
            self._add_text(self.tr("The server's instructions to the model"), request.system_prompt)
        for role, said in request.messages:
            self._add_message(role, said)
        for tool in request.tools:
            name = self.tr("The server's tool “{0}”, for which the model may ask").format(quote_name(tool.name))
            self._add_text(name, "\n\n".join(filter(None, (tool.description, arguments_as_json(tool.schema)))))
        self.column.addStretch(1)

    def _add_answer(self, answer: SamplingAnswer) -> None:
        if answer.text or not answer.calls:
            self._add_text(self.tr("The model's answer"), answer.text)
        for call in answer.calls:
            name = self.tr("The model asks the server for its tool “{0}”").format(quote_name(call.name))
            self._add_text(name, arguments_as_json(call.input))

    def _add_message(self, role: str, said: SamplingContent) -> None:
        match said:
            case str():
                name = self.tr("The server asks") if role == "user" else self.tr("A model answered, the server says")
                self._add_text(name, said)
            case ToolUse():
                self._tool_names[said.id] = quote_name(said.name)
                name = self.tr("A model asked for the server's tool “{0}”, the server says")
                self._add_text(name.format(self._tool_names[said.id]), arguments_as_json(said.input))
            case ToolResult():
                failed, came = self.tr("“{0}” failed, the server says"), self.tr("“{0}” gave, the server says")
                name = (failed if said.is_error else came).format(self._tool_names.get(said.tool_use_id, ""))
                self._add_text(name, tool_result_text(said))

    def _add_text(self, name: str, text: str) -> None:
        box = ServerText(name, _MAX_LINES)
        box.show_text(text)
        column = QVBoxLayout()
        column.setSpacing(SPACE_XS)
        column.addWidget(label(name, "small"))
        column.addWidget(box)
        self.column.addLayout(column)
        self.message_box = self.message_box or box


def describe_model(request: SamplingRequest) -> list[str]:
    """Who would answer, and what that may cost."""
    model = request.answering_model
    if model is None:
        return [
            QCoreApplication.translate("Sampling", "No model is chosen that could answer."),
            QCoreApplication.translate("Sampling", "Deny this, choose a model, and let the server ask again."),
        ]
    names = (show_hidden(model.title), show_hidden(model.endpoint))
    return [
        QCoreApplication.translate("Sampling", "{0} on {1} would answer").format(*names),
        " ".join((_describe_tokens(request), _describe_cost(request, model))),
    ]


def describe_answer(request: SamplingRequest, answer: SamplingAnswer) -> list[str]:
    """Who answered, and what it cost."""
    title = request.answering_model.title if request.answering_model is not None else answer.model
    said = [QCoreApplication.translate("Sampling", "{0} answered").format(show_hidden(title))]
    about: list[str] = []
    if answer.usage is not None and answer.usage.cost is not None:
        about.append(QCoreApplication.translate("Sampling", "It cost {0}.").format(format_dollars(answer.usage.cost)))
    if answer.is_truncated:
        about.append(QCoreApplication.translate("Sampling", "It was cut off before its end."))
    about.append(QCoreApplication.translate("Sampling", "Nothing of it has gone to the server yet."))
    return [*said, " ".join(about)]


def _describe_tokens(request: SamplingRequest) -> str:
    tokens = f"{request.max_tokens:,}"
    if not request.tools:
        words = QCoreApplication.translate("Sampling", "The answer has at most {0} tokens; no tools are used.")
        return words.format(tokens)
    words = QCoreApplication.translate(
        "Sampling", "The answer has at most {0} tokens, and may ask the server to use tools of its own."
    )
    return words.format(tokens)


def _describe_cost(request: SamplingRequest, model: SamplingModel) -> str:
    known = model.price
    if known is None or known.input is None or known.output is None:
        return QCoreApplication.translate("Sampling", "What it costs is not known.")
    maximum = (request.characters / _CHARACTERS_PER_TOKEN * known.input + request.max_tokens * known.output) / 1e6
    words = QCoreApplication.translate(
        "Sampling", "It costs about {0} at most: a million tokens are {1} in and {2} out."
    )
    return words.format(format_dollars(maximum), format_price(known.input), format_price(known.output))
