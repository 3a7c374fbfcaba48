"""The rows of the sidebar: view and delegate of folders and conversations."""

from collections.abc import Sequence

from PySide6.QtCore import (
    QCoreApplication,
    QEvent,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import (
    QFocusEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QShortcut,
)
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QLabel,
    QLineEdit,
    QListView,
    QMenu,
    QStyle,
    QStyleOptionViewItem,
    QWidget,
)

from desktop_agent.types.conversation_tree import MAX_TITLE_LENGTH
from desktop_agent.types.folders import FolderLevel
from ui.sidebar.conversation_model import Conversation, ConversationModel, PlaceRow, places_of
from ui.sidebar.row_drops import RowDrops
from ui.sidebar.row_marks import RowMarks
from ui.sidebar.row_menus import FolderAction, RowAction, fill_conversation_menu, fill_folder_menu, fill_list_menu
from ui.style.controls import IconButton, set_by_name
from ui.style.list_rows import Index, RowDelegate, paint_row_ring
from ui.style.theme import SPACE_M, SPACE_S, ThemeSource

_NO_INDEX = QModelIndex()
_BUTTON_MARGIN = 6
"""Pixels between the edge of the button and its icon."""
_DAY_CHECK_MS = 60_000


class _DayTimer(QTimer):
    """Checks the day once a minute while the list is shown.

    A timer until midnight would be late after a sleep, or when the clock is set.
    """

    def __init__(self, view: QWidget, rows: ConversationModel) -> None:
        super().__init__(view, interval=_DAY_CHECK_MS)
        self._rows = rows
        self.timeout.connect(rows.check_day)
        view.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Show:
            self._rows.check_day()
            self.start()
        elif event.type() == QEvent.Type.Hide:
            self.stop()
        return super().eventFilter(watched, event)


