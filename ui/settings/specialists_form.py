"""The page of specialists: a card for each, and the editor of one."""

from collections.abc import Iterable, Sequence
from functools import partial

from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QLineEdit, QWidget

from desktop_agent.types.policies import Limits, Specialist
from ui.bridge.model_servers import ModelGroup
from ui.bridge.settings import ToolGroup
from ui.forms.controls import Control, number_box, text_area, text_line
from ui.forms.form import required
from ui.settings.card_list import Card, CardEditor, ItemsForm
from ui.settings.tool_picker import GroupedMenu, ToolChecklist
from ui.style.boxes import hbox, vbox
from ui.style.controls import button, label
from ui.style.layouts import PartFocus
from ui.style.text import format_count, format_dollars, join_names, one_line, show_hidden
from ui.style.theme import SPACE_M, SPACE_S, SPACE_XS
from ui.style.tool_labels import tool_title
from ui.style.widgets import TextWithButtons

_CALLER_MODEL, _CUSTOM_MODEL = "", "\n"
"""Data of the two entries that name no model; no model has such a name."""
MIN_MODEL_CHARS = 22


class ModelChoice(QWidget):
    """`model` is what is selected; None: the caller's."""

    def __init__(self) -> None:
        super().__init__()
        self._groups: tuple[ModelGroup, ...] = ()
        self.menu = GroupedMenu(MIN_MODEL_CHARS, self.tr("{0} (not listed)"))
        self.menu.setAccessibleName(self.tr("Model"))
        self.other = QLineEdit()
        self.other.setAccessibleName(self.tr("Name of the model"))
        self.other.setPlaceholderText(self.tr("Name of the model, as its server calls it"))
        self.other.setMaxLength(200)
        vbox(self.menu, self.other, parent=self, spacing=SPACE_XS, margins=0)
        PartFocus(self, self.menu)
        self.set_model(None)
        self.menu.currentIndexChanged.connect(self._on_selected)

    @property
    def model(self) -> str | None:
        """The selected model, or None for the caller's."""
        chosen = str(self.menu.currentData())
        return (self.other.text().strip() if chosen == _CUSTOM_MODEL else chosen) or None

    @property
    def is_missing(self) -> bool:
        """Whether another model is selected and not named."""
        return self.menu.currentData() == _CUSTOM_MODEL and not self.other.text().strip()

    def show_models(self, groups: Sequence[ModelGroup]) -> None:
        """Show what servers list; the selected model stays, and so does an open menu if nothing is new."""
        if tuple(groups) == self._groups:
            return
        self._groups = tuple(groups)
        chosen = self.menu.currentData()
        self.set_model(self.model)
        if chosen == _CUSTOM_MODEL:
            self.menu.setCurrentIndex(self.menu.findData(_CUSTOM_MODEL))

    def set_model(self, model: str | None) -> None:
        """Select a model; one that no server lists is added with a note."""
        with QSignalBlocker(self.menu):
            self.menu.clear_choices()
            self.menu.add_choice(self.tr("Same as its caller"), _CALLER_MODEL)
            for group in self._groups:
                if group.models:
                    self.menu.add_heading(group.endpoint.title)
                for listed in group.models:
                    self.menu.add_choice(listed.id, listed.id)
            self.menu.select(model or _CALLER_MODEL)
            self.menu.add_choice(self.tr("Another model…"), _CUSTOM_MODEL)
        self._on_selected()

    def _on_selected(self) -> None:
        is_other = self.menu.currentData() == _CUSTOM_MODEL
        self.other.setVisible(is_other)
        if is_other and self.menu.hasFocus():
            self.other.setFocus()


PROMPT_LINES = 5
MAX_SPECIALIST_NAME_LENGTH = 64
MAX_TOKENS = 2_000_000_000
MAX_COST = 1_000_000.0
MAX_MINUTES = 24 * 60.0
MAX_TURNS = 100_000
_TOKEN_STEP = 10_000
_LIMITS = ("tokens", "cost", "seconds", "turns")
"""The limits that have a field."""


