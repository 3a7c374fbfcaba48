"""Numbered parts of one output item: their pieces may come mixed or get lost, they are shown once and in order."""

from collections.abc import Callable
from dataclasses import dataclass, field

from desktop_agent.providers.transport.json_text import mended


@dataclass(slots=True, eq=False)
class Part:
    """One part in the making. `pieces` is what came; `is_done`: no more pieces will come."""

    index: int
    pieces: list[str] = field(default_factory=list[str])
    is_done: bool = False
    is_closed: bool = False


class OrderedParts:
    """Shows the parts of one item one after another, whatever the order in which their pieces come.

    `open` is the part that is being shown; pieces of a later one wait until it is done. `opened` and `closed` are told
    about each part that has anything to show.
    """

    def __init__(
        self, show: Callable[[str], None], opened: Callable[[Part], None], closed: Callable[[Part], None]
    ) -> None:
        self.open: Part | None = None
        self._show = show
        self._opened = opened
        self._closed = closed
        self._parts: dict[int, Part] = {}

    def add(self, index: int, piece: str) -> None:
        """A piece of this part."""
        part = self._part(index)
        if not piece or part.is_closed:
            return
        part.pieces.append(piece)
        if part is self.open:
            self._show(piece)
        else:
            self._advance()

    def complete(self, index: int, truth: str) -> None:
        """The whole text of this part: what was lost at its end is shown now, and nothing twice."""
        shown = mended("".join(self._part(index).pieces))
        truth = mended(truth)
        if truth.startswith(shown):
            self.add(index, truth[len(shown) :])
        self._part(index).is_done = True
        self._advance()

    def finish(self) -> None:
        """Show what still waits, and close everything."""
        for part in self._parts.values():
            part.is_done = True
        self._advance()
        self._close_open()

    def _part(self, index: int) -> Part:
        part = self._parts.get(index)
        if part is None:
            part = self._parts[index] = Part(index)
        return part

    def _advance(self) -> None:
        """Show the first waiting part, and go on while parts are done."""
        while self.open is None or self.open.is_done:
            waiting = [each for each in self._parts.values() if each.pieces and not each.is_closed]
            following = [each for each in waiting if each is not self.open]
            if not following:
                return
            self._close_open()
            self.open = min(following, key=lambda each: each.index)
            self._opened(self.open)
            self._show("".join(self.open.pieces))

    def _close_open(self) -> None:
        part, self.open = self.open, None
        if part is not None:
            part.is_closed = True
            self._closed(part)
