"""The rows of the sidebar: view and delegate of the conversations, and the footer below them."""

from collections.abc import Sequence

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QAction, QFocusEvent, QKeySequence, QPainter, QShortcut
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QLineEdit,
    QListView,
    QMenu,
    QSizePolicy,
    QStyle,
    QStyleOptionViewItem,
    QToolButton,
    QWidget,
)

from ui.sidebar.conversation_model import Conversation, ConversationModel
from ui.style.boxes import hbox
from ui.style.controls import IconButton
from ui.style.list_rows import Index, RowDelegate
from ui.style.text import escape_mnemonics, native_shortcut, plain_tooltip
from ui.style.theme import ICON_SIZE, SPACE_M, SPACE_XS, ThemeSource, themed_icon

_NO_INDEX = QModelIndex()
_BUTTON_MARGIN = 6
"""Pixels between the edge of the button and its icon."""


class ConversationView(QListView):
    """The list itself. One click or Enter opens, F2 renames in place, Delete deletes.

    The selected row is the open conversation. The current row has the keyboard focus, and may be another: only the
    person moves it, whatever is refreshed meanwhile.
    """

    chosen = Signal(str)
    delete_pressed = Signal(str)
    end_neared = Signal()
    """The end of what is read is near: more may be there."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self.rows = ConversationModel(self)
        self._titles = _TitleDelegate(themes, self)
        self._menu = self._make_menu()
        self._menu_id = ""
        """The conversation of the menu, or of its last opening."""
        self._hovered = QPersistentModelIndex()
        self._button = IconButton(themes, "more", self._menu.accessibleName(), parent=self.viewport())
        # The Menu key does the same, for whatever row is current.
        self._button.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._button.hide()
        self._build()
        self._connect()

    def set_conversations(self, conversations: Sequence[Conversation]) -> None:
        """Show these in this order. If the current one is gone, its neighbour becomes current."""
        row = self.currentIndex().row()
        self.rows.set_conversations(conversations)
        if row >= 0 and not self.currentIndex().isValid():
            self.setCurrentIndex(self.rows.index(self.rows.nearest_conversation(row)))

    def select_conversation(self, conversation_id: str) -> None:
        """Select this one and make its row current; none if it is not listed."""
        self.setCurrentIndex(self._select_row(conversation_id))

    def mark_open(self, conversation_id: str) -> None:
        """Select this one; another current row stays current."""
        index = self._select_row(conversation_id)
        if not self.currentIndex().isValid():
            self.setCurrentIndex(index)

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
        row = self.rows.nearest_conversation(index.row(), 1 if is_down or index.row() == 0 else -1)
        return self.rows.index(row)

    def currentChanged(self, current: Index, previous: Index) -> None:
        super().currentChanged(current, previous)
        self._place_button()
        if current.row() == 1:
            # The heading above it cannot be gone to.
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
        # The open conversation is selected, not what keys and clicks choose.
        self.setSelectionMode(QListView.SelectionMode.NoSelection)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)

    def _connect(self) -> None:
        self.customContextMenuRequested.connect(self._open_menu_at)
        self.clicked.connect(self._choose)
        self.activated.connect(self._choose)
        self.entered.connect(self._hover)
        self.viewportEntered.connect(lambda: self._hover(_NO_INDEX))
        self.rows.layoutChanged.connect(self._place_button)
        self.rows.dataChanged.connect(self._place_button)
        self.verticalScrollBar().valueChanged.connect(self._place_button)
        self.verticalScrollBar().valueChanged.connect(self._check_end)
        self._menu.aboutToHide.connect(self._place_button, Qt.ConnectionType.QueuedConnection)
        self._button.clicked.connect(self._open_menu_below_button)
        for keys, command in ((Qt.Key.Key_F2, self.rename_current), (Qt.Key.Key_Delete, self._delete_current)):
            # While a title is being edited the keys belong to the editor, so not "with children".
            shortcut = QShortcut(QKeySequence(keys), self, context=Qt.ShortcutContext.WidgetShortcut)
            shortcut.setAutoRepeat(False)
            shortcut.activated.connect(command)

    def _check_end(self) -> None:
        bar = self.verticalScrollBar()
        if self.rows.count and bar.maximum() - bar.value() <= 2 * bar.pageStep():
            self.end_neared.emit()

    def _make_menu(self) -> QMenu:
        menu = QMenu(self)
        menu.setAccessibleName(self.tr("Menu: {0}").format(self.tr("Conversation")))
        rename = menu.addAction(self.tr("Rename…"), lambda: self._rename(self._menu_row()))
        rename.setShortcut(QKeySequence(Qt.Key.Key_F2))
        delete = menu.addAction(self.tr("Delete"), lambda: self._delete(self._menu_row()))
        delete.setShortcut(QKeySequence(QKeySequence.StandardKey.Delete))
        return menu

    def _select_row(self, conversation_id: str) -> QModelIndex:
        index = self._index_of(conversation_id)
        if index.isValid():
            self.selectionModel().select(index, self.selectionModel().SelectionFlag.ClearAndSelect)
        else:
            self.selectionModel().clearSelection()
        return index

    def _index_of(self, conversation_id: str) -> QModelIndex:
        return self.rows.index(self.rows.row_of(conversation_id)) if conversation_id else _NO_INDEX

    def _menu_row(self) -> QModelIndex:
        return self._index_of(self._menu_id)

    def _choose(self, index: QModelIndex) -> None:
        if conversation_id := self.rows.id_at(index.row()):
            self.chosen.emit(conversation_id)

    def _rename(self, index: QModelIndex) -> None:
        if index.isValid():
            self.setCurrentIndex(index)
            self._button.hide()
            self.edit(index)

    def _delete_current(self) -> None:
        self._delete(self.currentIndex())

    def _delete(self, index: QModelIndex) -> None:
        if index.isValid():
            self.delete_pressed.emit(self.rows.id_at(index.row()))

    def _open_menu(self, index: Index, place: QPoint) -> None:
        if index.isValid() and (conversation_id := self.rows.id_at(index.row())):
            self._menu_id = conversation_id
            self._menu.popup(place)

    def _open_menu_at(self, place: QPoint) -> None:
        self._open_menu(self.indexAt(place), self.viewport().mapToGlobal(place))

    def _open_menu_below_button(self) -> None:
        self._open_menu(self._titles.with_button, self._button.mapToGlobal(QPoint(0, self._button.height())))

    def _hover(self, index: Index) -> None:
        is_heading = index.isValid() and not self.rows.id_at(index.row())
        self._hovered = QPersistentModelIndex(_NO_INDEX if is_heading else index)
        self._place_button()

    def _place_button(self) -> None:
        """Put the button on the row with the open menu, else with the pointer, else with the focus."""
        if self._menu.isVisible():
            index: Index = self._menu_row()
        elif self.state() is QListView.State.EditingState:
            index = _NO_INDEX
        elif self._hovered.isValid() or not self.hasFocus():
            index = self._hovered
        else:
            index = self.currentIndex()
        before, self._titles.with_button = self._titles.with_button, QPersistentModelIndex(index)
        self._button.setVisible(index.isValid())
        if index.isValid():
            row = self.visualRect(self.rows.index(index.row()))
            self._button.setGeometry(self._titles.place_of_button(row, index, self.layoutDirection()))
        if before != self._titles.with_button:
            self.viewport().update()


class _TitleDelegate(RowDelegate):
    """Paints the rows and edits their titles. One row may have a button in place of its date."""

    def __init__(self, themes: ThemeSource, parent: QWidget) -> None:
        super().__init__(themes, parent)
        self.with_button = QPersistentModelIndex()
        self._room = 0

    def place_of_button(self, row: QRect, index: Index, direction: Qt.LayoutDirection) -> QRect:
        """Return the area of the button in this row: square, its icon before the badge."""
        side = row.height() - 2
        self._room = side - _BUTTON_MARGIN
        end = SPACE_M + self.badge_room(index) - _BUTTON_MARGIN
        place = QRect(QPoint(row.right() - end - side + 1, row.top() + 1), QSize(side, side))
        return QStyle.visualRect(direction, row, place)

    def button_room(self, index: Index) -> int:
        return self._room if index == self.with_button else 0

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint the row with the button as under the pointer, also while the menu is open."""
        if index == self.with_button:
            option.state |= QStyle.StateFlag.State_MouseOver
        super().paint(painter, option, index)

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        editor = super().createEditor(parent, option, index)
        editor.setAccessibleName(self.tr("Title"))
        if isinstance(editor, QLineEdit):
            editor.setText(str(index.data(Qt.ItemDataRole.EditRole)))
        return editor

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        """Qt asks for this again whenever the row changes: typed text stays."""