class ConversationView(QListView):
    """The list itself. One click or Enter opens, F2 renames in place, Delete deletes.

    The selected row is the open conversation. The current row has the keyboard focus, and may be another: only the
    person moves it, whatever is refreshed meanwhile.
    """

    chosen = Signal(str)
    place_chosen = Signal(object)
    """The PlaceRow of a folder, or of the archive."""
    delete_pressed = Signal(str)
    action_requested = Signal(str, list)
    """A RowAction, and the ids of the conversations that it is for; to delete one is a signal of its own."""
    folder_action_requested = Signal(str, str)
    """A FolderAction, and the id of the folder; "" for the one that is listed."""
    dropped = Signal(list, list, object)
    """The ids of conversations and of folders, and that of the folder that they were dropped on."""
    up_requested = Signal()
    """Backspace."""
    end_neared = Signal()
    """The end of the loaded rows is near: there may be more."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self.rows = ConversationModel(self)
        self.marks = RowMarks(self, self.rows)
        self._level = FolderLevel()
        self._is_other_level = self._shows_all = False
        self._conversations: Sequence[Conversation] = ()
        self._titles, self._day_timer = _TitleDelegate(themes, self), _DayTimer(self, self.rows)
        self._drops = RowDrops(self, self.rows, self._show_target, self.dropped.emit)
        self._menu = QMenu(self)
        self._menu_row = QPersistentModelIndex()
        """The row of the menu, or of its last opening."""
        self._hovered, self._empty_note = QPersistentModelIndex(), _EmptyNote(themes, self)
        self._button = IconButton(themes, "more", _name_of_menu(0, None), parent=self.viewport())
        # The Menu key does the same, for whatever row is current.
        self._button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._button.hide()
        self._build()
        self._connect()

    def set_level(self, level: FolderLevel) -> None:
        """Set which folder is listed, or that the archive is; the conversations in it follow."""
        self._is_other_level, self._level = self._level.place != level.place, level
        self._shows_all = self._shows_all and not self._is_other_level

    def set_conversations(self, conversations: Sequence[Conversation]) -> None:
        """Show these in this order. If the current one is gone, its neighbour becomes current."""
        row = self.currentIndex().row()
        more = self.tr("All folders ({0})").format(self.locale().toString(len(self._level.folders)))
        places = places_of(self._level, self.tr("Archive"), more, shows_all=self._shows_all)
        self._conversations = conversations
        self.rows.set_conversations(conversations, places)
        self._empty_note.update_words(self._level)
        if self._is_other_level:
            self._is_other_level = False
            self.marks.clear()
            self.scrollToTop()
            row = min(row, 0)
        if row >= 0 and not self.currentIndex().isValid():
            self.setCurrentIndex(self.rows.index(self.rows.nearest_row(row)))

    def select_conversation(self, conversation_id: str) -> None:
        """Select this one and make its row current; none if it is not listed."""
        self.marks.set_open(conversation_id)
        self.setCurrentIndex(self._index_of(conversation_id))

    def mark_open(self, conversation_id: str) -> None:
        """Select this one; another current row stays current."""
        self.marks.set_open(conversation_id)
        if not self.currentIndex().isValid():
            self.setCurrentIndex(self._index_of(conversation_id))

    def rename_current(self) -> None:
        """Edit the title in place."""
        self._rename(self.currentIndex())

    def updateGeometries(self) -> None:
        super().updateGeometries()
        self._place_button()
        self._check_end()

    def moveCursor(self, action: QListView.CursorAction, modifiers: Qt.KeyboardModifier) -> QModelIndex:
        """Pass over headings also where Qt would stop at them."""
        index = super().moveCursor(action, modifiers)
        if not index.isValid():
            return index
        is_down = index.row() >= self.currentIndex().row()
        row = self.rows.nearest_row(index.row(), 1 if is_down or index.row() == 0 else -1)
        return self.rows.index(row)

    def selectionCommand(self, index: Index, event: QEvent | None = None) -> QItemSelectionModel.SelectionFlag:
        del index, event  # the open conversation is selected, not what keys and clicks choose
        return QItemSelectionModel.SelectionFlag.NoUpdate

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Mark with Ctrl and Shift, and once marking has begun; everything else as usual."""
        index = self.indexAt(event.position().toPoint())
        if index.isValid() and self.marks.take_click(event, self.rows.id_at(index.row())):
            self.setCurrentIndex(index)
        else:
            super().mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Backspace:
            self.up_requested.emit()
        elif not self.marks.take_key(event):
            super().keyPressEvent(event)

    def startDrag(self, supportedActions: Qt.DropAction) -> None:  # noqa: N803  Qt's name
        index = self.currentIndex()
        if not index.isValid():
            return
        # Qt drags what is selected.
        self.marks.select_dragged(index)
        super().startDrag(supportedActions)
        self.marks.update()
        self._show_target(_NO_INDEX)

    def currentChanged(self, current: Index, previous: Index) -> None:
        super().currentChanged(current, previous)
        self._place_button()
        if current.row() == 1:
            # The heading above it cannot become current.
            self.scrollToTop()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._place_button()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._place_button()

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Leave:
            self._hover(_NO_INDEX)
        return super().viewportEvent(event)

    def closeEditor(self, editor: QWidget, hint: QAbstractItemDelegate.EndEditHint) -> None:
        super().closeEditor(editor, hint)
        self._place_button()

    def _build(self) -> None:
        self.setModel(self.rows)
        self.setItemDelegate(self._titles)
        self.setAccessibleName(self.tr("Conversations"))
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setSelectionMode(QListView.SelectionMode.ExtendedSelection)  # as a ChoiceList, for assistive technology
        self.setDragEnabled(True)
        self.setAcceptDrops(True)
        self.setDragDropMode(QListView.DragDropMode.DragDrop)
        self.setDropIndicatorShown(False)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)

    def _connect(self) -> None:
        self.customContextMenuRequested.connect(self._open_menu_at)
        self.clicked.connect(self._choose)
        self.activated.connect(self._choose)
        self.marks.watch(self._choose)
        self.entered.connect(self._hover)
        self.viewportEntered.connect(lambda: self._hover(_NO_INDEX))
        for changed in (self.rows.layoutChanged, self.rows.dataChanged, self.verticalScrollBar().valueChanged):
            changed.connect(self._place_button)
        self.verticalScrollBar().valueChanged.connect(self._check_end)
        self._menu.aboutToHide.connect(self._place_button, Qt.ConnectionType.QueuedConnection)
        self._button.clicked.connect(self._open_menu_below_button)
        for keys, command in ((Qt.Key.Key_F2, self._edit_current), (Qt.Key.Key_Delete, self._delete_current)):
            # While a title is being edited the keys belong to the editor, so not "with children".
            shortcut = QShortcut(QKeySequence(keys), self, context=Qt.ShortcutContext.WidgetShortcut)
            shortcut.setAutoRepeat(False)
            # The keys reach the list from its open menu too.
            shortcut.activated.connect(self._menu.close)
            shortcut.activated.connect(command)

    def _check_end(self) -> None:
        bar = self.verticalScrollBar()
        if self.rows.count and bar.maximum() - bar.value() <= 2 * bar.pageStep():
            self.end_neared.emit()

    def _index_of(self, conversation_id: str) -> QModelIndex:
        return self.rows.index(self.rows.row_of(conversation_id)) if conversation_id else _NO_INDEX

    def _choose(self, index: QModelIndex) -> None:
        place = self.rows.place_at(index.row())
        if place is not None and place.kind == "more":
            self._shows_all = True
            self.set_conversations(self._conversations)
        elif place is not None:
            self.marks.clear()
            self.place_chosen.emit(place)
        elif conversation_id := self.rows.id_at(index.row()):
            if self.marks.has_begun:
                self.marks.toggle(conversation_id)
                return
            self.marks.begin_opening(conversation_id)
            self.chosen.emit(conversation_id)

    def _rename(self, index: Index) -> None:
        if index.isValid():
            row_index = self.rows.index(index.row())
            self.setCurrentIndex(row_index)
            self._button.hide()
            self.edit(row_index)

    def _edit_current(self) -> None:
        if not self._act_on_place(self.currentIndex(), "edit"):
            self._rename(self.currentIndex())

    def _delete_current(self) -> None:
        index = self.currentIndex()
        if index.isValid() and not self._act_on_place(index, "delete"):
            self._act("delete", self.marks.ids_with(self.rows.id_at(index.row())))

    def _act(self, action: RowAction, ids: list[str]) -> None:
        # Some may be deleted or moved by now.
        listed = [self.rows.id_at(row) for row in self.rows.rows_of(ids)]
        if action == "delete" and len(listed) == 1:
            self.delete_pressed.emit(listed[0])
        elif listed:
            self.action_requested.emit(action, listed)

    def _act_on_place(self, index: Index, action: FolderAction) -> bool:
        """Return whether this row is a place."""
        place = self.rows.place_at(index.row()) if index.isValid() else None
        if place is not None and place.kind == "folder":
            self.folder_action_requested.emit(action, place.id)
        return place is not None

    def _show_target(self, index: Index) -> None:
        self._titles.drop_target = QPersistentModelIndex(index)
        self.viewport().update()

    def _open_menu(self, index: Index, point: QPoint) -> None:
        self._menu_row = QPersistentModelIndex(index)
        row = index.row() if index.isValid() else -1
        conversation = self.rows.conversation_at(row) if row >= 0 else None
        folder = self.rows.place_at(row)
        if conversation is not None:
            ids = self.marks.ids_with(conversation.id)
            fill_conversation_menu(
                self._menu,
                count=len(ids),
                is_pinned=all(row.is_pinned for row in map(self.rows.conversation_at, self.rows.rows_of(ids)) if row),
                is_archived=self._level.is_archive,
                is_marked=self.marks.is_marked(conversation.id),
                toggle_mark=lambda: self.marks.begin_or_unmark(conversation.id),
                rename=lambda: self._rename(self._menu_row),
                act=lambda action: self._act(action, ids),
            )
        elif not index.isValid() and not self._level.is_archive:
            fill_list_menu(self._menu, lambda: self.folder_action_requested.emit("create", ""))
        elif folder is not None and folder.kind == "folder":
            fill_folder_menu(self._menu, lambda action: self.folder_action_requested.emit(action, folder.id))
        else:
            return
        self._menu.setAccessibleName(_name_of_menu(row, folder))
        self._menu.popup(point)

    def _open_menu_at(self, point: QPoint) -> None:
        self._open_menu(self.indexAt(point), self.viewport().mapToGlobal(point))

    def _open_menu_below_button(self) -> None:
        self._open_menu(self._titles.with_button, self._button.mapToGlobal(QPoint(0, self._button.height())))

    def _hover(self, index: Index) -> None:
        self._hovered = QPersistentModelIndex(index if self._has_menu(index) else _NO_INDEX)
        self._place_button()

    def _has_menu(self, index: Index) -> bool:
        if not index.isValid():
            return False
        place = self.rows.place_at(index.row())
        return bool(self.rows.id_at(index.row())) if place is None else place.kind == "folder"

    def _place_button(self) -> None:
        """Put the button on the row with the open menu, else with the pointer, else with the focus."""
        if self._menu.isVisible():
            index: Index = self._menu_row
        elif self.state() is QListView.State.EditingState:
            index = _NO_INDEX
        elif self._hovered.isValid() or not self.hasFocus():
            index = self._hovered
        else:
            index = self.currentIndex()
        index = index if self._has_menu(index) else _NO_INDEX
        before, self._titles.with_button = self._titles.with_button, QPersistentModelIndex(index)
        self._button.setVisible(index.isValid())
        if index.isValid():
            row = self.visualRect(self.rows.index(index.row()))
            self._button.set_name(_name_of_menu(index.row(), self.rows.place_at(index.row())))
            self._button.setGeometry(self._titles.place_of_button(row, index, self.layoutDirection()))
        if before != self._titles.with_button:
            self.viewport().update()


