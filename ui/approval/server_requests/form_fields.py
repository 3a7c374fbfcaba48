"""The fields of an elicitation form: parsed from JSON Schema, and their values validated.

The allowed schemas: https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from PySide6.QtCore import QCoreApplication

from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.hidden_characters import replace_hidden
from desktop_agent.types.lookalikes import ascii_lookalike

MAX_FIELDS = 60
MAX_CHOICES = 200
"""Choices of a field that takes several; a field that takes one may have more."""
MAX_CHECKBOXES = 500
"""Choices of all fields that take several: each is a widget."""
MAX_NUMBER = 1e15
"""Beyond it, neither a field nor a sentence shows a number exactly."""
FieldKind = Literal["text", "number", "integer", "yes_no", "one", "several", "unknown"]

# Whole words only: not a tokenizer, a secretary, a keyboard.
_SECRET = re.compile(
    r"pass ?(word|wd|phrase|code)s?\b|\bpwd\b|\bsecrets?\b|\b(api|access|private|secret|ssh)[ _-]?keys?\b|\btokens?\b|"
    r"\bcredentials?\b|\bpin\b|\bcvv2?\b|\bcvc\b|credit ?cards?\b|card ?numbers?\b|\bssn\b|social ?security|"
    r"\botp\b|one[ _-]time|2fa|\bseed ?phrase|recovery ?(code|phrase)s?\b|kennwort|passwort|密码|口令|密钥",
    re.IGNORECASE,
)
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.]+")


@dataclass(frozen=True, slots=True)
class FieldChoice:
    """A choice: the value that is sent, and the title that is shown."""

    value: str
    title: str


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of the form. `minimum` and `maximum` bound characters, a value, or the number of choices."""

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
        """Whether the field seems to ask for a password or a key."""
        if self.kind in {"yes_no", "one", "several"}:
            return False
        if self.format == "password":
            return True
        # Descriptions of numbers often warn against giving away secrets.
        texts = (self.name, self.title, self.description if self.kind == "text" else "")
        return _SECRET.search(" ".join(_WORD_START.sub(" ", plain_letters(text)) for text in texts)) is not None

    @property
    def usable_default(self) -> Any:
        """The default as a control shows it; None if there is none of the right type.

        A default with invisible characters is not used: only what the person saw is sent.
        """
        default = self.default
        match self.kind:
            case "yes_no":
                return default is True
            case "one":
                return default if default in [choice.value for choice in self.choices] else None
            case "several":
                return cast("list[Any]", default) if isinstance(default, list) else None
            case "text" | "number" | "integer":
                is_usable = isinstance(default, str | int | float) and not isinstance(default, bool)
                text = str(default) if is_usable else ""
                return text if is_usable and replace_hidden(text) == text and len(text.splitlines()) <= 1 else None
            case "unknown":
                return None


def plain_letters(text: str) -> str:
    """Return the letters that a person reads: without hidden ones, with ASCII in place of lookalikes."""
    return "".join(ascii_lookalike(char) or char for char in replace_hidden(text) if char != "\ufffd")


def parse_fields(form: JsonObject) -> tuple[FormField, ...] | None:
    """Return the fields in order; None for a form that is broken or has too many."""
    properties: Any = form.get("properties")
    if not isinstance(properties, dict):
        return None
    schemas = cast("dict[str, Any]", properties)
    if len(schemas) > MAX_FIELDS:
        return None
    names: Any = form.get("required")
    required = {name for name in cast("list[Any]", names) if isinstance(name, str)} if isinstance(names, list) else ()
    fields = tuple(_parse_field(name, schema, required=name in required) for name, schema in schemas.items())
    boxes = sum(len(field.choices) for field in fields if field.kind == "several")
    return fields if boxes <= MAX_CHECKBOXES else None


def _parse_field(name: str, schema: Any, *, required: bool) -> FormField:
    if not isinstance(schema, dict):
        return FormField(name, name, "unknown", required=required)
    node = cast("dict[str, Any]", schema)
    title, description = _as_string(node.get("title")) or name, _as_string(node.get("description"))
    kind, choices = _parse_kind(node)
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
        node.get("default"),
        _as_string(node.get("format")),
        _as_number(node.get(low)),
        _as_number(node.get(high)),
        choices,
    )


def _parse_kind(node: dict[str, Any]) -> tuple[FieldKind, tuple[FieldChoice, ...]]:
    match node.get("type"):
        case "number" | "integer" as kind:
            return kind, ()
        case "boolean":
            return "yes_no", ()
        case "array":
            items: Any = node.get("items")
            choices = _parse_choices(cast("dict[str, Any]", items)) if isinstance(items, dict) else ()
            return ("several", choices) if 0 < len(choices) <= MAX_CHOICES else ("unknown", ())
        case kind:
            choices = _parse_choices(node)
            kind_without = "text" if kind == "string" else "unknown"
            return ("one", choices) if choices else (kind_without, ())


def _parse_choices(node: dict[str, Any]) -> tuple[FieldChoice, ...]:
    values: Any = node.get("enum")
    if isinstance(values, list):
        names: Any = node.get("enumNames")
        titles = cast("list[Any]", names) if isinstance(names, list) else []
        strings = [value for value in cast("list[Any]", values) if isinstance(value, str)]
        if len(titles) != len(strings) or len(strings) != len(cast("list[Any]", values)):
            titles = strings
        pairs = zip(strings, titles, strict=True)
        return tuple(FieldChoice(value, _as_string(title) or value) for value, title in pairs)
    for word in ("oneOf", "anyOf"):
        options: Any = node.get(word)
        if isinstance(options, list):
            titled = [cast("dict[str, Any]", item) for item in cast("list[Any]", options) if isinstance(item, dict)]
            values = [(_as_string(choice.get("const")), _as_string(choice.get("title"))) for choice in titled]
            return tuple(FieldChoice(value, title or value) for value, title in values if value)
    return ()


