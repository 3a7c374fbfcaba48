"""The rows of the model picker: models under the server that has them, narrowed by what is typed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from desktop_agent.vocabulary.endpoints import Endpoint
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.requests import ModelInfo
from ui.look.rows import RowRole
from ui.look.sentences import plain_tip, spoken

_ROOT = QModelIndex()


class ModelsOfServer(Protocol):
    """One server's models, or why they cannot be listed."""

    @property
    def endpoint(self) -> Endpoint:
        """The server."""
        ...

    @property
    def models(self) -> tuple[ModelInfo, ...]:
        """Its models, in its own order."""
        ...

    @property
    def problem(self) -> Sentence | None:
        """Why there are none."""
        ...


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A heading, a model, a model id as typed, or a remark."""

    kind: Literal["heading", "model", "typed", "note"]
    text: str
    detail: str = ""
    endpoint_id: str = ""
    model_id: str = ""


class ModelRows(QAbstractListModel):
    """All servers' models in one list."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[ModelRow] = []

    def show_matching(self, groups: Sequence[ModelsOfServer], typed: str, current: tuple[str, str]) -> None:
        """The models whose id or title contains `typed`; `current` is (endpoint id, model id)."""
        self.beginResetModel()
        self._rows = [row for group in groups for row in self._rows_of(group, typed.strip(), current)]
        self.endResetModel()

    def row(self, number: int) -> ModelRow:
        """One row."""
        return self._rows[number]

    def index_of(self, endpoint_id: str, model_id: str) -> int:
        """The row of a model, or -1."""
        wanted = (endpoint_id, model_id)
        return next((i for i, row in enumerate(self._rows) if (row.endpoint_id, row.model_id) == wanted), -1)

    def next_choosable(self, start: int, step: int) -> int:
        """The next row after `start`, going by `step`, that can be chosen; -1 if there is none."""
        number = start + step
        while 0 <= number < len(self._rows):
            if self._rows[number].model_id:
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
                return f"{row.text}, {row.detail}" if row.detail else row.text
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tip(row.model_id or row.text)
            case RowRole.DETAIL:
                return row.detail
            case RowRole.HEADING:
                return row.kind == "heading"
            case RowRole.BADGE:
                return "problem" if row.kind == "note" else ""
            case _:
                return None

    def flags(self, index: QModelIndex | QPersistentModelIndex) -> Qt.ItemFlag:
        """Only models can be chosen."""
        if index.isValid() and self._rows[index.row()].model_id:
            return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return Qt.ItemFlag.NoItemFlags

    def _rows_of(self, group: ModelsOfServer, typed: str, current: tuple[str, str]) -> list[ModelRow]:
        endpoint, wanted = group.endpoint, typed.casefold()
        found = [
            model for model in group.models if wanted in model.id.casefold() or wanted in (model.title or "").casefold()
        ]
        rows = [
            ModelRow("model", model.title or model.id, self._detail(endpoint.id, model, current), endpoint.id, model.id)
            for model in found
        ]
        if typed and all(model.id != typed for model in group.models):
            rows.append(ModelRow("typed", self.tr("Use “{0}”").format(typed), "", endpoint.id, typed))
        if group.problem is not None:
            rows.insert(0, ModelRow("note", spoken(group.problem)))
        elif not group.models:
            rows.insert(0, ModelRow("note", self.tr("No models")))
        return [ModelRow("heading", endpoint.title), *rows]

    def _detail(self, endpoint_id: str, model: ModelInfo, current: tuple[str, str]) -> str:
        able = model.capabilities
        words = [self.tr("images")] if able.images else []
        if able.context_window:
            words.append(f"{able.context_window / 1000:.0f}k")
        if (endpoint_id, model.id) == current:
            words.append("✓")
        return "  ".join(words)
