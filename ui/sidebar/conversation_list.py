"""The sidebar: a new conversation, a search, all conversations, and the footer."""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSize, QTimer, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QApplication, QFrame, QLineEdit, QWidget

from ui.style.boxes import hbox, vbox
from ui.style.controls import ClearableField, IconButton, PushButton, announce, set_keys_tooltip
from ui.style.theme import ICON_SIZE, SPACE_S, SPACE_XS, ThemeSource, themed_icon

if TYPE_CHECKING:
    from PySide6.QtGui import QAction

    from desktop_agent.types.search import SearchChoices, SearchQuery, SearchResults
    from ui.sidebar.conversation_model import Badge, Conversation, ConversationModel
    from ui.sidebar.conversation_rows import ConversationView
    from ui.sidebar.footer import SidebarFooter
    from ui.sidebar.found_section import FoundSection
    from ui.sidebar.search_filters import SearchFilters
    from ui.sidebar.search_results import SearchResultsView

_ANNOUNCE_MS = 500
"""Milliseconds without new results after which what was found is announced."""


class _ResultAnnouncer(QObject):
    """Announces what was found: no screen reader reads the sentences that the view paints."""

    def __init__(self, search: QLineEdit) -> None:
        super().__init__(search)
        self._search = search
        self.idle_description = ""
        self._timer = QTimer(self, singleShot=True, interval=_ANNOUNCE_MS)
        self._timer.timeout.connect(self._announce)

    def describe(self, query: "SearchQuery", results: "SearchResults") -> None:
        """Announce the results once they have stayed the same for a moment."""
        from ui.sidebar.search_results import remark_on

        count = self._search.locale().toString(len(results.conversations))
        count_words = self.tr("Conversations found: {0}").format(count) if results.conversations else ""
        words = " ".join(filter(None, (count_words, remark_on(query, results))))
        if words != self._search.accessibleDescription():
            self._search.setAccessibleDescription(words)
            self._timer.start()

    def clear(self) -> None:
        """Announce nothing: the list is shown."""
        self._search.setAccessibleDescription(self.idle_description)
        self._timer.stop()

    def _announce(self) -> None:
        announce(self._search, self._search.accessibleDescription())


class _NewButton(PushButton):
    def __init__(self, themes: ThemeSource, words: str) -> None:
        super().__init__(" " + words)
        self._themes = themes
        self.setAccessibleName(words)
        themes.follow(self._apply_theme)

    def _apply_theme(self) -> None:
        side = self._themes.scaled(ICON_SIZE)
        self.setIcon(themed_icon("compose", self._themes.theme, side))
        self.setIconSize(QSize(side, side))


