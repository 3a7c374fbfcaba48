"""The dialog with all branches of a conversation: shows one, branches from a message, deletes one."""

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QPoint, QRect, Qt, Signal, SignalInstance
from PySide6.QtGui import QKeySequence, QPainter, QShortcut
from PySide6.QtWidgets import QAbstractItemView, QDialog, QMenu, QStyle, QStyleOptionViewItem, QTreeView, QWidget

from desktop_agent.conversation.message_tree import MessageTree, TreeEntry
from desktop_agent.types.errors import Sentence
from ui.shell.branch_tree.branch_model import BranchModel, Index
from ui.style.accessibility import choose_toggled_row
from ui.style.controls import button, label
from ui.style.layouts import FlowRows
from ui.style.list_rows import RowDelegate
from ui.style.server_fields import Status, StatusLine
from ui.style.theme import ThemeSource
from ui.style.widgets import lay_out_dialog

_SIZE = (760, 560)
_MIN_TREE_HEIGHT = 80
_INDENTATION = 22
"""Pixels."""


class BranchTreeView(QTreeView):
    """All branches. Enter or a double click shows a branch; the Menu key opens its menu."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self.rows = BranchModel(self)
        self.setModel(self.rows)
        self.setAccessibleName(self.tr("Branches of this conversation"))
        self.setItemDelegate(RowDelegate(themes, self))
        self.setHeaderHidden(True)
        self.setUniformRowHeights(True)
        self.setMouseTracking(True)
        self.setExpandsOnDoubleClick(False)
        self.setAllColumnsShowFocus(True)
        self.setMinimumHeight(_MIN_TREE_HEIGHT)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._hovered = QPersistentModelIndex()
        self.entered.connect(self._hover)
        themes.follow(self._apply_theme)

    @property
    def current(self) -> TreeEntry | None:
        """The entry of the current row."""
        row = self.rows.row_at(self.currentIndex())
        return None if row is None else row.entry

    def show_tree(self, tree: MessageTree) -> None:
        """Show another state of the tree. Entries that still exist stay unfolded or current."""
        is_new = not self.rows.rowCount()
        current = self.current
        unfolded = self._unfolded(QModelIndex()) if current is not None else []
        scrolled = self.verticalScrollBar().value()
        self.rows.show_tree(tree)
        for first_id in unfolded:
            self.expand(self.rows.find(first_id))
        index = QModelIndex() if current is None else self.rows.find(current.first_id)
        self.setCurrentIndex(index if index.isValid() else self.rows.end_of_view())
        self.verticalScrollBar().setValue(scrolled)
        self.scrollTo(
            self.currentIndex(),
            QAbstractItemView.ScrollHint.PositionAtCenter if is_new else QAbstractItemView.ScrollHint.EnsureVisible,
        )

    def _apply_theme(self) -> None:
        self.setIndentation(self._themes.scaled(_INDENTATION))
        self.doItemsLayout()

    def _unfolded(self, parent: QModelIndex) -> list[str]:
        ids: list[str] = []
        pending = [parent]
        while pending:
            ancestor = pending.pop()
            for number in range(self.rows.rowCount(ancestor)):
                index = self.rows.index(number, 0, ancestor)
                row = self.rows.row_at(index)
                if row is not None and self.isExpanded(index):
                    ids.append(row.entry.first_id)
                    pending.append(index)
        return ids

    def drawRow(self, painter: QPainter, options: QStyleOptionViewItem, index: Index) -> None:
        """Let the delegate paint the whole row: Qt's own background would continue below the arrows."""
        item = self.visualRect(index)
        arrow_area = QRect(options.rect)
        if self.isRightToLeft():
            arrow_area.setLeft(item.right() + 1)
        else:
            arrow_area.setRight(item.left() - 1)
        self.drawBranches(painter, arrow_area, index)
        option = QStyleOptionViewItem(options)
        option.rect = item
        for flag, is_set in (
            (QStyle.StateFlag.State_Selected, self.selectionModel().isSelected(index)),
            (QStyle.StateFlag.State_HasFocus, self.hasFocus() and self.currentIndex() == index),
            (QStyle.StateFlag.State_MouseOver, self._hovered == index),
        ):
            option.state = option.state | flag if is_set else option.state & ~flag
        self.itemDelegate().paint(painter, option, index)

    def _hover(self, index: QModelIndex) -> None:
        self._hovered = QPersistentModelIndex(index)
        self.viewport().update()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover(QModelIndex())


class BranchDialog(QDialog):
    """Not modal. The signals carry the current TreeEntry."""

    show_requested = Signal(object)
    branch_requested = Signal(object)
    delete_requested = Signal(object)

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.tree = BranchTreeView(themes)
        self._problem = StatusLine(themes)
        words = self.tr(
            "The dot marks the end of the branch you see. Expand a message to see its other versions, in grey."
        )
        self._hint = label(words, "muted", wrap=True)
        self._show = button(self.tr("Show"), lambda: self._emit(self.show_requested), "primary")
        self._branch = button(self.tr("Branch from here"), lambda: self._emit(self.branch_requested))
        self._delete = button(self.tr("Delete…"), lambda: self._emit(self.delete_requested), "quiet")
        close = button(self.tr("Close"), self.reject)
        foot = FlowRows((self._delete, close, self._branch, self._show), trailing=True, apart=self._delete)
        room = self.screen().availableSize()
        self.resize(min(_SIZE[0], room.width()), min(_SIZE[1], room.height()))
        lay_out_dialog(self, self.tr("Branches"), self._hint, self.tree, self._problem, foot, grow=self.tree)
        choose_toggled_row(self.tree, self.tree.setCurrentIndex)
        self.tree.activated.connect(lambda: self._emit(self.show_requested))
        self.tree.selectionModel().currentChanged.connect(self._refresh)
        self.tree.customContextMenuRequested.connect(self._open_menu)
        keys = QKeySequence(QKeySequence.StandardKey.Delete)
        shortcut = QShortcut(keys, self.tree, context=Qt.ShortcutContext.WidgetShortcut)
        shortcut.activated.connect(lambda: self._emit(self.delete_requested))
        self._refresh()

    def show_tree(self, tree: MessageTree) -> None:
        """Show the branches as they are now."""
        self.show_problem("")
        self.tree.show_tree(tree)
        self._refresh()

    def show_problem(self, problem: Sentence | str) -> None:
        """Show why something could not be done; "" hides it."""
        self._problem.show_state(Status.ERROR, problem)

    def _emit(self, signal: SignalInstance) -> None:
        entry = self.tree.current
        if entry is not None:
            signal.emit(entry)

    def _open_menu(self, place: QPoint) -> None:
        if self.tree.current is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.setAccessibleName(self.tr("Menu: {0}").format(self.tr("Message")))
        for source, signal in (
            (self._show, self.show_requested),
            (self._branch, self.branch_requested),
            (self._delete, self.delete_requested),
        ):
            if source is self._delete:
                menu.addSeparator()
            action = menu.addAction(source.text())
            action.triggered.connect(lambda _checked=False, signal=signal: self._emit(signal))
        menu.popup(self.tree.viewport().mapToGlobal(place))

    def _refresh(self) -> None:
        for command in (self._show, self._branch, self._delete):
            command.setEnabled(self.tree.current is not None)
