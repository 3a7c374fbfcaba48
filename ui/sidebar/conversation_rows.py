"""The rows of the sidebar."""

from PySide6.QtCore import QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QColor, QKeySequence, QPainter, QPaintEvent, QShortcut
from PySide6.QtWidgets import QListView, QMenu, QWidget

from ui.look.rows import RowDelegate
from ui.look.theme import SPACE_M, SPACE_S, ThemeSource
from ui.sidebar.conversation_model import ConversationModel


class ConversationRows(QListView):
    """The list itself. One click or Enter opens, F2 renames in place, Delete deletes."""

    chosen = Signal(str)
    delete_pressed = Signal(str)

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self.rows = ConversationModel(self)
        self._menu = QMenu(self)
        self._menu.setAccessibleName(self.tr("Menu: {0}").format(self.tr("Conversation")))
        self._menu.addAction(self.tr("Rename…"), self.rename_current).setShortcut(QKeySequence(Qt.Key.Key_F2))
        self._menu.addAction(self.tr("Delete"), self._delete).setShortcut(QKeySequence(QKeySequence.StandardKey.Delete))
        self.setModel(self.rows)
        self.setItemDelegate(RowDelegate(themes, self))
        self.setAccessibleName(self.tr("Conversations"))
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._open_menu)
        self.clicked.connect(self._choose)
        self.activated.connect(self._choose)
        for keys, command in ((Qt.Key.Key_F2, self.rename_current), (Qt.Key.Key_Delete, self._delete)):
            # While a title is being edited the keys belong to the editor, so not "with children".
            QShortcut(QKeySequence(keys), self, context=Qt.ShortcutContext.WidgetShortcut).activated.connect(command)

    def show_current(self, conversation_id: str) -> None:
        """Mark this one's row; none where it is not shown."""
        row = self.rows.row_of(conversation_id) if conversation_id else -1
        self.setCurrentIndex(self.rows.index(row) if row >= 0 else QModelIndex())

    def rename_current(self) -> None:
        """Edit the title in place."""
        if self.currentIndex().isValid():
            self.edit(self.currentIndex())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Where a search finds nothing, say so instead of showing an empty column."""
        super().paintEvent(event)
        if self.rows.finds_nothing:
            painter = QPainter(self.viewport())
            painter.setPen(QColor(self._themes.theme.muted))
            room = self.viewport().rect().adjusted(SPACE_M, SPACE_S, -SPACE_M, 0)
            painter.drawText(room, Qt.TextFlag.TextWordWrap, self.rows.nothing_found())

    def _choose(self, index: QModelIndex) -> None:
        self.chosen.emit(self.rows.id_at(index.row()))

    def _delete(self) -> None:
        if self.currentIndex().isValid():
            self.delete_pressed.emit(self.rows.id_at(self.currentIndex().row()))

    def _open_menu(self, place: QPoint) -> None:
        index = self.indexAt(place)
        if index.isValid():
            self.setCurrentIndex(index)
            self._menu.popup(self.viewport().mapToGlobal(place))
