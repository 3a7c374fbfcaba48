"""How many matches each row has: counted in slices, and again only where a row changed."""

from collections.abc import Iterable, Iterator

from ui.transcript.blocks.block import TextRange
from ui.transcript.geometry import Heights
from ui.transcript.rows.row import RowSelection
from ui.transcript.surface.finding.found_places import RowMatches
from ui.transcript.surface.finding.needle import Query
from ui.transcript.surface.finding.reading import SearchableTexts, first_lazy_section
from ui.transcript.surface.finding.texts import TextRun, first_piece_of, raw_text_of
from ui.transcript.surface.row_list import RowList


class MatchCounts:
    """Of one needle in one list of rows. Places are those of rows that are unfolded and read to their end."""

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
        """All that were counted so far."""
        return self._counts.total

    def before(self, index: int) -> int:
        """The matches in the rows before this one."""
        return self._counts.top(index)

    def find(self, number: int) -> tuple[int, int]:
        """The row of a match by its number, from 0 on, and its number in that row."""
        index = self._counts.find(number)
        return index, number - self._counts.top(index)

    def matches_in_row(self, index: int) -> RowMatches:
        """All matches of a row."""
        if self._listed is None or self._listed[0] != index:
            self._listed = (
                self._counted if self._counted and self._counted[0] == index else (index, self._list_matches(index))
            )
        return self._listed[1]

    def _list_matches(self, index: int) -> RowMatches:
        found = RowMatches()
        for text_run, spans in self._matches(index):
            if text_run:
                found.add(text_run, spans)
        return found

    def _matches(self, index: int, first: int = 0) -> Iterator[tuple[TextRun | None, list[TextRange]]]:
        """Stretch by stretch, long ones in parts."""
        for text_run in self._texts.text_runs_of(index, first):
            if text_run is None:
                yield None, []
            else:
                for spans in self.query.find_in_steps(text_run.text):
                    yield text_run, spans

    def is_final(self, index: int, position: RowSelection) -> bool:
        """Whether a match of a row stands where the row does not change any more."""
        return position[0][0] < self._final.get(index, (0, 0))[0]

    def insert(self, index: int) -> None:
        """A row more."""
        if index < len(self):
            self._final.clear()
        self._counts.insert(min(index, len(self)))
        self._listed = self._counted = None

    def remove(self, first: int, count: int) -> None:
        """Some rows less."""
        self._counts.remove(first, count)
        self._final.clear()
        self._listed = self._counted = None

    def count(self, indices: Iterable[int]) -> Iterator[int]:
        """Look through these rows; answers which one it is at, again and again, so that the work can be sliced."""
        for index in indices:
            if index < min(len(self), len(self._rows.transcript)):
                yield from self._count(index)

    def _count(self, index: int) -> Iterator[int]:
        raw = raw_text_of(self._rows.transcript[index])
        found, self._counted = 0, None
        if raw is None or self.query.may_match(raw):
            for more in self._count_matches(index):
                found = more
                yield index
        if self._listed and self._listed[0] == index:
            self._listed = None
        if index < len(self):
            self._counts[index] = found
            yield index

    def _count_matches(self, index: int) -> Iterator[int]:
        """How many there are so far. What is final of a row that grows is not looked at again."""
        first, found = self._final.get(index, (0, 0))
        final, settled = self._final_block_count(index), found
        places = RowMatches()
        for text_run, spans in self._matches(index, first):
            found += len(spans)
            if text_run and spans:
                places.add(text_run, spans)
                settled = found if text_run.selection(*spans[0])[0][0] < final else settled
            yield found
        if final:
            self._final[index] = final, settled
        self._counted = None if first else (index, places)
        yield found

    def _final_block_count(self, index: int) -> int:
        """How many blocks of a row on the screen will not change: whole paragraphs only."""
        row = self._rows.existing_row(index)
        final = int(getattr(row, "closed", 0)) if row and row.is_open and first_lazy_section(row) is None else 0
        return first_piece_of(row, final) if row and final < len(row.blocks) else final
