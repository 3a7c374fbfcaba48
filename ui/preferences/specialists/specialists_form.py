"""The specialists: all that are defined, one of them being written."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from desktop_agent.vocabulary.conduct.specialists import Specialist
from ui.bridge.conduct.known_tools import ToolGroup
from ui.bridge.servers import ModelGroup
from ui.look.controls import button, label
from ui.look.theme import SPACE_M, SPACE_S
from ui.preferences.scrolling import bring_into_sight
from ui.preferences.specialists.specialist_card import SpecialistCard
from ui.preferences.specialists.specialist_editor import SpecialistEditor

# Tools that the runtime adds by itself.
RESERVED = ("ask_user", "change_mode")


class SpecialistsForm(QWidget):
    """Says how they shall be; whoever keeps them answers with `show_specialists`."""

    changed = Signal(object)
    """A tuple of Specialists."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._specialists: tuple[Specialist, ...] = ()
        self._tools: tuple[ToolGroup, ...] = ()
        self._models: tuple[ModelGroup, ...] = ()
        self._editor: SpecialistEditor | None = None
        self._written: str | None = None
        self._none = label(self.tr("There is no specialist yet."), "muted")
        self._cards = QVBoxLayout()
        self._cards.setSpacing(SPACE_S)
        self._add = button(self.tr("Add specialist…"), lambda: self.edit(None))
        words = self.tr(
            "A specialist is an agent that the agent may call like a tool. It never may do more than the agent that "
            "calls it. Changes hold in every conversation from its next prompt on; one that works already ends as it "
            "began."
        )
        foot = QHBoxLayout()
        foot.addWidget(self._add)
        foot.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        layout.addWidget(label(words, "muted", wrap=True))
        layout.addWidget(self._none)
        layout.addLayout(self._cards)
        layout.addLayout(foot)
        layout.addStretch(1)

    def show_specialists(self, specialists: Sequence[Specialist]) -> None:
        """These are defined; what is being written stays."""
        if tuple(specialists) != self._specialists:
            self._specialists = tuple(specialists)
            self._lay_out()

    def show_tools(self, groups: Sequence[ToolGroup]) -> None:
        """The tools to choose from."""
        self._tools = tuple(groups)
        if self._editor is not None:
            self._editor.show_tools(self._tools, self._taken(self._written))

    def show_models(self, groups: Sequence[ModelGroup]) -> None:
        """The models to choose from."""
        self._models = tuple(groups)
        if self._editor is not None:
            self._editor.show_models(self._models)

    def edit(self, name: str | None) -> None:
        """Write this one, or a new one."""
        self._close()
        names = [each.name for each in self._specialists]
        place = names.index(name) if name in names else len(names)
        before = self._specialists[place] if name in names else None
        self._written = name
        self._editor = SpecialistEditor(before, self._taken(name))
        self._editor.show_tools(self._tools, self._taken(name))
        self._editor.show_models(self._models)
        self._editor.saved.connect(partial(self._save, place))
        self._editor.cancelled.connect(self._close)
        card = self._card(place)
        if card is not None:
            card.hide()
        self._cards.insertWidget(place, self._editor)
        self._editor.show()
        self._none.hide()
        self._add.setEnabled(False)
        self._editor.begin()
        bring_into_sight(self._editor)

    def _taken(self, name: str | None) -> frozenset[str]:
        """The names that this one cannot have."""
        tools = (each.name for group in self._tools for each in group.tools)
        return frozenset((*(each.name for each in self._specialists), *tools, *RESERVED)) - {name}

    def _card(self, place: int) -> QWidget | None:
        item = self._cards.itemAt(place)
        return item.widget() if item is not None else None

    def _save(self, place: int, made: Specialist) -> None:
        self._drop_editor()
        now = list(self._specialists)
        now[place : place + 1] = [made]
        self._say(tuple(now))

    def _remove(self, name: str) -> None:
        self._drop_editor()
        self._say(tuple(each for each in self._specialists if each.name != name))

    def _say(self, specialists: tuple[Specialist, ...]) -> None:
        self._specialists = specialists
        self._lay_out()
        self.changed.emit(specialists)
        self._add.setFocus()

    def _close(self) -> None:
        if self._editor is not None:
            self._drop_editor()
            self._lay_out()
            self._add.setFocus()

    def _drop_editor(self) -> None:
        if self._editor is not None:
            self._cards.removeWidget(self._editor)
            self._editor.hide()
            self._editor.deleteLater()
            self._editor = None
            self._add.setEnabled(True)

    def _lay_out(self) -> None:
        self._drop_editor()
        while (item := self._cards.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for each in self._specialists:
            card = SpecialistCard(each)
            card.edit_pressed.connect(partial(self.edit, each.name))
            card.remove_pressed.connect(partial(self._remove, each.name))
            self._cards.addWidget(card)
            card.show()
        self._none.setVisible(not self._specialists)
