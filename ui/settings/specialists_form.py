"""The page of specialists: a card for each."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Signal

from desktop_agent.types.policies import Specialist
from ui.bridge.model_servers import ModelGroup
from ui.settings.card_list import Card, ItemsForm
from ui.settings.specialist_editor import SpecialistEditor
from ui.style.boxes import hbox, vbox
from ui.style.controls import button, label
from ui.style.text import format_count, format_dollars, join_names, one_line, show_hidden
from ui.style.theme import SPACE_M, SPACE_S
from ui.style.tool_labels import tool_title
from ui.style.widgets import TextWithButtons

_MOST_SHOWN = 300
"""Characters of a description; the editor shows all of it."""


class SpecialistCard(Card):
    """A specialist: its description, tools and budget."""

    edit_pressed = Signal()
    remove_pressed = Signal()

    def __init__(self, specialist: Specialist) -> None:
        super().__init__()
        name = specialist.name
        self.setAccessibleName(self.tr("Specialist {0}").format(name))
        edit = button(self.tr("Edit"), self.edit_pressed.emit, name=self.tr("Edit {0}").format(name))
        self.set_edit_buttons(edit)
        remove = button(self.tr("Remove"), self.remove_pressed.emit, "danger", self.tr("Remove {0}").format(name))
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
        if self._editor is not None:
            self._editor.show_models(self._models)

    def _create_editor(self, item: Specialist | None) -> SpecialistEditor:
        editor = SpecialistEditor(item)
        editor.show_models(self._models)
        return editor

    def _update_editor(self, editor: SpecialistEditor) -> None:
        tools = (tool.name for group in self._tools for tool in group.tools)
        taken = frozenset((*(specialist.name for specialist in self._items), *tools, *RESERVED_NAMES))
        editor.show_tools(self._tools, taken - {self._edited_name})

    def _remove_specialist(self, index: int) -> None:
        words = self.tr("The specialist “{0}” is removed. No conversation uses it from its next prompt on.")
        self._remove_item(index, words.format(self._items[index].name))

    def _create_card(self, item: Specialist, index: int) -> SpecialistCard:
        card = SpecialistCard(item)
        card.edit_pressed.connect(partial(self.edit, item.name))
        card.remove_pressed.connect(partial(self._remove_specialist, index))
        return card
