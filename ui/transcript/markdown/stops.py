"""Where an open quote or footnote can be given up to: what stands above is final, what is below is read without it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from markdown_it.token import Token

from ui.transcript.markdown.leaves import SplitPoint

_LISTS = {"bullet_list_open", "ordered_list_open"}
# Neither does anything that follows belong to it, nor does it belong to what stands above.
_RULE = "***"


@dataclass(slots=True)
class _OpenContainer:
    """A quote, a footnote or a list: how its lines begin, the first one and a blank one, and where its blocks end.

    `leaf` is the number of leaves above the outermost container, or above the footnote.
    """

    first: str
    blank: str
    leaf: int = 0
    note: str | None = None
    is_list: bool = False
    end: int | None = None
    after_definition: bool = False
    stops: list[SplitPoint] = field(default_factory=list[SplitPoint])

    def opening(self, token: Token, number: int | None, *, after_blank: bool) -> str:
        """What is read in the place of all that stands above a block or an item."""
        made_up = _RULE
        if self.is_list:
            # Four columns to its text: no item of the same list can be taken for one inside it.
            made_up = f"{token.markup}   x" if number is None else f"1{token.markup}  x"
        return f"{self.first}{made_up}\n" + (f"{self.blank}\n" if after_blank else "")


class SplitPoints:
    """Follows the tokens of one top-level block. Into the items of a list it does not look."""

    def __init__(self) -> None:
        self._containers: list[_OpenContainer] = []
        self._open: list[_OpenContainer] = []

    def all(self) -> tuple[SplitPoint, ...]:
        """In what may go on after the last token, in the order of the text."""
        return tuple(stop for around in self._open for stop in around.stops)

    def add_token(self, token: Token, leaf: int, after_blank: Callable[[int], bool], number: int | None) -> None:
        """The next token; so many leaves stand above it. Items of the list around it are at this number."""
        around = self._containers
        if token.nesting < 0 and token.level == len(around) - 1:
            around.pop()
        elif token.nesting >= 0 and token.level == len(around) and token.type != "inline":
            if around:
                self._open = [*around]
                self._child(token, leaf, after_blank, number)
            self._enter(token, leaf)

    def _child(self, token: Token, leaf: int, after_blank: Callable[[int], bool], number: int | None) -> None:
        around = self._containers[-1]
        first, last = cast("list[int]", token.map)
        is_definition = token.type == "definition"
        # A definition may still get its title from the block below it, but not from another definition.
        start = first if (is_definition and around.after_definition) or around.is_list else around.end
        # The first leaf has what tells where the container begins.
        is_shown = leaf > around.leaf or (is_definition and leaf == 0 and around.note is None)
        if (
            start is not None
            and is_shown
            and not (around.is_list and around.end is None)
            and not token.meta.get("open")
        ):
            opening = around.opening(token, number, after_blank=after_blank(first)) if leaf else ""
            sure = {"math_block": last, "table": first + 2}.get(token.type, first + 1)
            around.stops.append(SplitPoint(start, sure, leaf, opening, number or 0, around.note))
        around.after_definition = is_definition
        if not is_definition:
            around.end = last

    def _enter(self, token: Token, leaf: int) -> None:
        """What stands inside of two footnotes is left alone: which text is the last of each is known at their ends."""
        above = self._containers[-1] if self._containers else _OpenContainer("", "")
        if token.type == "blockquote_open":
            self._containers.append(_OpenContainer(above.first + "> ", above.blank + ">", above.leaf, above.note))
        elif token.type == "footnote_reference_open" and above.note is None:
            label = cast("str", token.meta["label"])
            self._containers.append(_OpenContainer(f"{above.first}[^{label}]: ", f"{above.blank}    ", leaf, label))
        elif token.type in _LISTS and self._containers:
            self._containers.append(_OpenContainer(above.first, above.blank, above.leaf, above.note, is_list=True))
