"""One specialist being written; what is wrong is said as one types."""

from collections.abc import Iterable, Sequence

from pydantic import ValidationError
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QWidget

from desktop_agent.vocabulary.conduct.specialists import Specialist
from ui.bridge.conduct.known_tools import ToolGroup
from ui.bridge.servers import ModelGroup
from ui.look.controls import announce, label
from ui.look.theme import SPACE_M
from ui.preferences.cards.card_editor import CardEditor
from ui.preferences.checked_fields import ValidatedForm
from ui.preferences.specialists.budget_fields import BudgetFields
from ui.preferences.specialists.model_choice import ModelChoice
from ui.preferences.specialists.tool_choice import ToolChecklist

PROMPT_LINES = 5
MAX_SPECIALIST_NAME_LENGTH = 64


class SpecialistEditor(CardEditor):
    """`saved` carries the Specialist. What is not shown here (its mode, its own specialists, how it reasons) stays."""

    def __init__(self, specialist: Specialist | None, taken: Iterable[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._before = specialist
        self._taken = frozenset(taken)
        self._name = QLineEdit()
        self._description = QLineEdit()
        self._prompt = QPlainTextEdit()
        self._model = ModelChoice()
        self._tools = ToolChecklist()
        self._form = ValidatedForm()
        self._problem = label(kind="error", wrap=True)
        self._configure_fields()
        self._build_form()
        self._budget = BudgetFields(self._form, self)
        if specialist is not None:
            self._show_specialist(specialist)

    def start_editing(self) -> None:
        """The person wants to write."""
        self._name.setFocus()

    def show_tools(self, groups: Sequence[ToolGroup], taken: Iterable[str]) -> None:
        """The tools to choose from, and the names that a specialist cannot have."""
        self._taken = frozenset(taken)
        self._tools.show_tools(groups)

    def show_models(self, groups: Sequence[ModelGroup]) -> None:
        """The models to choose from."""
        self._model.show_models(groups)

    def save(self) -> None:
        """Hand it on, or say what is missing."""
        if self._form.show_errors():
            return
        made = self._build_specialist()
        if made is not None:
            self.saved.emit(made)
            return
        words = self.tr("This cannot be saved. Look at each field again.")
        self._problem.setText(words)
        self._problem.show()
        announce(self, words)

    def _name_error(self) -> str:
        name = self._name.text().strip()
        if not name.isascii() or not name.replace("-", "_").isidentifier() or name.startswith("-"):
            return self.tr("A name is made of letters, digits, “_” and “-”, and begins with a letter. Change it.")
        if name in self._taken:
            return self.tr("Another specialist or tool has this name. Choose another one.")
        return ""

    def _description_error(self) -> str:
        if self._description.text().strip():
            return ""
        return self.tr("The agent reads the description to know whom to call. Write one.")

    def _prompt_error(self) -> str:
        if self._prompt.toPlainText().strip():
            return ""
        return self.tr("A specialist needs instructions. Write what it is and how it works.")

    def _model_error(self) -> str:
        return self.tr("Write the name of the model, or choose one of the list.") if self._model.is_missing else ""

    def _build_specialist(self) -> Specialist | None:
        before = self._before
        base = before.model_dump() if before is not None else {}
        try:
            return Specialist.model_validate(
                {
                    **base,
                    "name": self._name.text().strip(),
                    "description": self._description.text().strip(),
                    "system_prompt": self._prompt.toPlainText().strip(),
                    "model": self._model.model,
                    "tools": self._tools.tools,
                    "share": self._budget.share,
                    "limits": self._budget.limits,
                }
            )
        except ValidationError:
            return None

    def _show_specialist(self, specialist: Specialist) -> None:
        self._name.setText(specialist.name)
        self._description.setText(specialist.description)
        self._prompt.setPlainText(specialist.system_prompt)
        self._model.set_model(specialist.model)
        self._tools.set_tools(specialist.tools)
        self._budget.show_budget(specialist)

    def _configure_fields(self) -> None:
        self._name.setMaxLength(MAX_SPECIALIST_NAME_LENGTH)
        self._prompt.setTabChangesFocus(True)
        self._prompt.setFixedHeight(self._prompt.fontMetrics().lineSpacing() * PROMPT_LINES + SPACE_M)
        self._problem.hide()

    def _build_form(self) -> None:
        form = self._form
        form.add(self.tr("Name"), self._name, self._name_error)
        form.add(self.tr("Description"), self._description, self._description_error)
        form.add(self.tr("Instructions"), self._prompt, self._prompt_error)
        server = self.tr("The server of the conversation answers, so it must be one of its models.")
        form.add(self.tr("Model"), self._model, self._model_error, note=server)
        form.add(self.tr("Tools"), self._tools)
        self.build_layout(self.tr("Specialist being written"), self._name, form, self._problem)
