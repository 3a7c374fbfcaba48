"""What a search found, in place of the list: conversations, each with its best messages, and what is marked in them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate, chain, pairwise

from PySide6.QtCore import QCoreApplication, QItemSelectionModel, QModelIndex, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontMetrics,
    QKeyEvent,
    QPainter,
    QResizeEvent,
    QTextCharFormat,
    QTextLayout,
    QTextOption,
)
from PySide6.QtWidgets import QListView, QStyle, QStyleOptionViewItem

from desktop_agent.types.messages import Role
from desktop_agent.types.search import ConversationHits, MatchRange, SearchHit, SearchPlace, SearchQuery, SearchResults
from ui.style.accessibility import ChoiceList, choose_toggled_row
from ui.style.list_rows import Index, ResultModel, ResultRow, RowDelegate
from ui.style.style_sheet import mix_colours
from ui.style.text import begin_later, join_names, show_hidden, title_or_new, translate_sentence
from ui.style.text_display import (
    displayed_positions,
    in_logical_order,
    isolate_untrusted,
    make_format_range,
    relative_date,
)
from ui.style.theme import SPACE_M, SPACE_S, SPACE_XS, Theme, ThemeSource, chevron_towards
from ui.style.tool_labels import tool_title

translate = QCoreApplication.translate

_SNIPPET_LINES = 2
_BEFORE = 30
"""Characters before the first match."""
_SMALL = 0.88
_MAX_TITLE = 200
"""Characters: more are on no screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRow(ResultRow):
    """A title, a message, a command or a remark. `text` is one line, `matches` are the ranges in it to be marked.

    What is chosen opens `conversation_id` at `hit`, or searches for `query`; a message has the muted `under` above it.
    """

    matches: tuple[MatchRange, ...] = ()
    conversation_id: str = ""
    hit: SearchHit | None = None
    query: SearchQuery | None = None


def rows_of(query: SearchQuery, results: SearchResults, now: datetime) -> list[SearchRow]:
    """Return the rows, from top to bottom."""
    rows: list[SearchRow] = []
    if query.conversation_id is not None:
        words, everything = translate("SearchResults", "All conversations"), replace(query, conversation_id=None)
        rows.append(SearchRow(text=words, icon=chevron_towards("start"), query=everything, is_choosable=True))
    if remark := remark_on(query, results):
        rows.append(SearchRow(text=remark, is_faded=True))
    for conversation in results.conversations:
        rows += _conversation_rows(query, conversation, now)
    if results.conversations and results.has_more:
        more = translate("SearchResults", "There are more results. Add a word to see fewer.")
        rows.append(SearchRow(text=more, is_faded=True))
    return rows


def remark_on(query: SearchQuery, results: SearchResults) -> str:
    """Return the remark above the results, or in place of them; "" if there is none."""
    words = query.text.strip()
    if results.obstacle is not None:
        return translate_sentence(results.obstacle)
    if not results.is_complete:
        return translate("SearchResults", "Still indexing: not everything is searched yet")
    if results.conversations:
        return ""
    if not words:
        return translate("SearchResults", "Nothing found")
    return translate("SearchResults", "Nothing found for “{0}”").format(isolate_untrusted(words[:_MAX_TITLE]))


def _conversation_rows(query: SearchQuery, conversation: ConversationHits, now: datetime) -> Iterator[SearchRow]:
    title = title_or_new(conversation.title)
    matches = conversation.title_matches if conversation.title else ()
    yield SearchRow(
        text=title,
        matches=matches,
        detail=conversation.program_title,
        spoken=join_names(filter(None, (title, conversation.program_title))),
        conversation_id=conversation.conversation_id,
        is_choosable=True,
        is_heading=True,
    )
    for hit in conversation.hits:
        speaker, when = _speaker_of(hit), relative_date(hit.at, now)
        snippet, marked = _with_tool_title(hit)
        text, matches = begin_later(snippet, marked, _BEFORE)
        yield SearchRow(
            text=text,
            matches=matches,
            under=speaker,
            detail=when,
            spoken=f"{speaker}, {when}: {snippet}",
            conversation_id=conversation.conversation_id,
            hit=hit,
            is_choosable=True,
        )
    if conversation.hit_count > len(conversation.hits) and query.conversation_id is None:
        # The number is exact only within a single conversation.
        words = translate("SearchResults", "Show all {0}").format(conversation.hit_count)
        narrowed = replace(query, conversation_id=conversation.conversation_id)
        yield SearchRow(text=words, query=narrowed, is_choosable=True)


