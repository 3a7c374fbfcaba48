"""The rows of the model picker: models under the server that has them, narrowed by what is typed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, Protocol

from PySide6.QtCore import QAbstractListModel, QCoreApplication, QModelIndex, QObject, QPersistentModelIndex, Qt

from desktop_agent.vocabulary.endpoints import Endpoint
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.requests import ModelInfo
from ui.look.rows import RowRole
from ui.look.sentences import plain_tip, price, short_number, spoken

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
    endpoint_id: str = ""
    model_id: str = ""
    facts: tuple[str, ...] = ()
    tip: str = ""
    is_current: bool = False
    is_retired: bool = False


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
                return ", ".join((row.text, *row.facts, *(["✓"] if row.is_current else [])))
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tip(row.tip or row.model_id or row.text)
            case _:
                return _look_of(row, role)

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
        today = datetime.now().astimezone().date()
        rows = [
            ModelRow(
                "model",
                model.title or model.id,
                endpoint.id,
                model.id,
                facts_of(model, today),
                tip_of(model),
                is_current=(endpoint.id, model.id) == current,
                is_retired=model.retires is not None and model.retires <= today,
            )
            for model in found
        ]
        if typed and all(model.id != typed for model in group.models):
            rows.append(ModelRow("typed", self.tr("Use “{0}”").format(typed), endpoint.id, typed))
        if group.problem is not None:
            rows.insert(0, ModelRow("note", spoken(group.problem)))
        elif not group.models:
            rows.insert(0, ModelRow("note", self.tr("No models")))
        return [ModelRow("heading", endpoint.title), *rows]


def _look_of(row: ModelRow, role: int) -> object:
    match role:
        case RowRole.DETAIL:
            return "✓" if row.is_current else ""
        case RowRole.UNDER:
            return " · ".join(row.facts)
        case RowRole.FADED:
            return row.is_retired
        case RowRole.HEADING:
            return row.kind == "heading"
        case RowRole.BADGE:
            return "problem" if row.kind == "note" else ""
        case _:
            return None


def facts_of(model: ModelInfo, today: date) -> tuple[str, ...]:
    """What is known about a model, in as few words as there can be."""
    translate, able, facts = QCoreApplication.translate, model.capabilities, list[str]()
    if able.context_window:
        facts.append(short_number(able.context_window))
    for has_it, words in (
        (able.images, translate("ModelRows", "images")),
        (able.tools, translate("ModelRows", "tools")),
        (able.reasoning, translate("ModelRows", "reasoning")),
    ):
        if has_it:
            facts.append(words)
    cost = model.price
    if cost is not None and cost.input is not None and cost.output is not None:
        facts.append(f"{price(cost.input)} / {price(cost.output)}")
    if model.retires is not None:
        gone = model.retires <= today
        words = translate("ModelRows", "retired {0}") if gone else translate("ModelRows", "retires {0}")
        facts.append(words.format(model.retires.isoformat()))
    return tuple(facts)


def tip_of(model: ModelInfo) -> str:
    """The id, and the figures with their units."""
    translate, cost, lines = QCoreApplication.translate, model.price, [model.id]
    if model.capabilities.context_window:
        words = translate("ModelRows", "Context window: {0} tokens")
        lines.append(words.format(f"{model.capabilities.context_window:,}"))
    if cost is not None and cost.input is not None and cost.output is not None:
        words = translate("ModelRows", "A million tokens cost {0} in and {1} out")
        lines.append(words.format(price(cost.input), price(cost.output)))
    return "\n".join(lines)
