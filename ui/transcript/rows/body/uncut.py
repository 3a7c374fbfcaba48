"""A long text of which it is not known yet where its sections begin."""

from collections.abc import Callable, Generator, Iterator
from time import perf_counter, thread_time

from ui.transcript.blocks.block import Block
from ui.transcript.markdown.sections import Cut, cut_up
from ui.transcript.rows.body.making import Maker
from ui.transcript.rows.body.unread import Place, UnreadBlock

_AT_ONCE = 0.010
"""Seconds of the processor that a text is cut when it is first shown: an ordinary one is ready by then."""

_LEAST = 0.0005
"""Seconds of cutting between two looks at the screen."""


class UncutBlock(UnreadBlock):
    """Stands where the sections of its text will stand. Until then it is one of them, of which nothing was read."""

    def __init__(self, text: str, maker: Maker, place: Place) -> None:
        super().__init__(text, maker, place)
        self._cutting = self._steps(cut_up(text))
        self._cut: Cut | None = None

    def begin(self) -> None:
        """Cut as much as nobody sees."""
        self._cut_on(thread_time, thread_time() + _AT_ONCE)

    def read(self, until: float) -> None:
        """Cut on until the clock says so, and put the sections in its place when all is known."""
        self._cut_on(perf_counter, max(until, perf_counter() + _LEAST))

    def _cut_on(self, clock: Callable[[], float], until: float) -> None:
        for _ in self._cutting:
            if clock() > until:
                return
        self._place(self, self._sections())

    def _steps(self, cutting: Generator[None, None, Cut]) -> Iterator[None]:
        self._cut = yield from cutting
        self._maker.references = self._cut[1]

    def _sections(self) -> list[Block]:
        """Once it is cut."""
        parts = self._cut[0] if self._cut else []
        return [UnreadBlock(self._text[start:end], self._maker, self._place) for start, end in parts]

    def in_steps(self) -> Iterator[Block | None]:
        """Of all sections."""
        for _ in self._cutting:
            yield None
        for section in self._sections():
            if isinstance(section, UnreadBlock):
                yield from section.in_steps()
                yield None

    def blocks(self) -> list[Block]:
        """Of all sections, at once."""
        return [block for block in self.in_steps() if block]

    def apart(self) -> list[Block]:
        """One like this."""
        return [UncutBlock(self._text, self._maker, self._place)]