def _with_tool_title(hit: SearchHit) -> tuple[str, Sequence[MatchRange]]:
    """Return the snippet of a tool call with the title of its card, unless the name of the tool matches."""
    name, _, rest = hit.snippet.partition(" ")
    is_call = hit.place is SearchPlace.CALLS and hit.role is Role.ASSISTANT
    title = tool_title(name) if is_call else name
    if title == name or any(start < len(name) for start, _ in hit.matches):
        return hit.snippet, hit.matches
    if not rest.strip():
        return title, hit.matches
    shift = len(title) + 1 - len(name)
    return f"{title}: {rest}", [(start + shift, end + shift) for start, end in hit.matches]


def _speaker_of(hit: SearchHit) -> str:
    match hit.place:
        case SearchPlace.CALLS:
            return translate("SearchResults", "Tool call")
        case SearchPlace.FILES:
            return translate("SearchResults", "File written")
        case SearchPlace.ATTACHMENTS:
            return translate("SearchResults", "Attachment")
        case _ if hit.is_note:
            return translate("SearchResults", "Note")
        case _ if hit.role is Role.USER:
            return translate("SearchResults", "You")
        case _:
            return translate("SearchResults", "Assistant")


def words_to_mark(query: SearchQuery, hit: SearchHit) -> str:
    """Return what the find bar searches for: all that was typed if the message contains it, else its longest match."""
    typed = query.text.strip().strip('"“”„«»').strip()
    if typed and typed.casefold() in hit.snippet.casefold():
        return typed
    words = [hit.snippet[start:end] for start, end in hit.matches]
    return max(words, key=len, default="")


