"""A price in the text of a table of models, changed without touching any other line of it.

The standard library reads TOML but does not write it, and a person's comments must survive. So lines are edited, and
the result is read again: it counts only when it says exactly what was wanted and nothing else has changed.
"""

import json
import re
import tomllib
from copy import deepcopy
from typing import Any, cast

from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.requests import Price

_PRICE_LINE = re.compile(r"\s*price\s*=")
_TABLE_HEADING = re.compile(r"\s*\[")


def set_price_in_text(text: str, vendor: str, model: str, changes: Price | None) -> str | None:
    """The text with these numbers over the model's price; without its price for None.

    None where that cannot be done: the text is no TOML, or is written in a way that lines cannot follow.
    """
    try:
        before = tomllib.loads(text)
        old = _find_price(before, vendor, model)
        said = {} if changes is None else changes.model_dump(exclude_none=True)
        wanted = {**old, **said} if changes is not None else {}
        if wanted == old:
            return text
        after = _edit_lines(text.splitlines(), vendor, model, wanted)
        expected = _expected_table(before, vendor, model, wanted)
        return after if _without_empty_tables(tomllib.loads(after)) == _without_empty_tables(expected) else None
    except (ValueError, RecursionError, TypeError):
        return None


def _find_price(data: JsonObject, vendor: str, model: str) -> JsonObject:
    found: Any = data
    for step in (vendor, model, "price"):
        found = found.get(step, {}) if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return dict(found)  # pyright: ignore[reportUnknownArgumentType]


def _expected_table(before: JsonObject, vendor: str, model: str, price: JsonObject) -> JsonObject:
    """What the text must say afterwards."""
    expected = deepcopy(before)
    if not before:
        expected["version"] = 1
    if price:
        expected.setdefault(vendor, {}).setdefault(model, {})["price"] = price
        return expected
    del expected[vendor][model]["price"]
    return expected


def _without_empty_tables(data: JsonObject) -> JsonObject:
    """Without entries that say nothing: one that held only a price may go with it, or stay for its comments."""
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
        begin = [*lines, ""] if lines else ["version = 1", ""]
        return _join_lines([*begin, f"[{vendor}.{json.dumps(model, ensure_ascii=False)}]", *entry])
    end = next((at for at in range(heading + 1, len(lines)) if _TABLE_HEADING.match(lines[at])), len(lines))
    body = lines[heading + 1 : end]
    at = next((number for number, line in enumerate(body) if _PRICE_LINE.match(line)), None)
    body = [*entry, *body] if at is None else [*body[:at], *entry, *body[at + 1 :]]
    kept = lines[heading : heading + 1] if any(line.strip() for line in body) else []
    return _join_lines([*lines[:heading], *kept, *body, *lines[end:]])


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
