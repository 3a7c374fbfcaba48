"""The sidebar: a new conversation, a filter, and all conversations."""

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QListView, QMenu, QPushButton, QVBoxLayout, QWidget

from ui.look.icons import themed_icon
from ui.look.rows import RowDelegate
from ui.look.theme import SPACE_S, SPACE_XS, ThemeSource
from ui.sidebar.conversation_model import Badge, Conversation, ConversationModel


class _Rows(QListView):
    """The list itself. One click or Enter opens, F2 renames in place, Delete deletes."""

    chosen = Signal(str)
    delete_pressed = Signal(str)

    def __init__(self, themes: ThemeSource, model: ConversationModel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows = model
        self._menu = QMenu(self)
        self._menu.addAction(self.tr("Rename…"), self.rename_current).setShortcut(QKeySequence(Qt.Key.Key_F2))
        self._menu.addAction(self.tr("Delete"), self._delete).setShortcut(QKeySequence(QKeySequence.StandardKey.Delete))
        self.setModel(model)
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

    def rename_current(self) -> None:
        """Edit the title in place."""
        if self.currentIndex().isValid():
            self.edit(self.currentIndex())

    def _choose(self, index: QModelIndex) -> None:
        self.chosen.emit(self._rows.id_at(index.row()))

    def _delete(self) -> None:
        if self.currentIndex().isValid():
            self.delete_pressed.emit(self._rows.id_at(self.currentIndex().row()))

    def _open_menu(self, place: QPoint) -> None:
        index = self.indexAt(place)
        if index.isValid():
            self.setCurrentIndex(index)
            self._menu.popup(self.viewport().mapToGlobal(place))


class ConversationList(QWidget):
    """Says what the person wants to do with conversations."""

    conversation_chosen = Signal(str)
    new_requested = Signal()
    rename_requested = Signal(str, str)
    delete_requested = Signal(str)
    """At once, without asking: the shell offers an undo."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._current = ""
        self._column = QVBoxLayout(self)
        self._rows = ConversationModel(self)
        self._list = _Rows(themes, self._rows)
        self._new = QPushButton(" " + self.tr("New conversation"))
        self._filter = QLineEdit(placeholderText=self.tr("Filter"), clearButtonEnabled=True)
        self._build()
        self._new.clicked.connect(self.new_requested)
        self._filter.textChanged.connect(self._narrow)
        self._filter.returnPressed.connect(self._choose_first)
        self._list.chosen.connect(self.conversation_chosen)
        self._list.delete_pressed.connect(self.delete_requested)
        self._rows.renamed.connect(self.rename_requested)
        themes.changed.connect(self._dress)
        self._dress()

    def set_conversations(self, conversations: Sequence[Conversation]) -> None:
        """The conversations in the order to be shown."""
        place = self._list.verticalScrollBar().value()
        self._rows.set_conversations(conversations)
        self._mark_current()
        self._list.verticalScrollBar().setValue(place)

    def set_current(self, conversation_id: str | None) -> None:
        """The conversation on the screen."""
        self._current = conversation_id or ""
        self._mark_current()

    def set_badge(self, conversation_id: str, badge: Badge) -> None:
        """Mark a conversation as working or in need of attention; empty takes the mark off."""
        self._rows.set_badge(conversation_id, badge)

    def choose_row(self, row: int) -> None:
        """Open the conversation in this row, beginning with 0; nothing happens where there is none."""
        if 0 <= row < self._rows.rowCount():
            self.conversation_chosen.emit(self._rows.id_at(row))

    def step(self, step: int) -> None:
        """Open the next (1) or the previous (-1) one, round the ends."""
        count = self._rows.rowCount()
        if count:
            row = self._rows.row_of(self._current)
            self.conversation_chosen.emit(self._rows.id_at((row + step) % count if row >= 0 else 0))

    def focus_list(self) -> None:
        """Put the keyboard into the list."""
        self._list.setFocus()

    def focus_filter(self) -> None:
        """Put the keyboard into the filter."""
        self._filter.setFocus()
        self._filter.selectAll()

    def _narrow(self, wanted: str) -> None:
        self._rows.narrow(wanted)
        self._mark_current()

    def _choose_first(self) -> None:
        if self._rows.rowCount():
            self.conversation_chosen.emit(self._rows.id_at(0))

    def _mark_current(self) -> None:
        row = self._rows.row_of(self._current) if self._current else -1
        self._list.setCurrentIndex(self._rows.index(row) if row >= 0 else QModelIndex())

    def _dress(self) -> None:
        self._new.setIcon(themed_icon("compose", self._themes.theme))
        self._column.setSpacing(self._themes.space(SPACE_S))
        self._list.doItemsLayout()

    def _build(self) -> None:
        self.setProperty("kind", "sidebar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._new.setAccessibleName(self.tr("New conversation"))
        self._new.setToolTip(self.tr("New conversation") + " (Ctrl+N)")
        self._filter.setAccessibleName(self.tr("Filter conversations"))
        head = QHBoxLayout()
        head.addWidget(self._new, 1)
        layout = self._column
        layout.setContentsMargins(SPACE_S, SPACE_S, SPACE_S, SPACE_S)
        layout.addLayout(head)
        layout.addWidget(self._filter)
        layout.addSpacing(SPACE_XS)
        layout.addWidget(self._list, 1)