class ConversationList(QFrame):
    """Emits what the person wants to do with conversations. A frame draws its background by itself."""

    conversation_chosen = Signal(str)
    new_requested = Signal()
    rename_requested = Signal(str, str)
    delete_requested = Signal(str)
    """At once, without asking: the shell offers an undo."""
    search_requested = Signal(object)
    """A SearchQuery, with each letter that is typed."""
    search_ended = Signal()
    """The list is shown again."""
    hit_chosen = Signal(str, object, str)
    """The id of a conversation, the SearchHit in it, and the words that are to be marked."""
    filter_choices_wanted = Signal()
    end_neared = Signal()
    """The end of the loaded rows is near: there may be more."""
    new_unstored_requested = Signal()
    """A conversation that is never stored."""
    search_left = Signal()
    """Esc in the search: the focus returns to the conversation."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self._current = ""
        self._section: FoundSection | None = None
        self._new = _NewButton(themes, self.tr("New conversation"))
        self._search = _SearchField(themes, self.tr("Search"))
        self._new_unstored = IconButton(themes, "unstored", self.tr("New conversation that is not stored"))
        top = hbox(self._new, self._new_unstored, spacing=SPACE_XS, grow=self._new)
        self._column = vbox(top, self._search, parent=self, margins=SPACE_S)
        self._conversation_id: str | None = None
        """The only conversation that is searched."""
        self._opens_best = False
        """Whether Enter was pressed before the results came."""
        self._announcer = _ResultAnnouncer(self._search)
        self._build()
        self._new.clicked.connect(self.new_requested)
        self._new_unstored.clicked.connect(self.new_unstored_requested)
        self._search.textChanged.connect(self._on_typed)
        self._search.returnPressed.connect(self._choose_best)
        self._search.down_pressed.connect(self._focus_rows)
        self._search.escape_pressed.connect(self._leave_search)
        self._search.focused.connect(self._show_filters)
        themes.follow(self._apply_theme)

    def set_conversations(self, conversations: "Sequence[Conversation]") -> None:
        """Show these conversations in this order."""
        self.view.set_conversations(conversations)
        self.view.mark_open(self._current)

    def set_current(self, conversation_id: str | None) -> None:
        """Mark the open conversation."""
        self._current = conversation_id or ""
        self.view.select_conversation(self._current)

    def add_above_search(self, view: QWidget) -> None:
        """Put something between the buttons and the search."""
        self._column.insertWidget(self._column.indexOf(self._search), view)
        QWidget.setTabOrder(self._new_unstored, view)

    def set_badge(self, conversation_id: str, badge: "Badge") -> None:
        """Set the badge of a conversation; empty removes it."""
        self._rows.set_badge(conversation_id, badge)

    def mark_read(self, conversation_id: str) -> None:
        """Remove the unread badge."""
        self._rows.mark_read(conversation_id)

    def choose_row(self, row: int) -> None:
        """Open the conversation in this row, counted from 0 without the headings; ignored if there is none."""
        if 0 <= row < self._rows.count:
            self.conversation_chosen.emit(self._rows.id_of(row))

    def step(self, step: int) -> None:
        """Open the next (1) or the previous (-1) one, wrapping round."""
        count = self._rows.count
        if count:
            number = self._rows.number_of(self._current)
            self.conversation_chosen.emit(self._rows.id_of((number + step) % count if number >= 0 else 0))

    def add_footer(self, *actions: "QAction") -> "SidebarFooter":
        """Add the footer; the window is painted before there are any actions. See SidebarFooter for their order."""
        from ui.sidebar.footer import SidebarFooter

        # Create the list first: it replaces the stretch at the end of the column.
        rows = self.view
        footer = SidebarFooter(self._themes, *actions)
        self._column.addWidget(footer)
        _set_tab_order(rows, *footer.tab_stops)
        footer.show()
        return footer

    def show_keys(self, new: str, new_unstored: str, search: str) -> None:
        """Show these keys in the tooltips of their controls."""
        for part, keys in ((self._new, new), (self._new_unstored, new_unstored), (self._search, search)):
            set_keys_tooltip(part, part.accessibleName(), keys)
        self._announcer.idle_description = self._search.accessibleDescription()

    def add_section(self, section: "FoundSection") -> None:
        """Add a section below the conversations, which is hidden while results are shown."""
        self._column.insertWidget(self._column.indexOf(self.view) + 1, section)
        self._section = section
        QWidget.setTabOrder(self.view, section)

    def rename_current(self) -> None:
        """Edit the title of the open conversation in the list."""
        self._clear_search()
        self.view.select_conversation(self._current)
        self.view.setFocus()
        self.view.rename_current()

    def delete_current(self) -> None:
        """Delete the open conversation."""
        if self._current:
            self.delete_requested.emit(self._current)

    def focus_list(self) -> None:
        """Focus the list, or what was found."""
        self._focus_rows() if self._shows_results else self.view.setFocus()

    def focus_search(self) -> None:
        """Focus the search."""
        from PySide6.QtCore import Qt

        self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search.selectAll()

    @property
    def query(self) -> "SearchQuery | None":
        """Return what is searched for; None if the list is to be shown."""
        words, filters = self._search.text(), self._filters_in_use
        if not words.strip() and filters is None and self._conversation_id is None:
            return None
        # Late: the window is painted before pydantic is loaded.
        from desktop_agent.types.search import SearchQuery

        query = SearchQuery(words, conversation_id=self._conversation_id)
        return query if filters is None else filters.apply(query)

    @property
    def _filters_in_use(self) -> "SearchFilters | None":
        return self._filters if "_filters" in vars(self) and self._filters.is_active else None

    def set_filter_choices(self, choices: "SearchChoices") -> None:
        """Offer these models and folders as filters."""
        self._filters.set_choices(choices)

    def show_results(self, query: "SearchQuery", results: "SearchResults") -> None:
        """Show what was found in place of the list."""
        if query != self.query:
            return
        self._results.show_results(query, results)
        self._show_view(self._results)
        self._announcer.describe(self._results.query, results)
        self._opens_best = self._opens_best and not self._results.choose_best()

    def repeat_search(self) -> None:
        """Search again for what was typed before anything could be searched."""
        if self.query is not None:
            self.search_requested.emit(self.query)

    def _on_typed(self) -> None:
        self._conversation_id = None
        self._show_filters()
        self._search_for(self.query)

    def _search_for(self, query: "SearchQuery | None") -> None:
        self._opens_best = False
        if query is None:
            self._conversation_id = None
            self.search_ended.emit()
            self._show_view(self.view)
            self._announcer.clear()
        else:
            self._conversation_id = query.conversation_id
            self.search_requested.emit(query)

    def _leave_search(self) -> None:
        self._clear_search()
        self.search_left.emit()

    def _clear_search(self) -> None:
        if self._filters_in_use is not None:
            self._filters.clear()
        if self._search.text():
            self._search.clear()
        else:
            self._on_typed()

    def _show_filters(self) -> None:
        """Show them while the search is in use. The window is painted before anybody can choose a filter."""
        is_used = self._search.hasFocus() or bool(self._search.text()) or self._filters_in_use is not None
        if "_filters" in vars(self):
            self._filters.setVisible(is_used or self._filters.is_in_use)
        elif is_used:
            self._filters.show()

    def _show_view(self, view: QWidget) -> None:
        if self._section is not None:
            self._section.set_has_room(has_room=view is self.view)
        for other in (self.view, vars(self).get("_results")):
            if isinstance(other, QWidget):
                other.setVisible(other is view)

    @property
    def _shows_results(self) -> bool:
        return "_results" in vars(self) and not self._results.isHidden()

    def _focus_rows(self) -> None:
        if self._shows_results:
            self._results.focus_first()
            return
        if not self.view.currentIndex().isValid():
            self.view.setCurrentIndex(self._rows.index(self._rows.nearest_row(0)))
        self.view.setFocus()

    def _choose_best(self) -> None:
        query = self.query
        if query is not None and self._shows_results and self._results.query == query:
            # While the index grows, a result may still come.
            self._opens_best = not self._results.choose_best()
        else:
            self._opens_best = query is not None

    def _apply_theme(self) -> None:
        self._column.setSpacing(self._themes.space(SPACE_S))
        for view in vars(self).keys() & {"view", "_results"}:
            vars(self)[view].doItemsLayout()

    def _build(self) -> None:
        self.setProperty("kind", "sidebar")
        self.setProperty("rowWidgets", True)
        self._search.setAccessibleName(self.tr("Search conversations"))
        self._column.addSpacing(SPACE_XS)
        self._column.addStretch(1)

    @cached_property
    def view(self) -> "ConversationView":
        """The list of folders and conversations, created with the first: the window is painted before there are any."""
        from ui.sidebar.conversation_rows import ConversationView

        view = ConversationView(self._themes)
        view.chosen.connect(self.conversation_chosen)
        view.delete_pressed.connect(self.delete_requested)
        view.end_neared.connect(self.end_neared)
        view.rows.renamed.connect(self.rename_requested)
        self._column.takeAt(self._column.count() - 1)
        self._column.addWidget(view, 1)
        view.show()
        QWidget.setTabOrder(self._search, view)
        return view

    def put_above_list(self, line: QWidget, *tab_stops: QWidget) -> None:
        """Show a line above the list; `tab_stops` are its widgets in tab order."""
        self._column.insertWidget(self._column.indexOf(self.view), line)
        _set_tab_order(self._search, *tab_stops, self.view)

    @cached_property
    def _filters(self) -> "SearchFilters":
        """Created when the search has the keyboard for the first time."""
        from ui.sidebar.search_filters import SearchFilters

        filters = SearchFilters(self._themes)
        filters.changed.connect(self._on_typed)
        filters.choices_wanted.connect(self.filter_choices_wanted)
        self._column.insertWidget(self._column.indexOf(self._search) + 1, filters)
        _set_tab_order(self._search, *filters.tab_stops)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._show_filters)
        return filters

    @cached_property
    def _results(self) -> "SearchResultsView":
        """Created with the first search."""
        from ui.sidebar.search_results import SearchResultsView

        view = SearchResultsView(self._themes)
        view.conversation_chosen.connect(self.conversation_chosen)
        view.hit_chosen.connect(self.hit_chosen)
        view.query_chosen.connect(self._search_for)
        view.left_at_top.connect(self.focus_search)
        view.escape_pressed.connect(self._leave_search)
        self._column.insertWidget(self._column.indexOf(self.view), view, 1)
        _set_tab_order(self._search, *self._filters.tab_stops, view, self.view)
        return view

    @property
    def _rows(self) -> "ConversationModel":
        return self.view.rows


class _SearchField(ClearableField):
    """Down goes to the list, Esc leaves."""

    down_pressed = Signal()
    escape_pressed = Signal()
    focused = Signal()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        from PySide6.QtCore import Qt

        if event.key() == Qt.Key.Key_Escape:
            self.escape_pressed.emit()
        elif event.key() == Qt.Key.Key_Down:
            self.down_pressed.emit()
        else:
            super().keyPressEvent(event)


def _set_tab_order(*stops: QWidget) -> None:
    for previous, following in pairwise(stops):
        QWidget.setTabOrder(previous, following)
