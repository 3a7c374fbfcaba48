"""The prices of models that the person sets, in the table `models.toml`.

A price is changed in the text of that file without touching any other line: the standard library reads TOML but does
not write it, and comments must survive. The result is parsed again, and used only when it says exactly what it
should.
"""

import asyncio
import json
import os
import re
import tomllib
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from desktop_agent.engine.connections import Connections
from desktop_agent.engine.model_listings import MODELS_FILE, load_model_overrides
from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.provider import catalogue_vendor
from desktop_agent.storage.files import file_error, write_atomically
from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.errors import Sentence, StorageFailed
from desktop_agent.types.providers import Endpoint, Price


@dataclass(frozen=True, slots=True)
class ModelPriceEntry:
    """One model of one server. `is_own`: the person set a part of its price."""

    endpoint_id: str
    server: str
    vendor: str
    model: str
    price: Price
    is_own: bool


class PriceOverrides:
    """Reads prices from the catalogue, changes them in the person's file, and applies them at once."""

    def __init__(self, folder: Path, catalogue: Catalogue, connections: Connections) -> None:
        self._folder = folder
        self._catalogue = catalogue
        self._connections = connections
        self._lock = asyncio.Lock()

    def models(self) -> tuple[ModelPriceEntry, ...]:
        """Return every model that a server in use has listed, server by server."""
        return tuple(
            ModelPriceEntry(
                endpoint.id,
                endpoint.title,
                vendor,
                model.id,
                model.price or Price(),
                self._catalogue.override_price(vendor, model.id) is not None,
            )
            for endpoint, vendor in self._servers()
            for model in self._connections.listed_models(endpoint)
        )

    async def change(self, vendor: str, model: str, changes: Price | None) -> None:
        """Write these numbers over the model's price in the file; None removes its price from the file.

        Raises StorageFailed: the disk refuses, or the file cannot be changed safely.
        """
        async with self._lock:
            await asyncio.to_thread(_write_price, self._folder / MODELS_FILE, vendor, model, changes)
            table, _ = await load_model_overrides(self._folder)
            self._catalogue.set_overrides(table)
            for endpoint, its_vendor in self._servers():
                if its_vendor == vendor:
                    self._connections.forget(endpoint.id, prices_only=True)

    def _servers(self) -> list[tuple[Endpoint, str]]:
        """Return the servers in use but the demo, each with its vendor in the tables of models."""
        return [
            (endpoint, catalogue_vendor(endpoint.dialect, endpoint.base_url))
            for endpoint in self._connections.endpoints()
            if endpoint.kind != "demo"
        ]


def _write_price(path: Path, vendor: str, model: str, changes: Price | None) -> None:
    try:
        text = path.read_bytes().decode() if path.exists() else ""
        changed = set_price_in_text(text, vendor, model, changes)
        if changed is None:
            raise StorageFailed(
                Sentence(
                    "Your file “{name}” is written in a way that cannot be changed from here.", {"name": MODELS_FILE}
                ),
                "Change the price in the file itself.",
                detail=str(path),
            )
        if changed != text:
            write_atomically(Path(os.path.realpath(path)), changed.encode())
    except UnicodeDecodeError as error:
        raise StorageFailed(
            Sentence("Your file “{name}” is not text in UTF-8.", {"name": MODELS_FILE}),
            "Save it as UTF-8.",
            detail=str(path),
        ) from error
    except OSError as error:
        raise file_error(error, path) from error


_PRICE_LINE = re.compile(r"\s*price\s*=")
_TABLE_HEADING = re.compile(r"\s*\[")


def set_price_in_text(text: str, vendor: str, model: str, changes: Price | None) -> str | None:
    """Return the text with these numbers over the model's price; without its price for None.

    Return None where the text is no TOML, or cannot be changed line by line.
    """
    # Notepad and others write both.
    mark, newline = text[: text.startswith("\ufeff")], "\r\n" if "\r\n" in text else "\n"
    text = text.removeprefix(mark).replace(newline, "\n")
    changed = _set_price(text, vendor, model, changes)
    return None if changed is None else mark + changed.replace("\n", newline)


