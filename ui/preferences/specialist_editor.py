"""The editor of one specialist: instructions, model, tools and budget."""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError
from PySide6.QtCore import QCoreApplication, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QLineEdit, QPlainTextEdit, QSpinBox, QWidget

from desktop_agent.types.policies import Limits, Specialist
from ui.bridge.model_servers import ModelGroup
from ui.bridge.settings import ToolGroup
from ui.preferences.card_list import CardEditor
from ui.preferences.forms import ValidatedForm
from ui.preferences.tool_picker import ToolChecklist
from ui.style.boxes import vbox
from ui.style.controls import ComboBox, announce, label
from ui.style.theme import SPACE_M, SPACE_XS

MAX_TOKENS = 2_000_000_000
MAX_COST = 1_000_000.0
MAX_MINUTES = 24 * 60.0
MAX_TURNS = 100_000
_TOKEN_STEP = 10_000


class BudgetFields:
    """The share of the caller's remaining budget, and own limits; 0 is none."""

    def __init__(self, form: ValidatedForm, parent: QWidget) -> None:
        self._share = QSpinBox(parent)
        self._tokens = QSpinBox(parent)
        self._cost = QDoubleSpinBox(parent)
        self._minutes = QDoubleSpinBox(parent)
        self._turns = QSpinBox(parent)
        self._before: Specialist | None = None
        self._shown = (0, 0.0, 0.0)
        self._configure_fields()
        share = QCoreApplication.translate("Budget", "Of the tokens and the cost that are left to whoever calls it.")
        form.add(QCoreApplication.translate("Budget", "Share of the budget"), self._share, note=share)
        form.add(QCoreApplication.translate("Budget", "Most tokens"), self._tokens)
        form.add(QCoreApplication.translate("Budget", "Most cost"), self._cost)
        time = QCoreApplication.translate("Budget", "At work; waiting for you does not count.")
        form.add(QCoreApplication.translate("Budget", "Longest time"), self._minutes, note=time)
        form.add(QCoreApplication.translate("Budget", "Most turns"), self._turns)

    def show_budget(self, specialist: Specialist) -> None:
        """Show the budget of a specialist."""
        limits = specialist.limits
        self._share.setValue(round(specialist.share * 100))
        self._tokens.setValue(limits.tokens or 0)
        self._cost.setValue(limits.cost or 0)
        self._minutes.setValue((limits.seconds or 0) / 60)
        self._turns.setValue(limits.turns)
        self._before = specialist
        self._shown = self._share.value(), self._cost.value(), self._minutes.value()

    @property
    def share(self) -> float:
        """Return the share from 0 to 1. A finer value than is shown stays until it is edited."""
        shown = self._share.value()
        return self._before.share if self._before is not None and shown == self._shown[0] else shown / 100

    @property
    def limits(self) -> dict[str, Any]:
        """Return all limits. A finer value than is shown stays until it is edited."""
        old = self._before.limits if self._before is not None else Limits()
        _, cost, minutes = self._shown
        return {
            **old.model_dump(),
            "tokens": self._tokens.value() or None,
            "cost": old.cost if self._cost.value() == cost else self._cost.value() or None,
            "seconds": old.seconds if self._minutes.value() == minutes else self._minutes.value() * 60 or None,
            "turns": self._turns.value(),
        }

    def _configure_fields(self) -> None:
        self._share.setRange(1, 100)
        self._share.setValue(50)
        self._share.setSuffix(" %")
        self._tokens.setRange(0, MAX_TOKENS)
        self._tokens.setSingleStep(_TOKEN_STEP)
        self._tokens.setGroupSeparatorShown(True)
        self._tokens.setSuffix(QCoreApplication.translate("Budget", " tokens for each call"))
        self._cost.setRange(0, MAX_COST)
        self._cost.setPrefix("$")
        self._cost.setSuffix(QCoreApplication.translate("Budget", " for each call"))
        self._minutes.setRange(0, MAX_MINUTES)
        self._minutes.setDecimals(1)
        self._minutes.setSuffix(QCoreApplication.translate("Budget", " minutes for each call"))
        self._turns.setRange(1, MAX_TURNS)
        self._turns.setValue(Limits().turns)
        self._turns.setSuffix(QCoreApplication.translate("Budget", " turns for each call"))
        for widget in (self._tokens, self._cost, self._minutes):
            widget.setSpecialValueText(QCoreApplication.translate("Budget", "No limit"))


