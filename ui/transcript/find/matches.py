"""The query, where it matches in a text, how many matches each row has, and which one comes first."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from desktop_agent.types.hidden_characters import DECEPTIVE_CHARACTERS
from ui.transcript.blocks.block import BlockReplacement, TextRange
from ui.transcript.find.searchable_text import SearchableTexts, TextRun, first_lazy_section, first_piece_of, raw_text_of
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.rows.heights import Heights
from ui.transcript.rows.row import RowSelection
from ui.transcript.viewport.positions import text_boxes
from ui.transcript.viewport.row_list import RowList, ScrollAnchor
from ui.transcript.viewport.viewport import RowViewport

_WORD_RUN = re.compile(r"[^\W_]+")
_MARKUP = {ord(sign): None for sign in "*_~`\\$"}
# Where words of the displayed text may be missing in its Markdown: entities, tags, hidden characters that are spelled
# out, and words that continue behind a link, a formula or a comment.
_MAY_RENDER_DIFFERENTLY = re.compile(rf"&#?\w{{1,40}};|[\])>]\w|\w[\[<]|\w\\[(\[]|\\[)\]]\w|[{DECEPTIVE_CHARACTERS}]")
_SCRIPTS_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Scripts without spaces between words: every position in them is the end of a word."""

_SEARCH_PART = 20_000
"""Characters that are searched at once."""


@dataclass(frozen=True)
class Query:
    """A query as the person typed it. Case is folded as Unicode defines it; any space matches any space."""

    text: str
    match_case: bool = field(default=False, kw_only=True)
    whole_words: bool = field(default=False, kw_only=True)

    def __bool__(self) -> bool:
        return bool(self.text)

    @cached_property
    def _folded_query(self) -> str:
        return self._folded(self.text)

    @cached_property
    def _runs(self) -> tuple[str, ...]:
        return tuple(_WORD_RUN.findall(self._folded_query))

    def may_match(self, raw: str) -> bool:
        """Return False only if no rendering of this Markdown or plain text can match. Cheap."""
        folded = raw if self.match_case else _casefolded(raw)
        if all(run in folded for run in self._runs) or _MAY_RENDER_DIFFERENTLY.search(raw):
            return True
        bare = folded.translate(_MARKUP)
        return all(run in bare or run in folded for run in self._runs)

    def find_all(self, text: str) -> list[TextRange]:
        """Return the matches in UTF-16 units, from left to right, without overlaps or halves of characters."""
        return [span for part in self.find_in_steps(text) for span in part]

    def find_in_steps(self, text: str) -> Iterator[list[TextRange]]:
        """Yield the same matches in parts, each of which is cheap even in a long text."""
        start = position = 0
        while start < len(text):
            # Folding never makes text shorter: what begins in a part ends in this window.
            window = text[start : start + _SEARCH_PART + len(self._folded_query)]
            matches = [span for span in self._find(window) if span[0] < _SEARCH_PART]
            end = min(len(text), start + max(_SEARCH_PART, matches[-1][1] if matches else 0))
            if self.whole_words:
                matches = [span for span in matches if _is_whole_word(text, start + span[0], start + span[1])]
            spans = matches if utf16_length(window) == len(window) else list(_to_utf16(window, matches))
            yield [(position + first, position + last) for first, last in spans]
            position += utf16_length(text[start:end])
            start = end

    @property
    def lookahead(self) -> int:
        """The characters after a position that may decide about a match before it."""
        return len(self._folded_query) + 1

    def has_no_match_across(self, before: str, after: str) -> bool:
        """Return whether no match crosses the seam of two texts, so that each can be searched alone."""
        overlap = len(self._folded_query) - 1
        if overlap <= 0:
            return True
        seam = before[-overlap:] + after[:overlap]
        return min(len(before), len(after)) >= overlap and next(self._find(seam), None) is None

    def _folded(self, text: str) -> str:
        # All of these are one character for one character.
        text = text.replace("\n", " ").replace("\t", " ").replace("\u00a0", " ").replace("\u202f", " ")
        return text if self.match_case else _casefolded(text)

    def _find(self, text: str) -> Iterator[TextRange]:
        folded = self._folded(text)
        # Folding never makes text shorter: a folded text of the same length corresponds character by character.
        origins = None if len(folded) == len(text) else _source_offsets(text)
        start = folded.find(self._folded_query) if self._folded_query else -1
        while start >= 0:
            end = start + len(self._folded_query)
            if origins is None:
                yield start, end
            elif _is_character_boundary(origins, start) and _is_character_boundary(origins, end):
                yield origins[start], origins[end]
            else:
                end = start + 1
            start = folded.find(self._folded_query, end)


def _casefolded(text: str) -> str:
    # The Turkish capital with a dot would become two characters, of which no keyboard types the second.
    return text.lower() if text.isascii() else text.replace("\u0130", "i").casefold()


