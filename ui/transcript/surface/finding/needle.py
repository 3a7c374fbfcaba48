"""What is looked for, and where it is in a text."""

import re
import unicodedata
from collections.abc import Iterator

from desktop_agent.vocabulary.text.hidden_characters import DECEPTIVE_CHARACTERS
from ui.transcript.blocks.block import TextRange
from ui.transcript.markdown.inline import utf16_length

_WORD_RUN = re.compile(r"[^\W_]+")
_MARKUP = {ord(sign): None for sign in "*_~`\\$"}
# Where a word of the shown text need not stand in its Markdown: entities, tags, hidden characters that are spelled
# out, and words that go on behind a link, a formula or a comment.
_MAY_RENDER_DIFFERENTLY = re.compile(rf"&#?\w{{1,40}};|[\])>]\w|\w[\[<]|\w\\[(\[]|\\[)\]]\w|[{DECEPTIVE_CHARACTERS}]")
_SCRIPTS_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Signs of scripts that put no spaces between words: with them, every place is the end of a word."""

_SEARCH_PART = 20_000
"""Characters."""


class Query:
    """A query as the person typed it. Case is folded as Unicode has it; any space matches any space."""

    def __init__(self, query: str, *, match_case: bool = False, whole_words: bool = False) -> None:
        self.text = query
        self._match_case = match_case
        self._whole_words = whole_words
        self._folded_query = self._folded(query)
        self._runs = tuple(_WORD_RUN.findall(self._folded_query))

    def __bool__(self) -> bool:
        return bool(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Query) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str, bool, bool]:
        return self.text, self._match_case, self._whole_words

    def may_match(self, raw: str) -> bool:
        """False only if it is certainly not in what this Markdown, or plain text, is shown as. Cheap."""
        folded = raw if self._match_case else _casefolded(raw)
        if all(run in folded for run in self._runs) or _MAY_RENDER_DIFFERENTLY.search(raw):
            return True
        bare = folded.translate(_MARKUP)
        return all(run in bare or run in folded for run in self._runs)

    def find_all(self, text: str) -> list[TextRange]:
        """Where it is in a text, in UTF-16 units: from left to right, none over another, no character half."""
        return [span for part in self.find_in_steps(text) for span in part]

    def find_in_steps(self, text: str) -> Iterator[list[TextRange]]:
        """The same, part by part of the text: of a long one, each costs little."""
        at = position = 0
        while at < len(text):
            # Folding never makes text shorter: what begins in a part ends in this window.
            window = text[at : at + _SEARCH_PART + len(self._folded_query)]
            found = [span for span in self._find(window) if span[0] < _SEARCH_PART]
            end = min(len(text), at + max(_SEARCH_PART, found[-1][1] if found else 0))
            if self._whole_words:
                found = [(first, last) for first, last in found if _is_whole_word(text, at + first, at + last)]
            spans = found if utf16_length(window) == len(window) else list(_to_utf16(window, found))
            yield [(position + first, position + last) for first, last in spans]
            position += utf16_length(text[at:end])
            at = end

    @property
    def lookahead(self) -> int:
        """The characters behind a place that may decide what is found before it."""
        return len(self._folded_query) + 1

    def has_no_match_across(self, before: str, after: str) -> bool:
        """Whether nothing found stands over the seam of two texts: then each of them can be looked at alone."""
        most = len(self._folded_query) - 1
        if most <= 0:
            return True
        seam = before[-most:] + after[:most]
        return min(len(before), len(after)) >= most and next(self._find(seam), None) is None

    def _folded(self, text: str) -> str:
        # All of these are one character for one character.
        text = text.replace("\n", " ").replace("\t", " ").replace("\u00a0", " ").replace("\u202f", " ")
        return text if self._match_case else _casefolded(text)

    def _find(self, text: str) -> Iterator[TextRange]:
        folded = self._folded(text)
        # Folding never makes text shorter: of the same length, it is the same character for character.
        search_origin = None if len(folded) == len(text) else _source_offsets(text)
        at = folded.find(self._folded_query) if self._folded_query else -1
        while at >= 0:
            end = at + len(self._folded_query)
            if search_origin is None:
                yield at, end
            elif _is_character_boundary(search_origin, at) and _is_character_boundary(search_origin, end):
                yield search_origin[at], search_origin[end]
            else:
                end = at + 1
            at = folded.find(self._folded_query, end)


def _casefolded(text: str) -> str:
    # The Turkish capital with a dot would become two characters, of which no keyboard types the second.
    return text.lower() if text.isascii() else text.replace("\u0130", "i").casefold()


def _source_offsets(text: str) -> list[int]:
    """For each place of the folded text the place of the text that it came from."""
    origins: list[int] = []
    for index, char in enumerate(text):
        origins += [index] * len(_casefolded(char))
    return [*origins, len(text)]


def _is_character_boundary(origins: list[int], at: int) -> bool:
    """Whether a place of the folded text lies between two characters of the text."""
    return at == 0 or origins[at] != origins[at - 1]


def _is_whole_word(text: str, start: int, end: int) -> bool:
    return not (_is_inside_word(text, start) or _is_inside_word(text, end))


def _is_inside_word(text: str, at: int) -> bool:
    """Whether a word stands on both sides of a place."""
    if not 0 < at < len(text):
        return False
    return all(_is_word_character(char) for char in text[at - 1 : at + 1]) and not _SCRIPTS_WITHOUT_SPACES.search(
        text, at - 1, at + 1
    )


def _is_word_character(char: str) -> bool:
    return char.isalnum() or char == "_" or unicodedata.category(char).startswith("M")


def _to_utf16(text: str, spans: list[TextRange]) -> Iterator[TextRange]:
    at = position = 0
    for start, end in spans:
        first = position + utf16_length(text[at:start])
        at, position = end, first + utf16_length(text[start:end])
        yield first, position
