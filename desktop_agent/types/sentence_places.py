"""The places of a sentence template, and what fills them."""

import re
from collections.abc import Mapping

_PLACE = re.compile(r"\{(\w+)\}")
# What a tool says of a failure is cut earlier, and is a part of a sentence.
_MAX_SENTENCE_LENGTH = 1_000_000


def places_in(template: str) -> set[str]:
    """Return the names of the places of a template."""
    return set(_PLACE.findall(template))


def fill_in(template: str, values: Mapping[str, str]) -> str:
    """Return the template with its places filled in; one that has no value stays as it is written.

    Not `str.format`: sentences come with imported conversations too, and `{x:>999999999}` or `{x.__class__}` must be
    harmless there. What is longer than any sentence is cut.
    """
    parts: list[str] = []
    length = 0
    # Every second one is a name.
    for number, part in enumerate(_PLACE.split(template)):
        parts.append(values.get(part, f"{{{part}}}") if number % 2 else part)
        length += len(parts[-1])
        if length > _MAX_SENTENCE_LENGTH:
            return "".join(parts)[:_MAX_SENTENCE_LENGTH] + "…"
    return "".join(parts)
