"""The arguments of an MCP tool, read from its JSON Schema (2020-12), as a list or as JSON."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from desktop_agent.types.blocks import JsonObject
from ui.preferences.mcp_servers.server_text import describe_kinds
from ui.style.boxes import vbox
from ui.style.controls import button, label
from ui.style.layouts import FlowRows
from ui.style.read_only_text import ReadOnlyText
from ui.style.removal import clear_layout
from ui.style.text import escape_mnemonics, show_hidden
from ui.style.text_display import arguments_as_json
from ui.style.theme import SPACE_M, SPACE_S, SPACE_XS

MAX_ARGUMENTS = 60
MAX_CHOICES = 12
MAX_ARGUMENT_NAME_LENGTH = 100
MAX_DESCRIPTION_LENGTH = 2_000
# Arguments inside of arguments.
_MAX_DEPTH = 4
_MAX_VALUE_LENGTH = 80

SchemaAlternatives = tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True)
class ToolArgument:
    """One argument; `name` is its path, with dots and [].

    `kinds` and `item_kinds` are types of JSON Schema; empty: any. `choices` are the allowed values as JSON, and
    `omitted_choices` the number of further ones. `default` is JSON; empty: none.
    """

    name: str
    kinds: tuple[str, ...] = ()
    item_kinds: tuple[str, ...] = ()
    is_required: bool = False
    description: str = ""
    choices: tuple[str, ...] = ()
    omitted_choices: int = 0
    default: str = ""


def parse_tool_arguments(schema: JsonObject) -> tuple[tuple[ToolArgument, ...], bool]:
    """Return the first arguments, nested ones after theirs, and whether these are all."""
    found = tuple(islice(_walk(schema, schema, "", 0), MAX_ARGUMENTS + 1))
    return found[:MAX_ARGUMENTS], len(found) <= MAX_ARGUMENTS


def count_arguments(schema: JsonObject) -> int:
    """Count the arguments, without nested ones."""
    return len(_as_object(schema.get("properties")))


def _walk(schema: JsonObject, root: JsonObject, before: str, depth: int) -> Iterator[ToolArgument]:
    required = _as_strings(schema.get("required"))
    for name, given in _as_object(schema.get("properties")).items():
        whole = f"{before}{_truncate(name, MAX_ARGUMENT_NAME_LENGTH)}"
        ways = _alternatives(_resolve_ref(given, root), root)
        held = tuple(way for schema in ways for way in _alternatives(_resolve_ref(schema.get("items"), root), root))
        yield _argument(whole, name, ways, held, is_required=name in required)
        if depth < _MAX_DEPTH:
            for way in ways:
                yield from _walk(way, root, f"{whole}.", depth + 1)
            for way in held:
                yield from _walk(way, root, f"{whole}[].", depth + 1)


def _argument(
    whole: str, name: str, ways: SchemaAlternatives, held: SchemaAlternatives, *, is_required: bool
) -> ToolArgument:
    said = ways[0]
    choices = next((found for found in map(_enum_values, (*ways, *held)) if found), list[Any]())
    title = _as_string(said.get("title"))
    told = _as_string(said.get("description")) or (title if _normalize(title) != _normalize(name) else "")
    default = said.get("default")
    return ToolArgument(
        whole,
        _schema_types(ways),
        _schema_types(held),
        is_required,
        _truncate(told, MAX_DESCRIPTION_LENGTH),
        tuple(_as_json(choice) for choice in choices[:MAX_CHOICES]),
        max(0, len(choices) - MAX_CHOICES),
        _as_json(default) if default is not None else "",
    )


def _alternatives(said: JsonObject, root: JsonObject) -> SchemaAlternatives:
    """Return a schema and its alternatives (anyOf, oneOf)."""
    others = [*_as_list(said.get("anyOf")), *_as_list(said.get("oneOf"))][:MAX_CHOICES]
    return (said, *(_resolve_ref(schema, root) for schema in others))


def _schema_types(ways: SchemaAlternatives) -> tuple[str, ...]:
    types = (schema.get("type") for schema in ways)
    kinds = (
        kind for value in types for kind in (_as_strings(value) if isinstance(value, list) else _as_strings([value]))
    )
    return tuple(dict.fromkeys(kinds))


def _enum_values(said: JsonObject) -> list[Any]:
    return [said["const"]] if "const" in said else _as_list(said.get("enum"))


def _resolve_ref(given: Any, root: JsonObject) -> JsonObject:
    """Follow a reference inside of the schema; keywords beside it take precedence."""
    said = _as_object(given)
    reference = said.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return said
    found: Any = root
    for step in reference[2:].split("/"):
        found = _as_object(found).get(step.replace("~1", "/").replace("~0", "~"))
    return {**_as_object(found), **said}


def _as_object(value: Any) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def _as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _as_strings(value: Any) -> tuple[str, ...]:
    return tuple(item for item in _as_list(value) if isinstance(item, str))


def _as_string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _normalize(text: str) -> str:
    return text.casefold().replace("_", " ")


def _as_json(value: Any) -> str:
    return _truncate(json.dumps(value, ensure_ascii=False), _MAX_VALUE_LENGTH)


def _truncate(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


MAX_JSON_LENGTH = 20_000


class ArgumentsPane(QWidget):
    """The arguments of a tool, closed at first. The choice stays when another tool is selected."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._schema: JsonObject = {}
        self._shown: JsonObject | None = None
        self._is_open = self._is_raw = False
        self._toggle_button = button("", self._toggle, "link")
        self._json_button = button("", self._toggle_raw, "link")
        self._list = QFrame()
        self._list.setProperty("kind", "card")
        self._rows = vbox(parent=self._list, spacing=SPACE_M, margins=(SPACE_M, SPACE_S, SPACE_M, SPACE_S))
        self._raw = ReadOnlyText("", self.tr("Schema of the arguments as JSON"), 12)
        self._truncation_note = label(kind="small", wrap=True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(FlowRows((self._toggle_button, self._json_button)))
        for widget in (self._list, self._raw, self._truncation_note):
            layout.addWidget(widget)
        self._update_view()

    def show_schema(self, schema: JsonObject) -> None:
        """Show the schema of a tool."""
        self._schema = schema
        self._update_view()

    def _toggle(self) -> None:
        self._is_open = not self._is_open
        self._update_view()

    def _toggle_raw(self) -> None:
        self._is_raw = not self._is_raw
        self._update_view()

    def _update_view(self) -> None:
        if self._is_open and self._shown is not self._schema:
            self._rebuild_rows()
        if self._is_open and self._is_raw:
            text = arguments_as_json(self._schema)
            self._raw.show_text(text[:MAX_JSON_LENGTH])
            self._truncation_note.setText(self._truncation_text(len(text)))
        self._list.setVisible(self._is_open)
        self._toggle_button.setText(escape_mnemonics(self._toggle_text()))
        self._toggle_button.setAccessibleName(self._toggle_text())
        self._json_button.setVisible(self._is_open)
        self._json_button.setText(escape_mnemonics(self.tr("Hide JSON") if self._is_raw else self.tr("Show as JSON")))
        self._json_button.setAccessibleName(self.tr("Hide JSON") if self._is_raw else self.tr("Show as JSON"))
        self._raw.setVisible(self._is_open and self._is_raw)
        self._truncation_note.setVisible(self._is_open and self._is_raw and bool(self._truncation_note.text()))

    def _toggle_text(self) -> str:
        if self._is_open:
            return self.tr("Hide arguments")
        match count_arguments(self._schema):
            case 0:
                return self.tr("No arguments are named")
            case 1:
                return self.tr("Show 1 argument")
            case count:
                return self.tr("Show {0} arguments").format(count)

    def _truncation_text(self, length: int) -> str:
        if length <= MAX_JSON_LENGTH:
            return ""
        words = self.tr("The first {0} of {1} characters.")
        return words.format(f"{MAX_JSON_LENGTH:,}", f"{length:,}")

    def _rebuild_rows(self) -> None:
        self._shown = self._schema
        clear_layout(self._rows)
        arguments, are_all = parse_tool_arguments(self._schema)
        rows = [self._create_row(argument) for argument in arguments]
        if not arguments:
            rows.append(label(self.tr("The server names no arguments of this tool."), "muted", wrap=True))
        if not are_all:
            words = self.tr("These are the first {0}. The others are in the JSON.")
            rows.append(label(words.format(MAX_ARGUMENTS), "muted", wrap=True))
        for row in rows:
            self._rows.addWidget(row)
            row.show()

    def _create_row(self, argument: ToolArgument) -> QWidget:
        row = QWidget()
        layout = vbox(parent=row, spacing=SPACE_XS, margins=0)
        kind = describe_kinds(argument.kinds, argument.item_kinds)
        need = self.tr("required") if argument.is_required else self.tr("optional")
        facts = label(f"{kind} · {need}", "small")
        layout.addWidget(FlowRows((label(show_hidden(argument.name), "strong"), facts)))
        said = (show_hidden(argument.description), self._choices_text(argument), self._default_text(argument))
        for text, look in zip(said, ("", "small", "small"), strict=True):
            if text:
                layout.addWidget(label(text, look, wrap=True))
        return row

    def _choices_text(self, argument: ToolArgument) -> str:
        if not argument.choices:
            return ""
        words = show_hidden(", ".join(argument.choices))
        if argument.omitted_choices:
            return self.tr("One of: {0} and {1} more").format(words, argument.omitted_choices)
        return self.tr("One of: {0}").format(words)

    def _default_text(self, argument: ToolArgument) -> str:
        return self.tr("If left out: {0}").format(show_hidden(argument.default)) if argument.default else ""
