"""The sidebar: a new conversation, a search, all conversations, and the footer."""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QPushButton, QWidget

from ui.style.boxes import hbox, vbox
from ui.style.controls import ClearableField, announce
from ui.style.theme import SPACE_S, SPACE_XS, ThemeSource, themed_icon

if TYPE_CHECKING:
    from PySide6.QtGui import QAction

    from ui.sidebar.conversation_rows import Badge, Conversation, ConversationModel, ConversationView


class ConversationList(QWidget):
    """Emits what the person wants to do with conversations."""

    conversation_chosen = Signal(str)
    new_requested = Signal()
    rename_requested = Signal(str, str)
    delete_requested = Signal(str)
    """At once, without asking: the shell offers an undo."""
    search_left = Signal()
    """Esc in the search: the focus returns to the conversation."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._current = ""
        self._new = QPushButton(" " + self.tr("New conversation"))
        self._search = _SearchField(themes, self.tr("Search titles"))
        self._column = vbox(hbox(self._new, grow=self._new), self._search, parent=self, margins=SPACE_S)
        self._build()
        self._new.clicked.connect(self.new_requested)
        self._search.textChanged.connect(self._filter)
        self._search.returnPressed.connect(self._choose_first)
        self._search.down_pressed.connect(self._focus_matches)
        self._search.escape_pressed.connect(self._search.clear)
        self._search.escape_pressed.connect(self.search_left)
        themes.changed.connect(self._apply_theme)
        self._apply_theme()

    def set_conversations(self, conversations: "Sequence[Conversation]") -> None:
        """Show these conversations in this order."""
        self._list.set_conversations(conversations)
        self._list.mark_open(self._current)
        self._announce_no_matches()

    def set_current(self, conversation_id: str | None) -> None:
        """Mark the open conversation."""
        self._current = conversation_id or ""
        self._list.select_conversation(self._current)

    def set_badge(self, conversation_id: str, badge: "Badge") -> None:
        """Set the badge of a conversation; empty removes it."""
        self._rows.set_badge(conversation_id, badge)

    def mark_read(self, conversation_id: str) -> None:
        """Remove the unread badge."""
        self._rows.mark_read(conversation_id)

    def choose_row(self, row: int) -> None:
        """Open the conversation in this row, counted from 0; ignored if there is none."""
        if 0 <= row < self._rows.rowCount():
            self.conversation_chosen.emit(self._rows.id_at(row))

    def step(self, step: int) -> None:
        """Open the next (1) or the previous (-1) one, wrapping round."""
        count = self._rows.rowCount()
        if count:
            row = self._rows.row_of(self._current)
            self.conversation_chosen.emit(self._rows.id_at((row + step) % count if row >= 0 else 0))

    def add_footer(self, settings: "QAction", trash: "QAction", commands: "QAction", helping: "QAction") -> None:
        """Add the footer; the window is painted before there are any actions."""
        from ui.sidebar.conversation_rows import SidebarFooter

        # Create the list first: it replaces the stretch at the end of the column.
        rows = self._list
        footer = SidebarFooter(self._themes, settings, trash, commands, helping)
        self._column.addWidget(footer)
        QWidget.setTabOrder(rows, footer.tab_stops[0])
        for previous, following in pairwise(footer.tab_stops):
            QWidget.setTabOrder(previous, following)
        footer.show()

    def rename_current(self) -> None:
        """Edit the title of the open conversation in the list."""
        self._search.clear()
        self._list.select_conversation(self._current)
        self._list.setFocus()
        self._list.rename_current()

    def delete_current(self) -> None:
        """Delete the open conversation."""
        if self._current:
            self.delete_requested.emit(self._current)

    def focus_list(self) -> None:
        """Focus the list."""
        self._list.setFocus()

    def focus_search(self) -> None:
        """Focus the search."""
        self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search.selectAll()

    def _filter(self, wanted: str) -> None:
        self._rows.filter_titles(wanted)
        self._list.mark_open(self._current)
        self._announce_no_matches()

    def _announce_no_matches(self) -> None:
        """The list paints the sentence, which no screen reader finds."""
        words = self._rows.no_matches_text() if self._rows.has_no_matches else ""
        if words != self._search.accessibleDescription():
            self._search.setAccessibleDescription(words)
            if words:
                announce(self._search, words)

    def _focus_matches(self) -> None:
        if not self._list.currentIndex().isValid():
            self._list.setCurrentIndex(self._rows.index(0))
        self._list.setFocus()

    def _choose_first(self) -> None:
        if self._search.text().strip() and self._rows.rowCount():
            self.conversation_chosen.emit(self._rows.id_at(0))
            self._search.clear()

    def _apply_theme(self) -> None:
        self._new.setIcon(themed_icon("compose", self._themes.theme))
        self._column.setSpacing(self._themes.space(SPACE_S))
        if "_list" in vars(self):
            self._list.doItemsLayout()

    def _build(self) -> None:
        self.setProperty("kind", "sidebar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._new.setAccessibleName(self.tr("New conversation"))
        self._new.setToolTip(self.tr("New conversation") + " (Ctrl+N)")
        self._search.setAccessibleName(self.tr("Search conversations"))
        self._search.setToolTip(self.tr("Search conversations by their titles") + " (Ctrl+Shift+F)")
        self._column.addSpacing(SPACE_XS)
        self._column.addStretch(1)

    @cached_property
    def _list(self) -> "ConversationView":
        """Created with the first conversations: the window is painted before there are any."""
        from ui.sidebar.conversation_rows import ConversationView

        view = ConversationView(self._themes)
        view.chosen.connect(self.conversation_chosen)
        # Enter ends the search; after a click one may want the next match.
        view.activated.connect(self._search.clear)
        view.delete_pressed.connect(self.delete_requested)
        view.rows.renamed.connect(self.rename_requested)
        self._column.takeAt(self._column.count() - 1)
        self._column.addWidget(view, 1)
        view.show()
        QWidget.setTabOrder(self._search, view)
        return view

    @property
    def _rows(self) -> "ConversationModel":
        return self._list.rows


class _SearchField(ClearableField):
    """Down goes to the list, Esc leaves."""

    down_pressed = Signal()
    escape_pressed = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.escape_pressed.emit()
        elif event.key() == Qt.Key.Key_Down:
            self.down_pressed.emit()
        else:
            super().keyPressEvent(event)
