"""The rows of the model picker: models under the server that has them, narrowed by what is typed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from PySide6.QtCore import QCoreApplication

from desktop_agent.vocabulary.endpoints import Endpoint
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.requests import ModelInfo
from ui.look.parts.found_rows import ResultRow
from ui.look.sentences import format_count, format_price, translate_sentence


class ServerModels(Protocol):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow(ResultRow):
    """A model, or a model id as typed; without one a heading or a remark."""

    endpoint_id: str = ""
    model_id: str = ""


def model_rows(groups: Sequence[ServerModels], typed: str, current: tuple[str, str]) -> list[ModelRow]:
    """The models whose id or title contains `typed`, of each server; `current` is (endpoint id, model id)."""
    return [row for group in groups for row in _rows_of(group, typed.strip(), current)]


def _rows_of(group: ServerModels, typed: str, current: tuple[str, str]) -> list[ModelRow]:
    translate, wanted = QCoreApplication.translate, typed.casefold()
    found = [each for each in group.models if wanted in each.id.casefold() or wanted in (each.title or "").casefold()]
    today = datetime.now().astimezone().date()
    rows = [_row_of(group.endpoint.id, model, current, today) for model in found]
    if typed and all(model.id != typed for model in group.models):
        rows.append(_custom_row(group.endpoint.id, typed, current))
    if group.problem is not None:
        rows.insert(0, ModelRow(text=translate_sentence(group.problem), badge="problem"))
    elif not group.models:
        rows.insert(0, ModelRow(text=translate("ModelRows", "No models"), badge="problem"))
    return [ModelRow(text=group.endpoint.title, is_heading=True), *rows]


def _row_of(endpoint_id: str, model: ModelInfo, current: tuple[str, str], today: date) -> ModelRow:
    title, facts, is_current = model.title or model.id, model_details(model, today), (endpoint_id, model.id) == current
    return ModelRow(
        text=title,
        under=" · ".join(facts),
        detail="✓" if is_current else "",
        tip=model_tooltip(model),
        spoken=", ".join((title, *facts, *(["✓"] if is_current else []))),
        is_faded=model.retires is not None and model.retires <= today,
        is_choosable=True,
        is_current=is_current,
        endpoint_id=endpoint_id,
        model_id=model.id,
    )


def _custom_row(endpoint_id: str, typed: str, current: tuple[str, str]) -> ModelRow:
    return ModelRow(
        text=QCoreApplication.translate("ModelRows", "Use “{0}”").format(typed),
        tip=typed,
        is_choosable=True,
        is_current=(endpoint_id, typed) == current,
        endpoint_id=endpoint_id,
        model_id=typed,
    )


def model_details(model: ModelInfo, today: date) -> tuple[str, ...]:
    """What is known about a model, in as few words as there can be."""
    translate, able, facts = QCoreApplication.translate, model.capabilities, list[str]()
    if able.context_window:
        facts.append(format_count(able.context_window))
    for has_it, words in (
        (able.images, translate("ModelRows", "images")),
        (able.tools, translate("ModelRows", "tools")),
        (able.reasoning, translate("ModelRows", "reasoning")),
    ):
        if has_it:
            facts.append(words)
    cost = model.price
    if cost is not None and cost.input is not None and cost.output is not None:
        facts.append(f"{format_price(cost.input)} / {format_price(cost.output)}")
    if model.retires is not None:
        gone = model.retires <= today
        words = translate("ModelRows", "retired {0}") if gone else translate("ModelRows", "retires {0}")
        facts.append(words.format(model.retires.isoformat()))
    return tuple(facts)


def model_tooltip(model: ModelInfo) -> str:
    """The id, and the figures with their units."""
    translate, cost, lines = QCoreApplication.translate, model.price, [model.id]
    if model.capabilities.context_window:
        words = translate("ModelRows", "Context window: {0} tokens")
        lines.append(words.format(f"{model.capabilities.context_window:,}"))
    if cost is not None and cost.input is not None and cost.output is not None:
        words = translate("ModelRows", "A million tokens cost {0} in and {1} out")
        lines.append(words.format(format_price(cost.input), format_price(cost.output)))
    return "\n".join(lines)
