"""The command palette: finds every action, setting, conversation, message and model by a few letters."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QApplication, QFrame, QWidget
from shiboken6 import isValid

from desktop_agent.types.search import ConversationHits, SearchHit, SearchQuery, SearchResults
from ui.bridge.library import ConversationLibrary
from ui.bridge.model_servers import ModelGroup, ModelServers
from ui.shell.commands.action import WindowAction, listed_actions
from ui.shell.window import MainWindow
from ui.sidebar.conversation_model import Conversation
from ui.style.accessibility import ChoiceList
from ui.style.boxes import hbox, vbox
from ui.style.fuzzy_matcher import LETTERS, FuzzyMatcher
from ui.style.list_rows import ResultRow
from ui.style.pickers import SearchPanel
from ui.style.text import begin_later, one_line, title_or_new
from ui.style.theme import SPACE_L, SPACE_S, SPACE_XL, ThemeSource

MAX_GROUP_ROWS = 80
"""Rows of a group; another typed letter finds the rest."""
_MIN_QUERY_LENGTH = 2
"""Letters from which on messages are searched."""
_MAX_HITS = 3
"""Messages shown of one conversation."""
_MAX_SNIPPET = 200
_CHARACTERS_BEFORE_MATCH = 24
"""Characters shown before the match: a long title leaves little room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRow(ResultRow):
    """A row and its action."""

    synonyms: str = ""
    """Other words that find it: the id of a model, its server, synonyms."""
    command: Callable[[], object] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CommandGroup:
    """Rows under a heading, in their order for an empty query."""

    title: str
    rows: Sequence[CommandRow]
    query: str | None = None
    """If set, the rows are the results of a search for this query: shown unchanged, and only for this query."""
    is_searched_only: bool = False
    """An empty query shows none of them."""


def matching_rows(
    typed: str, groups: Iterable[CommandGroup], fallback_rows: Sequence[CommandRow] = ()
) -> list[CommandRow]:
    """Return the rows that match, each group under its heading, the best first.

    If none matches, return a remark and `fallback_rows`.
    """
    words = FuzzyMatcher(typed)
    ranked_groups = [(_best_rows(group, words, typed), group.title) for group in groups]
    matching = [(ranked, title) for ranked, title in ranked_groups if ranked]
    # Groups that match by single letters only come last; otherwise their order stays, as the sort is stable.
    matching.sort(key=lambda group_rows: group_rows[0][0][0] >= LETTERS * max(words.count, 1))
    rows: list[CommandRow] = []
    for ranked, title in matching:
        rows.append(CommandRow(text=title, is_heading=True))
        rows += [row for _, row in ranked]
    if not rows:
        nothing = QCoreApplication.translate("CommandPalette", "Nothing found.")
        rows.append(CommandRow(text=nothing, is_faded=True))
        rows += fallback_rows
    return rows


def _best_rows(group: CommandGroup, words: FuzzyMatcher, typed: str) -> list[tuple[int, CommandRow]]:
    if group.query is not None:
        return [(0, row) for row in group.rows] if group.query == typed else []
    if words.is_empty and group.is_searched_only:
        return []
    if words.is_empty:
        return [(0, row) for row in group.rows[:MAX_GROUP_ROWS]]
    ranked = ((words.rank(row.text, row.synonyms), row) for row in group.rows)
    matching = [(rank, row) for rank, row in ranked if rank is not None]
    matching.sort(key=lambda ranked_row: ranked_row[0])
    return matching[:MAX_GROUP_ROWS]


PALETTE_SIZE = QSize(600, 440)
_BORDER = 1


