"""The arguments of an MCP tool, read from its JSON Schema (2020-12), as a list or as JSON."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from PySide6.QtWidgets import QFrame, QWidget

from desktop_agent.types.blocks import JsonObject
from ui.settings.mcp_servers.server_text import describe_kinds
from ui.style.auto_height_text import ReadOnlyText
from ui.style.boxes import vbox
from ui.style.controls import button, label
from ui.style.layouts import FlowRows
from ui.style.removal import clear_layout
from ui.style.text import escape_mnemonics, format_number, join_names, show_hidden
from ui.style.text_display import arguments_as_json
from ui.style.theme import SPACE_M, SPACE_S, SPACE_XS

MAX_ARGUMENTS = 60
MAX_CHOICES = 12
MAX_ARGUMENT_NAME_LENGTH = 100
MAX_DESCRIPTION_LENGTH = 2_000
# Of nested arguments.
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
    """Return the first arguments, nested ones after their parents, and whether these are all."""
    arguments = tuple(islice(_walk(schema, schema, "", 0), MAX_ARGUMENTS + 1))
    return arguments[:MAX_ARGUMENTS], len(arguments) <= MAX_ARGUMENTS


def count_arguments(schema: JsonObject) -> int:
    """Count the arguments, without nested ones."""
    return len(_as_object(schema.get("properties")))


def _walk(schema: JsonObject, root: JsonObject, prefix: str, depth: int) -> Iterator[ToolArgument]:
    required = _as_strings(schema.get("required"))
    for name, value in _as_object(schema.get("properties")).items():
        path = f"{prefix}{_truncate(name, MAX_ARGUMENT_NAME_LENGTH)}"
        alternatives = _alternatives(_resolve_ref(value, root), root)
        item_schemas = tuple(
            alternative
            for schema in alternatives
            for alternative in _alternatives(_resolve_ref(schema.get("items"), root), root)
        )
        yield _argument(path, name, alternatives, item_schemas, is_required=name in required)
        if depth < _MAX_DEPTH:
            for alternative in alternatives:
                yield from _walk(alternative, root, f"{path}.", depth + 1)
            for alternative in item_schemas:
                yield from _walk(alternative, root, f"{path}[].", depth + 1)


def _argument(
    path: str, name: str, alternatives: SchemaAlternatives, item_schemas: SchemaAlternatives, *, is_required: bool
) -> ToolArgument:
    node = alternatives[0]
    choices = next((values for values in map(_enum_values, (*alternatives, *item_schemas)) if values), list[Any]())
    title = _as_string(node.get("title"))
    description = _as_string(node.get("description")) or (title if _normalize(title) != _normalize(name) else "")
    default = node.get("default")
    return ToolArgument(
        path,
        _schema_types(alternatives),
        _schema_types(item_schemas),
        is_required,
        _truncate(description, MAX_DESCRIPTION_LENGTH),
        tuple(_as_json(choice) for choice in choices[:MAX_CHOICES]),
        max(0, len(choices) - MAX_CHOICES),
        _as_json(default) if default is not None else "",
    )


def _alternatives(node: JsonObject, root: JsonObject) -> SchemaAlternatives:
    """Return a schema and its alternatives (anyOf, oneOf)."""
    others = [*_as_list(node.get("anyOf")), *_as_list(node.get("oneOf"))][:MAX_CHOICES]
    return (node, *(_resolve_ref(schema, root) for schema in others))


def _schema_types(alternatives: SchemaAlternatives) -> tuple[str, ...]:
    types = (schema.get("type") for schema in alternatives)
    kinds = (
        kind for value in types for kind in (_as_strings(value) if isinstance(value, list) else _as_strings([value]))
    )
    return tuple(dict.fromkeys(kinds))


def _enum_values(node: JsonObject) -> list[Any]:
    return [node["const"]] if "const" in node else _as_list(node.get("enum"))


def _resolve_ref(value: Any, root: JsonObject) -> JsonObject:
    """Follow a reference inside of the schema; keywords beside it take precedence."""
    node = _as_object(value)
    reference = node.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return node
    target: Any = root
    for step in reference[2:].split("/"):
        target = _as_object(target).get(step.replace("~1", "/").replace("~0", "~"))
    return {**_as_object(target), **node}


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


def _truncate(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"


MAX_JSON_LENGTH = 20_000


class ArgumentsPane(QWidget):
    """The arguments of a tool, closed at first. It stays open, or as JSON, when another tool is selected."""

    def __init__(self) -> None:
        super().__init__()
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
        links = FlowRows((self._toggle_button, self._json_button))
        vbox(links, self._list, self._raw, self._truncation_note, parent=self, spacing=SPACE_S, margins=0)
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
                return self.tr("No arguments listed")
            case 1:
                return self.tr("Show 1 argument")
            case count:
                return self.tr("Show {0} arguments").format(count)

    def _truncation_text(self, length: int) -> str:
        if length <= MAX_JSON_LENGTH:
            return ""
        words = self.tr("The first {0} of {1} characters.")
        return words.format(format_number(MAX_JSON_LENGTH), format_number(length))

    def _rebuild_rows(self) -> None:
        self._shown = self._schema
        clear_layout(self._rows)
        arguments, are_all = parse_tool_arguments(self._schema)
        rows = [self._create_row(argument) for argument in arguments]
        if not arguments:
            rows.append(label(self.tr("The server lists no arguments for this tool."), "muted", wrap=True))
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
        texts = (show_hidden(argument.description), self._choices_text(argument), self._default_text(argument))
        for text, label_kind in zip(texts, ("", "small", "small"), strict=True):
            if text:
                layout.addWidget(label(text, label_kind, wrap=True))
        return row

    def _choices_text(self, argument: ToolArgument) -> str:
        if not argument.choices:
            return ""
        words = show_hidden(join_names(argument.choices))
        if argument.omitted_choices:
            return self.tr("One of: {0} and {1} more").format(words, argument.omitted_choices)
        return self.tr("One of: {0}").format(words)

    def _default_text(self, argument: ToolArgument) -> str:
        return self.tr("Default: {0}").format(show_hidden(argument.default)) if argument.default else ""