def _as_string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _as_number(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    # Also false for NaN.
    return value if -MAX_NUMBER <= value <= MAX_NUMBER else None


FieldValue = str | int | float | bool | list[str] | None

_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)*")
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?(\d{1,40}([.,]\d{0,40})?|[.,]\d{1,40})([eE][+-]?\d{1,3})?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def parse_value(field: FormField, typed: str | bool | list[str]) -> FieldValue:  # noqa: FBT001 - the content of a field
    """Return the value to send, or None for none. Call it only if `validate_value` finds no error."""
    if field.kind in {"integer", "number"} and isinstance(typed, str):
        if not typed.strip():
            return None
        number = float(typed.strip().replace(",", "."))
        return int(typed) if field.kind == "integer" else number
    if isinstance(typed, list):
        return typed if typed or field.required else None
    return None if typed == "" else typed


def validate_value(field: FormField, typed: str | bool | list[str]) -> str:  # noqa: FBT001 - the content of a field
    """Return what is wrong with a value, or an empty string."""
    if field.kind == "unknown":
        return QCoreApplication.translate("Form", "This cannot be filled in here.") if field.required else ""
    if isinstance(typed, bool):
        return ""
    if isinstance(typed, list):
        return _validate_choices(field, typed)
    if not typed.strip() if field.kind != "text" else not typed:
        return QCoreApplication.translate("Form", "An answer is needed here.") if field.required else ""
    if field.kind in {"integer", "number"}:
        return _validate_number(field, typed.strip())
    if field.kind == "text":
        return _validate_length(field, typed) or _validate_format(field.format, typed)
    return ""


def _validate_choices(field: FormField, typed: list[str]) -> str:
    if not typed and not field.required:
        return ""
    minimum, maximum = field.minimum or (1 if field.required else 0), field.maximum
    if len(typed) < minimum:
        words = QCoreApplication.translate("Form", "Choose at least {0} of these.")
        return words.format(_format_number(minimum))
    if maximum is not None and len(typed) > maximum:
        return QCoreApplication.translate("Form", "Choose at most {0} of these.").format(_format_number(maximum))
    return ""


def _validate_number(field: FormField, typed: str) -> str:
    if field.kind == "integer" and not _INTEGER.fullmatch(typed):
        return QCoreApplication.translate("Form", "This must be a whole number, such as 12.")
    if not _NUMBER.fullmatch(typed) or not math.isfinite(float(typed.replace(",", "."))):
        return QCoreApplication.translate("Form", "This must be a number, such as 12 or 1.5.")
    number = float(typed.replace(",", "."))
    if field.minimum is not None and number < field.minimum:
        return QCoreApplication.translate("Form", "This must be {0} or more.").format(_format_number(field.minimum))
    if field.maximum is not None and number > field.maximum:
        return QCoreApplication.translate("Form", "This must be {0} or less.").format(_format_number(field.maximum))
    return ""


def _validate_length(field: FormField, typed: str) -> str:
    if field.minimum is not None and len(typed) < field.minimum:
        words = QCoreApplication.translate("Form", "This must have at least {0} characters; it has {1}.")
        return words.format(_format_number(field.minimum), len(typed))
    if field.maximum is not None and len(typed) > field.maximum:
        words = QCoreApplication.translate("Form", "This may have at most {0} characters; it has {1}.")
        return words.format(_format_number(field.maximum), len(typed))
    return ""


def _validate_format(name: str, typed: str) -> str:
    match name:
        case "email" if not _EMAIL.fullmatch(typed):
            return QCoreApplication.translate("Form", "This must be an e-mail address, such as ada@example.org.")
        case "uri" if not _is_address(typed):
            return QCoreApplication.translate("Form", "This must be an address, such as https://example.org.")
        case "date" if not (_DATE.fullmatch(typed) and _is_parsed_by(lambda: date.fromisoformat(typed))):
            return QCoreApplication.translate("Form", "This must be a date, such as 2026-03-31.")
        case "date-time" if not _is_date_time(typed):
            return QCoreApplication.translate("Form", "This must be a date with a time, such as 2026-03-31T14:30:00Z.")
        case _:
            return ""


def _is_address(typed: str) -> bool:
    if any(value.isspace() for value in typed):
        return False
    try:
        parts = urlsplit(typed)
    except ValueError:
        return False
    return bool(parts.scheme and (parts.netloc or parts.path))


def _is_date_time(typed: str) -> bool:
    """Return whether this is a date and time of RFC 3339, section 5.6, which requires the offset to UTC."""
    if not _DATE.match(typed) or typed[10:11].upper() not in {"T", " "}:
        return False
    return _is_parsed_by(lambda: datetime.fromisoformat(typed).utcoffset() is not None)


def _is_parsed_by(parse: Callable[[], object]) -> bool:
    try:
        return bool(parse())
    except ValueError:
        return False


def _format_number(number: float) -> str:
    return f"{number:g}" if abs(number) < 1e6 or number % 1 else f"{number:.0f}"
