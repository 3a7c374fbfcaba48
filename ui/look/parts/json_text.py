"""Arguments of calls as JSON that a person reads and writes: hidden characters can be seen, and nothing is guessed."""

import json

from PySide6.QtCore import QCoreApplication

from desktop_agent.vocabulary.blocks import JsonObject
from ui.look.visible_text import hidden_written


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1]


def arguments_as_json(arguments: JsonObject) -> str:
    """Pretty JSON with hidden characters as JSON escapes: reading it back gives the same arguments."""
    plain = json.dumps(arguments, indent=2, ensure_ascii=False)
    return hidden_written(plain, _escaped)


def arguments_from_json(text: str) -> tuple[JsonObject | None, str]:
    """The arguments written in `text`, or None and why not. Strict JSON: no NaN, no key twice, an object outside."""
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        # The words are the standard library's: a closed set, looked up like any other text.
        words = QCoreApplication.translate("Json", error.msg)
        place = QCoreApplication.translate("Json", "{0} (line {1}, column {2})")
        return None, place.format(words, error.lineno, error.colno)
    except (ValueError, RecursionError) as error:
        return None, str(error)
    if not isinstance(value, dict):
        return None, QCoreApplication.translate("Json", "The arguments must be a JSON object: {…}")
    return value, ""  # pyright: ignore[reportUnknownVariableType]  # JSON from a person; `validate` reads it next


def _no_constant(name: str) -> None:
    raise ValueError(QCoreApplication.translate("Json", "{0} is not JSON").format(name))


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError(QCoreApplication.translate("Json", "A key is written twice"))
    return values