class CommandPalette(QWidget):
    """Covers the whole window, so that a click beside it closes it; a child of the window, not a popup."""

    typed = Signal(str)
    """What is in the field; "" when it opens."""
    closed = Signal()

    def __init__(
        self,
        themes: ThemeSource,
        groups: Callable[[], Sequence[CommandGroup]],
        window: QWidget,
        fallback_rows: Callable[[], Sequence[CommandRow]] = list,
    ) -> None:
        super().__init__(window)
        self._themes = themes
        self._find_groups = groups
        self._fallback_rows = fallback_rows
        self._groups: Sequence[CommandGroup] = ()
        self._window = window
        self._previous_focus: QWidget | None = None
        self._panel = SearchPanel(themes, self._find_rows, self.tr("Commands"))
        self._frame = QFrame(self)
        self._build()
        self._panel.chosen.connect(self._choose)
        self._panel.results_changed.connect(self._fit)
        self._panel.field.textChanged.connect(self.typed)
        window.installEventFilter(self)
        self.hide()

    def open(self) -> None:
        """Show the palette with an empty field, or close it if it is open."""
        if self.isVisible():
            self.dismiss()
            return
        self._groups = self._find_groups()
        self._previous_focus = QApplication.focusWidget()
        self._panel.reset()
        self._fit()
        self.show()
        self.raise_()
        self._panel.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._panel.fill()
        self.typed.emit("")

    def refresh(self) -> None:
        """Show the current groups."""
        if self.isVisible():
            self._groups = self._find_groups()
            self._panel.fill()

    def dismiss(self) -> None:
        """Close it and return the focus."""
        focus, self._previous_focus = self._previous_focus, None
        self.hide()
        self.closed.emit()
        # That widget may have been deleted with the answer, the banner or the page that it was in.
        if focus is not None and isValid(focus) and focus.window() is self._window and focus.isVisible():
            focus.setFocus(Qt.FocusReason.PopupFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.dismiss()

    def focusNextPrevChild(self, next: bool) -> bool:  # noqa: A002, FBT001  # Qt's own
        """Keep Tab in the palette, between the field and the list: widgets behind it are partly hidden."""
        rows = self._panel.findChild(ChoiceList)
        target = rows if self._panel.field.hasFocus() and rows is not None else self._panel.field
        target.setFocus(Qt.FocusReason.TabFocusReason if next else Qt.FocusReason.BacktabFocusReason)
        return True

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        self.dismiss()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._window and event.type() == QEvent.Type.Resize and self.isVisible():
            self._fit()
        return super().eventFilter(watched, event)

    def _find_rows(self, typed: str) -> Sequence[CommandRow]:
        return matching_rows(typed, self._groups, self._fallback_rows())

    def _choose(self, row: CommandRow) -> None:
        # Return the focus first: the command may move it.
        self.dismiss()
        if row.command is not None:
            row.command()

    def _fit(self) -> None:
        self.setGeometry(self._window.rect())
        size = PALETTE_SIZE * (self._themes.zoom / 100)
        margins = 2 * SPACE_S + 2 * _BORDER
        # No higher than its rows.
        size.setHeight(self._panel.whole_height(size.height() - margins) + margins)
        self._frame.setFixedSize(size.boundedTo(self._window.size() - QSize(2 * SPACE_L, 2 * SPACE_XL)))

    def _build(self) -> None:
        self.setAccessibleName(self.tr("Commands"))
        self._frame.setProperty("kind", "popup")
        self._panel.set_label(self.tr("Commands"), self.tr("Commands, settings, conversations, messages"))
        vbox(self._panel, parent=self._frame, margins=SPACE_S)
        row = hbox(self._frame, parent=self, margins=(0, SPACE_S, 0, 0))
        row.setAlignment(self._frame, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop)


class PalettePresenter(QObject):
    """Fills the palette with the current actions, conversations and models."""

    def __init__(
        self,
        window: MainWindow,
        library: ConversationLibrary,
        servers: ModelServers,
        open_setting: Callable[[str, str], object],
    ) -> None:
        """`open_setting` opens a page of the settings at a field, or with "" as it is."""
        super().__init__(window)
        self._open_setting = open_setting
        self._window = window
        self._library = library
        self._newest: Sequence[Conversation] = ()
        self._found: Sequence[Conversation] = ()
        self._models: Sequence[ModelGroup] = ()
        self._messages = CommandGroup("", (), "")
        self._widget: CommandPalette | None = None
        self.opening_action: WindowAction | None = None
        """The action that opens the palette, which does not list it."""
        self.fallback_actions: Sequence[WindowAction] = ()
        """Actions to offer when nothing matches."""
        library.quick_search.found.connect(self._on_messages)
        library.listing.titles_found.connect(self._on_titles)
        servers.models_changed.connect(self._on_models)

    def open(self) -> None:
        """Open or close the palette."""
        if self._widget is None:
            self._widget = CommandPalette(self._window.themes, self._groups, self._window, self._fallback_rows)
            self._widget.typed.connect(self._library.listing.find_titles)
            self._widget.typed.connect(self._find_messages)
            self._widget.closed.connect(self._library.quick_search.stop)
        self._widget.open()

    def _on_titles(self, typed: str, conversations: Sequence[Conversation]) -> None:
        if not typed:
            self._newest, self._found = conversations, ()
        else:
            known = {conversation.id for conversation in self._newest}
            self._found = [conversation for conversation in conversations if conversation.id not in known]
        if self._widget is not None and (self._found or not typed):
            self._widget.refresh()

    def _on_models(self, groups: Sequence[ModelGroup]) -> None:
        self._models = groups

    def _find_messages(self, typed: str) -> None:
        if len(typed.strip()) < _MIN_QUERY_LENGTH:
            self._library.quick_search.stop()
        else:
            self._library.quick_search.search(SearchQuery(text=typed))

    def _on_messages(self, query: SearchQuery, results: SearchResults) -> None:
        rows = [
            self._message_row(conversation, hit, query.text)
            for conversation in results.conversations
            for hit in conversation.hits[:_MAX_HITS]
        ]
        self._messages = CommandGroup(self.tr("Messages"), rows[:MAX_GROUP_ROWS], query.text)
        if self._widget is not None:
            self._widget.refresh()

    def _message_row(self, conversation: ConversationHits, hit: SearchHit, words: str) -> CommandRow:
        title = title_or_new(conversation.title)
        return CommandRow(
            text=one_line(begin_later(hit.snippet, hit.matches, _CHARACTERS_BEFORE_MATCH)[0], _MAX_SNIPPET),
            detail=title,
            is_choosable=True,
            command=partial(self._window.search.open, conversation.conversation_id, hit, words),
        )

    def _groups(self) -> Sequence[CommandGroup]:
        return (
            CommandGroup(self.tr("Commands"), self._command_rows()),
            CommandGroup(self.tr("Settings"), self._setting_rows(), is_searched_only=True),
            CommandGroup(self.tr("Conversations"), self._conversation_rows()),
            CommandGroup(self.tr("Models"), self._model_rows()),
            self._messages,
        )

    def _command_rows(self) -> list[CommandRow]:
        actions = (
            action
            for action in listed_actions(self._window)
            if action.isEnabled() and action.is_listed and action is not self.opening_action
        )
        return [_command_row(action) for action in actions]

    def _setting_rows(self) -> list[CommandRow]:
        # Late: the palette is created with the window, the settings with the first search.
        from ui.settings.pages import setting_entries

        commands = {action.name for action in listed_actions(self._window)}
        return [
            CommandRow(
                text=entry.title,
                detail=entry.page_title if entry.field else "",
                synonyms=f"{entry.page_title} {entry.keywords} {entry.words}",
                spoken=self.tr("{0}, setting").format(entry.title),
                is_choosable=True,
                command=partial(self._open_setting, entry.page, entry.field),
            )
            for entry in setting_entries()
            # Not the pages that have a command.
            if entry.field or f"settings-{entry.page}" not in commands
        ]

    def _fallback_rows(self) -> list[CommandRow]:
        return [_command_row(action) for action in self.fallback_actions]

    def _conversation_rows(self) -> list[CommandRow]:
        return [
            CommandRow(
                text=title_or_new(conversation.title),
                is_choosable=True,
                command=partial(self._library.open, conversation.id),
            )
            for conversation in (*self._newest, *self._found)
        ]

    def _model_rows(self) -> list[CommandRow]:
        return [
            CommandRow(
                text=model.title or model.id,
                detail=group.endpoint.title,
                synonyms=f"{model.id} {group.endpoint.title}",
                spoken=f"{model.title or model.id}, {group.endpoint.title}",
                is_choosable=True,
                command=partial(self._choose_model, group.endpoint.id, model.id),
            )
            for group in self._models
            for model in group.models
        ]

    def _choose_model(self, endpoint_id: str, model: str) -> None:
        if self._library.current is None:
            self._library.new(endpoint_id=endpoint_id, model=model)
        else:
            self._window.page.models.choose_model(endpoint_id, model)


def _command_row(action: WindowAction) -> CommandRow:
    text, keys = action.text(), action.shown_keys
    return CommandRow(
        text=text,
        detail=keys,
        synonyms=action.synonyms,
        spoken=f"{text}, {keys}" if keys else text,
        is_choosable=True,
        command=action.trigger,
    )
