"""The completion popup for slash commands and @ mentions, and the dialog for the arguments of what was chosen."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QCoreApplication, QSize, QStringListModel, Qt, QTimer, Signal
from PySide6.QtWidgets import QCompleter, QDialog, QWidget

from desktop_agent.types.mcp import McpPromptArgument
from ui.bridge.mcp.requests import ServerCatalog
from ui.composer.completions import CompletionItem, CompletionKind, completion_items
from ui.forms.controls import text_line
from ui.forms.form import ARGUMENTS, Form
from ui.style.boxes import hbox
from ui.style.controls import button, label
from ui.style.layouts import ScrollColumn
from ui.style.pickers import SearchPopup
from ui.style.text import join_names, show_hidden
from ui.style.theme import SPACE_M, SPACE_S, ThemeSource
from ui.style.widgets import lay_out_dialog

POPUP_SIZE = QSize(460, 420)


class CompletionPopup(SearchPopup):
    """`chosen` carries a CompletionItem. A trigger character opens it; Backspace in the empty field closes it.

    Its link leads to the settings of MCP servers.
    """

    def __init__(self, themes: ThemeSource, parent: QWidget) -> None:
        words = {
            "name": _tr("From MCP servers"),
            "refresh": _tr("Ask the servers again"),
            "link": _tr("MCP servers…"),
        }
        super().__init__(themes, self._search, POPUP_SIZE, parent, **words)
        self._groups: Sequence[ServerCatalog] = ()
        self._completion_kind: CompletionKind = "all"
        self.panel.backspace_pressed.connect(self.hide)

    def set_groups(self, groups: Sequence[ServerCatalog]) -> None:
        """Set what the servers offer."""
        self._groups = groups
        self.fill()

    def open_above(self, widget: QWidget, wanted: CompletionKind) -> None:
        """Show items of this kind above a widget, or below where there is no room."""
        self._completion_kind = wanted
        names = {
            "all": _tr("Search prompts and resources"),
            "prompts": _tr("Search prompts"),
            "resources": _tr("Search resources"),
        }
        self.panel.set_label(names[wanted])
        self.show_over(widget)

    def _search(self, typed: str) -> Sequence[CompletionItem]:
        return completion_items(self._groups, typed, self._completion_kind)


def _tr(text: str) -> str:
    return QCoreApplication.translate("OffersPopup", text)


DIALOG_WIDTH = 460
COMPLETION_DELAY_MS = 200
_MAX_FORM_HEIGHT = 420


class PromptArgumentsDialog(QDialog):
    """The dialog for a prompt's arguments, window-modal. Answer `completion_requested` with `show_completions`."""

    arguments_submitted = Signal(dict)
    """Values by name, without empty ones."""
    completion_requested = Signal(str, str)
    """An argument's name and its text so far."""

    def __init__(
        self,
        title: str,
        description: str,
        arguments: Sequence[McpPromptArgument],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._needed = [argument.name for argument in arguments if argument.required]
        self._form = Form(ARGUMENTS)
        self._completers: dict[str, QCompleter] = {}
        self._completed_name = ""
        self._completion_timer = QTimer(self, singleShot=True, interval=COMPLETION_DELAY_MS)
        self._completion_timer.timeout.connect(self._request_completion)
        self._missing = label(kind="small", wrap=True)
        self._insert = button(self.tr("Insert"), self._submit, "primary")
        for argument in arguments:
            self._add_argument(argument)
        self._form.changed.connect(self._refresh)
        self._build_layout(show_hidden(title), show_hidden(description))
        self._refresh()

    def show_completions(self, name: str, values: Sequence[str]) -> None:
        """Offer the server's completions, unless the text changed since or another field has the focus."""
        completer = self._completers.get(name)
        if completer is None or not completer.widget().hasFocus() or self._completion_timer.isActive():
            return
        model, popup = completer.model(), completer.popup()
        if isinstance(model, QStringListModel):
            text = self._form.rows[name].value
            model.setStringList([show_hidden(value) for value in values if value != text])
        if model.rowCount() > 0:
            completer.complete()
        elif popup is not None:
            popup.hide()

    def _on_edited(self, name: str, _text: str) -> None:
        self._completed_name = name
        self._completion_timer.start()

    def _request_completion(self) -> None:
        self.completion_requested.emit(self._completed_name, self._form.rows[self._completed_name].value)

    @property
    def values(self) -> dict[str, str]:
        return {name: value for name, value in self._form.values.items() if value}

    def _refresh(self) -> None:
        missing = [show_hidden(name) for name in self._needed if name not in self.values]
        self._missing.setText(self.tr("Still needed: {0}").format(join_names(missing)) if missing else "")
        self._insert.setEnabled(not missing)

    def _submit(self) -> None:
        if self._insert.isEnabled():
            self.accept()
            self.arguments_submitted.emit(self.values)

    def _add_argument(self, argument: McpPromptArgument) -> None:
        control = text_line(is_exact=True)
        line, words = control.widget, show_hidden(argument.description)
        completer = self._completers[argument.name] = QCompleter(QStringListModel(line), line)
        completer.setCompletionMode(QCompleter.CompletionMode.UnfilteredPopupCompletion)
        line.setCompleter(completer)
        if (popup := completer.popup()) is not None:
            popup.setAccessibleName(show_hidden(argument.name))
        line.textEdited.connect(partial(self._on_edited, argument.name))
        is_optional = not argument.required
        title = show_hidden(argument.name)
        self._form.add_field(argument.name, title, control, help_text=words, is_optional=is_optional)

    def _build_layout(self, title: str, description: str) -> None:
        self.setWindowModality(Qt.WindowModality.WindowModal)
        scrolled = ScrollColumn(SPACE_M, trailing=SPACE_S)
        scrolled.column.addWidget(self._form)
        scrolled.column.addStretch(1)
        scrolled.setMinimumHeight(min(scrolled.column.sizeHint().height(), _MAX_FORM_HEIGHT))
        self._insert.setDefault(True)
        cancel = button(self.tr("Cancel"), self.reject)
        foot = hbox(self._missing, cancel, self._insert, spacing=SPACE_S, grow=self._missing)
        intro = [label(description, "muted", wrap=True)] if description else []
        lay_out_dialog(self, title, *intro, scrolled, foot, grow=scrolled)
        self.setMinimumWidth(min(DIALOG_WIDTH, self.screen().availableSize().width()))