def _set_price(text: str, vendor: str, model: str, changes: Price | None) -> str | None:
    try:
        before = tomllib.loads(text)
        old = _find_price(before, vendor, model)
        numbers = {} if changes is None else changes.model_dump(exclude_none=True)
        price = {**old, **numbers} if changes is not None else {}
        if price == old:
            return text
        lines = text.removesuffix("\n").split("\n") if text else []
        # A file may hold only comments so far.
        after = _edit_lines(lines if before else [*lines, "version = 1"], vendor, model, price)
        expected = _expected_table(before, vendor, model, price)
        return after if _without_empty_tables(tomllib.loads(after)) == _without_empty_tables(expected) else None
    except (ValueError, RecursionError, TypeError, OverflowError):
        return None


def _find_price(data: JsonObject, vendor: str, model: str) -> JsonObject:
    value: Any = data
    for step in (vendor, model, "price"):
        value = value.get(step, {}) if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return dict(value)  # pyright: ignore[reportUnknownArgumentType]


def _expected_table(before: JsonObject, vendor: str, model: str, price: JsonObject) -> JsonObject:
    """Return what the text must say afterwards."""
    expected = deepcopy(before)
    if not before:
        expected["version"] = 1
    if price:
        expected.setdefault(vendor, {}).setdefault(model, {})["price"] = price
        return expected
    del expected[vendor][model]["price"]
    return expected


def _without_empty_tables(data: JsonObject) -> JsonObject:
    """Return the data without empty entries: one that held only a price may go with it, or stay for its comments."""
    vendors = {
        vendor: _non_empty(cast("JsonObject", models)) if isinstance(models, dict) else models
        for vendor, models in data.items()
    }
    return _non_empty(vendors)


def _non_empty(table: JsonObject) -> JsonObject:
    return {name: value for name, value in table.items() if value != {}}


def _edit_lines(lines: list[str], vendor: str, model: str, price: JsonObject) -> str:
    entry = [f"price = {_inline_table(price)}"] if price else []
    heading = _find_heading(lines, vendor, model)
    if heading is None:
        return _join_lines([*lines, "", f"[{vendor}.{json.dumps(model, ensure_ascii=False)}]", *entry])
    end = next((index for index in range(heading + 1, len(lines)) if _TABLE_HEADING.match(lines[index])), len(lines))
    body = lines[heading + 1 : end]
    index = next((number for number, line in enumerate(body) if _PRICE_LINE.match(line)), None)
    if index is None:
        body = [*entry, *body]
    else:
        # A price has no strings, so "#" begins a comment.
        _, sign, comment = body[index].partition("#")
        body = [*body[:index], *(f"{line} {sign}{comment}".rstrip() for line in entry), *body[index + 1 :]]
    edited = lines[heading : heading + 1] if any(line.strip() for line in body) else []
    return _join_lines([*lines[:heading], *edited, *body, *lines[end:]])


def _find_heading(lines: list[str], vendor: str, model: str) -> int | None:
    for number, line in enumerate(lines):
        if not _TABLE_HEADING.match(line):
            continue
        try:
            named: Any = tomllib.loads(line)
        except (ValueError, RecursionError):
            continue
        if named == {vendor: {model: {}}}:
            return number
    return None


def _inline_table(price: JsonObject) -> str:
    parts = [
        f"{name} = {_inline_table(value) if isinstance(value, dict) else _format_number(value)}"  # pyright: ignore[reportUnknownArgumentType]
        for name, value in price.items()
    ]
    return "{ " + ", ".join(parts) + " }"


def _format_number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _join_lines(lines: list[str]) -> str:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return "\n".join(lines) + "\n" if lines else ""
