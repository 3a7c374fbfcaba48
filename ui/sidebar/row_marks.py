"""Which rows of the sidebar are selected: the open conversation, or those that the person marked."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QItemSelection, QModelIndex, QPersistentModelIndex, Qt, QTimer
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QListView

from ui.sidebar.conversation_model import ConversationModel


class RowMarks:
    """The selection of a list whose own clicks and keys select nothing. Marked conversations stay while rows move."""

    def __init__(self, view: QListView, rows: ConversationModel) -> None:
        self._view = view
        self._rows = rows
        self._open = ""
        self._opening = ""
        self._ids: set[str] = set()
        self._anchor = ""
        self._has_begun = False
        self._is_selecting = False

    def watch(self, choose: Callable[[QModelIndex], object]) -> None:
        """Call `choose` with a row that assistive technology selects; every other selection is made by this class."""

        def make_current(index: QPersistentModelIndex) -> None:
            self.update()
            if index.isValid():
                row_index = self._rows.index(index.row())
                self._view.setCurrentIndex(row_index)
                choose(row_index)

        def on_selection_changed(selected: QItemSelection, deselected: QItemSelection) -> None:
            if not self._is_selecting:
                # Toggling deselects a row that is selected already.
                indexes = selected.indexes() or deselected.indexes()
                toggled = QPersistentModelIndex(indexes[0] if indexes else QModelIndex())
                QTimer.singleShot(0, self._view, partial(make_current, toggled))

        self._view.selectionModel().selectionChanged.connect(on_selection_changed)

    @property
    def has_begun(self) -> bool:
        """Whether choosing a row marks it instead of opening it, as long as a marked row is listed."""
        return self._has_begun and bool(self._rows.rows_of(self._ids))

    @property
    def ids(self) -> list[str]:
        """Return the marked conversations in the order of their rows.

        Empty if fewer than two are marked; but if the person began to mark several, a single one counts.
        """
        rows = self._rows.rows_of(self._ids)
        return [self._rows.id_at(row) for row in rows] if self.has_begun or len(rows) > 1 else []

    def is_marked(self, conversation_id: str) -> bool:
        """Return whether this one is marked, also if no other one is."""
        return conversation_id in self._ids

    def ids_with(self, conversation_id: str) -> list[str]:
        """Return what an action on this row is for: all marked ones if it is one of them."""
        marked = self.ids
        return marked if conversation_id in marked else [conversation_id]

    def set_open(self, conversation_id: str) -> None:
        """Select the open conversation, while nothing is marked."""
        if conversation_id != self._open:
            self._opening = ""
        self._open = conversation_id
        self.update()

    def begin_opening(self, conversation_id: str) -> None:
        """Set the conversation that will be the open one, and unmark all."""
        self._opening = conversation_id
        self.clear()

    def clear(self) -> None:
        """Unmark all."""
        self._ids.clear()
        self._anchor = ""
        self._has_begun = False
        self.update()

    def begin_or_unmark(self, conversation_id: str) -> None:
        """Unmark this one; or mark it, and each that is chosen from now on, until none is marked."""
        if self.is_marked(conversation_id):
            self.toggle(conversation_id)
            return
        self._has_begun = True
        self._ids.add(conversation_id)
        self._anchor = conversation_id
        self.update()

    def toggle(self, conversation_id: str) -> None:
        """Mark or unmark this one. With the first, the open conversation is marked too."""
        shown = self._opening or self._open
        if not self._ids and self._rows.row_of(shown) >= 0:
            self._ids.add(shown)
        self._ids ^= {conversation_id}
        self._has_begun = self._has_begun and bool(self._ids)
        self._anchor = conversation_id
        self.update()

    def extend_to(self, conversation_id: str) -> None:
        """Mark everything from where marking began to this one, and nothing else."""
        if self._rows.row_of(self._anchor) < 0:
            current = self._rows.id_at(self._view.currentIndex().row()) if self._view.currentIndex().isValid() else ""
            self._anchor = current or self._open or conversation_id
        first = self._rows.row_of(self._anchor)
        last = self._rows.row_of(conversation_id)
        between = range(min(first, last), max(first, last) + 1) if first >= 0 else range(last, last + 1)
        self._ids = {id_ for row in between if (id_ := self._rows.id_at(row))}
        self.update()

    def take_click(self, event: QMouseEvent, conversation_id: str) -> bool:
        """Mark with Ctrl and Shift, and with every click once marking has begun. Return whether it did."""
        shift, control = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier
        is_marking = self.has_begun or bool(event.modifiers() & (shift | control))
        if not conversation_id or not is_marking or event.button() is not Qt.MouseButton.LeftButton:
            return False
        if event.modifiers() & shift:
            self.extend_to(conversation_id)
        else:
            self.toggle(conversation_id)
        return True

    def take_key(self, event: QKeyEvent) -> bool:
        """Mark with Shift and the arrows, Ctrl+A and Ctrl+Space; Esc ends it. Return whether it was one of them."""
        # The arrows of a Mac count as keypad.
        key, modifiers = event.key(), event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        index = self._view.currentIndex()
        current = self._rows.id_at(index.row()) if index.isValid() else ""
        control = modifiers == Qt.KeyboardModifier.ControlModifier
        if modifiers == Qt.KeyboardModifier.ShiftModifier and key in {Qt.Key.Key_Up, Qt.Key.Key_Down}:
            self._extend(index.row(), 1 if key == Qt.Key.Key_Down else -1)
        elif key == Qt.Key.Key_Escape and (self.ids or self.has_begun):
            self.clear()
        elif control and key == Qt.Key.Key_A:
            self.mark_all()
        elif control and key == Qt.Key.Key_Space and current:
            self.toggle(current)
        else:
            return False
        return True

    def _extend(self, row: int, step: int) -> None:
        following = self._rows.nearest_row(row + step, step)
        if following >= 0 and (conversation_id := self._rows.id_at(following)):
            self.extend_to(conversation_id)
            self._view.setCurrentIndex(self._rows.index(following))

    def mark_all(self) -> None:
        """Mark every conversation that is listed."""
        self._ids = {self._rows.id_of(number) for number in range(self._rows.count)}
        self.update()

    def update(self) -> None:
        """Select the rows where they are now."""
        self._select(self._ids or {self._open})

    def _select(self, ids: set[str]) -> None:
        selection = QItemSelection()
        rows = self._rows.rows_of(ids)
        begin = 0
        for number, row in enumerate(rows):
            if number + 1 == len(rows) or rows[number + 1] != row + 1:
                selection.select(self._rows.index(rows[begin]), self._rows.index(row))
                begin = number + 1
        self._apply(selection)

    def select_dragged(self, index: QModelIndex) -> None:
        """Select this row and all that are marked with it, until the next update."""
        if self._rows.place_at(index.row()) is None:
            self._select(set(self.ids_with(self._rows.id_at(index.row()))))
        else:
            self._apply(QItemSelection(index, index))

    def _apply(self, selection: QItemSelection) -> None:
        model = self._view.selectionModel()
        self._is_selecting = True
        model.select(selection, model.SelectionFlag.ClearAndSelect)
        self._is_selecting = False
