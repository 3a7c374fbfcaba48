"""Parse tables of models in TOML: the one that ships, and the person's own in the same form (docs/models.md)."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import Field, ValidationError, model_validator

from desktop_agent.providers.transport.json_codec import is_object
from desktop_agent.types.frozen_model import FrozenModel
from desktop_agent.types.providers import Capabilities, ModelInfo, Price

VERSION = 1
# The suffix of a model's snapshot: a day, or "latest".
_SNAPSHOT = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)")
_MAX_ERRORS = 5
_CAPABILITIES = frozenset(capability.name for capability in fields(Capabilities))
_GATHERED = "_capabilities"


class PriceChange(FrozenModel):
    """The price from a day on, if one was announced."""

    since: date = Field(alias="from")
    price: Price


class ModelRow(FrozenModel):
    """What a table says about one model, or about all whose names begin alike. None: unknown.

    In the table the capabilities are beside the other fields.
    """

    title: str | None = None
    # Under another name than in the table, where it is an unknown field.
    capabilities: Capabilities = Field(default=Capabilities(), alias=_GATHERED)
    price: Price | None = None
    later: tuple[PriceChange, ...] = ()
    retires: date | None = None

    @model_validator(mode="before")
    @classmethod
    def _gather_capabilities(cls, entry: Any) -> Any:
        if not is_object(entry):
            return entry
        return {
            **{name: value for name, value in entry.items() if name not in _CAPABILITIES},
            _GATHERED: {name: value for name, value in entry.items() if name in _CAPABILITIES},
        }

    def to_model_info(self, model: str, day: date) -> ModelInfo:
        """Return the row as it applies on this day."""
        changes = [change for change in self.later if change.since <= day]
        price = max(changes, key=lambda change: change.since).price if changes else self.price
        return ModelInfo(model, self.title, self.capabilities, price, self.retires)


@dataclass(frozen=True, slots=True)
class TableError:
    """An entry of a table that was left out: its place, and the reason."""

    place: str
    line: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class ModelTable:
    """Rows by vendor and name. `errors` are the entries that could not be used, the first few of them."""

    rows: Mapping[str, Mapping[str, ModelRow]] = field(default_factory=dict[str, dict[str, ModelRow]])
    errors: tuple[TableError, ...] = ()

    def find(self, vendor: str, model: str, day: date) -> ModelInfo | None:
        """Return the row whose name fits best: the longest, and one without a star before one with it.

        Case is ignored, and versions may be written with dots or dashes.
        """
        normalised_model = _normalised(model)
        candidates = [name for name in self.rows.get(vendor, {}) if _matches(_normalised(name), normalised_model)]
        if not candidates:
            return None
        best = max(candidates, key=lambda name: (len(name.removesuffix("*")), not name.endswith("*")))
        return self.rows[vendor][best].to_model_info(model, day)


def parse_table(text: str) -> ModelTable:
    """Parse a table; entries that cannot be used are left out and reported. Raises tomllib.TOMLDecodeError."""
    rows: dict[str, dict[str, ModelRow]] = {}
    errors: list[TableError] = []
    for vendor, name, entry in _entries(tomllib.loads(text)):
        try:
            row = ModelRow.model_validate(entry)
        except ValidationError as error:
            errors.extend(_table_errors(text, vendor, name, error))
        else:
            rows.setdefault(vendor, {})[name] = row
    return ModelTable(rows, tuple(errors[:_MAX_ERRORS]))


@cache
def load_shipped_table() -> ModelTable:
    """Return the table that comes with the program; read once, some ten milliseconds: call it in a thread."""
    return parse_table(files(__package__ or __name__).joinpath("shipped.toml").read_text(encoding="utf-8"))


def _entries(data: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for vendor, models in data.items():
        if vendor == "version" and isinstance(models, int):
            continue
        if not is_object(models):
            yield vendor, "", models
            continue
        for name, entry in models.items():
            yield vendor, name, entry


def _table_errors(text: str, vendor: str, name: str, error: ValidationError) -> Iterator[TableError]:
    for details in error.errors(include_url=False, include_context=False, include_input=False):
        steps = [step for step in details["loc"] if isinstance(step, str) and step != _GATHERED]
        path = ".".join(filter(None, (vendor, f'"{name}"' if name else "", *steps)))
        yield TableError(path, _line(text, vendor, name, steps), details["msg"])


def _line(text: str, vendor: str, name: str, steps: list[str]) -> int | None:
    """Find the line of an entry by its heading and key: TOML's parser keeps no positions."""
    if not name:
        return _first_line(text, rf"\s*{re.escape(vendor)}\s*=")
    heading = _first_line(text, rf"\s*\[\s*{re.escape(vendor)}\s*\.\s*[\"']?{re.escape(name)}[\"']?[\s\].]")
    if heading is None or not steps:
        return heading
    return _first_line(text, rf".*\b{re.escape(steps[-1])}\b", heading) or heading


def _first_line(text: str, pattern: str, after: int = 0) -> int | None:
    lines = enumerate(text.splitlines(), 1)
    return next((number for number, line in lines if number > after and re.match(pattern, line)), None)


def _normalised(name: str) -> str:
    return name.lower().replace(".", "-")


def _matches(name: str, model: str) -> bool:
    if name.endswith("*"):
        return model.startswith(name[:-1])
    return model.startswith(name) and (model == name or _SNAPSHOT.fullmatch(model, len(name)) is not None)
