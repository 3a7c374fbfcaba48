"""One specialist as it is."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from desktop_agent.vocabulary.conduct.specialists import Specialist
from ui.look.controls import ElidedLabel, button, label
from ui.look.parts.flow_rows import FlowRows
from ui.look.sentences import format_count, format_dollars
from ui.look.theme import SPACE_M, SPACE_S
from ui.preferences.cards.card_column import Card


class SpecialistCard(Card):
    """Its name, what it is for, and what it may use."""

    edit_pressed = Signal()
    remove_pressed = Signal()

    def __init__(self, specialist: Specialist, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        name = specialist.name
        self.setAccessibleName(self.tr("Specialist {0}").format(name))
        head = QHBoxLayout()
        head.setSpacing(SPACE_S)
        title = ElidedLabel(name)
        title.setProperty("kind", "strong")
        head.addWidget(title, 1)
        edit = button(self.tr("Edit"), self.edit_pressed.emit, name=self.tr("Edit {0}").format(name))
        self.set_edit_buttons(edit)
        gone = self.tr("Remove {0}").format(name)
        remove = button(self.tr("Remove"), self.remove_pressed.emit, "danger", gone)
        head.addWidget(FlowRows((edit, remove), trailing=True))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_M, SPACE_M, SPACE_M, SPACE_M)
        layout.setSpacing(SPACE_S)
        layout.addLayout(head)
        layout.addWidget(label(specialist.description, wrap=True))
        layout.addWidget(label(self._details(specialist), "muted", wrap=True))

    def _details(self, specialist: Specialist) -> str:
        tools = ", ".join(specialist.tools) or self.tr("none")
        facts = [self.tr("Tools: {0}").format(tools)]
        if specialist.model:
            facts.append(self.tr("Model: {0}").format(specialist.model))
        facts.append(self.tr("Budget: {0} %").format(round(specialist.share * 100)))
        if specialist.limits.tokens:
            facts.append(self.tr("At most {0} tokens").format(format_count(specialist.limits.tokens)))
        if specialist.limits.cost:
            facts.append(self.tr("At most {0}").format(format_dollars(specialist.limits.cost)))
        if specialist.limits.seconds:
            facts.append(self.tr("At most {0} minutes").format(f"{specialist.limits.seconds / 60:.3g}"))
        return " · ".join(facts)
