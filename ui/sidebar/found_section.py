"""The conversations of other programs below the person's own: a folder for each program, closed at first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import QListView, QSizePolicy, QStyle, QStyleOptionViewItem

from ui.sidebar.conversation_model import Conversation
from ui.style.accessibility import ChoiceList, choose_toggled_row
from ui.style.list_rows import Index, ResultModel, ResultRow, RowDelegate
from ui.style.text import show_hidden
from ui.style.text_display import relative_date
from ui.style.theme import ThemeSource, chevron_towards

if TYPE_CHECKING:
    from ui.bridge.exchange import FoundProgram

_SHARE = 0.5
"""The largest share of the height of the sidebar for an open folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row(ResultRow):
    program: str = ""
    conversation_id: str = ""


class FoundSection(ChoiceList):
    """One click or Enter opens a folder or a conversation; Left closes the folder, Right opens it.

    What is in a folder is asked for each time it is opened, so changes on the disk are seen then.
    """

    folder_opened = Signal(str)
    """The program whose conversations are wanted; `show_entries` answers."""
    chosen = Signal(str)

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._folders: Sequence[FoundProgram] = ()
        self._entries: dict[str, Sequence[Conversation]] = {}
        self._open = ""
        self._current = ""
        self._has_room = True
        self.rows = ResultModel(self)
        self.setModel(self.rows)
        self.setItemDelegate(_FoundRowDelegate(themes, self))
        self.setAccessibleName(self.tr("Conversations of other programs"))
        self.setMouseTracking(True)
        self.setUniformItemSizes(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.clicked.connect(self._choose)
        choose_toggled_row(self, self._choose)
        self.hide()

    def show_folders(self, folders: "Sequence[FoundProgram]") -> None:
        """Show these folders; none hides the section."""
        self._folders = folders
        if self._open not in {folder.program for folder in folders}:
            self._open = ""
        self._refresh()
        self._update_visibility()

    def set_has_room(self, *, has_room: bool) -> None:
        """Set whether the section may be shown; it may not where search results are."""
        self._has_room = has_room
        self._update_visibility()

    def show_entries(self, program: str, entries: Sequence[Conversation]) -> None:
        """Show what is in a folder, the newest first."""
        self._entries[program] = entries
        self._refresh()

    def set_current(self, conversation_id: str) -> None:
        """Mark the open conversation, if it is in an open folder."""
        self._current = conversation_id
        self._select()

    def sizeHint(self) -> QSize:
        """Return the height of the rows, up to a share of the sidebar."""
        rows = self.sizeHintForRow(0) * self.rows.rowCount() + 2 * self.frameWidth()
        sidebar = self.parentWidget()
        max_height = round(sidebar.height() * _SHARE) if sidebar is not None else rows
        return QSize(80, min(rows, max_height))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Open and close folders as in a tree."""
        row, key = self._row(self.currentIndex()), event.key()
        is_open = row is not None and row.program == self._open
        is_folder = row is not None and not row.conversation_id
        if row is not None and key in {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space}:
            self._choose(self.currentIndex())
        elif row is not None and key == (Qt.Key.Key_Left if is_open else Qt.Key.Key_Right) and (is_open or is_folder):
            self._toggle(row.program)
        else:
            super().keyPressEvent(event)

    def _choose(self, index: Index) -> None:
        row = self._row(index)
        if row is None:
            return
        if row.conversation_id:
            self.chosen.emit(row.conversation_id)
        else:
            self._toggle(row.program)

    def _toggle(self, program: str) -> None:
        self._open = "" if self._open == program else program
        self._refresh()
        self.setCurrentIndex(self.rows.index(self._number_of(program)))
        if self._open:
            self.folder_opened.emit(program)

    def _row(self, index: Index) -> _Row | None:
        row = self.rows.row(index.row()) if index.isValid() else None
        return row if isinstance(row, _Row) else None

    def _number_of(self, program: str) -> int:
        rows = (self._row(self.rows.index(number)) for number in range(self.rows.rowCount()))
        return next((number for number, row in enumerate(rows) if row is not None and row.program == program), -1)

    def _update_visibility(self) -> None:
        self.setVisible(self._has_room and bool(self._folders))

    def _refresh(self) -> None:
        top, current = self.verticalScrollBar().value(), self.currentIndex().row()
        self.rows.show_rows(list(self._make_rows()))
        self.updateGeometry()
        if 0 <= current < self.rows.rowCount():
            self.setCurrentIndex(self.rows.index(current))
        self._select()
        self.verticalScrollBar().setValue(top)

    def _select(self) -> None:
        rows = (self._row(self.rows.index(number)) for number in range(self.rows.rowCount()))
        matches = (index for index, row in enumerate(rows) if row is not None and row.conversation_id == self._current)
        current = next(matches, -1) if self._current else -1
        if current >= 0:
            self.setCurrentIndex(self.rows.index(current))
        elif (row := self._row(self.currentIndex())) is not None and row.conversation_id:
            self.setCurrentIndex(QModelIndex())

    def _make_rows(self) -> Iterator[_Row]:
        locale = self.locale()
        for folder in self._folders:
            is_open = folder.program == self._open
            entries = self._entries.get(folder.program) if is_open else None
            count = locale.toString(folder.count if entries is None else len(entries))
            state = self.tr("open") if is_open else self.tr("closed")
            yield _Row(
                text=folder.title,
                detail=count,
                icon="chevron-down" if is_open else chevron_towards("end"),
                spoken=self.tr("{0}, conversations: {1}, {2}").format(folder.title, count, state),
                tip=self.tr("Conversations of {0} on this computer, read only").format(folder.title),
                is_faded=True,
                is_choosable=True,
                program=folder.program,
            )
            for entry in entries or ():
                title = show_hidden(entry.title) or self.tr("Untitled")
                date = relative_date(entry.updated_at, datetime.now(UTC))
                yield _Row(
                    text=title,
                    detail=date,
                    spoken=f"{title}, {date}, {folder.title}",
                    is_choosable=True,
                    program=folder.program,
                    conversation_id=entry.id,
                )


class _FoundRowDelegate(RowDelegate):
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint a folder as any other row: only the open conversation looks chosen."""
        model = index.model()
        row = model.row(index.row()) if isinstance(model, ResultModel) else None
        if isinstance(row, _Row) and not row.conversation_id:
            option.state &= ~QStyle.StateFlag.State_Selected
        super().paint(painter, option, index)
