"""The heights of a long list, most of them estimated: sums and searches are cheap."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

_CHUNK = 256


class Heights:
    """Heights in whole pixels, kept in chunks; the sums before the chunks are computed on demand.

    A change costs its chunk only, whatever the length of the list, and a query costs the same at every index.
    In a new list all full chunks are one shared list, until a height in one of them changes.
    """

    def __init__(self, count: int = 0, default: int = 0) -> None:
        self._default = default
        self._count, self.total = count, count * default
        full, rest = divmod(count, _CHUNK)
        self._shared_chunk = [default] * _CHUNK if full else []
        last = [[default] * rest] if rest else []
        self._chunks = [self._shared_chunk] * full + last
        self._sums = [default * len(chunk) for chunk in self._chunks]
        # Index and y of the beginning of each chunk, as far as they are known: up to the last of these lists.
        self._firsts = list(range(0, count + 1, _CHUNK))
        self._tops = [default * first for first in self._firsts]
        # The y of each height of the chunk that was read last, and of its end; empty after a change.
        self._cached_tops: list[int] = []
        self._cached_first = 0

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> int:
        chunk = self._chunk_of(index)
        return self._chunks[chunk][index - self._firsts[chunk]]

    def __setitem__(self, index: int, height: int) -> None:
        chunk = self._chunk_of(index)
        change = height - self._chunks[chunk][index - self._firsts[chunk]]
        if change:
            if self._chunks[chunk] is self._shared_chunk:
                self._chunks[chunk] = self._shared_chunk.copy()
            self._chunks[chunk][index - self._firsts[chunk]] = height
            self._sums[chunk] += change
            self.total += change
            self._forget_after(chunk)

    def top(self, index: int) -> int:
        """Return the sum of the first `index` heights."""
        offset = index - self._cached_first
        if not 0 <= offset < len(self._cached_tops):
            chunk = self._chunk_of(index)
            if chunk == len(self._chunks):
                return self.total
            self._cache_chunk(chunk)
            offset = index - self._cached_first
        return self._cached_tops[offset]

    def find(self, y: int) -> int:
        """Return the index whose span contains `y`, or the nearest one when `y` is outside. An empty list gives 0."""
        if not (self._cached_tops and self._cached_tops[0] <= y < self._cached_tops[-1]):
            while self._tops[-1] <= y and len(self._tops) <= len(self._chunks):
                self._add_chunk_start()
            chunk = max(0, bisect_right(self._tops, y) - 1)
            if chunk == len(self._chunks):
                return max(0, len(self) - 1)
            self._cache_chunk(chunk)
        return self._cached_first + max(0, bisect_right(self._cached_tops, y) - 1)

    def _cache_chunk(self, chunk: int) -> None:
        self._cached_first = self._firsts[chunk]
        self._cached_tops = list(accumulate(self._chunks[chunk], initial=self._tops[chunk]))

    def _forget_after(self, chunk: int) -> None:
        """Drop the known sums after the beginning of a chunk."""
        self._cached_tops = []
        del self._tops[chunk + 1 :], self._firsts[chunk + 1 :]

    def append(self, height: int) -> None:
        """Append a height."""
        if self._chunks and len(self._chunks[-1]) < _CHUNK:
            self._chunks[-1].append(height)
            self._sums[-1] += height
            self.total += height
            self._count += 1
            self._forget_after(len(self._chunks) - 1)
        else:
            self._set_chunks(len(self._chunks), len(self._chunks), [height])

    def insert(self, index: int) -> None:
        """Insert the default height."""
        self.replace(index, 0, [self._default])

    def remove(self, first: int, count: int) -> None:
        """Remove `count` heights."""
        self.replace(first, count, ())

    def replace(self, first: int, count: int, heights: Sequence[int]) -> None:
        """Replace `count` heights by others."""
        start, end = self._chunk_of(first), self._chunk_of(first + count)
        begin = first - self._firsts[start]
        rest = self._chunks[end][first + count - self._firsts[end] :] if end < len(self._chunks) else []
        before = self._chunks[start][:begin] if start < len(self._chunks) else []
        self._set_chunks(start, min(end + 1, len(self._chunks)), [*before, *heights, *rest])

    def _set_chunks(self, start: int, end: int, heights: list[int]) -> None:
        longest = 2 * _CHUNK
        size = _CHUNK if len(heights) > longest else longest
        self._count += len(heights) - sum(map(len, self._chunks[start:end]))
        chunks = [heights[index : index + size] for index in range(0, len(heights), size)]
        self.total += sum(heights) - sum(self._sums[start:end])
        self._chunks[start:end] = chunks
        self._sums[start:end] = map(sum, chunks)
        self._forget_after(start)

    def _add_chunk_start(self) -> None:
        chunk = len(self._tops) - 1
        self._tops.append(self._tops[chunk] + self._sums[chunk])
        self._firsts.append(self._firsts[chunk] + len(self._chunks[chunk]))

    def _chunk_of(self, index: int) -> int:
        """Return the chunk that contains an index; one past the last for the end of the list."""
        while self._firsts[-1] <= index and len(self._firsts) <= len(self._chunks):
            self._add_chunk_start()
        return bisect_right(self._firsts, index) - 1