class SpecialistEditor(CardEditor):
    """`saved` carries the Specialist. What has no field here (mode, own specialists, reasoning) stays."""

    def __init__(self, specialist: Specialist | None) -> None:
        super().__init__(self.tr("Specialist editor"))
        self._original = specialist
        self._taken: frozenset[str] = frozenset()
        self._model = ModelChoice()
        self._tools = ToolChecklist()
        self._add_fields()
        self._add_budget()
        self._build_layout()
        shown = {"share": Specialist.model_fields["share"].default} if specialist is None else dict(specialist)
        limits = Limits() if specialist is None else specialist.limits
        self.form.show_values({**shown, **dict(limits)})

    def show_tools(self, groups: Sequence[ToolGroup], taken: Iterable[str]) -> None:
        """Set the tools to choose from, and the names that a specialist cannot have."""
        self._taken = frozenset(taken)
        self._tools.show_tools(groups)

    def show_models(self, groups: Sequence[ModelGroup]) -> None:
        """Set the models to choose from."""
        self._model.show_models(groups)

    def _edited_item(self) -> Specialist:
        base = dict(self._original) if self._original is not None else {}
        old_limits = self._original.limits if self._original is not None else Limits()
        values = self.form.values
        limits = {**old_limits.model_dump(), **{name: values.pop(name) for name in _LIMITS}}
        return Specialist.model_validate({**base, **values, "limits": limits})

    def _name_error(self, name: str) -> str:
        if not name.isascii() or not name.replace("-", "_").isidentifier() or name.startswith("-"):
            return self.tr("A name has letters from a to z, digits, “_” and “-”, and begins with a letter. Change it.")
        if name in self._taken:
            return self.tr("Another specialist or tool has this name. Choose another one.")
        return ""

    def _model_error(self, _model: str | None) -> str:
        return self.tr("Write the name of the model, or choose one from the list.") if self._model.is_missing else ""

    def _add_fields(self) -> None:
        add, model, tools = self.form.add_field, self._model, self._tools
        add("name", self.tr("Name"), text_line(max_length=MAX_SPECIALIST_NAME_LENGTH), self._name_error)
        undescribed = self.tr("The agent reads the description to know whom to call. Write one.")
        add("description", self.tr("Description"), text_line(), required(undescribed))
        uninstructed = self.tr("A specialist needs instructions. Write what it is and how it works.")
        add("system_prompt", self.tr("Instructions"), text_area(PROMPT_LINES), required(uninstructed))
        choice = Control(widget=model, read=lambda: model.model, show=model.set_model)
        server = self.tr("The server of the conversation answers, so it must be one of its models.")
        add("model", self.tr("Model"), choice, self._model_error, help_text=server)
        add("tools", self.tr("Tools"), Control(widget=tools, read=lambda: tools.tools, show=tools.set_tools))

    def _add_budget(self) -> None:
        add, no_limit = self.form.add_field, self.tr("No limit")
        add(
            "share",
            self.tr("Share of the budget"),
            number_box(1, 100, scale=100, suffix=" %"),
            help_text=self.tr("Share of the tokens and the cost that its caller has left."),
        )
        tokens = number_box(
            0, MAX_TOKENS, suffix=self.tr(" tokens for each call"), zero_text=no_limit, zero_is_none=True
        )
        tokens.widget.setSingleStep(_TOKEN_STEP)
        tokens.widget.setGroupSeparatorShown(True)
        add("tokens", self.tr("Token limit"), tokens)
        cost = number_box(
            0, MAX_COST, decimals=2, prefix="$", suffix=self.tr(" for each call"), zero_text=no_limit, zero_is_none=True
        )
        add("cost", self.tr("Cost limit"), cost)
        minutes = number_box(
            0,
            MAX_MINUTES,
            decimals=1,
            scale=1 / 60,
            suffix=self.tr(" minutes for each call"),
            zero_text=no_limit,
            zero_is_none=True,
        )
        at_work = self.tr("Working time; waiting for you does not count.")
        add("seconds", self.tr("Time limit"), minutes, help_text=at_work)
        add("turns", self.tr("Turn limit"), number_box(1, MAX_TURNS, suffix=self.tr(" turns for each call")))


