"""The fields of a form that an MCP server sends as JSON Schema.

What may stand in such a schema: https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation
"""

import re
from dataclasses import dataclass
from typing import Any, Literal, cast

from desktop_agent.vocabulary.blocks import JsonObject

MAX_FIELDS = 60
MAX_CHOICES = 200
MAX_CHECKBOXES = 500
"""Choices of all fields that take several: each is a widget."""
"""Of which several may be taken; of one, there may be more."""
MAX_NUMBER = 1e15
"""Beyond it, neither a field nor a sentence holds a number as it is."""
FieldKind = Literal["text", "number", "integer", "yes_no", "one", "several", "unknown"]

# Part of a longer word it means nothing: a tokenizer, a secretary, a keyboard.
_SECRET = re.compile(
    r"pass ?(word|wd|phrase|code)s?\b|\bpwd\b|\bsecrets?\b|\b(api|access|private|secret|ssh)[ _-]?keys?\b|\btokens?\b|"
    r"\bcredentials?\b|\bpin\b|\bcvv2?\b|\bcvc\b|credit ?cards?\b|card ?numbers?\b|\bssn\b|social ?security|"
    r"\botp\b|one[ _-]time|2fa|\bseed ?phrase|recovery ?(code|phrase)s?\b|kennwort|passwort|密码|口令|密钥",
    re.IGNORECASE,
)
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.]+")


@dataclass(frozen=True, slots=True)
class FieldChoice:
    """What is sent, and what is read."""

    value: str
    title: str


@dataclass(frozen=True, slots=True)
class FormField:
    """One thing that a server wants to know. `minimum` and `maximum`: characters, a value, or how many choices."""

    name: str
    title: str
    kind: FieldKind
    description: str = ""
    required: bool = False
    default: Any = None
    format: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[FieldChoice, ...] = ()

    @property
    def looks_secret(self) -> bool:
        """Whether it seems to ask for a password, a key or the like."""
        if self.kind in {"yes_no", "one", "several"}:
            return False
        # What is said of a number often warns of giving away others.
        said = (self.name, self.title, self.description if self.kind == "text" else "")
        return _SECRET.search(" ".join(_WORD_START.sub(" ", each) for each in said)) is not None


def parse_fields(form: JsonObject) -> tuple[FormField, ...] | None:
    """The fields in their order; None for a form that is none, or of too many."""
    properties: Any = form.get("properties")
    if not isinstance(properties, dict):
        return None
    given = cast("dict[str, Any]", properties)
    if len(given) > MAX_FIELDS:
        return None
    needed: Any = form.get("required")
    required = {each for each in cast("list[Any]", needed) if isinstance(each, str)} if isinstance(needed, list) else ()
    fields = tuple(_parse_field(name, schema, required=name in required) for name, schema in given.items())
    boxes = sum(len(each.choices) for each in fields if each.kind == "several")
    return fields if boxes <= MAX_CHECKBOXES else None


def _parse_field(name: str, schema: Any, *, required: bool) -> FormField:
    if not isinstance(schema, dict):
        return FormField(name, name, "unknown", required=required)
    said = cast("dict[str, Any]", schema)
    title, description = _as_string(said.get("title")) or name, _as_string(said.get("description"))
    kind, choices = _parse_kind(said)
    low, high = {
        "text": ("minLength", "maxLength"),
        "several": ("minItems", "maxItems"),
    }.get(kind, ("minimum", "maximum"))
    return FormField(
        name,
        title,
        kind,
        description,
        required,
        said.get("default"),
        _as_string(said.get("format")),
        _as_number(said.get(low)),
        _as_number(said.get(high)),
        choices,
    )


def _parse_kind(said: dict[str, Any]) -> tuple[FieldKind, tuple[FieldChoice, ...]]:
    match said.get("type"):
        case "string":
            choices = _parse_choices(said)
            return ("one", choices) if choices else ("text", ())
        case "number":
            return "number", ()
        case "integer":
            return "integer", ()
        case "boolean":
            return "yes_no", ()
        case "array":
            items: Any = said.get("items")
            choices = _parse_choices(cast("dict[str, Any]", items)) if isinstance(items, dict) else ()
            return ("several", choices) if 0 < len(choices) <= MAX_CHOICES else ("unknown", ())
        case _:
            choices = _parse_choices(said)
            return ("one", choices) if choices else ("unknown", ())


def _parse_choices(said: dict[str, Any]) -> tuple[FieldChoice, ...]:
    values: Any = said.get("enum")
    if isinstance(values, list):
        names: Any = said.get("enumNames")
        titles = cast("list[Any]", names) if isinstance(names, list) else []
        found = [each for each in cast("list[Any]", values) if isinstance(each, str)]
        if len(titles) != len(found) or len(found) != len(cast("list[Any]", values)):
            titles = found
        return tuple(FieldChoice(value, _as_string(title) or value) for value, title in zip(found, titles, strict=True))
    for word in ("oneOf", "anyOf"):
        given: Any = said.get(word)
        if isinstance(given, list):
            titled = [cast("dict[str, Any]", each) for each in cast("list[Any]", given) if isinstance(each, dict)]
            values = [(_as_string(each.get("const")), _as_string(each.get("title"))) for each in titled]
            return tuple(FieldChoice(value, title or value) for value, title in values if value)
    return ()


def _as_string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _as_number(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    # Also false for what is no number.
    return value if -MAX_NUMBER <= value <= MAX_NUMBER else None
