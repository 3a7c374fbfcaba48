"""The page of specialists: a card for each."""

from collections.abc import Sequence
from functools import partial

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
