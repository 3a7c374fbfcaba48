"""The conversations as a Qt model: titles, dates, badges, narrowed by a filter."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal, Protocol

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from ui.look.parts.dates import relative_date
from ui.look.rows import RowRole
from ui.look.sentences import plain_tooltip

Badge = Literal["", "working", "attention", "unread"]
"""Nothing, the agent works, a tool call or a question waits for the person, or an answer came that nobody saw."""

_ROOT = QModelIndex()
ModelIndex = QModelIndex | QPersistentModelIndex


class Conversation(Protocol):
    """What the list shows of a conversation."""

    @property
    def id(self) -> str:
        """Its identifier."""
        ...

    @property
    def title(self) -> str:
        """Its title; may be empty."""
        ...

    @property
    def updated_at(self) -> datetime:
        """When something was last said, with a time zone."""
        ...


def _now() -> datetime:
    return datetime.now(UTC)


class ConversationModel(QAbstractListModel):
    """One row per conversation, in the order given. Rows are made up when they are painted, so 100,000 are fine."""

    renamed = Signal(str, str)
    """Id and the new title, as the person typed it."""

    def __init__(self, parent: QObject | None = None, now: Callable[[], datetime] = _now) -> None:
        super().__init__(parent)
        self._now = now
        self._all: Sequence[Conversation] = ()
        self._shown: Sequence[Conversation] = ()
        self._badges: dict[str, Badge] = {}
        self._wanted = ""

    def set_conversations(self, conversations: Sequence[Conversation]) -> None:
        """Another set, or the same in another order. What is current, chosen or being edited goes with its row."""
        self._all = conversations
        self._show_matching()

    def filter_titles(self, wanted: str) -> None:
        """Show those whose title contains `wanted`."""
        self._wanted = wanted.casefold().strip()
        self._show_matching()

    @property
    def has_no_matches(self) -> bool:
        """Whether something is searched for that no title contains."""
        return bool(self._wanted and not self._shown)

    def no_matches_text(self) -> str:
        """The sentence for that."""
        return self.tr("No conversation has this in its title.")

    def set_badge(self, conversation_id: str, badge: Badge) -> None:
        """Mark a conversation, or take the mark off with an empty badge."""
        if badge:
            self._badges[conversation_id] = badge
        else:
            self._badges.pop(conversation_id, None)
        self._repaint()

    def mark_read(self, conversation_id: str) -> None:
        """What came has been seen; that something works or waits stays."""
        if self._badges.get(conversation_id) == "unread":
            self.set_badge(conversation_id, "")

    def id_at(self, row: int) -> str:
        """The conversation in a row."""
        return self._shown[row].id

    def row_of(self, conversation_id: str) -> int:
        """The row of a conversation, or -1."""
        return next((row for row, each in enumerate(self._shown) if each.id == conversation_id), -1)

    def rowCount(self, parent: ModelIndex = _ROOT) -> int:
        """How many rows."""
        return 0 if parent.isValid() else len(self._shown)

    def data(self, index: ModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """What a row says."""
        if not index.isValid():
            return None
        each = self._shown[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole:
                return each.title or self.tr("New conversation")
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tooltip(each.title)
            case Qt.ItemDataRole.AccessibleTextRole:
                return self._accessible_text(each)
            case RowRole.DETAIL:
                return relative_date(each.updated_at, self._now())
            case RowRole.BADGE:
                return self._badges.get(each.id, "")
            case _:
                return None

    def setData(self, index: ModelIndex, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """A new title was typed: say so. The row changes when the conversations are set again."""
        title = str(value).strip()
        if role != Qt.ItemDataRole.EditRole or not title or title == self._shown[index.row()].title:
            return False
        self.renamed.emit(self._shown[index.row()].id, title)
        return True

    def flags(self, index: ModelIndex) -> Qt.ItemFlag:
        """Titles can be edited in place."""
        return super().flags(index) | Qt.ItemFlag.ItemIsEditable

    def _accessible_text(self, each: Conversation) -> str:
        words = [each.title or self.tr("New conversation"), relative_date(each.updated_at, self._now())]
        match self._badges.get(each.id):
            case "working":
                words.append(self.tr("working"))
            case "attention":
                words.append(self.tr("waits for you"))
            case "unread":
                words.append(self.tr("unread"))
            case _:
                pass
        return ", ".join(words)

    def _show_matching(self) -> None:
        shown = self._all
        if self._wanted:
            shown = [each for each in self._all if self._wanted in each.title.casefold()]
        if [each.id for each in shown] == [each.id for each in self._shown]:
            self._shown = shown
            self._repaint()
            return
        # Not a reset: that would put the keyboard on another row, and throw away a title that is being typed.
        self.layoutAboutToBeChanged.emit()
        before = self.persistentIndexList()
        moving = [self._shown[index.row()].id for index in before]
        self._shown = shown
        wanted = set(moving)
        rows = {each.id: row for row, each in enumerate(shown) if each.id in wanted}
        self.changePersistentIndexList(before, [self.index(rows.get(moved, -1)) for moved in moving])
        self.layoutChanged.emit()

    def _repaint(self) -> None:
        if self._shown:
            self.dataChanged.emit(self.index(0), self.index(len(self._shown) - 1))