def _source_offsets(text: str) -> list[int]:
    origins: list[int] = []
    for index, char in enumerate(text):
        origins += [index] * len(_casefolded(char))
    return [*origins, len(text)]


def _is_character_boundary(origins: list[int], offset: int) -> bool:
    return offset == 0 or origins[offset] != origins[offset - 1]


def _is_whole_word(text: str, start: int, end: int) -> bool:
    return not (_is_inside_word(text, start) or _is_inside_word(text, end))


def _is_inside_word(text: str, offset: int) -> bool:
    if not 0 < offset < len(text) or _SCRIPTS_WITHOUT_SPACES.search(text, offset - 1, offset + 1):
        return False
    return all(map(_is_word_character, text[offset - 1 : offset + 1]))


def _is_word_character(char: str) -> bool:
    return char.isalnum() or char == "_" or unicodedata.category(char).startswith("M")


def _to_utf16(text: str, spans: list[TextRange]) -> Iterator[TextRange]:
    index = position = 0
    for start, end in spans:
        first = position + utf16_length(text[index:start])
        index, position = end, first + utf16_length(text[start:end])
        yield first, position


class RowMatches:
    """The matches of a row, in the order of the text."""

    def __init__(self) -> None:
        self._parts: list[tuple[TextRun, list[TextRange]]] = []
        self._firsts: list[int] = []
        self._count = 0

    def add(self, text_run: TextRun, spans: list[TextRange]) -> None:
        """Append the matches of a text run."""
        if spans:
            self._parts.append((text_run, spans))
            self._firsts.append(self._count)
            self._count += len(spans)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> RowSelection:
        number = range(self._count)[index]
        part = bisect_right(self._firsts, number) - 1
        text_run, spans = self._parts[part]
        return text_run.selection(*spans[number - self._firsts[part]])


class MatchCounts:
    """The number of matches in each row, with everything in it unfolded and parsed."""

    def __init__(self, query: Query, rows: RowList, texts: SearchableTexts) -> None:
        self.query = query
        self._rows = rows
        self._texts = texts
        self._counts = Heights(len(rows) if query else 0)
        self._final: dict[int, tuple[int, int]] = {}
        self._listed: tuple[int, RowMatches] | None = None
        self._counted: tuple[int, RowMatches] | None = None

    def __len__(self) -> int:
        return len(self._counts)

    def __getitem__(self, index: int) -> int:
        return self._counts[index] if index < len(self._counts) else 0

    @property
    def total(self) -> int:
        return self._counts.total

    def before(self, index: int) -> int:
        """Return the number of matches in the rows before this one."""
        return self._counts.top(index)

    def find(self, number: int) -> tuple[int, int]:
        """Return the row of a match, and its number in that row; both numbers count from 0."""
        index = self._counts.find(number)
        return index, number - self._counts.top(index)

    def matches_in_row(self, index: int) -> RowMatches:
        """Return all matches of a row."""
        if self._listed is None or self._listed[0] != index:
            self._listed = self._counted
        if self._listed is None or self._listed[0] != index:
            matches = RowMatches()
            for text_run, spans in self._matches(index):
                if text_run:
                    matches.add(text_run, spans)
            self._listed = index, matches
        return self._listed[1]

    def _matches(
        self, index: int, first: int = 0, *, waits: bool = False
    ) -> Iterator[tuple[TextRun | None, list[TextRange]]]:
        """Yield the matches by text run, those of long ones in parts."""
        for text_run in self._texts.text_runs_of(index, first, waits=waits):
            if text_run is None:
                yield None, []
            else:
                for spans in self.query.find_in_steps(text_run.text):
                    yield text_run, spans

    def is_final(self, index: int, position: RowSelection) -> bool:
        """Return whether a match is in the part of its row that will not change."""
        return position[0][0] < self._final.get(index, (0, 0))[0]

    def insert(self, index: int) -> None:
        """Insert a row without matches."""
        if index < len(self):
            self._final.clear()
        self._counts.insert(min(index, len(self)))
        self._listed = self._counted = None

    def prepend(self, count: int) -> None:
        """Insert `count` rows without matches at the beginning."""
        self._final.clear()
        self._counts.replace(0, 0, [0] * count)
        self._listed = self._counted = None

    def remove(self, first: int, count: int) -> None:
        """Remove rows."""
        self._counts.remove(first, count)
        self._final.clear()
        self._listed = self._counted = None

    def count(self, indices: Iterable[int]) -> Iterator[int]:
        """Count the matches of these rows in small steps; yield the current row after each."""
        for index in indices:
            if index < min(len(self), len(self._rows.transcript)):
                yield from self._count(index)

    def _count(self, index: int) -> Iterator[int]:
        raw = raw_text_of(self._rows.transcript[index])
        count, self._counted = 0, None
        if raw is None or self.query.may_match(raw):
            for more in self._count_matches(index):
                count = more
                yield index
        if self._listed and self._listed[0] == index:
            self._listed = None
        if index < len(self):
            self._counts[index] = count
            yield index

    def _count_matches(self, index: int) -> Iterator[int]:
        """Yield the number of matches so far; the final part of a growing row is not searched again."""
        first, count = self._final.get(index, (0, 0))
        final, settled = self._final_block_count(index), count
        matches = RowMatches()
        for text_run, spans in self._matches(index, first, waits=True):
            count += len(spans)
            if text_run and spans:
                matches.add(text_run, spans)
                settled = count if text_run.selection(*spans[0])[0][0] < final else settled
            yield count
        if final:
            self._final[index] = final, settled
        self._counted = None if first else (index, matches)
        yield count

    def _final_block_count(self, index: int) -> int:
        """Return how many blocks of a visible row are final, in whole paragraphs."""
        row = self._rows.existing_row(index)
        final = int(getattr(row, "closed", 0)) if row and row.is_open and first_lazy_section(row) is None else 0
        return first_piece_of(row, final) if row and final < len(row.blocks) else final


