"""A long text of which it is not known yet where its sections begin."""

from collections.abc import Callable, Generator, Iterator
from time import perf_counter, thread_time

from ui.transcript.blocks.block import Block
from ui.transcript.markdown.sections import Sections, split_in_steps
from ui.transcript.rows.body.making import BlockFactory
from ui.transcript.rows.body.unread import LazySection, ReplaceBlock

_FIRST_SLICE = 0.010
"""Seconds of the processor that a text is cut when it is first shown: an ordinary one is ready by then."""

_MIN_SLICE = 0.0005
"""Seconds of cutting between two looks at the screen."""


class SplittingSection(LazySection):
    """Stands where the sections of its text will stand. Until then it is one of them, of which nothing was read."""

    def __init__(self, text: str, factory: BlockFactory, replace: ReplaceBlock) -> None:
        super().__init__(text, factory, replace)
        self._splitting = self._steps(split_in_steps(text))
        self._split: Sections | None = None

    def start_splitting(self) -> None:
        """Cut as much as nobody sees."""
        self._split_until(thread_time, thread_time() + _FIRST_SLICE)

    def read(self, until: float) -> None:
        """Cut on until the clock says so, and put the sections in its place when all is known."""
        self._split_until(perf_counter, max(until, perf_counter() + _MIN_SLICE))

    def _split_until(self, clock: Callable[[], float], until: float) -> None:
        for _ in self._splitting:
            if clock() > until:
                return
        self._replace(self, self._sections())

    def _steps(self, cutting: Generator[None, None, Sections]) -> Iterator[None]:
        self._split = yield from cutting
        self._factory.references = self._split[1]

    def _sections(self) -> list[Block]:
        """Once it is cut."""
        parts = self._split[0] if self._split else []
        return [LazySection(self._text[start:end], self._factory, self._replace) for start, end in parts]

    def iter_blocks(self) -> Iterator[Block | None]:
        """Of all sections."""
        for _ in self._splitting:
            yield None
        for section in self._sections():
            if isinstance(section, LazySection):
                yield from section.iter_blocks()
                yield None

    def blocks(self) -> list[Block]:
        """Of all sections, at once."""
        return [block for block in self.iter_blocks() if block]

    def detached(self) -> list[Block]:
        """One like this."""
        return [SplittingSection(self._text, self._factory, self._replace)]