class SidebarFooter(QWidget):
    """Settings with a word beside its icon; Trash, Commands and Help as icons."""

    def __init__(
        self, themes: ThemeSource, settings: QAction, trash: QAction, commands: QAction, helping: QAction
    ) -> None:
        super().__init__()
        self._themes = themes
        self._settings = _TextButton()
        # With a space: Qt leaves less between icon and text than the other controls here.
        self._settings.setText(" " + escape_mnemonics(settings.text()))
        self._settings.setAccessibleName(settings.text())
        self._trash = IconButton(themes, "trash", self.tr("Trash"))
        self._commands = IconButton(themes, "commands", self.tr("Commands"))
        self._help = IconButton(themes, "help", self.tr("Help"))
        hbox(*self.tab_stops, parent=self, spacing=SPACE_XS // 2, margins=0, grow=self._settings)
        for button, action in zip(self.tab_stops, (settings, trash, commands, helping), strict=True):
            keys = action.shortcut().toString()
            button.setToolTip(plain_tooltip(f"{action.text()} ({native_shortcut(keys)})" if keys else action.text()))
            button.clicked.connect(action.trigger)
        themes.changed.connect(self._apply_theme)
        self._apply_theme()

    @property
    def tab_stops(self) -> tuple[QToolButton, ...]:
        """Return the widgets in tab order."""
        return (self._settings, self._trash, self._commands, self._help)

    def _apply_theme(self) -> None:
        side = round(ICON_SIZE * self._themes.zoom / 100)
        self._settings.setIcon(themed_icon("settings", self._themes.theme, side))
        self._settings.setIconSize(QSize(side, side))


class _TextButton(QToolButton):
    """As wide as there is room, with its icon and text at the leading edge."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "quiet")
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
