"""The model of the tree of branches: the line in view is flat, other versions are folded where they begin."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from desktop_agent.conversation.message_tree import MessageTree, TreeEntry
from desktop_agent.markdown.plain_text import without_signs
from ui.style.list_rows import RowRole
from ui.style.text import join_names, labelled, show_hidden
from ui.style.text_display import isolate, relative_date

Index = QModelIndex | QPersistentModelIndex
_NO_INDEX = QModelIndex()


class BranchRow:
    """One prompt or answer in the tree.

    The first row of a line that is not in view (`is_head`) has the rest of that line below it. Every other row has its
    other versions below it.
    """

    def __init__(
        self, entry: TreeEntry, parent: "BranchRow | None", number: int, versions: Sequence[TreeEntry], *, is_head: bool
    ) -> None:
        self.entry = entry
        self.parent = parent
        self.number = number
        self.others = [] if is_head else [other for other in versions if other is not entry]
        self.is_head = is_head
        self._rows: list[BranchRow] | None = None

    @property
    def has_rows(self) -> bool:
        """Whether there are rows below it."""
        return bool(self.entry.children) if self.is_head else bool(self.others)

    @property
    def rows(self) -> "Sequence[BranchRow]":
        """The rows below it, created at the first access."""
        if self._rows is None:
            if self.is_head:
                self._rows = line_of(self.entry.children, self)
            else:
                self._rows = [
                    BranchRow(other, self, number, (), is_head=True) for number, other in enumerate(self.others)
                ]
        return self._rows


def line_of(versions: Sequence[TreeEntry], parent: BranchRow | None) -> list[BranchRow]:
    """Return the rows of a line that begins with one of these versions: the one in view, or else the newest."""
    return [
        BranchRow(entry, parent, number, others, is_head=False)
        for number, (entry, others) in enumerate(_walk_line(versions))
    ]


def _walk_line(versions: Sequence[TreeEntry]) -> Iterator[tuple[TreeEntry, Sequence[TreeEntry]]]:
    while versions:
        entry = next((version for version in versions if version.is_in_view), versions[-1])
        yield entry, versions
        versions = entry.children


class BranchModel(QAbstractItemModel):
    """The rows of one conversation's tree."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[BranchRow] = []
        self._now = datetime.now(UTC)

    def show_tree(self, tree: MessageTree) -> None:
        """Show this tree."""
        self.beginResetModel()
        self._now = datetime.now(UTC)
        self._rows = line_of(tree.roots, None)
        self.endResetModel()

    def row_at(self, index: Index) -> BranchRow | None:
        """Return the row of an index."""
        row = index.internalPointer() if index.isValid() else None
        return row if isinstance(row, BranchRow) else None

    def end_of_view(self) -> QModelIndex:
        """Return the last row of the branch in view, or the first row."""
        in_view = [row for row in self._rows if row.entry.is_in_view]
        return self.index_of((in_view or self._rows)[-1 if in_view else 0]) if self._rows else QModelIndex()

    def index_of(self, row: BranchRow) -> QModelIndex:
        """Return the index of a row."""
        return self.createIndex(row.number, 0, row)

    def find(self, first_id: str) -> QModelIndex:
        """Return the index of the entry that begins with this message; creates the rows that are searched."""
        pending = list(reversed(self._rows))
        while pending:
            row = pending.pop()
            if row.entry.first_id == first_id:
                return self.index_of(row)
            pending += reversed(row.rows)
        return QModelIndex()

    def index(self, row: int, column: int, parent: Index = _NO_INDEX) -> QModelIndex:
        """Return the index of a row below another one."""
        rows = self._below(parent)
        return self.createIndex(row, column, rows[row]) if column == 0 and 0 <= row < len(rows) else QModelIndex()

    def parent(self, child: Index) -> QModelIndex:  # type: ignore[override]  # Qt's other overload returns the QObject
        """Return the index of the parent row."""
        row = self.row_at(child)
        return QModelIndex() if row is None or row.parent is None else self.index_of(row.parent)

    def rowCount(self, parent: Index = _NO_INDEX) -> int:
        return len(self._below(parent))

    def columnCount(self, parent: Index = _NO_INDEX) -> int:
        del parent
        return 1

    def hasChildren(self, parent: Index = _NO_INDEX) -> bool:
        row = self.row_at(parent)
        return bool(self._rows) if row is None else row.has_rows

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """Return the text of a row: the speaker and the first line, and beside them the counts and the date."""
        row = self.row_at(index)
        if row is None:
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return labelled(self._speaker(row.entry), self._line(row.entry))
            case Qt.ItemDataRole.AccessibleTextRole:
                return self._spoken(row)
            case RowRole.DETAIL:
                return " · ".join([*self._facts(row), relative_date(row.entry.created_at, self._now)])
            case RowRole.FADED:
                return not row.entry.is_in_view
            case RowRole.BADGE:
                return "unread" if self._ends_view(row) else ""
            case _:
                return None

    def _below(self, parent: Index) -> Sequence[BranchRow]:
        row = self.row_at(parent)
        return self._rows if row is None else row.rows

    def _speaker(self, entry: TreeEntry) -> str:
        return {"prompt": self.tr("You"), "answer": self.tr("Assistant"), "note": self.tr("Note")}[entry.kind]

    def _line(self, entry: TreeEntry) -> str:
        if entry.line:
            return isolate(show_hidden(without_signs(entry.line) or entry.line))
        return self.tr("(a picture)") if entry.kind == "prompt" else self.tr("(no text)")

    def _facts(self, row: BranchRow) -> list[str]:
        entry, facts = row.entry, list[str]()
        if entry.tool_calls:
            words = self.tr("{0} tool calls") if entry.tool_calls > 1 else self.tr("1 tool call")
            facts.append(words.format(entry.tool_calls))
        if row.others:
            words = self.tr("{0} other versions") if len(row.others) > 1 else self.tr("1 other version")
            facts.append(words.format(len(row.others)))
        if row.is_head and entry.below:
            facts.append((self.tr("{0} messages below") if entry.below > 1 else self.tr("1 below")).format(entry.below))
        return facts

    def _spoken(self, row: BranchRow) -> str:
        entry = row.entry
        words = [labelled(self._speaker(entry), self._line(entry)).rstrip("."), *self._facts(row)]
        if self._ends_view(row):
            words.append(self.tr("end of the shown branch"))
        elif entry.is_in_view:
            words.append(self.tr("shown"))
        return join_names([*words, relative_date(entry.created_at, self._now)])

    def _ends_view(self, row: BranchRow) -> bool:
        return row.entry.is_in_view and not any(child.is_in_view for child in row.entry.children)
