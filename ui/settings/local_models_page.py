"""The page of model files: those on this computer, the one that runs, and how long it stays in memory."""

from functools import partial

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QWidget

from desktop_agent.types.errors import Sentence
from desktop_agent.types.providers import FoundModels, LocalModel, LocalPhase, LocalState
from ui.bridge.desktop.local_models import LocalModelRunner
from ui.forms.form import Form
from ui.style.boxes import hbox, vbox
from ui.style.controls import button, label
from ui.style.file_dialogs import ask_file
from ui.style.layouts import FlowRows
from ui.style.removal import remove_widget
from ui.style.server_fields import Status, StatusLine
from ui.style.text import format_bytes, format_number, plain_tooltip, show_hidden, translate_sentence
from ui.style.theme import SPACE_M, SPACE_S, SPACE_XS, ThemeSource
from ui.style.widgets import TextWithButtons

_ACTIVE_PHASES = (LocalPhase.LOADING, LocalPhase.READY)


class _ModelCard(QFrame):
    """A model file with its facts. A running model is not run again, but can be used in another conversation."""

    def __init__(self, model: LocalModel, runner: LocalModelRunner, *, can_run: bool) -> None:
        super().__init__()
        self._model = model
        name = show_hidden(model.id)
        self._facts = label(kind="muted", wrap=True)
        self._button = button("", partial(runner.run, model))
        self._button.setEnabled(can_run)
        self.setProperty("kind", "card")
        words = QWidget()
        vbox(label(name, "strong", wrap=True), self._facts, parent=words, spacing=SPACE_XS, margins=0)
        hbox(TextWithButtons(words, (self._button,)), parent=self, margins=SPACE_M)
        self.show_state(LocalState())

    def show_state(self, state: LocalState) -> None:
        model, name = self._model, show_hidden(self._model.id)
        is_active = state.phase in _ACTIVE_PHASES and state.model is not None and state.model.path == model.path
        phase = self.tr("runs") if state.phase is LocalPhase.READY else self.tr("is being loaded")
        context = "" if model.context_length is None else format_number(model.context_length)
        facts = (
            phase if is_active else "",
            model.architecture or "",
            model.quantisation or "",
            format_bytes(model.size),
            self.tr("context {0}").format(context) if context else "",
            model.source,
        )
        self._facts.setText(" · ".join(filter(None, facts)))
        self._button.setText(self.tr("Use") if is_active else self.tr("Run"))
        words = self.tr("Use {0} in this conversation") if is_active else self.tr("Run {0}")
        self._button.setAccessibleName(words.format(name))
        self._button.setToolTip(plain_tooltip(words.format(name)) if is_active else "")


class LocalModelSettings(QWidget):
    """Runs model files. `form` has the preferences."""

    def __init__(self, themes: ThemeSource, form: Form, runner: LocalModelRunner) -> None:
        super().__init__()
        self._runner = runner
        self._cards: list[_ModelCard] = []
        self._shown = LocalState()
        self._searching = label(self.tr("Looking for model files on this computer…"), "muted", wrap=True)
        self._none = label(
            self.tr("No model files were found. Choose one whose name ends in .gguf, or get one with another program."),
            "muted",
            wrap=True,
        )
        self._no_server = label(
            self.tr(
                "Models are run by llama.cpp, which is not installed here. Install it with your package manager, "
                "“brew install llama.cpp” or “winget install llama.cpp”, or from github.com/ggml-org/llama.cpp. Then "
                "press “Look again”."
            ),
            "warning",
            wrap=True,
        )
        self._state = StatusLine(themes)
        self._stop = button(self.tr("Stop the model"), runner.stop)
        self._list = vbox(spacing=SPACE_S)
        choose = button(self.tr("Choose a file…"), self._choose)
        again = button(self.tr("Look again"), self._refresh)
        words = label(self.tr("Run a model file on this computer: no key, no network, no cost."), "muted", wrap=True)
        parts = (
            words,
            self._no_server,
            self._state,
            FlowRows((self._stop, choose, again)),
            self._searching,
            self._none,
        )
        vbox(*parts, self._list, form, parent=self, spacing=SPACE_M, margins=0, end_stretch=True)
        self._no_server.hide()
        self._none.hide()
        self._stop.hide()
        runner.found.connect(self.show_found)
        runner.state_changed.connect(self.show_state)
        runner.failed.connect(self.show_problem)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._runner.refresh()

    def show_found(self, found: FoundModels) -> None:
        """Show the models that were found, and whether a server is installed for them."""
        self._searching.hide()
        self._no_server.setVisible(found.program is None)
        self._none.setVisible(not found.models)
        for card in self._cards:
            remove_widget(self._list, card)
        can_run = found.program is not None
        self._cards = [_ModelCard(model, self._runner, can_run=can_run) for model in found.models]
        for card in self._cards:
            card.show_state(self._shown)
            self._list.addWidget(card)

    def show_state(self, state: LocalState) -> None:
        """Show which model runs, and the memory that it takes."""
        self._shown = state
        for card in self._cards:
            card.show_state(state)
        name = show_hidden(state.model.id) if state.model is not None else ""
        memory = format_bytes(state.memory) if state.memory else ""
        self._stop.setVisible(state.phase in _ACTIVE_PHASES)
        remark = translate_sentence(state.remark) if state.remark is not None else ""
        match state.phase:
            case LocalPhase.LOADING:
                size = format_bytes(state.model.size) if state.model is not None else ""
                words = self.tr("Loading “{0}”: {1} in memory, the file has {2}.").format(name, memory or "0", size)
                self._state.show_state(Status.BUSY, words)
            case LocalPhase.READY:
                words = self.tr("“{0}” is running and uses {1} of memory.").format(name, memory)
                self._state.show_state(Status.OK, words)
            case LocalPhase.FAILED:
                self._state.show_state(Status.ERROR, remark)
            case LocalPhase.STOPPED:
                self._state.show_state(Status.IDLE, remark)

    def show_problem(self, problem: Sentence) -> None:
        """Show why a choice did not work."""
        self._state.show_state(Status.ERROR, problem)

    def _refresh(self) -> None:
        self._searching.show()
        self._runner.refresh()

    def _choose(self) -> None:
        ask_file(self, self.tr("Choose a model file"), [self.tr("Models (*.gguf)")], self._runner.run_file)
