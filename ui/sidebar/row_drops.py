"""What is dragged over the rows of the sidebar, and dropped on the folders among them."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QModelIndex, QObject, Qt
from PySide6.QtGui import QDropEvent, QMouseEvent
from PySide6.QtWidgets import QListView

from ui.sidebar.conversation_model import ConversationModel, ModelIndex, dragged_rows

_NO_INDEX = QModelIndex()


class RowDrops(QObject):
    """Handles drops on a list: only folders accept rows, and no folder accepts itself.

    `show_target` is called with the row that would accept what is dragged, and with no row at the end; `drop` with the
    ids of conversations and of folders, and that of the folder that accepted them.
    """

    def __init__(
        self,
        view: QListView,
        rows: ConversationModel,
        show_target: Callable[[ModelIndex], None],
        drop: Callable[[list[str], list[str], str], None],
    ) -> None:
        super().__init__(view)
        self._view = view
        self._rows = rows
        self._show_target = show_target
        self._drop = drop
        view.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.DragLeave:
            self._show_target(_NO_INDEX)
            return False
        if event.type() == QEvent.Type.MouseMove and isinstance(event, QMouseEvent):
            self._begin_drag(event)
            return False
        # Events for entering and moving are QDropEvents too.
        if not isinstance(event, QDropEvent):
            return super().eventFilter(watched, event)
        index = self._target_of(event)
        is_drop = event.type() == QEvent.Type.Drop
        self._show_target(_NO_INDEX if is_drop else index)
        if index.isValid() or (event.type() == QEvent.Type.DragEnter and any(dragged_rows(event.mimeData()))):
            event.acceptProposedAction()
        else:
            event.ignore()
        place = self._rows.place_at(index.row()) if is_drop and index.isValid() else None
        if place is not None:
            self._drop(*dragged_rows(event.mimeData()), place.id)
        return True

    def _begin_drag(self, event: QMouseEvent) -> None:
        """Begin to drag the pressed row also where no row is selected: Qt does not, and `startDrag` selects it."""
        view, state = self._view, QListView.State
        is_pressed = event.buttons() == Qt.MouseButton.LeftButton and view.state() == state.NoState
        # A press with Ctrl or Shift marks, and Qt has not seen it.
        if not is_pressed or view.selectedIndexes() or event.modifiers():
            return
        index = view.indexAt(event.position().toPoint())
        if index.isValid() and index == view.currentIndex():
            view.setState(state.DraggingState)

    def _target_of(self, event: QDropEvent) -> QModelIndex:
        index = self._view.indexAt(event.position().toPoint())
        place = self._rows.place_at(index.row()) if index.isValid() else None
        conversations, folders = dragged_rows(event.mimeData())
        is_accepted = place is not None and place.kind == "folder" and place.id not in folders
        return index if is_accepted and (conversations or folders) else _NO_INDEX
