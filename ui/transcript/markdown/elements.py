"""The parts of a parsed Markdown text: leaf blocks inside containers, and top-level blocks."""

from dataclasses import dataclass
from typing import Literal

LeafKind = Literal["paragraph", "heading", "code", "table", "rule", "math"]
TopLevelKind = Literal["list", "table", "paragraph", "fence", "math", "container", "other"]
TableRow = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Container:
    """A container around a leaf. Only its first leaf has the marker.

    The marker of an item is a bullet, a check box or its displayed number, that of a footnote its label.
    """

    kind: Literal["quote", "item", "footnote"]
    marker: str = ""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A block that contains no other blocks.

    `text` is inline Markdown for paragraphs and headings, plain text for code, and LaTeX for math. `cells` are the rows
    of a table, head first. Consecutive leaves of one list or quote have equal `containers`. `starts` is true where a
    top-level block begins, `tight` where no blank line precedes a leaf of a list. A long paragraph is several leaves:
    `separator` is the text between a leaf and the one before it, None where a paragraph begins. `back` is the label of
    the footnote whose last text this is.
    """

    kind: LeafKind
    text: str = ""
    level: int = 0
    info: str = ""
    containers: tuple[Container, ...] = ()
    tight: bool = False
    cells: tuple[TableRow, ...] = ()
    aligns: tuple[str, ...] = ()
    starts: bool = False
    separator: str | None = None
    back: str = ""


@dataclass(frozen=True, slots=True)
class CarriedBlock:
    """What is parsed instead of the final beginning of an open top-level block, so that the rest parses the same.

    `opening` is a placeholder item of the list or block of the quote or footnote, the head of the table, or a word of
    the paragraph; it is not displayed again. `ordinal` is the number of the next list item, `missing` the number of
    cells missing in rows of the table so far, `separator` the text before the rest of the paragraph.
    """

    kind: Literal["list", "table", "paragraph", "container"]
    opening: str
    ordinal: int = 0
    missing: int = 0
    separator: str = ""


@dataclass(frozen=True, slots=True)
class ListItem:
    """An item of a top-level list: its first line, the leaves before it, and whether a blank line precedes it."""

    line: int
    leaf: int
    after_blank: bool


@dataclass(frozen=True, slots=True)
class SplitPoint:
    """A place in an open top-level quote or footnote, before a block or an item, where the text can be split.

    The text below begins at line `start`; the text above is final once `sure` lines are complete; `leaf` leaves are
    above. `opening` is parsed in their place, `ordinal` is the number of the item, `note` the label of the surrounding
    footnote.
    """

    start: int
    sure: int
    leaf: int
    opening: str
    ordinal: int
    note: str | None


@dataclass(frozen=True, slots=True)
class TopLevelBlock:
    """A top-level block with its leaves, its first line, and the line after its last one.

    Nothing changes where the block begins once `sure` lines are complete. `items`, `marker` and `ordinal` (of the first
    item) belong to lists, `missing` to tables (one number for each row), `stops` to quotes and footnotes.
    """

    kind: TopLevelKind
    leaves: tuple[Leaf, ...]
    first: int
    end: int
    sure: int
    items: tuple[ListItem, ...] = ()
    marker: str = ""
    ordinal: int = 0
    missing: tuple[int, ...] = ()
    stops: tuple[SplitPoint, ...] = ()
    is_open: bool = False
