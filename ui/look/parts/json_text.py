"""Arguments of calls as JSON that a person reads and writes: hidden characters can be seen, and nothing is guessed."""

import json
from math import isinf

from PySide6.QtCore import QCoreApplication

from desktop_agent.vocabulary.blocks import JsonObject
from ui.look.visible_text import replace_hidden

_MAX_NUMBER_LENGTH = 40


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1]


def arguments_as_json(arguments: JsonObject) -> str:
    """Pretty JSON with hidden characters as JSON escapes: reading it back gives the same arguments."""
    plain = json.dumps(arguments, indent=2, ensure_ascii=False)
    return replace_hidden(plain, _escaped)


def arguments_from_json(text: str) -> tuple[JsonObject | None, str]:
    """The arguments written in `text`, or None and why not. Strict JSON: no NaN, no key twice, an object outside."""
    try:
        value = json.loads(
            text, parse_constant=_reject_constant, parse_float=_parse_finite, object_pairs_hook=_unique_keys
        )
    except json.JSONDecodeError as error:
        place = QCoreApplication.translate("Json", "Line {0}, column {1}: {2}")
        return None, place.format(error.lineno, error.colno, _error_text(error))
    except _InvalidJson as refused:
        return None, str(refused)
    except RecursionError:
        return None, QCoreApplication.translate("Json", "This is nested too deep. Take some levels out.")
    except ValueError:
        return None, QCoreApplication.translate("Json", "A number has too many digits. Write it shorter, or as text.")
    if not isinstance(value, dict):
        return None, QCoreApplication.translate("Json", "The arguments must be a JSON object: write {…} around them.")
    return value, ""  # pyright: ignore[reportUnknownVariableType]  # JSON from a person; `validate` reads it next


class _InvalidJson(ValueError):
    """JSON to the library, and not to us; says why in the language of now."""


def _error_text(error: json.JSONDecodeError) -> str:
    """In words; the library's begin differently for each kind, and differ a little between versions of Python."""
    translate = QCoreApplication.translate
    if not error.doc.strip():
        return translate("Json", "There is nothing here. Write {} where there are no arguments.")
    kinds = {
        "Expecting property name": translate(
            "Json", "A name in double quotes is missing here. Write one, or take out the comma before."
        ),
        "Illegal trailing comma": translate("Json", "There is a comma too many. Take it out."),
        "Expecting ':'": translate("Json", "A colon is missing here, between a name and its value. Write one."),
        "Expecting ','": translate("Json", "A comma, or the closing bracket, is missing here. Write it."),
        "Expecting value": translate(
            "Json",
            "A value is missing here. Write one: a text in double quotes, a number, true, false, null, […], {…}.",
        ),
        "Unterminated string": translate(
            "Json", "The text that begins here does not end. Write a double quote behind it."
        ),
        "Invalid control character": translate(
            "Json", "A line break or a tab stands inside of a text. Write \\n or \\t for it."
        ),
        "Invalid \\": translate("Json", "A backslash stands before something that needs none. Write it twice: \\\\"),
        "Extra data": translate("Json", "Something stands behind the end. Take it out."),
    }
    found = (words for begins, words in kinds.items() if error.msg.startswith(begins))
    return next(found, translate("Json", "This is no JSON. Compare it with the arguments as they were."))


def _reject_constant(name: str) -> None:
    words = QCoreApplication.translate("Json", "{0} is not JSON. Write a number, or null.")
    raise _InvalidJson(words.format(name))


def _parse_finite(text: str) -> float:
    number = float(text)
    if isinf(number):
        words = QCoreApplication.translate("Json", "The number {0} is too large. Write a smaller one, or a text.")
        raise _InvalidJson(words.format(text[:_MAX_NUMBER_LENGTH]))
    return number


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise _InvalidJson(QCoreApplication.translate("Json", "A name is written twice. Take one of the two out."))
    return values
