"""Text whose hidden characters can be seen, so that what is approved is what was read."""

import json
import re
import unicodedata
from functools import lru_cache

from PySide6.QtCore import QCoreApplication

from desktop_agent.vocabulary.blocks import JsonObject

# Invisible although Unicode does not file them under control or format: fillers, and spaces that are no space.
_BLANKS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\u00a0\u2000-\u200a\u202f\u205f\u3000\u1680"
_HIDDEN_CATEGORIES = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
_SUSPECT = re.compile(f"[^\\t\\n\\x20-\\x7e]|[{_BLANKS}]")
_BLANK = re.compile(f"[{_BLANKS}]")
FOLD_WIDTH = 1000
FOLD_MARK = "\n↪ "


@lru_cache(maxsize=4096)
def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN_CATEGORIES or _BLANK.match(character) is not None


def with_hidden_shown(text: str) -> str:
    """Control, direction and zero-width characters as ⟨U+202E⟩; tab and line feed stay."""
    return _SUSPECT.sub(_shown, text.replace("\r\n", "⟨CR⟩\n"))


def _shown(match: re.Match[str]) -> str:
    character = match.group()
    return f"⟨U+{ord(character):04X}⟩" if _is_hidden(character) else character


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    return json.dumps(character)[1:-1] if _is_hidden(character) else character


def arguments_as_json(arguments: JsonObject) -> str:
    """Pretty JSON with hidden characters as JSON escapes: reading it back gives the same arguments."""
    plain = json.dumps(arguments, indent=2, ensure_ascii=False)
    return _SUSPECT.sub(_escaped, plain)


def folded(text: str, width: int = FOLD_WIDTH) -> str:
    """The whole text, with very long lines broken and marked: Qt lays out a line of megabytes for seconds."""
    if len(text) <= width:
        return text
    return "\n".join(_folded_line(line, width) for line in text.split("\n"))


def _folded_line(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    return FOLD_MARK.join(line[start : start + width] for start in range(0, len(line), width))


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
