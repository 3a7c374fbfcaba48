"""What a server wants a model to answer, all of it; and what the model said."""

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from desktop_agent.vocabulary.mcp.asking import AnsweringModel, SamplingAnswer, SamplingRequest
from ui.approval.asking.words_box import WordsBox
from ui.look.controls import label
from ui.look.sentences import dollars, price
from ui.look.theme import SPACE_L, SPACE_M, SPACE_S, SPACE_XS
from ui.look.visible_text import with_hidden_shown

# Four characters are about a token.
_CHARACTERS = 4
_MOST_LINES = 14


class SamplingView(QScrollArea):
    """With an answer, that stands first."""

    def __init__(
        self, request: SamplingRequest, answer: SamplingAnswer | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        inside = QWidget()
        self._layout = QVBoxLayout(inside)
        self._layout.setContentsMargins(0, 0, SPACE_S, 0)
        self._layout.setSpacing(SPACE_L)
        about = QVBoxLayout()
        about.setSpacing(SPACE_XS)
        self._layout.addLayout(about)
        facts = who_words(request) if answer is None else answer_words(request, answer)
        for at, words in enumerate(facts):
            about.addWidget(label(words, "strong" if at == 0 else "muted", wrap=True))
        self.words: WordsBox | None = None
        if answer is not None:
            self._add(self.tr("The model's answer"), answer.text)
        if request.system_prompt:
            self._add(self.tr("Instructions to the model"), request.system_prompt)
        for role, text in request.messages:
            self._add(self.tr("Asked") if role == "user" else self.tr("An answer that the server puts first"), text)
        self._layout.addStretch(1)
        self.setWidget(inside)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        inside.setAutoFillBackground(False)
        self.viewport().setAutoFillBackground(False)
        inside.setMinimumWidth(SPACE_M)

    def _add(self, name: str, text: str) -> None:
        box = WordsBox(name, _MOST_LINES)
        box.show_words(text)
        column = QVBoxLayout()
        column.setSpacing(SPACE_XS)
        column.addWidget(label(name, "small"))
        column.addWidget(box)
        self._layout.addLayout(column)
        self.words = self.words or box


def who_words(request: SamplingRequest) -> list[str]:
    """Who would answer, and what that may cost."""
    model = request.answered_by
    if model is None:
        return [
            QCoreApplication.translate("Sampling", "No model is chosen that could answer."),
            QCoreApplication.translate("Sampling", "Deny this, choose a model, and let the server ask again."),
        ]
    names = (with_hidden_shown(model.title), with_hidden_shown(model.endpoint))
    return [
        QCoreApplication.translate("Sampling", "{0} on {1} would answer").format(*names),
        " ".join((_tokens(request), _cost(request, model))),
    ]


def answer_words(request: SamplingRequest, answer: SamplingAnswer) -> list[str]:
    """Who answered, and what it cost."""
    title = request.answered_by.title if request.answered_by is not None else answer.model
    said = [QCoreApplication.translate("Sampling", "{0} answered").format(with_hidden_shown(title))]
    about: list[str] = []
    if answer.usage is not None and answer.usage.cost is not None:
        about.append(QCoreApplication.translate("Sampling", "It cost {0}.").format(dollars(answer.usage.cost)))
    if answer.is_cut:
        about.append(QCoreApplication.translate("Sampling", "It was cut off before its end."))
    about.append(QCoreApplication.translate("Sampling", "Nothing of it has gone to the server yet."))
    return [*said, " ".join(about)]


def _tokens(request: SamplingRequest) -> str:
    words = QCoreApplication.translate("Sampling", "The answer has at most {0} tokens; no tools are used.")
    return words.format(f"{request.max_tokens:,}")


def _cost(request: SamplingRequest, model: AnsweringModel) -> str:
    known = model.price
    if known is None or known.input is None or known.output is None:
        return QCoreApplication.translate("Sampling", "What it costs is not known.")
    characters = len(request.system_prompt or "") + sum(len(text) for _, text in request.messages)
    most = (characters / _CHARACTERS * known.input + request.max_tokens * known.output) / 1e6
    words = QCoreApplication.translate(
        "Sampling", "It costs about {0} at most: a million tokens are {1} in and {2} out. No conversation counts it."
    )
    return words.format(dollars(most), price(known.input), price(known.output))