_CALLER_MODEL, _CUSTOM_MODEL = "", "\n"
"""Data of the two entries that name no model; no model is called so."""
MIN_MODEL_CHARS = 22


class ModelChoice(QWidget):
    """`model` is what is selected; None: the caller's."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._groups: tuple[ModelGroup, ...] = ()
        self._items = QStandardItemModel(self)
        self.menu = ComboBox()
        self.menu.setModel(self._items)
        self.menu.setMinimumContentsLength(MIN_MODEL_CHARS)
        self.menu.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.menu.setAccessibleName(self.tr("Model"))
        self.other = QLineEdit()
        self.other.setAccessibleName(self.tr("Name of the model"))
        self.other.setPlaceholderText(self.tr("Name of the model, as its server calls it"))
        self.other.setMaxLength(200)
        self.setFocusProxy(self.menu)
        vbox(self.menu, self.other, parent=self, spacing=SPACE_XS, margins=0)
        self._populate_menu(None)
        self.menu.currentIndexChanged.connect(self._on_selected)
        self.other.textChanged.connect(self.changed)

    @property
    def model(self) -> str | None:
        """Return the selected model, or None for the caller's."""
        chosen = str(self.menu.currentData())
        return (self.other.text().strip() if chosen == _CUSTOM_MODEL else chosen) or None

    @property
    def is_missing(self) -> bool:
        """Whether another model is selected and not named."""
        return self.menu.currentData() == _CUSTOM_MODEL and not self.other.text().strip()

    def set_model(self, model: str | None) -> None:
        """Select a model; one that no server lists is added with a note."""
        self._populate_menu(model)

    def show_models(self, groups: Sequence[ModelGroup]) -> None:
        """Show what servers list; the selected model stays."""
        self._groups = tuple(groups)
        chosen = self.menu.currentData()
        self._populate_menu(self.model)
        if chosen == _CUSTOM_MODEL:
            self.menu.setCurrentIndex(self.menu.findData(_CUSTOM_MODEL))

    def _populate_menu(self, model: str | None) -> None:
        with QSignalBlocker(self.menu):
            self._items.clear()
            self._add_item(self.tr("Same as whoever calls it"), _CALLER_MODEL)
            for group in self._groups:
                if group.models:
                    heading = QStandardItem(group.endpoint.title)
                    heading.setFlags(Qt.ItemFlag.NoItemFlags)
                    self._items.appendRow(heading)
                for part in group.models:
                    self._add_item(part.id, part.id)
            if model is not None and self.menu.findData(model) < 0:
                self._add_item(self.tr("{0} (not listed)").format(model), model)
            self._add_item(self.tr("Another model…"), _CUSTOM_MODEL)
            self.menu.setCurrentIndex(self.menu.findData(model or _CALLER_MODEL))
        self._on_selected()

    def _on_selected(self) -> None:
        is_other = self.menu.currentData() == _CUSTOM_MODEL
        self.other.setVisible(is_other)
        if is_other and self.menu.hasFocus():
            self.other.setFocus()
        self.changed.emit()

    def _add_item(self, words: str, model: str) -> None:
        item = QStandardItem(words)
        item.setData(model, Qt.ItemDataRole.UserRole)
        self._items.appendRow(item)


PROMPT_LINES = 5
MAX_SPECIALIST_NAME_LENGTH = 64


class SpecialistEditor(CardEditor):
    """`saved` carries the Specialist. What has no field here (mode, own specialists, reasoning) stays."""

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
        """Focus the name."""
        self._name.setFocus()

    def show_tools(self, groups: Sequence[ToolGroup], taken: Iterable[str]) -> None:
        """Set the tools to choose from, and the names that a specialist cannot have."""
        self._taken = frozenset(taken)
        self._tools.show_tools(groups)

    def show_models(self, groups: Sequence[ModelGroup]) -> None:
        """Set the models to choose from."""
        self._model.show_models(groups)

    def save(self) -> None:
        """Emit `saved`, or show what is missing."""
        if self._form.show_errors():
            return
        specialist = self._build_specialist()
        if specialist is not None:
            self.saved.emit(specialist)
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
        old = self._before
        base = old.model_dump() if old is not None else {}
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