class SearchResultsView(ChoiceList):
    """The results. One click or Enter opens; the arrow keys skip remarks, and lead back to the field at the top."""

    hit_chosen = Signal(str, object, str)
    """The id of a conversation, the SearchHit in it, and the words that are to be marked."""
    conversation_chosen = Signal(str)
    query_chosen = Signal(object)
    """Another SearchQuery: all of one conversation, or all conversations again."""
    left_at_top = Signal()
    escape_pressed = Signal()

    def __init__(self, themes: ThemeSource, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        super().__init__()
        self._now = now
        self.query = SearchQuery()
        """What the results are for."""
        self.rows = ResultModel(self)
        self.setModel(self.rows)
        self.setItemDelegate(_SearchRowDelegate(themes, self))
        self.setAccessibleName(self.tr("Search results"))
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.clicked.connect(self._choose)
        self.activated.connect(self._choose)
        choose_toggled_row(self, self._choose)

    def show_results(self, query: SearchQuery, results: SearchResults) -> None:
        """Show them from the top; those of the same query keep the scroll position and the current row."""
        row = self.currentIndex().row()
        current = self.rows.row(row) if row >= 0 else None
        top = self.verticalScrollBar().value() if query == self.query else 0
        is_same, self.query = query == self.query, query
        self.rows.show_rows(rows_of(query, results, self._now()))
        row_index = self.rows.place_of(current) if is_same and current is not None else -1
        if row_index >= 0:
            self.setCurrentIndex(self.rows.index(row_index))
        self.verticalScrollBar().setValue(top)

    def focus_first(self) -> None:
        """Give the keyboard to the current row, or to the first that can be chosen."""
        if not self.currentIndex().isValid():
            first = self.rows.next_choosable(-1, 1)
            self.setCurrentIndex(self.rows.index(first) if first >= 0 else QModelIndex())
        self.setFocus(Qt.FocusReason.OtherFocusReason)

    def choose_best(self) -> bool:
        """Open the first result: its title if that matches, else its best message. Return whether there is one."""
        rows = map(self.rows.row, range(self.rows.rowCount()))
        results = [row for row in rows if isinstance(row, SearchRow) and row.conversation_id]
        matching = (row for row in results if row.matches or row.hit is not None)
        best = next(chain(matching, results), None)
        if best is not None:
            self._choose(self.rows.index(self.rows.place_of(best)))
        return best is not None

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc and Up at the top leave the results."""
        first = self.rows.next_choosable(-1, 1)
        if event.key() == Qt.Key.Key_Escape:
            self.escape_pressed.emit()
        elif event.key() == Qt.Key.Key_Up and self.currentIndex().row() <= first:
            self.left_at_top.emit()
        elif event.key() in {Qt.Key.Key_Home, Qt.Key.Key_End}:
            is_home = event.key() == Qt.Key.Key_Home
            row = first if is_home else self.rows.next_choosable(self.rows.rowCount(), -1)
            self.setCurrentIndex(self.rows.index(row) if row >= 0 else QModelIndex())
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # The heights of snippets depend on the width.
        self.scheduleDelayedItemsLayout()

    def _choose(self, index: QModelIndex) -> None:
        row = self.rows.row(index.row()) if index.isValid() else None
        if not isinstance(row, SearchRow):
            return
        self.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        if row.query is not None:
            self.query_chosen.emit(row.query)
        elif row.hit is not None:
            self.hit_chosen.emit(row.conversation_id, row.hit, words_to_mark(self.query, row.hit))
        elif row.conversation_id:
            self.conversation_chosen.emit(row.conversation_id)


class _SearchRowDelegate(RowDelegate):
    """Paints titles strong, and messages below them small: who said it and when, then two lines with bold matches."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        row = self._row(index)
        if row is None:
            return super().sizeHint(option, index)
        line, small, gap = option.fontMetrics.height(), self._small_metrics().height(), self._themes.space(SPACE_XS)
        width = self._width() - 2 * SPACE_M - SPACE_S
        if row.hit is not None:
            return QSize(80, small * (1 + _line_count(row.text, self._small_metrics(), width)) + 2 * gap)
        if row.is_faded:
            lines = self._small_metrics().boundingRect(0, 0, width, 1000, Qt.TextFlag.TextWordWrap, row.text).height()
            return QSize(80, lines + 2 * self._themes.space(SPACE_S))
        if row.query is not None:
            return QSize(80, small + 2 * gap + 2)
        return QSize(80, line + self._themes.space(SPACE_S) + gap)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        row = self._row(index)
        if row is None:
            return
        theme = self._themes.theme
        painter.save()
        painter.setLayoutDirection(option.direction)
        self._whole = option.rect
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if row.is_choosable:
            self._paint_background(painter, option, theme)
        area = option.rect.adjusted(SPACE_M, 0, -SPACE_M, 0)
        if row.hit is not None:
            is_selected = bool(option.state & QStyle.StateFlag.State_Selected)
            self._paint_hit(painter, area.adjusted(SPACE_S, 0, 0, 0), row, theme, is_selected=is_selected)
        elif row.is_faded:
            painter.setFont(self._font(_SMALL))
            painter.setPen(QColor(theme.muted))
            flags = Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeading
            painter.drawText(area, flags, row.text)
        elif row.query is not None:
            self._paint_command(painter, area, row, theme)
        else:
            title = area.adjusted(0, self._themes.space(SPACE_XS), 0, 0)
            if row.detail:
                painter.setFont(self._font(_SMALL))
                painter.setPen(QColor(theme.muted))
                title = self._paint_detail(painter, title, row.detail)
            font = self._font(1, QFont.Weight.DemiBold)
            self._draw_marked(painter, title, row, font, 1)
        painter.restore()

    def _paint_command(self, painter: QPainter, area: QRect, row: SearchRow, theme: Theme) -> None:
        area = self._paint_symbol(painter, area, row.icon, theme.muted) if row.icon else area.adjusted(SPACE_S, 0, 0, 0)
        painter.setFont(self._font(_SMALL))
        painter.setPen(QColor(theme.link))
        self._draw_text(painter, area, row.text, Qt.AlignmentFlag.AlignLeft)

    def _paint_hit(self, painter: QPainter, area: QRect, row: SearchRow, theme: Theme, *, is_selected: bool) -> None:
        height = self._small_metrics().height()
        top = area.top() + self._themes.space(SPACE_XS)
        # Muted text would be hard to read on the background of a selected row.
        muted = mix_colours(theme.muted, theme.text, 0.35) if is_selected else theme.muted
        painter.setFont(self._font(_SMALL))
        painter.setPen(QColor(muted))
        head = self._paint_detail(painter, QRect(area.left(), top, area.width(), height), row.detail)
        self._draw_text(painter, head, row.under, Qt.AlignmentFlag.AlignLeft)
        below = QRect(area.left(), top + height, area.width(), height * _SNIPPET_LINES)
        self._draw_marked(painter, below, row, self._font(_SMALL), _SNIPPET_LINES)

    def _draw_marked(self, painter: QPainter, area: QRect, row: SearchRow, font: QFont, lines: int) -> None:
        """Draw the text of a row with its matches on a background: bold, or underlined in a bold text."""
        shown, ranges = _displayed(row.text if lines > 1 else row.text[:_MAX_TITLE], row.matches)
        mark = QTextCharFormat()
        mark.setFontWeight(QFont.Weight.Bold)
        mark.setFontUnderline(font.weight() > QFont.Weight.Normal)
        mark.setBackground(QBrush(QColor(self._themes.theme.match)))
        formats = [make_format_range(start, end - start, mark) for start, end in ranges]
        layout = _lay_out(shown, formats, font, area.width(), lines, painter.layoutDirection())
        box = self._mirrored(painter, area)
        if lines == 1:
            box.translate(0, (box.height() - round(layout.boundingRect().height())) // 2)
        painter.setPen(QColor(self._themes.theme.text))
        layout.draw(painter, QPointF(box.topLeft()), [], QRectF(box))

    def _row(self, index: Index) -> SearchRow | None:
        model = index.model()
        row = model.row(index.row()) if index.isValid() and isinstance(model, ResultModel) else None
        return row if isinstance(row, SearchRow) else None

    def _width(self) -> int:
        view = self.parent()
        return view.viewport().width() if isinstance(view, QListView) else 0

    def _small_metrics(self) -> QFontMetrics:
        return QFontMetrics(self._font(_SMALL))


def _line_count(text: str, metrics: QFontMetrics, width: int) -> int:
    return 1 if metrics.horizontalAdvance(text) <= 0.95 * width else _SNIPPET_LINES


def _displayed(text: str, matches: Iterable[MatchRange]) -> tuple[str, list[MatchRange]]:
    """Return the text as it is displayed, and the ranges in it in Qt's units (UTF-16)."""
    edges = [edge for match in matches for edge in match]
    pieces = [show_hidden(text[start:end]) for start, end in pairwise([0, *edges, len(text)])]
    visible = "".join(pieces)
    positions = displayed_positions(visible, list(accumulate(map(len, pieces)))[:-1])
    return in_logical_order(visible), list(zip(positions[::2], positions[1::2], strict=True))


def _lay_out(
    text: str,
    formats: Sequence[QTextLayout.FormatRange],
    font: QFont,
    width: int,
    lines: int,
    direction: Qt.LayoutDirection,
) -> QTextLayout:
    """Break a text into so many lines at the most; the last one is elided if there is more."""
    edge = QStyle.visualAlignment(direction, Qt.AlignmentFlag.AlignLeft)
    option = QTextOption(edge | Qt.AlignmentFlag.AlignAbsolute)
    option.setTextDirection(Qt.LayoutDirection.LayoutDirectionAuto)
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)

    def break_lines(shown: str) -> QTextLayout:
        layout = QTextLayout(shown, font)
        layout.setTextOption(option)
        layout.setFormats(formats)
        layout.beginLayout()
        y = 0.0
        for _ in range(lines):
            line = layout.createLine()
            if not line.isValid():
                break
            line.setLineWidth(max(width, 1))
            line.setPosition(QPointF(0, y))
            y += line.height()
        layout.endLayout()
        return layout

    layout = break_lines(text)
    last = layout.lineAt(layout.lineCount() - 1) if layout.lineCount() else None
    units = text.encode("utf-16-le", "surrogatepass")
    if last is None or last.textStart() + last.textLength() >= len(units) // 2:
        return layout
    start = 2 * last.textStart()
    rest = units[start:].decode("utf-16-le", "replace")
    bold = QFont(font)
    bold.setWeight(QFont.Weight.Bold)
    elided = QFontMetrics(bold).elidedText(rest, Qt.TextElideMode.ElideRight, width)
    return break_lines(units[:start].decode("utf-16-le", "replace") + elided)