_MOST_SHOWN = 300
"""Characters of a description; the editor shows all of it."""


class SpecialistCard(Card):
    """A specialist: its description, tools and budget."""

    def __init__(self, specialist: Specialist, page: "SpecialistSettings") -> None:
        super().__init__()
        name = specialist.name
        self.setAccessibleName(self.tr("Specialist {0}").format(name))
        edit = button(self.tr("Edit"), partial(page.edit, name), name=self.tr("Edit {0}").format(name))
        self.edit_buttons = (edit,)
        remove_name = self.tr("Remove {0}").format(name)
        remove = button(self.tr("Remove"), partial(page.remove, specialist), "danger", remove_name)
        head = TextWithButtons(label(show_hidden(name), "strong", wrap=True), (edit, remove))
        description = label(one_line(specialist.description, _MOST_SHOWN), wrap=True)
        details = label(self._details(specialist), "muted", wrap=True)
        vbox(head, description, details, parent=self, spacing=SPACE_S, margins=SPACE_M)

    def _details(self, specialist: Specialist) -> str:
        tools = join_names(map(tool_title, specialist.tools)) or self.tr("none")
        facts = [self.tr("Tools: {0}").format(tools)]
        if specialist.model:
            facts.append(self.tr("Model: {0}").format(specialist.model))
        facts.append(self.tr("Budget: {0} %").format(round(specialist.share * 100)))
        if specialist.limits.tokens:
            facts.append(self.tr("At most {0} tokens").format(format_count(specialist.limits.tokens)))
        if specialist.limits.cost:
            facts.append(self.tr("At most {0}").format(format_dollars(specialist.limits.cost)))
        if specialist.limits.seconds:
            facts.append(self.tr("At most {0} min").format(f"{specialist.limits.seconds / 60:.3g}"))
        return " · ".join(facts)


# Tools that the runtime adds by itself.
RESERVED_NAMES = ("ask_user", "change_mode")


class SpecialistSettings(ItemsForm[Specialist, SpecialistEditor]):
    """The page of specialists. Answer `changed` with `show_items`."""

    def __init__(self) -> None:
        super().__init__(self.tr("Add specialist…"))
        self._models: tuple[ModelGroup, ...] = ()
        self._empty_note = label(self.tr("There is no specialist yet."), "muted")
        words = self.tr(
            "A specialist is an agent with its own instructions, which the agent can call like a tool. It may never "
            "do more than the agent that calls it. Changes apply from the next message on."
        )
        intro, foot = label(words, "muted", wrap=True), hbox(self._add, end_stretch=True)
        parts = (intro, self._empty_note, self._cards, self._undo, foot)
        vbox(*parts, parent=self, spacing=SPACE_M, margins=0, end_stretch=True)

    def show_models(self, groups: Sequence[ModelGroup]) -> None:
        """Set the models to choose from."""
        self._models = tuple(groups)
        if self.editor is not None:
            self.editor.show_models(self._models)

    def _create_editor(self, item: Specialist | None) -> SpecialistEditor:
        editor = SpecialistEditor(item)
        editor.show_models(self._models)
        return editor

    def _update_editor(self, editor: SpecialistEditor) -> None:
        tools = (tool.name for group in self._tools for tool in group.tools)
        taken = frozenset((*(specialist.name for specialist in self._items), *tools, *RESERVED_NAMES))
        editor.show_tools(self._tools, taken - {self._edited_name})

    def remove(self, specialist: Specialist) -> None:
        """Remove a specialist, and offer to bring it back."""
        words = self.tr("The specialist “{0}” is removed. No conversation uses it from its next prompt on.")
        self._remove_item(specialist, words.format(specialist.name))

    def _create_card(self, item: Specialist) -> SpecialistCard:
        return SpecialistCard(item, self)
