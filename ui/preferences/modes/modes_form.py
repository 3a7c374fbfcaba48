"""The modes: those that are always there, and the person's own, one of them being written."""

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from desktop_agent.vocabulary.conduct.modes import BUILT_IN_MODES, Mode
from desktop_agent.vocabulary.preferences import MOST_MODES
from ui.bridge.conduct.known_tools import ToolGroup
from ui.look.controls import announce, button, label
from ui.look.parts.mode_words import mode_title
from ui.look.theme import SPACE_M, SPACE_S
from ui.preferences.modes.mode_card import ModeCard
from ui.preferences.modes.mode_editor import LONGEST_TITLE, ModeEditor
from ui.preferences.scrolling import bring_into_sight


class ModesForm(QWidget):
    """Says how the person's own shall be; whoever keeps them answers with `show_modes`."""

    changed = Signal(object)
    """A tuple of Modes."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._modes: tuple[Mode, ...] = ()
        self._tools: tuple[ToolGroup, ...] = ()
        self._editor: ModeEditor | None = None
        self._undo = _UndoLine()
        self._none = label(
            self.tr("You have no mode of your own yet. Copy one of those above, or add one."), "muted", wrap=True
        )
        self._cards = QVBoxLayout()
        self._cards.setSpacing(SPACE_S)
        self._add = button(self.tr("Add mode…"), lambda: self._write(len(self._modes), None))
        self._full = label(self.tr("There can be {0} modes. Remove one first.").format(MOST_MODES), "muted", wrap=True)
        self._arrange()
        self._lay_out()

    def show_modes(self, modes: Sequence[Mode]) -> None:
        """These are the person's own; what is being written stays."""
        if tuple(modes) != self._modes:
            self._modes = tuple(modes)
            self._lay_out()

    def show_tools(self, groups: Sequence[ToolGroup]) -> None:
        """The tools that rules can be about."""
        self._tools = tuple(groups)
        if self._editor is not None:
            self._editor.show_tools(self._tools)

    def edit(self, name: str) -> None:
        """Write this one of the person's own."""
        place = [each.name for each in self._modes].index(name)
        self._write(place, self._modes[place])

    def copy(self, mode: Mode) -> None:
        """Write a new one that begins as this one is, if there is room for one more."""
        if len(self._modes) >= MOST_MODES:
            announce(self, self._full.text())
            return
        title = self.tr("{0} (copy)").format(mode_title(mode))[:LONGEST_TITLE]
        self._write(len(self._modes), mode.model_copy(update={"title": title}))

    def _write(self, place: int, before: Mode | None) -> None:
        if self._editor is not None:
            self._lay_out()
        is_new = place == len(self._modes)
        taken = {each.name for each in (*BUILT_IN_MODES, *self._modes)}
        kept = set[str]() if is_new or before is None else {before.name}
        self._editor = ModeEditor(before, taken - kept, self._tools)
        self._editor.saved.connect(partial(self._put, place))
        self._editor.cancelled.connect(self._close)
        item = self._cards.itemAt(place)
        card = item.widget() if item is not None else None
        if card is not None:
            card.hide()
        self._cards.insertWidget(place, self._editor)
        self._editor.show()
        self._none.hide()
        self._add.setEnabled(False)
        self._editor.begin()
        bring_into_sight(self._editor)

    def _put(self, place: int, made: Mode) -> None:
        self._say((*self._modes[:place], made, *self._modes[place + 1 :]))

    def _remove(self, place: int) -> None:
        gone = self._modes[place]
        self._say((*self._modes[:place], *self._modes[place + 1 :]))
        words = self.tr("The mode “{0}” is removed. Where it held, less happens unasked now.").format(gone.title)
        self._undo.offer(words, partial(self._put_back, place, gone))

    def _put_back(self, place: int, gone: Mode) -> None:
        self._say((*self._modes[:place], gone, *self._modes[place:]))

    def _say(self, modes: tuple[Mode, ...]) -> None:
        self._modes = modes
        self._undo.hide()
        self._lay_out()
        self.changed.emit(modes)
        self._add.setFocus()

    def _close(self) -> None:
        self._lay_out()
        self._add.setFocus()

    def _lay_out(self) -> None:
        self._editor = None
        while (item := self._cards.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for place, each in enumerate(self._modes):
            card = ModeCard(each)
            card.edit_pressed.connect(partial(self.edit, each.name))
            card.copy_pressed.connect(partial(self.copy, each))
            card.remove_pressed.connect(partial(self._remove, place))
            self._cards.addWidget(card)
            card.show()
        is_full = len(self._modes) >= MOST_MODES
        self._add.setEnabled(not is_full)
        self._full.setVisible(is_full)
        self._none.setVisible(not self._modes)

    def _arrange(self) -> None:
        words = self.tr(
            "A mode says how much may happen unasked. Choose it under the message editor; a change holds at once in "
            "every open conversation, for each call that has not started."
        )
        foot = QHBoxLayout()
        foot.setSpacing(SPACE_S)
        foot.addWidget(self._add)
        foot.addWidget(self._full, 1)
        foot.addStretch(0)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        layout.addWidget(label(words, "muted", wrap=True))
        layout.addWidget(label(self.tr("Always there"), "strong"))
        fixed = QVBoxLayout()
        fixed.setSpacing(SPACE_S)
        for each in BUILT_IN_MODES:
            card = ModeCard(each)
            card.copy_pressed.connect(partial(self.copy, each))
            fixed.addWidget(card)
        layout.addLayout(fixed)
        layout.addWidget(label(self.tr("Your own"), "strong"))
        layout.addWidget(self._none)
        layout.addLayout(self._cards)
        layout.addWidget(self._undo)
        layout.addLayout(foot)
        layout.addStretch(1)


class _UndoLine(QFrame):
    """What was done last, until something else is done."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._words = label(wrap=True)
        self._undo: Callable[[], object] | None = None
        row = QHBoxLayout(self)
        row.setContentsMargins(SPACE_M, SPACE_S, SPACE_M, SPACE_S)
        row.setSpacing(SPACE_S)
        row.addWidget(self._words, 1)
        row.addWidget(button(self.tr("Undo"), self._take_back))
        self.hide()

    def offer(self, words: str, undo: Callable[[], object]) -> None:
        """Say it, and offer to take it back."""
        self._words.setText(words)
        self._undo = undo
        self.show()
        announce(self, words)

    def _take_back(self) -> None:
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()
