"""A very long text of which it is not known yet where its sections begin."""

from collections.abc import Generator, Iterator
from time import perf_counter

from ui.transcript.blocks.block import Block
from ui.transcript.markdown.sections import Cut, cut_up
from ui.transcript.rows.body.making import Maker
from ui.transcript.rows.body.unread import Place, UnreadBlock

_LONG = 250_000
_MANY = 200
"""Characters, and what may be definitions, of a text that is cut at once."""

_LEAST = 0.0005
"""Seconds of cutting between two looks at the screen."""


def is_very_long(text: str) -> bool:
    """Whether finding its sections and definitions would be seen."""
    return len(text) > _LONG or text.count("]:") > _MANY


class UncutBlock(UnreadBlock):
    """Stands where the sections of its text will stand. Until then it is one of them, of which nothing was read."""

    def __init__(self, text: str, maker: Maker, place: Place) -> None:
        super().__init__(text, maker, place)
        self._cutting = self._steps(cut_up(text))
        self._cut: Cut | None = None

    def read(self, until: float) -> None:
        """Cut on until the clock says so, and put the sections in its place when all is known."""
        until = max(until, perf_counter() + _LEAST)
        for _ in self._cutting:
            if perf_counter() > until:
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
