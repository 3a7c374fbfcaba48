"""The list of conversations as a model: rows of folders, then conversations under headings for dates, with badges."""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal, Protocol

from PySide6.QtCore import (
    QAbstractListModel,
    QCoreApplication,
    QDate,
    QLocale,
    QMimeData,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
)

from desktop_agent.types.folders import FolderLevel
from ui.style.list_rows import RowRole
from ui.style.text import join_names, plain_tooltip, title_or_new
from ui.style.text_display import date_in_group, relative_date

translate = QCoreApplication.translate

Badge = Literal["", "working", "attention", "unread"]
"""Nothing, the agent works, a tool call or a question waits for the person, or an answer came that nobody saw."""
_ACTIVE: tuple[Badge, ...] = ("attention", "working")
"""What a folder shows of the conversations in it; the first comes before the second."""

_ROOT = QModelIndex()
ModelIndex = QModelIndex | QPersistentModelIndex


class Conversation(Protocol):
    """The facts of a conversation that the list shows. The title may be empty.

    `updated_at` is when its last message came, with a time zone; a pinned one comes before the others.
    """

    @property
    def id(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def updated_at(self) -> datetime: ...

    @property
    def is_pinned(self) -> bool: ...

    @property
    def tags(self) -> Sequence[str]: ...


PlaceKind = Literal["folder", "archive", "more"]
"""`more` is a row that shows the other folders."""
_MAX_FOLDERS = 12
"""Folders that are shown above the conversations, unless the person wants to see all."""


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """A row that leads to other conversations. `colour` is the word of a FolderColour, or empty.

    `folders` are the ids of the folders that it stands for; it has their badge.
    """

    kind: PlaceKind
    id: str
    title: str
    icon: str = "folder"
    colour: str = ""
    folders: tuple[str, ...] = ()


def places_of(level: FolderLevel, archive: str, more: str, *, shows_all: bool) -> Sequence[PlaceRow]:
    """Return the rows that lead on from here: the folders, and at the top the archive.

    `archive` and `more` are the titles of their rows.
    """
    if level.is_archive:
        return ()
    rows = [
        PlaceRow("folder", folder.id, folder.name, "folder", folder.colour.value, (folder.id,))
        for folder in level.folders
    ]
    if len(rows) > _MAX_FOLDERS + 1 and not shows_all:
        hidden = tuple(row.id for row in rows[_MAX_FOLDERS:])
        rows[_MAX_FOLDERS:] = [PlaceRow("more", "more", more, "chevron-down", folders=hidden)]
    if level.has_archive and not level.path:
        rows.append(PlaceRow("archive", "archive", archive, "archive"))
    return tuple(rows)


ROWS_FORMAT = "application/x-desktop-agent-rows"
"""The format of dragged rows: JSON, see `dragged_rows`."""


def dragged_rows(data: QMimeData) -> tuple[list[str], list[str]]:
    """Return the ids of dragged conversations and of dragged folders."""
    if not data.hasFormat(ROWS_FORMAT):
        return [], []
    # Another window of ours may drag here too.
    try:
        ids = json.loads(bytes(data.data(ROWS_FORMAT).data()))
        return list(map(str, ids["conversations"])), list(map(str, ids["folders"]))
    except (ValueError, KeyError, TypeError):
        return [], []


@dataclass(frozen=True, slots=True)
class DateGroup:
    """A heading, and how many conversations are before it."""

    title: str
    first: int


def date_groups(conversations: Sequence[Conversation], now: datetime) -> list[DateGroup]:
    """Return the groups of conversations: those that are pinned, then the last written first.

    Only a few of them are read: the groups are found by binary search.
    """
    first = bisect_left(conversations, x=True, key=lambda row: not row.is_pinned)
    groups = [DateGroup(translate("DateGroups", "Pinned"), 0)] if first else []
    while first < len(conversations):
        title, begin = _date_group(conversations[first].updated_at, now)
        groups.append(DateGroup(title, first))
        first = bisect_left(conversations, x=True, lo=first + 1, key=lambda row, begin=begin: row.updated_at < begin)
    return groups


def _date_group(moment: datetime, now: datetime) -> tuple[str, datetime]:
    """Return the title of the group of a moment, and when the group begins."""
    midnight = now.astimezone().replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    for days, title in (
        (0, translate("DateGroups", "Today")),
        (1, translate("DateGroups", "Yesterday")),
        (7, translate("DateGroups", "Previous 7 days")),
        (30, translate("DateGroups", "Previous 30 days")),
    ):
        # The time zone is added only here: its offset may have been another on an earlier day.
        begin = (midnight - timedelta(days)).astimezone()
        if moment >= begin:
            return title, begin
    month = moment.astimezone().replace(day=1, hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    form = translate("DateGroups", "MMMM yyyy", "a month and its year, as QLocale writes dates")
    return QLocale().toString(QDate(month.year, month.month, 1), form), month.astimezone()


class ConversationModel(QAbstractListModel):
    """Places, then conversations in the given order, under headings for dates. Row data is made when it is painted, so
    100,000 rows are fine.
    """

    renamed = Signal(str, str)
    """Id and the new title, as the person typed it."""
    activity_changed = Signal()
    """Others work or wait than before: see `active_ids`."""

    def __init__(self, parent: QObject | None = None, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        super().__init__(parent)
        self._now = now
        self._day: date | None = None
        """The day by which the rows are grouped."""
        self._places: Sequence[PlaceRow] = ()
        self._shown: Sequence[Conversation] = ()
        self._groups: list[DateGroup] = []
        self._heading_rows: list[int] = []
        self._badges: dict[str, Badge] = {}
        self._folders: dict[str, str] = {}

    def set_conversations(self, conversations: Sequence[Conversation], places: Sequence[PlaceRow] = ()) -> None:
        """Replace or reorder the rows. Current, selected and edited rows move along."""
        now = self._now()
        self._day = now.astimezone().date()
        groups = date_groups(conversations, now)
        is_same = groups == self._groups and [place.id for place in places] == [place.id for place in self._places]
        if is_same and _same_ids(conversations, self._shown):
            self._shown, self._places = conversations, places
            self._repaint()
            return
        # Not a reset: that would move the current row, and discard a title that is being typed.
        self.layoutAboutToBeChanged.emit()
        indexes = self.persistentIndexList()
        moving_ids = [self._key_at(index.row()) for index in indexes]
        self._shown, self._groups, self._places = conversations, groups, places
        self._heading_rows = [len(places) + group.first + number for number, group in enumerate(groups)]
        id_set = set(moving_ids) - {""}
        rows = {row.id: self._row_of_number(number) for number, row in enumerate(conversations) if row.id in id_set}
        rows |= {place.id: number for number, place in enumerate(places)}
        self.changePersistentIndexList(indexes, [self.index(rows.get(moved_id, -1)) for moved_id in moving_ids])
        self.layoutChanged.emit()

    def check_day(self) -> None:
        """Put the rows under other headings if another day has begun, or the clock was set."""
        if self._shown and self._now().astimezone().date() != self._day:
            self.set_conversations(self._shown, self._places)

    @property
    def count(self) -> int:
        return len(self._shown)

    def id_of(self, number: int) -> str:
        """Return the id of a conversation, counted from 0 without the headings."""
        return self._shown[number].id

    def number_of(self, conversation_id: str) -> int:
        """Return the number of a conversation, counted from 0 without the headings, or -1."""
        return next((number for number, row in enumerate(self._shown) if row.id == conversation_id), -1)

    def nearest_row(self, row: int, step: int = 1) -> int:
        """Return this row, or the nearest one that is no heading, first by `step`; -1 if there is none."""
        row = min(max(row, 0), self.rowCount() - 1)
        rows = (row, row + step, row - step)
        return next((near_row for near_row in rows if 0 <= near_row < self.rowCount() and self._key_at(near_row)), -1)

    def conversation_at(self, row: int) -> Conversation | None:
        """Return the conversation in a row; None for a heading and a place."""
        entry = self._entry_at(row)
        return None if isinstance(entry, (DateGroup, PlaceRow)) else entry

    def place_at(self, row: int) -> PlaceRow | None:
        """Return the folder, or the archive, that a row leads to; None for others."""
        return self._places[row] if 0 <= row < len(self._places) else None

    def rows_of(self, ids: Collection[str]) -> list[int]:
        """Return the rows of conversations, in order."""
        return [self._row_of_number(number) for number, row in enumerate(self._shown) if row.id in ids]

    def set_badge(self, conversation_id: str, badge: Badge) -> None:
        """Set the badge of a conversation; empty removes it."""
        active = self.active_ids
        if badge:
            self._badges[conversation_id] = badge
        else:
            self._badges.pop(conversation_id, None)
        self._repaint()
        if active != self.active_ids:
            self.activity_changed.emit()

    @property
    def active_ids(self) -> list[str]:
        """Return the ids of the conversations that work or wait for the person, listed here or not."""
        return [id_ for id_, badge in self._badges.items() if badge in _ACTIVE]

    def set_folders(self, folders: dict[str, str]) -> None:
        """Set the folder of each active conversation, by their ids. The rows of the folders get the badge."""
        self._folders = folders
        self._repaint()

    def mark_read(self, conversation_id: str) -> None:
        """Remove the unread badge; that of working or waiting stays."""
        if self._badges.get(conversation_id) == "unread":
            self.set_badge(conversation_id, "")

    def id_at(self, row: int) -> str:
        """Return the id of the conversation in a row; "" for a heading and a place."""
        conversation = self.conversation_at(row)
        return "" if conversation is None else conversation.id

    def row_of(self, conversation_id: str) -> int:
        """Return the row of a conversation, or -1."""
        number = self.number_of(conversation_id)
        return -1 if number < 0 else self._row_of_number(number)

    def rowCount(self, parent: ModelIndex = _ROOT) -> int:
        return 0 if parent.isValid() else len(self._places) + len(self._shown) + len(self._groups)

    def data(self, index: ModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the row's data for a role."""
        match self._entry_at(index.row()) if index.isValid() else None:
            case None:
                return None
            case DateGroup() as group:
                return _heading_data(group, role)
            case PlaceRow() as place:
                return self._place_data(place, role)
            case conversation:
                return self._conversation_data(conversation, role)

    def _conversation_data(self, conversation: Conversation, role: int) -> object:
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole:
                return title_or_new(conversation.title)
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tooltip("\n".join(filter(None, (conversation.title, join_names(conversation.tags)))))
            case Qt.ItemDataRole.AccessibleTextRole:
                return self._accessible_text(conversation)
            case RowRole.DETAIL:
                return _with_tags(conversation.tags, date_in_group(conversation.updated_at, self._now()))
            case RowRole.BADGE:
                return self._badges.get(conversation.id, "")
            case _:
                return None

    def setData(self, index: ModelIndex, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Emit the new title. The row changes when the conversations are set again."""
        title, conversation = str(value).strip(), self._entry_at(index.row())
        if role != Qt.ItemDataRole.EditRole or not title or isinstance(conversation, (DateGroup, PlaceRow)):
            return False
        if title == conversation.title:
            return False
        self.renamed.emit(conversation.id, title)
        return True

    def flags(self, index: ModelIndex) -> Qt.ItemFlag:
        """Make titles editable in place. Headings cannot be selected."""
        if not index.isValid():
            return super().flags(index)
        place = self.place_at(index.row())
        if place is not None:
            draggable = Qt.ItemFlag.ItemIsDragEnabled if place.kind == "folder" else Qt.ItemFlag.NoItemFlags
            return super().flags(index) | draggable
        if not self.id_at(index.row()):
            return Qt.ItemFlag.NoItemFlags
        return super().flags(index) | Qt.ItemFlag.ItemIsEditable | Qt.ItemFlag.ItemIsDragEnabled

    def supportedDragActions(self) -> Qt.DropAction:
        return Qt.DropAction.MoveAction

    def mimeTypes(self) -> list[str]:
        return [ROWS_FORMAT]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        places = [self.place_at(index.row()) for index in indexes]
        ids = {
            "conversations": [id_ for index in indexes if (id_ := self.id_at(index.row()))],
            "folders": [place.id for place in places if place is not None and place.kind == "folder"],
        }
        data = QMimeData()
        data.setData(ROWS_FORMAT, json.dumps(ids).encode())
        return data

    def _place_data(self, place: PlaceRow, role: int) -> object:
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return place.title
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tooltip(place.title)
            case Qt.ItemDataRole.AccessibleTextRole:
                title = self.tr("Folder: {0}").format(place.title) if place.kind == "folder" else place.title
                return join_names((title, *self._badge_words(self._place_badge(place))))
            case RowRole.BADGE:
                return self._place_badge(place)
            case RowRole.ICON:
                return place.icon
            case RowRole.TINT:
                return place.colour
            case _:
                return None

    def _accessible_text(self, conversation: Conversation) -> str:
        words = [title_or_new(conversation.title), relative_date(conversation.updated_at, self._now())]
        if conversation.is_pinned:
            words.append(self.tr("pinned"))
        if conversation.tags:
            words.append(self.tr("tags: {0}").format(join_names(conversation.tags)))
        return join_names((*words, *self._badge_words(self._badges.get(conversation.id, ""))))

    def _place_badge(self, place: PlaceRow) -> Badge:
        badges = {self._badges.get(id_, "") for id_, folder in self._folders.items() if folder in place.folders}
        active: list[Badge] = [badge for badge in _ACTIVE if badge in badges]
        return active[0] if active else ""

    def _badge_words(self, badge: Badge) -> Sequence[str]:
        words = {
            "working": self.tr("working"),
            "attention": self.tr("waits for you"),
            "unread": self.tr("unread"),
        }
        return [words[badge]] if badge else []

    def _repaint(self) -> None:
        if self.rowCount():
            self.dataChanged.emit(self.index(0), self.index(self.rowCount() - 1))

    def _entry_at(self, row: int) -> Conversation | DateGroup | PlaceRow:
        if row < len(self._places):
            return self._places[row]
        group = bisect_right(self._heading_rows, row) - 1
        is_heading = self._heading_rows[group] == row
        return self._groups[group] if is_heading else self._shown[row - len(self._places) - group - 1]

    def _key_at(self, row: int) -> str:
        entry = self._entry_at(row)
        return "" if isinstance(entry, DateGroup) else entry.id

    def _row_of_number(self, number: int) -> int:
        return len(self._places) + number + bisect_right(self._groups, number, key=lambda group: group.first)


def _same_ids(new: Sequence[Conversation], old: Sequence[Conversation]) -> bool:
    return len(new) == len(old) and all(one.id == other.id for one, other in zip(new, old, strict=True))


def _with_tags(tags: Sequence[str], date: str) -> str:
    """Return the date, and before it the first tag and how many others there are."""
    if not tags:
        return date
    return f"{tags[0]}{f' +{len(tags) - 1}' if len(tags) > 1 else ''} · {date}"


def _heading_data(group: DateGroup, role: int) -> object:
    if role in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole}:
        return group.title
    return role == RowRole.HEADING or None