class SearchOrigin:
    """Where the search begins: a row, a block and a y in it. It stays while the person goes on typing the query."""

    def __init__(self, viewport: RowViewport) -> None:
        self._viewport = viewport
        self._anchor = ScrollAnchor()
        self._scrolled_to: tuple[int, int] | None = None
        viewport.on_replaced.append(self._on_replaced)

    @property
    def row(self) -> int:
        return self._anchor.row

    def set_here(self) -> None:
        """Start a search: the origin stays unless the person scrolled."""
        if self._current_position() != self._scrolled_to:
            self._anchor = self._viewport.rows.anchor_at(self._viewport.rows.top)

    def set_row(self, row: int) -> None:
        """Start at the beginning of a row, wherever the person reads."""
        self._anchor = ScrollAnchor(row)
        self.on_scrolled_away()

    def move(self, count: int) -> None:
        """Stay in the same row when `count` rows are prepended."""
        self._anchor = replace(self._anchor, row=self._anchor.row + count)
        if self._scrolled_to is not None:
            self._scrolled_to = self._scrolled_to[0] + count, self._scrolled_to[1]

    def _current_position(self) -> tuple[int, int]:
        # Not `top` alone: it also changes when heights above become exact.
        rows = self._viewport.rows
        row = rows.row_at(rows.top) if len(rows) else 0
        return row, rows.top - rows.row_top(row)

    def on_scrolled_away(self) -> None:
        """Remember the position the search scrolled to."""
        self._scrolled_to = self._current_position()

    def forget(self) -> None:
        """Set the origin to the current position at the next search."""
        self._scrolled_to = None

    def _on_replaced(self, row: int, replacement: BlockReplacement) -> None:
        if row == self.row:
            stack = self._viewport.rows.row(row).stack
            self._anchor = self._anchor.after_replacement(row, stack, replacement)

    def read_step(self) -> bool:
        """Parse its row one step further down to the origin; return whether there was anything to parse."""
        section = self._next_lazy_section()
        if section is not None:
            self._viewport.rows.row(self.row).stack.read(section, 0)
        return section is not None

    def _next_lazy_section(self) -> int | None:
        """Return the section above the origin that must be parsed before matches have their final positions."""
        section = first_lazy_section(self._viewport.rows.row(self.row))
        return section if section is not None and section <= self._anchor.block else None

    def choose_match(self, counts: MatchCounts, index: int) -> tuple[int, int] | None:
        """Choose the first match at or below the origin in its row, or the nearest one in another row.

        None while its own row is not parsed down to the origin.
        """
        if not counts[index]:
            return None
        if index > self.row:
            return index, 0
        if index < self.row:
            nearest = self.row if counts[self.row] else index
            return nearest, counts[nearest] - 1
        nth = self._first_below(counts) if self._next_lazy_section() is None else None
        return None if nth is None else (index, nth)

    def _first_below(self, counts: MatchCounts) -> int | None:
        row, matches = self._viewport.rows.row(self.row), counts.matches_in_row(self.row)
        if not row.blocks:
            return 0
        origin_block = min(self._anchor.block, len(row.blocks) - 1)
        y = row.stack.block_top(origin_block) + self._anchor.offset

        def is_below(match: RowSelection) -> bool:
            block = match[0][0]
            if block != origin_block:
                return block > origin_block
            box = next(text_boxes(row, match), None)
            return (box.bottom() if box else row.stack.block_box(block).bottom()) > y

        # A binary search: further on in the text is further down, and there may be thousands of matches.
        nth = bisect_left(matches, True, key=is_below)
        return nth if nth < len(matches) else None
