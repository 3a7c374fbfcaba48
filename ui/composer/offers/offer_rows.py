"""The rows of what servers offer: prompts, resources and templates under their server, narrowed by what is typed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from desktop_agent.vocabulary.mcp.contents import OfferedPrompt, OfferedResource, OfferedTemplate
from ui.bridge.mcp.offers import ServerOffers
from ui.look.rows import RowRole
from ui.look.sentences import plain_tip, size_in_words, spoken
from ui.look.visible_text import with_hidden_shown

_ROOT = QModelIndex()
Wanted = Literal["all", "prompts", "resources"]
Offered = OfferedPrompt | OfferedResource | OfferedTemplate


@dataclass(frozen=True, slots=True)
class OfferRow:
    """A heading, something to take, or a remark (then `offered` is None)."""

    text: str
    server_id: str
    server: str
    offered: Offered | None = None
    under: str = ""
    is_heading: bool = False
    is_problem: bool = False

    @property
    def icon(self) -> str:
        """The name of its icon."""
        match self.offered:
            case OfferedPrompt():
                return "pencil"
            case OfferedResource(media_type=kind) if kind.startswith("image/"):
                return "picture"
            case OfferedResource():
                return "document"
            case OfferedTemplate():
                return "more"
            case None:
                return ""


class OfferRows(QAbstractListModel):
    """All servers in one list."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[OfferRow] = []

    def show_matching(self, groups: Sequence[ServerOffers], typed: str, wanted: Wanted) -> None:
        """What has `typed` in its title, name, address or description."""
        self.beginResetModel()
        self._rows = [row for group in groups for row in self._rows_of(group, typed.strip().casefold(), wanted)]
        self.endResetModel()

    def row(self, number: int) -> OfferRow:
        """One row."""
        return self._rows[number]

    def place_of(self, row: OfferRow | None) -> int:
        """Where this one stands now, or -1."""
        return next((at for at, each in enumerate(self._rows) if row is not None and each == row), -1)

    def next_choosable(self, start: int, step: int) -> int:
        """The next row after `start`, going by `step`, that can be taken; -1 if there is none."""
        number = start + step
        while 0 <= number < len(self._rows):
            if self._rows[number].offered is not None:
                return number
            number += step
        return -1

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = _ROOT) -> int:
        """How many rows."""
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        """What a row says."""
        if not index.isValid():
            return None
        row = self._rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return row.text
            case Qt.ItemDataRole.AccessibleTextRole:
                return ", ".join(each for each in (row.text, row.under) if each)
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tip("\n".join(each for each in (row.text, row.under) if each))
            case _:
                return _look_of(row, role)

    def flags(self, index: QModelIndex | QPersistentModelIndex) -> Qt.ItemFlag:
        """Only what is offered can be taken."""
        if index.isValid() and self._rows[index.row()].offered is not None:
            return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return Qt.ItemFlag.NoItemFlags

    def _rows_of(self, group: ServerOffers, typed: str, wanted: Wanted) -> list[OfferRow]:
        title, found = with_hidden_shown(group.title), group.contents
        heading = OfferRow(title, group.server_id, group.title, is_heading=True)
        if found is None:
            words = spoken(group.problem) if group.problem is not None else self.tr("Starting…")
            note = OfferRow(words, group.server_id, group.title, is_problem=group.problem is not None)
            return [heading, note]
        prompts: tuple[Offered, ...] = found.prompts if wanted != "resources" else ()
        readable: tuple[Offered, ...] = (*found.resources, *found.templates) if wanted != "prompts" else ()
        rows = [self._row_of(group, each) for each in (*prompts, *readable) if typed in _searched(each)]
        if not rows and not typed:
            rows = [OfferRow(self._nothing(wanted), group.server_id, group.title)]
        return [heading, *rows] if rows else []

    def _nothing(self, wanted: Wanted) -> str:
        return {
            "all": self.tr("It offers no prompts and no resources."),
            "prompts": self.tr("It offers no prompts."),
            "resources": self.tr("It offers no resources."),
        }[wanted]

    def _row_of(self, group: ServerOffers, offered: Offered) -> OfferRow:
        parts = [" ".join(with_hidden_shown(offered.description).split())]
        if isinstance(offered, OfferedResource):
            parts += [size_in_words(offered.size)] if offered.size is not None else []
            parts += [] if parts[0] else [with_hidden_shown(offered.uri)]
        elif isinstance(offered, OfferedTemplate):
            parts.append(with_hidden_shown(offered.uri_template))
        elif any(each.required for each in offered.arguments):
            parts.append(self.tr("asks for more"))
        under = " · ".join(each for each in parts if each)
        return OfferRow(with_hidden_shown(offered.title), group.server_id, group.title, offered, under)


def _look_of(row: OfferRow, role: int) -> object:
    match role:
        case RowRole.UNDER:
            return row.under
        case RowRole.ICON:
            return row.icon
        case RowRole.HEADING:
            return row.is_heading
        case RowRole.FADED:
            return row.offered is None and not row.is_heading
        case RowRole.BADGE:
            return "problem" if row.is_problem else ""
        case _:
            return None


def _searched(offered: Offered) -> str:
    address = ""
    if isinstance(offered, OfferedResource):
        address = offered.uri
    elif isinstance(offered, OfferedTemplate):
        address = offered.uri_template
    return f"{offered.title}\n{offered.name}\n{offered.description}\n{address}".casefold()