def _name_of_menu(row: int, place: PlaceRow | None) -> str:
    translate = QCoreApplication.translate
    if row < 0:
        words = translate("ConversationView", "Conversations")
    else:
        words = translate("ConversationView", "Folder") if place else translate("ConversationView", "Conversation")
    return translate("ConversationView", "Menu: {0}").format(words)


class _TitleDelegate(RowDelegate):
    """Paints the rows and edits their titles. One row may have a button in place of its date."""

    def __init__(self, themes: ThemeSource, parent: QWidget) -> None:
        super().__init__(themes, parent)
        self.with_button = QPersistentModelIndex()
        self.drop_target = QPersistentModelIndex()
        self._room = 0

    def place_of_button(self, row: QRect, index: Index, direction: Qt.LayoutDirection) -> QRect:
        """Return the area of the button in this row: square, its icon before the badge."""
        side = row.height() - 2
        self._room = side - _BUTTON_MARGIN
        end = SPACE_M + self.badge_room(index) - _BUTTON_MARGIN
        area = QRect(QPoint(row.right() - end - side + 1, row.top() + 1), QSize(side, side))
        return QStyle.visualRect(direction, row, area)

    def button_room(self, index: Index) -> int:
        return self._room if index == self.with_button else 0

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint the row with the button as under the pointer, also while the menu is open."""
        if index == self.with_button:
            option.state |= QStyle.StateFlag.State_MouseOver
        if index == self.drop_target:
            option.state |= QStyle.StateFlag.State_HasFocus
        super().paint(painter, option, index)

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        editor = super().createEditor(parent, option, index)
        editor.setAccessibleName(self.tr("Title"))
        if isinstance(editor, QLineEdit):
            editor.setMaxLength(MAX_TITLE_LENGTH)
            editor.setText(str(index.data(Qt.ItemDataRole.EditRole)))
        return editor

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        """Qt asks for this again whenever the row changes: typed text stays."""


class _EmptyNote(QLabel):
    """Says at the top of a list that it is empty. It has the ring of the keyboard, as no row can have it."""

    def __init__(self, themes: ThemeSource, view: ConversationView) -> None:
        super().__init__(view.viewport())
        self._themes, self._view = themes, view
        self.hide()
        view.installEventFilter(self)
        if QGuiApplication.isRightToLeft():
            # Otherwise Qt puts a text of Latin letters at the left.
            set_by_name(self, alignment="AlignRight|AlignVCenter|AlignAbsolute")
        self.setProperty("kind", "muted")
        self.setWordWrap(True)
        self.setContentsMargins(SPACE_M, SPACE_S, SPACE_M, SPACE_S)
        view.viewport().installEventFilter(self)

    def update_words(self, level: FolderLevel) -> None:
        """Show the words for this level, if the list is empty."""
        is_empty = self._view.rows.rowCount() == 0
        words = self.tr("No conversations in here yet") if level.place else self.tr("No conversations yet")
        self.setText(words)
        self._place()
        self.setVisible(is_empty)
        self._view.setAccessibleDescription(words if is_empty else "")

    def _place(self) -> None:
        width = self._view.viewport().width()
        self.setGeometry(0, 0, width, self.heightForWidth(width))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the width of the list and its focus."""
        if event.type() == QEvent.Type.Resize:
            self._place()
        elif event.type() in {QEvent.Type.FocusIn, QEvent.Type.FocusOut}:
            self.update()
        return super().eventFilter(watched, event)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._view.hasFocus():
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            paint_row_ring(painter, self.rect(), self._themes.theme)
