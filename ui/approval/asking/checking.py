"""What is wrong with what was typed into a field, in a sentence; and what is sent of it."""

import math
import re
from collections.abc import Callable
from datetime import date, datetime
from urllib.parse import urlsplit

from PySide6.QtCore import QCoreApplication

from ui.approval.asking.fields import FormField

FieldValue = str | int | float | bool | list[str] | None

_EMAIL = re.compile(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)*")
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?(\d{1,40}([.,]\d{0,40})?|[.,]\d{1,40})([eE][+-]?\d{1,3})?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def parse_value(field: FormField, written: str | bool | list[str]) -> FieldValue:  # noqa: FBT001 - what stands in a field
    """What is sent; None where that is nothing. Ask only where `validate_value` finds nothing."""
    if field.kind in {"integer", "number"} and isinstance(written, str):
        if not written.strip():
            return None
        number = float(written.strip().replace(",", "."))
        return int(written) if field.kind == "integer" else number
    if isinstance(written, list):
        return written if written or field.required else None
    return None if written == "" else written


def validate_value(field: FormField, written: str | bool | list[str]) -> str:  # noqa: FBT001 - what stands in a field
    """A sentence, or nothing where it can be sent."""
    if isinstance(written, bool):
        return ""
    if isinstance(written, list):
        return _validate_choices(field, written)
    if not written.strip() if field.kind != "text" else not written:
        return QCoreApplication.translate("Form", "An answer is needed here.") if field.required else ""
    if field.kind in {"integer", "number"}:
        return _validate_number(field, written.strip())
    if field.kind == "text":
        return _validate_length(field, written) or _validate_format(field.format, written)
    return ""


def _validate_choices(field: FormField, written: list[str]) -> str:
    if not written and not field.required:
        return ""
    minimum, maximum = field.minimum or (1 if field.required else 0), field.maximum
    if len(written) < minimum:
        words = QCoreApplication.translate("Form", "Take at least {0} of these.")
        return words.format(_format_number(minimum))
    if maximum is not None and len(written) > maximum:
        return QCoreApplication.translate("Form", "Take at most {0} of these.").format(_format_number(maximum))
    return ""


def _validate_number(field: FormField, written: str) -> str:
    if field.kind == "integer" and not _INTEGER.fullmatch(written):
        return QCoreApplication.translate("Form", "This must be a whole number, such as 12.")
    if not _NUMBER.fullmatch(written) or not math.isfinite(float(written.replace(",", "."))):
        return QCoreApplication.translate("Form", "This must be a number, such as 12 or 1.5.")
    number = float(written.replace(",", "."))
    if field.minimum is not None and number < field.minimum:
        return QCoreApplication.translate("Form", "This must be {0} or more.").format(_format_number(field.minimum))
    if field.maximum is not None and number > field.maximum:
        return QCoreApplication.translate("Form", "This must be {0} or less.").format(_format_number(field.maximum))
    return ""


def _validate_length(field: FormField, written: str) -> str:
    if field.minimum is not None and len(written) < field.minimum:
        words = QCoreApplication.translate("Form", "This must have at least {0} characters; it has {1}.")
        return words.format(_format_number(field.minimum), len(written))
    if field.maximum is not None and len(written) > field.maximum:
        words = QCoreApplication.translate("Form", "This may have at most {0} characters; it has {1}.")
        return words.format(_format_number(field.maximum), len(written))
    return ""


def _validate_format(name: str, written: str) -> str:
    match name:
        case "email" if not _EMAIL.fullmatch(written):
            return QCoreApplication.translate("Form", "This must be an e-mail address, such as ada@example.org.")
        case "uri" if not _is_address(written):
            return QCoreApplication.translate("Form", "This must be an address, such as https://example.org.")
        case "date" if not (_DATE.fullmatch(written) and _is_parsed_by(lambda: date.fromisoformat(written))):
            return QCoreApplication.translate("Form", "This must be a day, written like 2026-03-31.")
        case "date-time" if not _is_date_time(written):
            return QCoreApplication.translate("Form", "This must be a moment, written like 2026-03-31T14:30:00Z.")
        case _:
            return ""


def _is_address(written: str) -> bool:
    if any(each.isspace() for each in written):
        return False
    try:
        parts = urlsplit(written)
    except ValueError:
        return False
    return bool(parts.scheme and (parts.netloc or parts.path))


def _is_date_time(written: str) -> bool:
    """RFC 3339, section 5.6: with its distance to UTC."""
    if not _DATE.match(written) or written[10:11].upper() not in {"T", " "}:
        return False
    return _is_parsed_by(lambda: datetime.fromisoformat(written).utcoffset() is not None)


def _is_parsed_by(read: Callable[[], object]) -> bool:
    try:
        return bool(read())
    except ValueError:
        return False


def _format_number(number: float) -> str:
    return f"{number:g}" if abs(number) < 1e6 or number % 1 else f"{number:.0f}"
