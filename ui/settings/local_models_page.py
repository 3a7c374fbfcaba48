"""The page of model files: which there are, the one that runs, and how long it stays in the memory."""

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFileDialog, QFrame, QWidget

from desktop_agent.types.errors import Sentence
from desktop_agent.types.providers import FoundModels, LocalModel, LocalPhase, LocalState
from ui.forms.form import Form
from ui.style.boxes import hbox, vbox
from ui.style.controls import button, label
from ui.style.layouts import FlowRows
from ui.style.removal import remove_widget
from ui.style.server_fields import Status, StatusLine
from ui.style.text import format_bytes, format_number, show_hidden, translate_sentence
from ui.style.theme import SPACE_M, SPACE_S, SPACE_XS, ThemeSource
from ui.style.widgets import TextWithButtons


class LocalModelSettings(QWidget):
    """Emits what to run; answer with `show_found` and `show_state`. `form` has the fields of the preferences."""

    run_requested = Signal(object)
    """A LocalModel."""
    file_chosen = Signal(str)
    stop_requested = Signal()
    refresh_requested = Signal()

    def __init__(self, themes: ThemeSource, form: Form) -> None:
        super().__init__()
        self._rows: list[QWidget] = []
        self._searching = label(self.tr("Looking for model files on this computer…"), "muted", wrap=True)
        self._none = label(
            self.tr("No model files were found. Choose one whose name ends in .gguf, or get one with another program."),
            "muted",
            wrap=True,
        )
        self._no_server = label(
            self.tr(
                "Models are run by llama.cpp, which is not installed here. Install it by your package manager, “brew "
                "install llama.cpp” or “winget install llama.cpp”, or from github.com/ggml-org/llama.cpp. Look again."
            ),
            "warning",
            wrap=True,
        )
        self._state = StatusLine(themes)
        self._stop = button(self.tr("Stop the model"), self.stop_requested.emit)
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

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh_requested.emit()

    def show_found(self, found: FoundModels) -> None:
        """Show the models that are there, and whether there is a server for them."""
        self._searching.hide()
        self._no_server.setVisible(found.program is None)
        self._none.setVisible(not found.models)
        for row in self._rows:
            remove_widget(self._list, row)
        self._rows = [self._row(model, can_run=found.program is not None) for model in found.models]
        for row in self._rows:
            self._list.addWidget(row)

    def show_state(self, state: LocalState) -> None:
        """Show what runs, and the memory that it takes."""
        name = show_hidden(state.model.id) if state.model is not None else ""
        memory = format_bytes(state.memory) if state.memory else ""
        self._stop.setVisible(state.phase in (LocalPhase.LOADING, LocalPhase.READY))
        remark = translate_sentence(state.remark) if state.remark is not None else ""
        match state.phase:
            case LocalPhase.LOADING:
                size = format_bytes(state.model.size) if state.model is not None else ""
                words = self.tr("Loading “{0}”: {1} in memory, the file has {2}.").format(name, memory or "0", size)
                self._state.show_state(Status.BUSY, words)
            case LocalPhase.READY:
                words = self.tr("“{0}” runs and takes {1} of memory.").format(name, memory)
                self._state.show_state(Status.OK, words)
            case LocalPhase.FAILED:
                self._state.show_state(Status.ERROR, remark)
            case LocalPhase.STOPPED:
                self._state.show_state(Status.IDLE, remark)

    def show_problem(self, problem: Sentence) -> None:
        """Show why a choice did not work."""
        self._state.show_state(Status.ERROR, problem)

    def _row(self, model: LocalModel, *, can_run: bool) -> QWidget:
        name = show_hidden(model.id)
        facts = [model.architecture or "", model.quantisation or "", format_bytes(model.size)]
        if model.context_length is not None:
            facts.append(self.tr("context {0}").format(format_number(model.context_length)))
        facts.append(model.source)
        act = partial(self.run_requested.emit, model)
        run = button(self.tr("Run"), act, name=self.tr("Run {0}").format(name))
        run.setEnabled(can_run)
        title, under = label(name, "strong", wrap=True), label(" · ".join(filter(None, facts)), "muted", wrap=True)
        words = QWidget()
        vbox(title, under, parent=words, spacing=SPACE_XS, margins=0)
        card = QFrame()
        card.setProperty("kind", "card")
        hbox(TextWithButtons(words, (run,)), parent=card, margins=SPACE_M)
        return card

    def _refresh(self) -> None:
        self._searching.show()
        self.refresh_requested.emit()

    def _choose(self) -> None:
        dialog = QFileDialog(self, self.tr("Choose a model file"))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilter(self.tr("Models (*.gguf)"))
        dialog.fileSelected.connect(self.file_chosen)
        dialog.open()
